package login

import (
	"net/http"
	"time"

	"belfry/internal/ordered"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/sessions"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

type keyForm struct {
	op.Input
	Name     string  `form:"name,required" doc:"The purpose of the key: 1 to 100 bytes."`
	Expires  *string `form:"expires" doc:"The time at which it expires (RFC 3339); never by default."`
	Rule     *string `form:"rule"`
	Password string  `form:"password" doc:"The password of the user, if there is one."`
}

// issuedKey is a new API key with its token, which is shown once.
type issuedKey struct {
	keys.Info
	Token string `json:"token"`
}

// addKeys adds the operations on API keys.
func (h *Handler) addKeys(set *op.Set) {
	set.Get(op.Operation{
		Path: "/auth/keys", ID: "listKeys", Summary: "List one's API keys", Security: op.Needed(),
		Replies: ordered.Of("200", op.Reply("The keys, the oldest first.",
			op.JSON(op.Object("", 1, "keys", op.List(apimodel.Ref("APIKey")))), "Cache-Control")),
		Problems: []int{401, 403, 429},
		Limit:    httpkit.Read, Run: h.owner(h.keys),
	})
	made := keySchema()
	made.Set("description", "A new API key.")
	made.Set("required", append(made.Get("required").([]string), "token"))
	made.Object("properties").Set("token", op.Text("For Authorization: Bearer. It is shown once."))
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/keys", ID: "createKey", Summary: "Make an API key", Security: op.Needed(),
		Body: op.Form[keyForm]("rule",
			op.Text("CEL over `method` and `path` of a request; requests for which it is false are refused.")),
		Replies:  ordered.Of("201", op.Reply("The key with its token.", op.JSON(made), "Cache-Control")),
		Problems: formProblems(),
		Limit:    httpkit.Write, Run: ownerForm(h, never, h.createKey),
	})
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: "/auth/keys/{uuid}", ID: "revokeKey", Summary: "Revoke an API key",
		Security: op.Needed(), Parameters: op.Parameters("UUID"),
		Replies:  ordered.Of("204", op.Reply("The key is revoked.", nil, "Cache-Control")),
		Problems: []int{400, 401, 403, 404, 409, 429},
		Limit:    httpkit.Write, Run: h.owner(h.revokeKey),
	})
}

func (h *Handler) createKey(x *httpkit.Exchange, _ *sessions.Session, in keyForm) (o op.Outcome, err error) {
	wrong := func(field, says string) error { return fieldError("the API key can't be made", field, says) }
	k := keys.New{Name: in.Name}
	// A program that has lost the value would get a key that never expires, or that allows every request. In a form, an
	// empty field means no value.
	empty := func(text *string) bool { return text != nil && *text == "" && !op.IsHTML(x) }
	switch {
	case empty(in.Expires):
		return o, wrong("expires", "is empty: leave it out for a key without")
	case empty(in.Rule):
		return o, wrong("rule", "is empty: leave it out for a key without")
	}
	for name := range in.Rest {
		return o, wrong(name, "is unknown; name, expires, rule and password are known")
	}
	if in.Rule != nil {
		k.Rule = *in.Rule
	}
	if in.Expires != nil && *in.Expires != "" {
		if k.Expires, err = time.Parse(time.RFC3339, *in.Expires); err != nil {
			return o, wrong("expires", "must be a time such as 2030-01-02T15:04:05Z")
		}
	}
	client, err := h.client(x)
	if err != nil {
		return o, err
	}
	info, token, err := h.service.Keys.Create(x.Context(), k, in.Password, client)
	return op.Outcome{Status: http.StatusCreated, Body: issuedKey{info, token}}, err
}

func (h *Handler) keys(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	list, err := h.service.Keys.List(x.Context(), me)
	return op.Outcome{Body: map[string]any{"keys": list}}, err
}

func (h *Handler) revokeKey(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	id, err := x.UUID()
	if err != nil {
		return op.Outcome{}, err
	}
	return op.Outcome{}, h.service.Keys.Revoke(x.Context(), me, id)
}
