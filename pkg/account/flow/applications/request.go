package applications

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// ProtocolError is an error of RFC 6749: its code is for programs.
type ProtocolError struct{ Code, Description string }

func (e *ProtocolError) Error() string { return e.Description }

// Codes of ProtocolError.
const (
	InvalidRequest          = "invalid_request"
	InvalidClient           = "invalid_client"
	InvalidGrant            = "invalid_grant"
	UnsupportedResponseType = "unsupported_response_type"
	UnsupportedGrantType    = "unsupported_grant_type"
)

// protocolError is Invalid, and a ProtocolError.
func protocolError(code, description string) error {
	return errs.Wrap(&ProtocolError{Code: code, Description: description}, errs.Invalid, "%s", description)
}

const (
	maxState  = 2000 // bytes
	maxClient = 200  // bytes

	challengeSize  = 43 // of SHA-256 in base64url
	minVerifier    = 43 // RFC 7636, section 4.1
	maxVerifier    = 128
	verifierLetter = secret.Letters + ".~"
)

// Any reports whether any redirect of applications is configured.
func (s *Flow) Any() bool { return len(s.Redirects) > 0 }

// Of reads the request of an application. Without an Application the error is Invalid and must not be sent to the
// redirect, which is not configured. An error beside an Application is a ProtocolError for its redirect.
func (s *Flow) Of(query url.Values) (*record.Application, error) {
	redirects := query["redirect_uri"]
	if len(redirects) != 1 {
		return nil, errs.New(errs.Invalid,
			"redirect_uri is missing, or occurs twice: it is the URL to which the code is sent")
	}
	name, ok := s.registered(redirects[0])
	if !ok {
		return nil, errs.New(errs.Invalid, "redirect_uri is not in authentication.redirects: an https URL, or one "+
			"with a private-use scheme, must match exactly; one of the loopback interface may have another port")
	}
	a := &record.Application{Redirect: redirects[0], Name: name}
	for _, p := range []struct {
		name string
		into *string
		max  int
	}{{"state", &a.State, maxState}, {"client_id", &a.Client, maxClient},
		{"code_challenge", &a.Challenge, challengeSize}} {
		values := query[p.name]
		if len(values) > 1 || len(values) == 1 && (len(values[0]) > p.max || !utf8.ValidString(values[0])) {
			return a, protocolError(InvalidRequest, p.name+" occurs twice, is too long, or is not text")
		}
		if len(values) == 1 {
			*p.into = values[0]
		}
	}
	switch {
	case !slices.Equal(query["response_type"], []string{"code"}):
		return a, protocolError(UnsupportedResponseType, "response_type must be code")
	case !slices.Equal(query["code_challenge_method"], []string{"S256"}):
		return a, protocolError(InvalidRequest,
			"code_challenge_method must be S256: PKCE is required (RFC 7636), and plain is refused")
	case len(a.Challenge) != challengeSize || strings.Trim(a.Challenge, secret.Letters) != "":
		return a, protocolError(InvalidRequest,
			"code_challenge must be the SHA-256 of code_verifier in base64url, 43 characters")
	}
	return a, nil
}

// registered returns the configured redirect that allows a redirect. Texts are compared, not
// URLs: no two parsers can disagree about equality.
func (s *Flow) registered(redirect string) (name string, ok bool) {
	for _, r := range s.Redirects {
		if redirect == r || matchesLoopback(r, redirect) {
			return r, true
		}
	}
	return "", false
}

// matchesLoopback reports whether a redirect is a registered one of the loopback interface with any port
// (RFC 8252, section 7.3).
func matchesLoopback(registered, redirect string) bool {
	for _, host := range [...]string{"http://127.0.0.1", "http://[::1]"} {
		path, ok := strings.CutPrefix(registered, host+"/")
		if !ok {
			continue
		}
		port, found := strings.CutPrefix(redirect, host+":")
		if !found {
			return false
		}
		port, given, slash := strings.Cut(port, "/")
		return slash && given == path && port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
	}
	return false
}

// For returns the application of a token; nil for none. Its redirect must still be configured.
func (s *Flow) For(t record.Token) (*record.Application, error) {
	if t.Application == nil || t.Application.Redirect == "" {
		return nil, nil
	}
	if _, ok := s.registered(t.Application.Redirect); !ok {
		return nil, sessions.StateError()
	}
	return t.Application, nil
}
