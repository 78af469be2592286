package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// A code is an object in the store of tokens, found by its hash. The first exchange marks it as
// used, whether or not what comes with the code is right; one that names no client, where the login did, is none. It
// is kept after that, so that a second use is noticed: then somebody else had the code, and the session that it made ends.
const (
	// CodeTTL is how long a code is valid.
	CodeTTL = time.Minute

	// usedCodeTTL is how long a code is kept after its use.
	usedCodeTTL = 24 * time.Hour
)

// Fields of a code in the store of tokens, besides those of the proof, fieldApplication, fieldLinkUser and fieldEpoch.
const (
	fieldApplication = "_application"
	fieldSession     = "_session"  // the session that the first use makes; absent before
	fieldReplayed    = "_replayed" // it was used twice
)

// codeUUID is the uuid of a code in the store of tokens.
func codeUUID(code string) string { return "code-" + hexDigest(code) }

// issueCode returns a code for a user who has logged in for an application. A code is of no use
// once all sessions of the user were ended.
func (s *Service) issueCode(ctx context.Context, user string, epoch uint64, p proof, app *Application) (string, error) {
	code, grant := newSecret(), object.Object{}
	grant.Set(fieldLinkUser, user)
	grant.Set(fieldEpoch, epoch)
	p.write(grant)
	grant.Set(fieldApplication, app)
	grant.Set(fieldExpires, timestamp(s.now().Add(CodeTTL)))
	_, err := s.tokens.Save(ctx, grant, codeUUID(code))
	return code, err
}

// CodeExchange is what an application exchanges for a session (RFC 6749, section 4.1.3).
type CodeExchange struct{ Code, Redirect, Verifier, Client string }

// check reports a ProtocolError for an exchange that lacks something. It counts as no use of
// the code.
func (e CodeExchange) check() error {
	switch {
	case e.Code == "":
		return protocolError(InvalidRequest, "code is missing")
	case e.Redirect == "":
		return protocolError(InvalidRequest, "redirect_uri is missing: it has to be that of the login")
	case len(e.Verifier) < minVerifier || len(e.Verifier) > maxVerifier || strings.Trim(e.Verifier, verifierLetter) != "":
		return protocolError(InvalidRequest, "code_verifier is missing, or has not 43 to 128 characters of A-Z a-z 0-9 - . _ ~: PKCE is required (RFC 7636)")
	}
	return nil
}

// errGrant does not say what is wrong with a code.
func errGrant() error {
	return protocolError(InvalidGrant, "the code is wrong, has expired or was used, or redirect_uri, client_id or code_verifier is not that of its login: log in again")
}

// errNoClient is for a request that does not say whose it is. A client that tries several ways to say so sends
// one first that belfry does not read, so the code stays valid.
func errNoClient() error {
	return protocolError(InvalidClient, "client_id is missing: it has to be that of the login, in the body or by HTTP Basic with an empty password")
}

// ExchangeCode starts the session of an application whose user has logged in. Of several
// exchanges of one code, in whatever processes, the first alone can succeed; the second ends the
// session.
//
// Errors: a ProtocolError; Denied for a user who is disabled; Limited; Unavailable.
func (s *Service) ExchangeCode(ctx context.Context, e CodeExchange, from Client) (IssuedSession, error) {
	if err := e.check(); err != nil {
		return IssuedSession{}, err
	}
	if err := s.takeAttempt(from); err != nil {
		return IssuedSession{}, err
	}
	from.Session, from.Application = nil, nil
	ctx = asService(ctx, "")
	grant, id, err := s.consumeCode(ctx, e)
	if err != nil {
		return IssuedSession{}, err
	}
	app := applicationOf(grant[fieldApplication])
	if app == nil || app.Redirect != e.Redirect || app.Client != e.Client || !secretMatches(e.Verifier, app.Challenge) {
		return IssuedSession{}, errGrant()
	}
	session, err := s.startGranted(ctx, grant, id, app, from)
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.confirmUse(ctx, codeUUID(e.Code), session.User.UUID, id); err != nil {
		return IssuedSession{}, err
	}
	s.returnAttempt(from)
	return session, nil
}

// consumeCode marks a code as used and returns what it stands for, with the id of the session to make.
func (s *Service) consumeCode(ctx context.Context, e CodeExchange) (grant object.Object, id string, err error) {
	replayed := ""
	_, err = s.tokens.Mutate(ctx, codeUUID(e.Code), func(now store.Stored) (store.Mutation, error) {
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		grant, replayed = o, ""
		fields := object.Object{}
		if made, used := o.Text(fieldSession); used {
			replayed = made
			fields.Set(fieldReplayed, true)
			return store.Mutation{Fields: fields}, nil
		}
		if app := applicationOf(o[fieldApplication]); app != nil && app.Client != "" && e.Client == "" && s.now().Before(timeField(o, fieldExpires)) {
			return store.Mutation{}, errNoClient()
		}
		id = randomText(idSize)
		fields.Set(fieldSession, id)
		fields.Set(fieldExpires, timestamp(s.now().Add(usedCodeTTL)))
		return store.Mutation{Fields: fields}, nil
	})
	switch {
	case errors.Is(err, errs.NotFound):
		return nil, "", errGrant()
	case err != nil:
		return nil, "", err
	case replayed != "":
		s.log.WarnContext(ctx, "auth: a code of a login was used twice: the session of its first use ends", "session", replayed)
		user, _ := grant.Text(fieldLinkUser)
		if err := s.endSession(ctx, replayed, s.auditEnd(user, replayed, reasonCodeReplay)); err != nil {
			return nil, "", err
		}
		return nil, "", errGrant()
	case !s.now().Before(timeField(grant, fieldExpires)):
		return nil, "", errGrant()
	}
	return grant, id, nil
}

// startGranted starts the session that a code stands for.
func (s *Service) startGranted(ctx context.Context, grant object.Object, id string, app *Application, from Client) (IssuedSession, error) {
	uuid, _ := grant.Text(fieldLinkUser)
	user, err := s.users.Get(ctx, uuid)
	if errors.Is(err, errs.NotFound) {
		return IssuedSession{}, errGrant()
	}
	if err != nil {
		return IssuedSession{}, err
	}
	o, err := user.Object()
	if err != nil {
		return IssuedSession{}, err
	}
	if isMarked(o, markDisabled) {
		return IssuedSession{}, errDisabled()
	}
	if epoch(o) != epoch(grant) {
		return IssuedSession{}, errGrant() // what ended all sessions ends the codes
	}
	return s.saveSession(asService(ctx, user.UUID), user, newSession{id: id, proof: proofOf(grant), application: app.Name}, from)
}

// confirmUse ends a session whose code was used a second time before the session was there to
// be ended. A second use marks the code and then ends the session; this reads the mark once
// the session is there. So no session outlives a second use, however the two interleave.
func (s *Service) confirmUse(ctx context.Context, code, user, session string) error {
	now, err := s.tokens.Get(ctx, code)
	if err == nil && object.Field(now.Body, fieldReplayed) == nil {
		return nil
	}
	if ended := s.endSession(ctx, session, s.auditEnd(user, session, reasonCodeReplay)); ended != nil {
		return ended
	}
	if err == nil || errors.Is(err, errs.NotFound) {
		return errGrant()
	}
	return err
}
