package applications

import (
	"context"
	"errors"
	"strings"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// A code is an object in the store of tokens, found by its hash. The first exchange marks it as used, whether or not
// the other parameters are right. An exchange without the client that the login named does not count. The used code is
// kept, so that a second use is detected: then somebody else had the code, and the session of its first use ends.
const (
	// CodeTTL is how long a code is valid.
	CodeTTL = time.Minute

	// usedCodeTTL is how long a code is kept after its use.
	usedCodeTTL = 24 * time.Hour
)

// codeUUID is the uuid of a code in the store of tokens.
func codeUUID(code string) string { return record.KindCode + secret.Hex(code) }

// Issue issues a code for a user who has logged in for an application. Ending all sessions of the user invalidates the
// code.
func (s *Flow) Issue(ctx context.Context, user record.User, p record.Proof,
	app *record.Application) (sessions.Issued, error) {
	issued, code := sessions.Issued{Application: app}, secret.New()
	if err := s.Sessions.RequireOpen(user); err != nil {
		return issued, err
	}
	_, err := s.DB.Tokens.Create(record.AsService(ctx, user.UUID), codeUUID(code), record.Token{
		User: user.UUID, Epoch: &user.Epoch, Proof: p, Application: app, Expires: s.DB.Now().Add(CodeTTL),
	})
	if err == nil {
		issued.Code = code
	}
	return issued, err
}

// Exchange is the request of an application for a session (RFC 6749, section 4.1.3).
type Exchange struct{ Code, Redirect, Verifier, Client string }

// check reports a ProtocolError for an exchange that lacks something. It does not count as a use of the code.
func (e Exchange) check() error {
	switch {
	case e.Code == "":
		return protocolError(InvalidRequest, "code is missing")
	case e.Redirect == "":
		return protocolError(InvalidRequest, "redirect_uri is missing: it must be that of the login")
	case len(e.Verifier) < minVerifier || len(e.Verifier) > maxVerifier ||
		strings.Trim(e.Verifier, verifierLetter) != "":
		return protocolError(InvalidRequest, "code_verifier is missing, or does not have 43 to 128 characters of A-Z "+
			"a-z 0-9 - . _ ~: PKCE is required (RFC 7636)")
	}
	return nil
}

// errGrant does not reveal the error of a code.
func errGrant() error {
	return protocolError(InvalidGrant, "the code is wrong, has expired or was used, or redirect_uri, client_id or "+
		"code_verifier is not that of its login: log in again")
}

// errNoClient is for a request that does not name its client. Clients that try several methods of authentication may
// first use one that belfry does not read, so the code stays valid.
func errNoClient() error {
	return protocolError(InvalidClient,
		"client_id is missing: it must be that of the login, in the body or by HTTP Basic with an empty password")
}

// Exchange starts the session of an application whose user has logged in. Only the first
// exchange of a code can succeed, in any process; the second ends the session.
//
// Errors: a ProtocolError; Denied for a disabled user; Limited; Unavailable.
func (s *Flow) Exchange(ctx context.Context, e Exchange, from sessions.Client) (sessions.Issued, error) {
	if err := e.check(); err != nil {
		return sessions.Issued{}, err
	}
	if err := s.Guesses.Take(from.Address); err != nil {
		return sessions.Issued{}, err
	}
	from.Session, from.Application = nil, nil
	ctx = record.AsService(ctx, "")
	grant, id, err := s.consumeCode(ctx, e)
	if err != nil {
		return sessions.Issued{}, err
	}
	app := grant.Application
	if app == nil || app.Redirect == "" || app.Redirect != e.Redirect || app.Client != e.Client ||
		!secret.Matches(e.Verifier, app.Challenge) {
		return sessions.Issued{}, errGrant()
	}
	session, err := s.startGranted(ctx, grant, id, app, from)
	if err != nil {
		return sessions.Issued{}, err
	}
	if err := s.confirmUse(ctx, codeUUID(e.Code), session.User.UUID, id); err != nil {
		return sessions.Issued{}, err
	}
	s.Guesses.Return(from.Address)
	return session, nil
}

// consumeCode marks a code as used and returns its data, with the id of the session to make.
func (s *Flow) consumeCode(ctx context.Context, e Exchange) (grant record.Token, id string, err error) {
	replayed := ""
	_, err = s.DB.Tokens.Change(ctx, codeUUID(e.Code), func(t *record.Token) error {
		grant, replayed = *t, t.Session
		if replayed != "" {
			t.Replayed = true
			return nil
		}
		if app := t.Application; app != nil && app.Redirect != "" && app.Client != "" && e.Client == "" &&
			s.DB.Now().Before(t.Expires) {
			return errNoClient()
		}
		id = secret.Random(sessions.IDSize)
		t.Session, t.Expires = id, s.DB.Now().Add(usedCodeTTL)
		return nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return grant, "", errGrant()
	case err != nil:
		return grant, "", err
	case replayed != "":
		s.Log.WarnContext(ctx, "auth: a code of a login was used twice: the session of its first use ends",
			"session", replayed)
		if err := s.Sessions.End(ctx, replayed,
			s.DB.AuditEnd(grant.User, replayed, record.ReasonCodeReplay)); err != nil {
			return grant, "", err
		}
		return grant, "", errGrant()
	case !s.DB.Now().Before(grant.Expires):
		return grant, "", errGrant()
	}
	return grant, id, nil
}

// startGranted starts the session for a code.
func (s *Flow) startGranted(ctx context.Context, grant record.Token, id string, app *record.Application,
	from sessions.Client) (sessions.Issued, error) {
	user, err := sessions.UserOf(ctx, s.DB, grant, errGrant())
	if err != nil {
		return sessions.Issued{}, err
	}
	return s.Sessions.Save(record.AsService(ctx, user.UUID), user,
		sessions.New{ID: id, Proof: grant.Proven(), Application: app.Name}, from)
}

// confirmUse ends a session whose code was used a second time before the session was created. A second use marks the
// code and then ends the session; confirmUse reads the mark after the session is created. So in any interleaving a
// second use ends the session.
func (s *Flow) confirmUse(ctx context.Context, code, user, session string) error {
	now, err := s.DB.Tokens.Read(ctx, code)
	if err == nil && !now.Replayed {
		return nil
	}
	if ended := s.Sessions.End(ctx, session, s.DB.AuditEnd(user, session, record.ReasonCodeReplay)); ended != nil {
		return ended
	}
	if err == nil || errors.Is(err, errs.NotFound) {
		return errGrant()
	}
	return err
}
