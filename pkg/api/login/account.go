package login

import (
	"cmp"
	"errors"
	"log/slog"

	"belfry/pkg/account/method/about"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Parameters of the account page: what a form has done, and which second factor is being added.
const (
	outcomeParameter = "outcome"
	setupParameter   = "setup"
)

// AccountReply is the data of a reply to a form of the account page. It is shown only once: no URL and no cache has it.
type AccountReply struct {
	Method     about.Method // the method that is being set up
	Secret, QR string       // what it needs; QR is a data URL, "" for none
	Codes      []string     // new recovery codes
}

// redirectAccountFailure redirects the browser of a form to a target, with the reason why the form failed.
func redirectAccountFailure(x *httpkit.Exchange, target, reason string, err error) error {
	level := slog.LevelInfo
	if errs.KindOf(err) == errs.Internal {
		level = slog.LevelError
	}
	x.Log(level, "a change of an account failed", slog.String("reason", reason), slog.String("error", err.Error()))
	x.Redirect(withQuery(target, reasonParameter, reason))
	return nil
}

// ofAccount is the outcome of a change of the account. It becomes a parameter of the account page.
func (h *Handler) ofAccount(outcome string) op.Outcome {
	return op.Outcome{To: withQuery(h.AccountRedirect, outcomeParameter, outcome)}
}

// show shows a page with secrets in a browser. It is the reply to a POST, so that no URL leads to it.
func (h *Handler) show(me *sessions.Session, r AccountReply) func(*httpkit.Exchange) error {
	return func(x *httpkit.Exchange) error {
		body, policy, err := h.accountPage(x, me, r)
		if err != nil {
			return err
		}
		x.SendPage(policy, body)
		return nil
	}
}

// withCodes is an outcome with new recovery codes, if there are any.
func (h *Handler) withCodes(me *sessions.Session, outcome string, codes []string) op.Outcome {
	o := h.ofAccount(outcome)
	if len(codes) > 0 {
		o.Page = h.show(me, AccountReply{Codes: codes})
	}
	return o
}

// accountReason is the reason of a failure, which the account page explains.
func accountReason(err error) string {
	var step *errs.StepUp
	if errors.As(err, &step) {
		return "step-up"
	}
	switch errs.KindOf(err) {
	case errs.Denied:
		return "refused"
	case errs.Unauthenticated:
		return "ended"
	case errs.Exists, errs.Taken:
		return "taken"
	case errs.Conflict:
		return "last"
	case errs.NotFound:
		return "gone"
	case errs.Limited:
		return "limited"
	case errs.Invalid, errs.TooLarge, errs.Unsupported:
		return cmp.Or(weakReason(err), "invalid")
	}
	return "unavailable"
}
