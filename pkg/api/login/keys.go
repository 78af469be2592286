package login

import (
	"net/http"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// issuedKey is a new API key with its token, which is shown once.
type issuedKey struct {
	account.KeyInfo
	Token string `json:"token"`
}

func (h *handler) createKey(x *kit.Exchange) error {
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

func (h *handler) keys(x *kit.Exchange) error {
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

func (h *handler) revokeKey(x *kit.Exchange) error {
	session, id, err := h.requireLoginFor(x)
	if err != nil {
		return err
	}
	if err := h.service.Keys.Revoke(x.Context(), session, id); err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}
