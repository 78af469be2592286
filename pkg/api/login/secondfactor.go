package login

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"

	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/once"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// pendingCookie holds the secret of a login whose second factor is missing: another browser can't complete it.
const pendingCookie = sessionCookie + "-second"

// completedCookie holds that secret once the login is completed. It only serves to recognize the browser.
const completedCookie = pendingCookie + "-done"

// stepError is the error of a login. If the second factor is missing, it says how to continue. A browser gets the
// secret of the login in a cookie. A program that requests the representation gets it in the reply.
func (h *Handler) stepError(x *httpkit.Exchange, err error) error {
	p := logins.Pending(err)
	if p == nil {
		return err
	}
	h.cookies.set(x, pendingCookie, p.Secret, int(logins.PendingTTL.Seconds()))
	step := errs.StepUp{Step: errs.StepSecondFactor, AAL: 2, Factors: p.Factors}
	if x.PrefersRepresentation() {
		x.ApplyRepresentation()
		step.Flow = p.Secret
	}
	return errs.NeedsStepUp(step, "the first factor is right: now prove a second one, at /auth/second-factor")
}

// toSecondFactor redirects the browser of a login whose second factor is missing to the page that asks for it, and
// reports whether it did.
func (h *Handler) toSecondFactor(x *httpkit.Exchange, err error) bool {
	p := logins.Pending(err)
	if p == nil {
		return false
	}
	h.cookies.set(x, pendingCookie, p.Secret, int(logins.PendingTTL.Seconds()))
	x.Redirect(withQuery(h.SecondFactorRedirect, "factors", strings.Join(p.Factors, " ")))
	return true
}

// secondFactorForm is the form that completes a login.
type secondFactorForm struct {
	proofForm
	Flow    string `form:"flow" doc:"For programs: the flow in the reply to the first factor; browsers have a cookie."`
	Factors string `form:"factors,html,hidden"` // of the page to go back to
}

// proofForm has the fields that prove a second factor.
type proofForm struct {
	op.Input
	Type       string          `form:"type"`
	Code       string          `form:"code"`
	Credential json.RawMessage `form:"credential" ref:"PasskeyAssertion"`
	Secret     string          `form:"secret" doc:"For programs, with a passkey: the secret of the options; browsers have a cookie."`
}

// secondFactor completes a login by its second factor.
func (h secondFactors) secondFactor(x *httpkit.Exchange) error {
	in, err := op.Read[secondFactorForm](x, op.IsHTML(x))
	if err != nil {
		return err
	}
	factor, err := h.factorOf(x, in.proofForm)
	if err != nil {
		return err
	}
	secret, client, err := h.pendingOf(x, in.Flow)
	if err != nil {
		return err
	}
	if client.Cookie {
		// The secret is that of a completed login if no login of the browser is pending.
		secret = h.service.Login.PendingSecret(x.Context(),
			append(h.cookies.values(x.Request, pendingCookie), h.cookies.values(x.Request, completedCookie)...))
	}
	var session sessions.Issued
	err = h.write(x, func(ctx context.Context) (err error) {
		session, err = h.service.Login.CompleteLogin(ctx, secret, factor, client)
		return err
	})
	if once.Repeated(err) != nil {
		return h.reply(x, in.HTML, op.Outcome{}, err)
	}
	// With a session it is removed anyway.
	if errs.KindOf(err) == errs.Unauthenticated || err == nil && session.Application != nil {
		h.cookies.set(x, pendingCookie, "", -1)
	}
	if err == nil && client.Cookie {
		h.cookies.set(x, completedCookie, secret, int(once.UsedTTL.Seconds()))
	}
	var o op.Outcome
	switch {
	case !in.HTML && err == nil && session.Application != nil:
		err = errs.New(errs.Invalid,
			"this login is for an application: send its second factor from the page that asks for it")
	case in.HTML && err != nil && errs.KindOf(err) != errs.Unauthenticated && formReasonOf(err) != "":
		x.Log(slog.LevelInfo, "a second factor was refused", slog.String("error", err.Error()))
		o, err = h.askAgain(in.Factors, h.service.Methods.About(factor.Type).Sent(), formReasonOf(err)), nil
	case in.HTML && session.Application != nil:
		o, err = op.Outcome{To: h.applicationURL(x, session, err)}, nil
	case err == nil:
		o, err = h.begun(x, in.HTML, session, withQuery(h.SuccessRedirect, "validation", session.Type))
	}
	return h.reply(x, in.HTML, o, err)
}

