package login

import (
	"errors"
	"log/slog"
	"net/http"

	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

// redirectToAccount sends the browser of a form of the account page back to it, with why the form failed, if it did.
func (h *handler) redirectToAccount(x *kit.Exchange, err error) error {
	if err == nil {
		redirect(x, http.StatusSeeOther, h.account)
		return nil
	}
	level, reason := slog.LevelInfo, accountReason(err)
	if errs.KindOf(err) == errs.Internal {
		level = slog.LevelError
	}
	x.Log(level, "a change of an account failed", slog.String("reason", reason), slog.String("error", err.Error()))
	redirect(x, http.StatusSeeOther, withQuery(h.account, reasonParameter, reason))
	return nil
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
		return "invalid"
	}
	return "unavailable"
}
