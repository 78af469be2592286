package login

import (
	"cmp"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

// An operation is a function that reads typed fields and returns an op.Outcome, the same for programs and for HTML
// forms. The functions here make handlers of such functions, which reply with outcomes and errors to both.

// isForm reports whether a request is a form of the account page. The reply is then a page or a redirect.
func (h *Handler) isForm(x *httpkit.Exchange) bool { return h.accountPage != nil && op.IsHTML(x) }

// always is for operations only for HTML forms, and never for operations only for programs.
func always(*httpkit.Exchange) bool { return true }
func never(*httpkit.Exchange) bool  { return false }

// owner returns the handler of an operation without a body for the logged-in user. An API key can't manage the account.
func (h *Handler) owner(run func(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error)) httpkit.Handler {
	return func(x *httpkit.Exchange) error {
		me, err := h.requireLogin(x)
		if err != nil {
			return err
		}
		o, err := run(x, me)
		if err != nil {
			return err
		}
		return o.Send(x, false)
	}
}

// ownerForm is owner for an operation with fields. html reports whether the reply to a request is for a browser, which
// is redirected to the page of the account, also after an error.
func ownerForm[T any](h *Handler, html func(*httpkit.Exchange) bool,
	run func(x *httpkit.Exchange, me *sessions.Session, in T) (op.Outcome, error)) httpkit.Handler {
	return func(x *httpkit.Exchange) error {
		browser, o := html(x), op.Outcome{}
		me, err := h.requireLogin(x)
		var in T
		if err == nil {
			in, err = op.Read[T](x, browser)
		}
		if err == nil {
			o, err = run(x, me, in)
		}
		return h.replyToOwner(x, browser, o, err)
	}
}

// replyToOwner replies to the logged-in user with an outcome, or an error.
func (h *Handler) replyToOwner(x *httpkit.Exchange, html bool, o op.Outcome, err error) error {
	switch {
	case h.repeated(x, err, html):
		return nil
	case err != nil && html:
		return redirectAccountFailure(x, cmp.Or(o.Failed, h.AccountRedirect), cmp.Or(o.Reason, accountReason(err)), err)
	case err != nil:
		return err
	}
	return o.Send(x, html)
}

// anybody returns the handler of an operation with fields that needs no login, such as a login or an action with the
// token of a mail. The browser of an HTML form is redirected to the page of failure after an error, or else as the
// outcome says.
func anybody[T any](h *Handler, html func(*httpkit.Exchange) bool,
	run func(x *httpkit.Exchange, in T) (op.Outcome, error)) httpkit.Handler {
	return op.Fields(html, run, h.reply)
}

// reply replies with an outcome, or an error, of a login.
func (h *Handler) reply(x *httpkit.Exchange, html bool, o op.Outcome, err error) error {
	switch {
	case h.repeated(x, err, html):
		return nil
	case err != nil && (!html || o.Problem):
		return h.stepError(x, err)
	case h.toSecondFactor(x, err):
		return nil
	case err != nil && o.Failed != "":
		return redirectFailureTo(x, o.Failed, err, cmp.Or(formReasonOf(err), formReason(err)))
	case err != nil:
		return h.redirectFailure(x, err, formReason(err))
	}
	return o.Send(x, html)
}

// begun is the outcome of a login, or of a proof that replaces the session: the session is in its cookie, and in the
// reply to a program that prefers it.
func (h *Handler) begun(x *httpkit.Exchange, html bool, s sessions.Issued, to string) (op.Outcome, error) {
	h.cookies.setSession(x, s)
	o := op.Outcome{To: to}
	issued, err := h.issuedIfPreferred(x, html, s)
	if issued != nil {
		o.Body = issued
	}
	return o, err
}

// fieldError is the error of a field, as a request error with a message.
func fieldError(message, field, says string) error {
	return &errs.Error{Kind: errs.Invalid, Message: message,
		Fields: []errs.Field{{Pointer: object.Pointer(field), Message: says}}}
}
