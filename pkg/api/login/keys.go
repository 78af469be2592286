package login

import (
	"net/http"
	"time"

	"belfry/internal/ordered"
	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

// issuedKey is a new API key with its token, which is shown once.
type issuedKey struct {
	account.KeyInfo
	Token string `json:"token"`
}

func (h *Handler) createKey(x *kit.Exchange) error {
	if _, err := h.requireLogin(x); err != nil {
		return err
	}
	f, err := readForm(x)
	if err != nil {
		return err
	}
	for _, name := range []string{"expires", "rule"} {
		// A program that has lost the value would get a key for ever, or for everything. A field that is left empty in a form has none.
		if text, given := object.Text(f.Object[name]); given && text == "" && !f.html {
			return wrongField(name, "is empty: leave it out for a key without")
		}
	}
	values, err := f.take("name", "expires", "rule", "password")
	if err != nil {
		return err
	}
	for name := range f.Object {
		return wrongField(name, "is unknown; name, expires, rule and password are known")
	}
	k := account.NewKey{Name: values[0], Rule: values[2]}
	if values[1] != "" {
		if k.Expires, err = time.Parse(time.RFC3339, values[1]); err != nil {
			return wrongField("expires", "must be a time such as 2030-01-02T15:04:05Z")
		}
	}
	client, err := h.client(x)
	if err != nil {
		return err
	}
	info, token, err := h.service.Keys.Create(x.Context(), k, values[3], client)
	if err != nil {
		return err
	}
	return x.SendCreated(issuedKey{info, token})
}

func wrongField(field, message string) error {
	return &errs.Error{Kind: errs.Invalid, Message: "the API key can't be made",
		Fields: []errs.Field{{Pointer: object.Pointer(field), Message: message}}}
}

func (h *Handler) keys(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	list, err := h.service.Keys.List(x.Context(), session)
	if err != nil {
		return err
	}
	return x.SendJSON(map[string]any{"keys": list})
}

func (h *Handler) revokeKey(x *kit.Exchange) error {
	session, id, err := h.requireLoginFor(x)
	if err != nil {
		return err
	}
	if err := h.service.Keys.Revoke(x.Context(), session, id); err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}

// addKeys adds the operations on API keys.
func (h *Handler) addKeys(set *op.Set) {
	set.Get(op.Operation{
		Path: "/auth/keys", ID: "listKeys", Summary: "List one's API keys", Security: op.Needed(),
		Replies:  ordered.Of("200", op.Reply("The keys, the oldest first.", op.JSON(op.Object("", 1, "keys", op.List(model.Ref("APIKey")))), "Cache-Control")),
		Problems: []int{401, 403, 429},
		Limit:    kit.Read, Run: h.keys,
	})
	made := keySchema()
	made.Set("description", "An API key that was just made.")
	made.Set("required", append(made.Get("required").([]string), "token"))
	made.Object("properties").Set("token", op.Text("For Authorization: Bearer. It is shown once."))
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/keys", ID: "createKey", Summary: "Make an API key", Security: op.Needed(),
		Body: op.Form([]string{"name"}, "name", op.Text("What it is for: 1 to 100 bytes."), "expires", op.Text("When it expires (RFC 3339); never by default."),
			"rule", op.Text("CEL over `method` and `path` of a request; others are refused."), "password", op.Text("That of the user, if there is one.")),
		Replies:  ordered.Of("201", op.Reply("The key with its token.", op.JSON(made), "Cache-Control")),
		Problems: formProblems(),
		Limit:    kit.Write, Run: h.createKey,
	})
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: "/auth/keys/{uuid}", ID: "revokeKey", Summary: "Revoke an API key", Security: op.Needed(),
		Parameters: op.Parameters("UUID"),
		Replies:    ordered.Of("204", op.Reply("It has ended.", nil, "Cache-Control")),
		Problems:   []int{400, 401, 403, 404, 409, 429},
		Limit:      kit.Write, Run: h.revokeKey,
	})
}
