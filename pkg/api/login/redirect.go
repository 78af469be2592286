package login

import (
	"errors"
	"log/slog"
	"net/url"
	"slices"

	"belfry/pkg/account/post"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// redirectFailure redirects a browser to the failure page with a reason: the reason of the error's kind or, if the kind
// lacks one, the given reason. The error itself is logged.
func (h *Handler) redirectFailure(x *httpkit.Exchange, err error, reason string) error {
	return redirectFailureTo(x, h.FailureRedirect, err, reason)
}

// redirectFailureTo is redirectFailure to another page.
func redirectFailureTo(x *httpkit.Exchange, target string, err error, reason string) error {
	level, given := slog.LevelInfo, reason
	var step *errs.StepUp
	switch errs.KindOf(err) {
	case errs.Denied, errs.Unauthenticated:
		switch reason = "denied"; {
		case errors.Is(err, sessions.ErrDisabled):
			reason = "disabled"
		// Otherwise it is a code, and the user can try another one.
		case errors.Is(err, post.ErrToken) && given != "denied":
			reason = "token"
		case errors.As(err, &step):
			reason = "step-up"
		}
	case errs.NotFound:
		reason = "unknown"
	case errs.Mismatch:
		reason = "state"
	case errs.Exists, errs.Taken:
		reason = "taken"
	case errs.Limited:
		reason = "limited"
	case errs.Internal:
		level = slog.LevelError
	}
	x.Log(level, "a login failed", slog.String("reason", reason), slog.String("error", err.Error()))
	x.Redirect(withQuery(target, reasonParameter, reason))
	return nil
}

// withQuery adds parameters to a URL of the configuration: names and values in turn.
func withQuery(target string, parameters ...string) string {
	u, err := url.Parse(target)
	if err != nil {
		return target // unreachable: the configuration has been validated
	}
	query := u.Query()
	for pair := range slices.Chunk(parameters, 2) {
		query.Set(pair[0], pair[1])
	}
	u.RawQuery = query.Encode()
	return u.String()
}
