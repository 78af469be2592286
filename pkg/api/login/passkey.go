package login

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"net/http"

	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// passkeyScriptPath is the route of the script by which forms of pages use passkeys.
const passkeyScriptPath = "/auth/passkey.js" //nolint:gosec // no credential

//go:embed passkey.js
var passkeyScript []byte

const (
	// passkeyCookie begins the names of cookies that hold the secret of a challenge each: every tab has its own.
	passkeyCookie = sessionCookie + "-passkey-"

	// maxChallenges is how many challenges of a browser have a cookie, so that pages which are opened again and again do not fill its requests.
	maxChallenges = 8
)

// SendChallenge replies with the options of a challenge to the script. Its secret is in a cookie, which scripts can't read.
func (s *Sessions) SendChallenge(x *kit.Exchange, c account.PasskeyChallenge) error {
	s.cookies.setChallenge(x, c)
	return x.SendJSON(c.Options)
}

// TakeAnswer returns the answer to a challenge that the script has put into the field credential of a form, with the secret of
// the challenge's cookie. Invalid without an answer; TooLarge, as the routes of this package.
func (s *Sessions) TakeAnswer(x *kit.Exchange, credential string) (account.PasskeyAnswer, error) {
	if len(credential) > maxBody {
		return account.PasskeyAnswer{}, tooLarge()
	}
	return s.cookies.takeAnswer(x, account.PasskeyAnswer{Credential: json.RawMessage(credential)})
}

func (c cookies) setChallenge(x *kit.Exchange, challenge account.PasskeyChallenge) {
	others := c.beginning(x.Request, passkeyCookie)
	for _, oldest := range others[:max(0, len(others)-maxChallenges+1)] { // browsers send the oldest ones first
		c.setNamed(x, oldest, "", -1)
	}
	c.set(x, passkeyCookie+challenge.Name, challenge.Secret, int(account.PasskeyTTL.Seconds()))
}

// takeAnswer adds the secret of the cookie of its challenge to an answer without one. The cookie stays: its browser is known by it if it
// sends the same again, and it is of no use for anything else.
func (c cookies) takeAnswer(x *kit.Exchange, a account.PasskeyAnswer) (account.PasskeyAnswer, error) {
	if len(a.Credential) == 0 {
		return a, &errs.Error{Kind: errs.Invalid, Message: "the answer of the authenticator is missing",
			Fields: []errs.Field{{Pointer: "/credential", Message: "is missing"}}}
	}
	name := account.AnswerName(a.Credential)
	if a.Secret != "" || name == "" {
		return a, nil
	}
	a.Secret, a.Cookie = account.ChallengeSecret(name, c.values(x.Request, passkeyCookie+name)), true
	return a, nil
}

// sendChallenge replies with a challenge. A program, which keeps no cookies, asks for its secret with
// Prefer: return=representation.
func (h *Handler) sendChallenge(x *kit.Exchange, c account.PasskeyChallenge) error {
	h.cookies.setChallenge(x, c)
	if !x.PrefersRepresentation() {
		return x.SendJSON(c.Options)
	}
	options, err := object.Decode(c.Options)
	if err != nil {
		return err
	}
	options.Set("secret", c.Secret)
	x.ApplyRepresentation()
	return x.SendJSON(json.RawMessage(options.Encode()))
}

// takeAnswer removes the answer to a challenge from a form. In an HTML form it is text. The secret is that of the
// form, or else that of the cookie.
func (h *Handler) takeAnswer(x *kit.Exchange, f form) (account.PasskeyAnswer, error) {
	secret, err := f.takeOne("secret")
	if err != nil {
		return account.PasskeyAnswer{}, err
	}
	a := account.PasskeyAnswer{Credential: f.Object["credential"], Secret: secret}
	delete(f.Object, "credential")
	if text, ok := object.Text(a.Credential); ok {
		a.Credential = json.RawMessage(text)
	}
	return h.cookies.takeAnswer(x, a)
}

func (h *Handler) beginPasskeyLogin(x *kit.Exchange) error {
	client, err := h.client(x)
	if err != nil {
		return err
	}
	c, err := h.service.Passkeys.BeginLogin(x.Context(), client)
	if err != nil {
		return err
	}
	return h.sendChallenge(x, c)
}

func (h *Handler) passkeys(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	list, err := h.service.Passkeys.List(x.Context(), session)
	if err != nil {
		return err
	}
	return x.SendJSON(map[string]any{"passkeys": list})
}

func (h *Handler) beginPasskey(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	c, err := h.service.Passkeys.BeginRegistration(x.Context(), session)
	if err != nil {
		return err
	}
	return h.sendChallenge(x, c)
}

func (h *Handler) addPasskey(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil && h.isForm(x) {
		return h.redirectToAccount(x, "", err)
	}
	if err != nil {
		return err
	}
	f, err := readForm(x)
	var added account.PasskeyInfo
	if err == nil {
		added, err = h.addPasskeyOf(x, f, session)
	}
	if h.repeated(x, err, f.html) {
		return nil
	}
	if f.html {
		return h.redirectToAccount(x, "passkey-added", err)
	}
	if err != nil {
		return err
	}
	return x.SendCreated(added)
}

func (h *Handler) addPasskeyOf(x *kit.Exchange, f form, session *account.Session) (added account.PasskeyInfo, err error) {
	name, err := f.takeOne("name")
	if err != nil {
		return added, err
	}
	a, err := h.takeAnswer(x, f)
	if err != nil {
		return added, err
	}
	err = h.write(x, func(ctx context.Context) (err error) {
		added, err = h.service.Passkeys.Add(ctx, name, a, session)
		return err
	})
	return added, err
}

func (h *Handler) renamePasskey(x *kit.Exchange) error {
	session, uuid, err := h.requireLoginFor(x)
	if err != nil {
		return err
	}
	f, err := readForm(x)
	if err != nil {
		return err
	}
	name, err := f.takeOne("name")
	if err != nil {
		return err
	}
	renamed, err := h.service.Passkeys.Rename(x.Context(), session, uuid, name)
	if err != nil {
		return err
	}
	return x.SendJSON(renamed)
}

// changePasskeyForm renames or removes a passkey for an HTML form, which can neither PATCH nor DELETE.
func (h *Handler) changePasskeyForm(x *kit.Exchange) error {
	session, uuid, err := h.requireLoginFor(x)
	if err != nil {
		return err
	}
	f, err := readForm(x)
	outcome := ""
	if err == nil {
		outcome, err = h.changePasskey(x, f, session, uuid)
	}
	if f.html {
		return h.redirectToAccount(x, outcome, err)
	}
	if err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}

func (h *Handler) changePasskey(x *kit.Exchange, f form, session *account.Session, uuid string) (outcome string, err error) {
	remove, err := f.takeBool("remove")
	if err != nil {
		return "", err
	}
	if remove {
		return "passkey-removed", h.write(x, func(ctx context.Context) error { return h.service.Links.Unlink(ctx, session, uuid) })
	}
	name, err := f.takeOne("name")
	if err != nil {
		return "", err
	}
	_, err = h.service.Passkeys.Rename(x.Context(), session, uuid, name)
	return "passkey-renamed", err
}
