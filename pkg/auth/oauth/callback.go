package oauth

import (
	"net/url"

	"belfry/pkg/errs"
)

// codeOf takes the code out of what an OAuth 2 provider sent the browser back
// with. isIssuer knows the provider's own name: an answer of another must not
// be traded here (RFC 9207). Not every provider names itself; the issuer is
// missed only where it is always sent.
func authorizationCode(name string, q url.Values, isIssuer func(string) bool, always bool) (string, error) {
	for _, param := range []string{"iss", "error", "code"} {
		if len(q[param]) > 1 {
			return "", errs.New(errs.Invalid, "the answer of %s has more than one %q; begin again", name, param)
		}
	}
	if q.Has("iss") || always {
		if !isIssuer(q.Get("iss")) {
			return "", errs.New(errs.Invalid, "the answer does not come from %s; begin again", name)
		}
	}
	switch q.Get("error") {
	case "":
	case "access_denied":
		return "", denied(name)
	case "server_error", "temporarily_unavailable":
		return "", errs.New(errs.Unavailable, "%s has trouble; try again later", name)
	default:
		return "", errs.New(errs.Invalid, "%s refused to begin the login", name)
	}
	code := q.Get("code")
	if code == "" {
		return "", errs.New(errs.Invalid, "the answer of %s has no code; begin again", name)
	}
	return code, nil
}

func denied(name string) error {
	return errs.New(errs.Denied, "the login was denied at %s", name)
}

// sameOrigin reports whether two URLs have scheme and host in common. Providers
// without discovery are known by that: their issuers lie on the host of their
// login page.
func sameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	if err != nil || u.Host == "" {
		return false
	}
	v, err := url.Parse(b)
	return err == nil && u.Scheme == v.Scheme && u.Host == v.Host
}