// askForm requests the code or challenge of a second factor.
type askForm struct {
	op.Input
	Flow    string `form:"flow" doc:"For programs: the flow in the reply to the first factor; browsers have a cookie."`
	Factors string `form:"factors,html,hidden"` // of the page to go back to
}

// ask requests the code or challenge of a second factor, for the login whose second factor is missing, or else for the
// session. It sends a mail with a code, or replies with the options of a challenge.
func (h secondFactors) ask(x *httpkit.Exchange, m about.Method) error {
	in, err := op.Read[askForm](x, op.IsHTML(x))
	if err != nil {
		return err
	}
	secret, client, err := h.pendingOf(x, in.Flow)
	if err != nil {
		return err
	}
	challenge, err := h.service.Login.Ask(x.Context(), m.Name, secret, client)
	if m.Script { // which has no page to go back to
		if err != nil {
			return err
		}
		o, err := h.challenge(x, challenge)
		return h.reply(x, false, o, err)
	}
	err = unlessMailed(in.HTML, err)
	if in.HTML && secret == "" && client.Session != nil { // no login is pending: it is a step of the session
		asked := withQuery(h.AccountRedirect, "mail", "sent")
		o := op.Outcome{To: withQuery(asked, reasonParameter, "step-up")}
		if errs.KindOf(err) == errs.Limited { // a mail was sent before
			o.Failed = asked
		}
		return h.replyToOwner(x, true, o, err)
	}
	o := h.askAgain(in.Factors, true, "")
	if in.HTML && errs.KindOf(err) == errs.Limited {
		o, err = h.askAgain(in.Factors, true, "limited"), nil
	}
	o.Status = http.StatusAccepted
	return h.reply(x, in.HTML, o, err)
}

// askAgain redirects a browser to the page that asks for the second factor. The page shows whether a code was mailed,
// and why the last try failed.
func (h secondFactors) askAgain(factors string, mailed bool, reason string) op.Outcome {
	target := withQuery(h.SecondFactorRedirect, "factors", factors)
	if mailed {
		target = withQuery(target, "mail", "sent")
	}
	if reason != "" {
		target = withQuery(target, reasonParameter, reason)
	}
	return op.Outcome{To: target}
}

// factorOf returns the second factor in a form.
func (h secondFactors) factorOf(x *httpkit.Exchange, in proofForm) (factor method.Answer, err error) {
	factor.Type, factor.Code = in.Type, in.Code
	if h.service.Methods.About(in.Type).Script {
		factor.Signed, err = h.answer(x, in.Credential, in.Secret)
	}
	return factor, err
}

// pendingOf returns the client, and the secret of the pending login, from the field of the request or the cookie.
func (h secondFactors) pendingOf(x *httpkit.Exchange, flow string) (secret string, client sessions.Client, err error) {
	client, err = h.client(x)
	if secret = flow; secret == "" {
		secret, client.Cookie = h.service.Login.PendingSecret(x.Context(), h.cookies.values(x.Request, pendingCookie)),
			true
	}
	return secret, client, err
}

type stepUpForm struct {
	proofForm
	Password string `form:"password,password"`
}

// stepUp authenticates the logged-in user again.
func (h secondFactors) stepUp(x *httpkit.Exchange, _ *sessions.Session, in stepUpForm) (op.Outcome, error) {
	factor, err := h.factorOf(x, in.proofForm)
	var client sessions.Client
	var session sessions.Issued
	if err == nil {
		client, err = h.client(x)
	}
	if err == nil {
		session, err = h.service.StepUp.StepUp(x.Context(), in.Password, factor, client)
	}
	if err == nil {
		return h.begun(x, in.HTML, session, h.ofAccount("proven").To)
	}
	o := op.Outcome{Failed: h.accountForm("step")}
	if h.service.Methods.About(in.Type).Sent() { // the user can enter the mailed code again
		o.Failed = withQuery(o.Failed, "mail", "sent")
	}
	return o, err
}
