package login

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"net/http"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

// passkeyScriptPath is the route of the script by which forms of pages use passkeys.
const passkeyScriptPath = "/auth/passkey.js" //nolint:gosec // no credential

//go:embed passkey.js
var passkeyScript []byte

const (
	// passkeyCookie begins the names of cookies that hold the secret of a challenge each: every tab has its own.
	passkeyCookie = sessionCookie + "-passkey-"

	// maxChallenges is how many challenges of a browser have a cookie, so that repeatedly opened pages do not fill its
	// requests.
	maxChallenges = 8
)

// SendChallenge replies with the options of a challenge to the script. Its secret is in a cookie, which scripts can't
// read.
func (s *Sessions) SendChallenge(x *httpkit.Exchange, c method.Challenge) error {
	s.cookies.setChallenge(x, c)
	return x.SendJSON(c.Options)
}

// TakeAnswer returns the answer to a challenge that the script has put into the field credential of a form, with the
// secret of the challenge's cookie. The error is Invalid without an answer, or TooLarge, as in the routes of this
// package.
func (s *Sessions) TakeAnswer(x *httpkit.Exchange, credential string) (method.Signed, error) {
	if len(credential) > op.MaxForm {
		return method.Signed{}, op.TooLarge(x)
	}
	return s.cookies.takeAnswer(x, method.Signed{Credential: json.RawMessage(credential)})
}

func (c cookies) setChallenge(x *httpkit.Exchange, challenge method.Challenge) {
	others := c.beginning(x.Request, passkeyCookie)
	for _, oldest := range others[:max(0, len(others)-maxChallenges+1)] { // browsers send the oldest ones first
		c.setNamed(x, oldest, "", -1)
	}
	c.set(x, passkeyCookie+challenge.Name, challenge.Secret, int(passkeys.TTL.Seconds()))
}

// takeAnswer adds the secret of the cookie of its challenge to an answer without one. The cookie is kept: it only
// serves to recognize the browser if it sends the same answer again.
func (c cookies) takeAnswer(x *httpkit.Exchange, a method.Signed) (method.Signed, error) {
	if len(a.Credential) == 0 {
		return a, &errs.Error{Kind: errs.Invalid, Message: "the answer of the authenticator is missing",
			Fields: []errs.Field{{Pointer: "/credential", Message: "is missing"}}}
	}
	name := passkeys.AnswerName(a.Credential)
	if a.Secret != "" || name == "" {
		return a, nil
	}
	a.Secret, a.Cookie = passkeys.ChallengeSecret(name, c.values(x.Request, passkeyCookie+name)), true
	return a, nil
}

// challenge is the outcome of a request for a challenge. A program, which keeps no cookies, asks for its secret with
// Prefer: return=representation.
func (h *Handler) challenge(x *httpkit.Exchange, c method.Challenge) (op.Outcome, error) {
	h.cookies.setChallenge(x, c)
	if !x.PrefersRepresentation() {
		return op.Outcome{Body: c.Options}, nil
	}
	options, err := object.Decode(c.Options)
	if err != nil {
		return op.Outcome{}, err
	}
	options.Set("secret", c.Secret)
	x.ApplyRepresentation()
	return op.Outcome{Body: json.RawMessage(options.Encode())}, nil
}

// answer is an authenticator's answer to a challenge. The secret of the challenge is in the fields, or else in the
// cookie.
func (h *Handler) answer(x *httpkit.Exchange, credential json.RawMessage, secret string) (method.Signed, error) {
	return h.cookies.takeAnswer(x, method.Signed{Credential: credential, Secret: secret})
}

func (h passkeyRoutes) beginPasskeyLogin(x *httpkit.Exchange) error {
	client, err := h.client(x)
	if err != nil {
		return err
	}
	c, err := h.service.Passkeys.BeginLogin(x.Context(), client)
	if err != nil {
		return err
	}
	o, err := h.challenge(x, c)
	if err != nil {
		return err
	}
	return o.Send(x, false)
}

// loginByPasskey logs in by a passkey.
func (h passkeyRoutes) loginByPasskey(x *httpkit.Exchange, in passkeyLoginForm) (op.Outcome, error) {
	return h.loginBy(x, h.service.Passkeys.About(), in.Input, in.Authorize, "",
		func() (answer method.Answer, err error) {
			answer.Signed, err = h.answer(x, in.Credential, in.Secret)
			return answer, err
		})
}

func (h passkeyRoutes) passkeys(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	list, err := h.service.Passkeys.List(x.Context(), me)
	return op.Outcome{Body: map[string]any{"passkeys": list}}, err
}

func (h passkeyRoutes) beginPasskey(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	c, err := h.service.Passkeys.BeginRegistration(x.Context(), me)
	if err != nil {
		return op.Outcome{}, err
	}
	return h.challenge(x, c)
}

func (h passkeyRoutes) addPasskey(x *httpkit.Exchange, me *sessions.Session, in newPasskeyForm) (op.Outcome, error) {
	a, err := h.answer(x, in.Credential, in.Secret)
	if err != nil {
		return op.Outcome{}, err
	}
	var added passkeys.Info
	err = h.write(x, func(ctx context.Context) (err error) {
		added, err = h.service.Passkeys.Add(ctx, in.Name, a, me)
		return err
	})
	o := h.ofAccount("passkey-added")
	o.Status, o.Body = http.StatusCreated, added
	return o, err
}

// changePasskey renames or removes a passkey for an HTML form, which can neither PATCH nor DELETE.
func (h passkeyRoutes) changePasskey(x *httpkit.Exchange, me *sessions.Session, in passkeyForm) (op.Outcome, error) {
	if !in.Remove {
		_, err := h.renamePasskey(x, me, passkeyName{in.Name})
		return h.ofAccount("passkey-renamed"), err
	}
	_, err := h.unlink(x, me)
	return h.ofAccount("passkey-removed"), err
}

func (h passkeyRoutes) renamePasskey(x *httpkit.Exchange, me *sessions.Session, in passkeyName) (op.Outcome, error) {
	uuid, err := x.UUID()
	if err != nil {
		return op.Outcome{}, err
	}
	renamed, err := h.service.Passkeys.Rename(x.Context(), me, uuid, in.Name)
	return op.Outcome{Body: renamed}, err
}
