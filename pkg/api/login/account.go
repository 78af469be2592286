package login

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

// Parameters of the account page: what a form has done, and which second factor is being added.
const (
	outcomeParameter = "outcome"
	setupParameter   = "setup"
)

// AccountReply is what a reply to a form of the account page shows, and nothing ever again: it is in no URL, and in no cache.
type AccountReply struct {
	Method     about.Method // that is being set up
	Secret, QR string       // what it needs; QR is a data URL, "" for none
	Codes      []string     // new recovery codes
}

// isForm reports whether a request is a form of the account page, which is replied to with a page or a redirect.
func (h *Handler) isForm(x *kit.Exchange) bool {
	return h.accountPage != nil && strings.HasPrefix(strings.ToLower(x.Request.Header.Get("Content-Type")), kit.HTMLForm)
}

// redirectToAccount sends the browser of a form of the account page back to it, with what the form has done, or with why it
// failed.
func (h *Handler) redirectToAccount(x *kit.Exchange, outcome string, err error) error {
	if err == nil {
		redirect(x, http.StatusSeeOther, withQuery(h.account, outcomeParameter, outcome))
		return nil
	}
	return h.redirectAccountFailure(x, h.account, err)
}

// redirectAccountFailure sends the browser of a form to a target with why the form failed.
func (h *Handler) redirectAccountFailure(x *kit.Exchange, target string, err error) error {
	level, reason := slog.LevelInfo, accountReason(err)
	if errs.KindOf(err) == errs.Internal {
		level = slog.LevelError
	}
	x.Log(level, "a change of an account failed", slog.String("reason", reason), slog.String("error", err.Error()))
	redirect(x, http.StatusSeeOther, withQuery(target, reasonParameter, reason))
	return nil
}

// showAccount replies to a form with a page that shows secrets. It is a reply to a POST, so that no URL leads to it.
func (h *Handler) showAccount(x *kit.Exchange, me *account.Session, r AccountReply) error {
	body, policy, err := h.accountPage(me, r)
	if err != nil {
		return err
	}
	x.SendPage(policy, body)
	return nil
}

// showCodes replies to a form with new recovery codes, or without any goes back to the account page.
func (h *Handler) showCodes(x *kit.Exchange, me *account.Session, outcome string, codes []string) error {
	if len(codes) == 0 {
		return h.redirectToAccount(x, outcome, nil)
	}
	return h.showAccount(x, me, AccountReply{Codes: codes})
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
