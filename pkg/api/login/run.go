package login

import (
	"cmp"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

// What runs an operation is a function that reads typed fields and returns an op.Outcome, the same for programs and for
// HTML forms. The functions here make handlers of those, which reply to the one or the other, with an error as well.

// isForm reports whether a request is a form of the account page, which is replied to with a page or a redirect.
func (h *Handler) isForm(x *httpkit.Exchange) bool { return h.accountPage != nil && op.IsHTML(x) }

// always is for operations that are for HTML forms alone, and never for those that are for programs alone.
func always(*httpkit.Exchange) bool { return true }
func never(*httpkit.Exchange) bool  { return false }

// owner returns the handler of an operation without a body for who is logged in: an API key does not manage the
// account.
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

// ownerForm is owner for an operation with fields. html says of which requests the reply is for a browser, which
// continues at the page of the account, also after an error.
func ownerForm[T any](h *Handler, html func(*httpkit.Exchange) bool, run func(x *httpkit.Exchange, me *sessions.Session, in T) (op.Outcome, error)) httpkit.Handler {
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

// replyToOwner replies to who is logged in with an outcome, or an error.
func (h *Handler) replyToOwner(x *httpkit.Exchange, html bool, o op.Outcome, err error) error {
	switch {
	case h.repeated(x, err, html):
		return nil
	case err != nil && html:
		return redirectAccountFailure(x, cmp.Or(o.Failed, h.AccountRedirect), err)
	case err != nil:
		return err
	}
	return o.Send(x, html)
}

// anybody returns the handler of an operation with fields by which somebody logs in, or does what a mail is for. The
// browser of an HTML form continues at the page of failures after an error, or where the outcome says.
func anybody[T any](h *Handler, html func(*httpkit.Exchange) bool, run func(x *httpkit.Exchange, in T) (op.Outcome, error)) httpkit.Handler {
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
		return redirectFailureTo(x, o.Failed, err, formReasonOf(err))
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

// fieldError is the error of a field, of which a request with this message is made.
func fieldError(message, field, says string) error {
	return &errs.Error{Kind: errs.Invalid, Message: message, Fields: []errs.Field{{Pointer: object.Pointer(field), Message: says}}}
}
