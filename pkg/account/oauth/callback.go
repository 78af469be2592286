package oauth

import (
	"net/url"

	"belfry/pkg/errs"
)

// authorizationCode returns the code in the query of an OAuth 2 callback.
// isIssuer reports whether an issuer is the provider: a code of another must not
// be sent to it (RFC 9207). The issuer is required only of providers that always
// send it.
func authorizationCode(name string, q url.Values, isIssuer func(string) bool, always bool) (string, error) {
	for _, param := range []string{"iss", "error", "code"} {
		if len(q[param]) > 1 {
			return "", errs.New(errs.Invalid, "the callback of %s has more than one %q; start the login again", name,
				param)
		}
	}
	if q.Has("iss") || always {
		if !isIssuer(q.Get("iss")) {
			return "", errs.New(errs.Invalid, "the callback does not come from %s; start the login again", name)
		}
	}
	switch q.Get("error") {
	case "":
	case "access_denied", "user_cancelled_authorize", "user_cancelled_login": // the latter are Apple's and LinkedIn's
		return "", denied(name)
	case "server_error", "temporarily_unavailable":
		return "", errs.New(errs.Unavailable, "%s reports an error%s; try again later", name, reported(q.Get("error")))
	default:
		return "", errs.New(errs.Invalid, "%s refused to start the login%s", name, reported(q.Get("error")))
	}
	code := q.Get("code")
	if code == "" {
		return "", errs.New(errs.Invalid, "the callback of %s has no code; start the login again", name)
	}
	return code, nil
}

func denied(name string) error {
	return errs.New(errs.Denied, "the login was denied at %s", name)
}

// sameOrigin reports whether two URLs have the same scheme and host. It identifies
// the issuer of a provider without discovery: it is on the host of the login page.
func sameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil || u.Host == "" {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Scheme == v.Scheme && u.Host == v.Host
}
