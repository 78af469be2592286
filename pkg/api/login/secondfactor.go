package login

import (
	"context"
	"log/slog"
	"net/http"
	"strings"

	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

// pendingCookie holds the secret of a login whose second factor is missing: another browser can't complete it.
const pendingCookie = sessionCookie + "-second"

// completedCookie holds that secret once the login is completed: its browser is known by it, and nothing else can be done with it.
const completedCookie = pendingCookie + "-done"

// stepError is the error of a login, which says what to do next if its second factor is missing. The browser gets the
// secret of the login in a cookie, and a program that asks for the representation in the reply.
func (h *Handler) stepError(x *kit.Exchange, err error) error {
	p := account.Pending(err)
	if p == nil {
		return err
	}
	h.cookies.set(x, pendingCookie, p.Secret, int(account.PendingTTL.Seconds()))
	step := errs.StepUp{Step: errs.StepSecondFactor, AAL: 2, Factors: p.Factors}
	if x.PrefersRepresentation() {
		x.ApplyRepresentation()
		step.Flow = p.Secret
	}
	return errs.NeedsStepUp(step, "the first factor is right: now prove a second one, at /auth/second-factor")
}

// toSecondFactor redirects the browser of a login whose second factor is missing to where it is asked for, and reports whether
// it did.
func (h *Handler) toSecondFactor(x *kit.Exchange, err error, status int) bool {
	p := account.Pending(err)
	if p == nil {
		return false
	}
	h.cookies.set(x, pendingCookie, p.Secret, int(account.PendingTTL.Seconds()))
	redirect(x, status, withQuery(h.second, "factors", strings.Join(p.Factors, " ")))
	return true
}

// secondFactor completes a login by its second factor.
func (h *Handler) secondFactor(x *kit.Exchange) error {
	f, err := readForm(x)
	if err != nil {
		return err
	}
	factor, err := h.takeFactor(x, f)
	if err != nil {
		return err
	}
	factors, err := f.takeOne("factors")
	if err != nil {
		return err
	}
	secret, client, err := h.pendingOf(x, f)
	if err != nil {
		return err
	}
	if client.Cookie {
		// Of a login that is completed, if the browser has none that waits.
		secret = h.service.Login.PendingSecret(x.Context(), append(h.cookies.values(x.Request, pendingCookie), h.cookies.values(x.Request, completedCookie)...))
	}
	var session account.IssuedSession
	ctx, _, err := h.calls.Write(x, func(ctx context.Context) (err error) {
		session, err = h.service.Login.CompleteLogin(ctx, secret, factor, client)
		return err
	})
	if h.repeated(x, err, f.html) {
		return nil
	}
	if errs.KindOf(err) == errs.Unauthenticated || err == nil && session.Application != nil { // with a session it is removed anyway
		h.cookies.set(x, pendingCookie, "", -1)
	}
	if err == nil && client.Cookie {
		h.cookies.set(x, completedCookie, secret, int(account.UsedTTL.Seconds()))
	}
	switch {
	case !f.html && session.Application == nil && err == nil:
		return h.sendSession(ctx, x, session)
	case !f.html && err == nil:
		return errs.New(errs.Invalid, "this login is for an application: its second factor has to be sent by the page that asks for it")
	case !f.html:
		return err
	case err != nil && errs.KindOf(err) != errs.Unauthenticated && formReasonOf(err) != "":
		x.Log(slog.LevelInfo, "a second factor was refused", slog.String("error", err.Error()))
		h.askAgain(x, factors, h.service.Methods.About(factor.Type).Sent(), formReasonOf(err))
	case session.Application != nil:
		return h.sendToApplication(x, session, err, http.StatusSeeOther)
	case err != nil:
		return h.redirectFailure(x, err, formReason(err))
	default:
		h.cookies.setSession(x, session)
		redirect(x, http.StatusSeeOther, withQuery(h.success, "validation", session.Type))
	}
	return nil
}

// ask asks for what a second factor is proven by: for the login whose second factor is missing, or else for the session. It sends a mail
// with a code, or replies with the options of a challenge.
func (h *Handler) ask(x *kit.Exchange, m about.Method) error {
	f, err := readForm(x)
	if err != nil {
		return err
	}
	factors := ""
	if !m.Script { // a script has no page to go back to
		if factors, err = f.takeOne("factors"); err != nil {
			return err
		}
	}
	secret, client, err := h.pendingOf(x, f)
	if err != nil {
		return err
	}
	challenge, err := h.service.Login.Ask(x.Context(), m.Name, secret, client)
	if m.Script {
		if err != nil {
			return err
		}
		return h.sendChallenge(x, challenge)
	}
	err = unlessMailed(f.html, err)
	switch {
	case f.html && secret == "" && client.Session != nil: // no login is pending: it is a step of the session
		switch target := withQuery(h.account, "mail", "sent"); {
		case errs.KindOf(err) == errs.Limited: // a mail was sent before
			return h.redirectAccountFailure(x, target, err)
		case err != nil:
			return h.redirectToAccount(x, "", err)
		default:
			redirect(x, http.StatusSeeOther, withQuery(target, reasonParameter, "step-up"))
		}
	case !f.html && err != nil:
		return err
	case !f.html:
		return x.SendStatus(http.StatusAccepted)
	case err != nil && errs.KindOf(err) != errs.Limited:
		return h.redirectFailure(x, err, formReason(err))
	case err != nil:
		h.askAgain(x, factors, true, "limited")
	default:
		h.askAgain(x, factors, true, "")
	}
	return nil
}

// askAgain redirects a browser to where the second factor is asked for: whether a code was mailed, and why the last try failed.
func (h *Handler) askAgain(x *kit.Exchange, factors string, mailed bool, reason string) {
	target := withQuery(h.second, "factors", factors)
	if mailed {
		target = withQuery(target, "mail", "sent")
	}
	if reason != "" {
		target = withQuery(target, reasonParameter, reason)
	}
	redirect(x, http.StatusSeeOther, target)
}

// takeFactor removes what proves a second factor from a form.
func (h *Handler) takeFactor(x *kit.Exchange, f form) (factor account.SecondFactor, err error) {
	values, err := f.take("type", "code")
	if err != nil {
		return factor, err
	}
	factor.Type, factor.Code = values[0], values[1]
	if h.service.Methods.About(factor.Type).Script {
		factor.Signed, err = h.takeAnswer(x, f)
	}
	return factor, err
}

// pendingOf returns the secret of the login that a form is about, by its field or the cookie, and the client.
func (h *Handler) pendingOf(x *kit.Exchange, f form) (secret string, client account.Client, err error) {
	if secret, err = f.takeOne("flow"); err != nil {
		return "", client, err
	}
	client, err = h.client(x)
	if secret == "" {
		secret, client.Cookie = h.service.Login.PendingSecret(x.Context(), h.cookies.values(x.Request, pendingCookie)), true
	}
	return secret, client, err
}

// stepUp authenticates who is logged in again.
func (h *Handler) stepUp(x *kit.Exchange) error {
	if h.isForm(x) {
		return h.stepUpForm(x)
	}
	if _, err := h.requireLogin(x); err != nil {
		return err
	}
	f, err := readForm(x)
	if err != nil {
		return err
	}
	session, err := h.proveAgain(x, f)
	if h.repeated(x, err, false) {
		return nil
	}
	if err != nil {
		return err
	}
	return h.sendReplaced(x, session)
}
