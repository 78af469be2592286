package account

import (
	"context"
	"errors"
	"strings"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// How long a session lasts: without a request, and in total.
const (
	SessionIdleTimeout = 7 * 24 * time.Hour
	SessionMaxAge      = 90 * 24 * time.Hour

	// maxSessions is how many sessions a user can have. The least recently used
	// are ended first, so that repeated logins do not fill the disk.
	maxSessions = 100

	// extendInterval is the minimum between two writes of a session in use.
	extendInterval = time.Hour
)

// Session is a session of a user who is logged in.
type Session struct {
	ID      string
	User    record.User   // with all fields
	Visible object.Object // as rules see the user: the fields that the user may see
	Expires time.Time
	Key     *Key // the API key that it is of; nil after a login

	Type            string    // the provider of the login
	Application     string    // the configured redirect of the application that the session is of; "" for a browser or a program
	Methods         []string  // by which the user has proven who they are, as in event.AuthDetails
	AAL             int       // authenticator assurance level: 1, or 2 with a second factor
	AuthenticatedAt time.Time // the last time that they have; zero for an API key
	limited         bool      // the user has a second factor that could not be asked for
	passwordSet     time.Time // when the session began because its user changed the password; zero otherwise
	Missing         string    // a step that the user has to take before the session is of use, as in errs.StepUp; "" for none
}

// ForRules returns what rules see of a session; nil for none.
func (me *Session) ForRules() *policy.Session {
	if me == nil {
		return nil
	}
	return &policy.Session{AAL: me.AAL, AuthenticatedAt: me.AuthenticatedAt, StepUp: me.Key == nil}
}

// hasPassword reports whether a session is of a user with a password.
func hasPassword(s *Session) bool {
	return s != nil && s.User.Password != ""
}

// IssuedSession is a new session with its token, or a code for an application. Neither is stored
// anywhere.
type IssuedSession struct {
	Session
	Token string

	// Application is what the login was for, also when it failed; nil for the client itself.
	// Code is "" unless it succeeded. There is no session yet.
	Application *Application
	Code        string

	Device string // the secret of a new cookie by which the device will be known; "" for none
}

// startSession starts a session of a user who has proven who they are,
// or issues a code if the login is for an application. The session that the client had before
// ends: no token outlives a login.
func (s *Service) startSession(ctx context.Context, user record.User, p record.Proof, c Client) (IssuedSession, error) {
	ctx = record.AsService(ctx, user.UUID)
	if c.Application == nil {
		return s.saveSession(ctx, user, newSession{id: secret.Random(idSize), Proof: p}, c)
	}
	issued := IssuedSession{Application: c.Application}
	err := s.requireOpen(user)
	if err == nil {
		issued.Code, err = s.issueCode(ctx, user, p, c.Application)
	}
	return issued, err
}

// replaceSession starts a session in place of that of the client, of the same browser, program or application. The former one has
// ended when it returns: somebody else may have its token.
func (s *Service) replaceSession(ctx context.Context, user record.User, p record.Proof, c Client) (IssuedSession, error) {
	return s.replaceBy(ctx, user, newSession{Proof: p}, c)
}

func (s *Service) replaceBy(ctx context.Context, user record.User, n newSession, c Client) (IssuedSession, error) {
	ctx, before := record.AsService(ctx, user.UUID), c.Session
	c.Session = nil
	n.id, n.application = secret.Random(idSize), before.Application
	session, err := s.saveSession(ctx, user, n, c)
	if err != nil {
		return IssuedSession{}, err
	}
	return session, s.endSession(ctx, before.ID, s.db.AuditEnd(before.User.UUID, before.ID, record.ReasonReplaced))
}

// requireOpen returns an error that is Denied for a user who is disabled, or is being deleted.
func (s *Service) requireOpen(user record.User) error {
	switch {
	case user.MarkedDisabled:
		return errDisabled()
	case user.IsDue(s.now()):
		return errDeleted()
	}
	return nil
}

// newSession is a session to be saved. application is "" for that of a browser or a program.
type newSession struct {
	record.Proof
	id, application string
	passwordSet     bool
}

func (s *Service) saveSession(ctx context.Context, user record.User, n newSession, c Client) (IssuedSession, error) {
	if err := s.requireOpen(user); err != nil {
		return IssuedSession{}, err
	}
	now, token := s.now(), secret.New()
	session := record.Session{
		User: user.UUID, Proof: n.Proof, Application: n.application, Expires: now.Add(SessionIdleTimeout), LastUsed: now,
		Address: c.Address, UserAgent: c.UserAgent, Hash: secret.Digest(token), Epoch: user.Epoch,
	}
	if n.passwordSet {
		session.PasswordSet = now
	}
	name := event.AuthLoggedIn
	if n.Again {
		name = event.AuthSteppedUp
	}
	session.Publish(s.db.Audit(name, user.UUID, event.AuthDetails{Method: strings.Join(n.Methods, " "), Session: n.id, AAL: n.AAL}))
	if _, err := s.db.Sessions.Create(ctx, n.id, session); err != nil {
		return IssuedSession{}, err
	}
	s.runInBackground(ctx, "ending excess sessions", func(ctx context.Context) error { return s.endExcessSessions(ctx, user) })
	if c.Session != nil {
		s.runInBackground(ctx, "ending the previous session", func(ctx context.Context) error {
			return s.endSession(ctx, c.Session.ID, s.db.AuditEnd(c.Session.User.UUID, c.Session.ID, record.ReasonReplaced))
		})
	}
	visible, err := s.seenByRules(user)
	issued := Session{ID: n.id, User: user, Visible: visible, Expires: session.Expires, Application: n.application}
	issued.setProof(n.Proof)
	issued.Missing = s.missingStep(ctx, &issued)
	return IssuedSession{Session: issued, Token: n.id + token}, err
}

func (me *Session) setProof(p record.Proof) {
	me.Type, me.Methods, me.AAL, me.AuthenticatedAt, me.limited = p.Provider, p.Methods, p.AAL, p.At, p.Limited
}

// idSize is how many random bytes a session's id has.
const idSize = 16

// splitToken splits a session's token into the session's id and a secret.
func splitToken(token string) (id, half string, ok bool) {
	size := secret.B64.EncodedLen(idSize)
	if len(token) != size+secret.B64.EncodedLen(secret.Size) || strings.Trim(token, secret.Letters) != "" {
		return "", "", false
	}
	return token[:size], token[size:], true
}

// Authenticate returns the session of a token; nil for a token that is malformed,
// unknown, expired or revoked, or whose user was deleted or disabled.
func (s *Service) Authenticate(ctx context.Context, token string) (*Session, error) {
	id, half, ok := splitToken(token)
	if !ok {
		return nil, nil
	}
	ctx = record.AsService(ctx, "")
	session, err := s.db.Sessions.Read(ctx, id)
	if err != nil {
		return nil, record.IgnoreNotFound(err)
	}
	now := s.now()
	if !secret.Matches(half, session.Hash) || !now.Before(session.Expires) {
		return nil, nil
	}
	user, err := s.db.Users.Read(ctx, session.User)
	if err != nil {
		return nil, record.IgnoreNotFound(err)
	}
	if user.Epoch != session.Epoch || user.MarkedDisabled || user.IsDue(now) {
		return nil, nil
	}
	visible, err := s.seenByRules(user)
	if err != nil {
		return nil, err
	}
	if now.Sub(session.LastUsed) >= extendInterval {
		s.extend(ctx, id)
	}
	me := &Session{
		ID: id, User: user, Visible: visible, Expires: session.Expires, Key: s.keyOf(session),
		Application: session.Application, passwordSet: session.PasswordSet,
	}
	me.setProof(session.Proven())
	me.Missing = s.missingStep(ctx, me)
	return me, nil
}

// Causes of errors that are of the token of a request, and of nothing else, for programs that sent it in Authorization (RFC 6750,
// section 3.1).
var (
	ErrInvalidToken      = errors.New("the token is not valid")             // Unauthenticated
	ErrInsufficientScope = errors.New("the token is not for such requests") // Denied
)

// errSessionEnded is returned when a session has ended during a request.
func errSessionEnded() error {
	return errs.Wrap(ErrInvalidToken, errs.Unauthenticated, "your session has ended: log in again")
}

// checkActive reports errSessionEnded for a session that has ended since the
// request began, which may be long ago: a slow body or provider delays it.
func (s *Service) checkActive(ctx context.Context, me *Session) error {
	_, err := s.db.Sessions.Get(ctx, me.ID)
	if errors.Is(err, errs.NotFound) {
		return errSessionEnded()
	}
	if err != nil {
		return err
	}
	user, err := s.db.Users.Read(ctx, me.User.UUID)
	if errors.Is(err, errs.NotFound) {
		return errSessionEnded()
	}
	if err != nil {
		return err
	}
	if !user.SameEpoch(me.User) {
		return errSessionEnded()
	}
	return nil
}

// changeCurrentUser changes the user who is logged in. It reports errSessionEnded when all sessions were ended since the request began,
// also if there is nothing to change.
func (s *Service) changeCurrentUser(ctx context.Context, me *Session, change func(*record.User) error) (record.User, error) {
	return s.db.Users.Change(record.AsService(ctx, me.User.UUID), me.User.UUID, func(now *record.User) error {
		if !now.SameEpoch(me.User) {
			return errSessionEnded()
		}
		return change(now)
	})
}

// extend records that a session is in use and extends it, in the background.
func (s *Service) extend(ctx context.Context, id string) {
	s.runInBackground(ctx, "extending a session", func(ctx context.Context) error {
		_, err := s.db.Sessions.Change(ctx, id, func(session *record.Session) error {
			now := s.now()
			if now.Sub(session.LastUsed) < extendInterval {
				return record.ErrUnchanged
			}
			session.LastUsed = now
			if !session.IsKey() {
				session.Expires = earlier(now.Add(SessionIdleTimeout), record.Time(session.Created).Add(SessionMaxAge))
			}
			return nil
		})
		return record.IgnoreNotFound(err)
	})
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// endSession ends a session, with an event. A session that has ended already is no error, and has none.
func (s *Service) endSession(ctx context.Context, id string, ended store.ExtraEvent) error {
	return record.IgnoreNotFound(s.db.Sessions.Delete(ctx, id, 0, ended))
}

// Logout ends a session.
func (s *Service) Logout(ctx context.Context, session *Session) error {
	ctx = record.AsService(ctx, session.User.UUID)
	return s.endSession(ctx, session.ID, s.db.AuditEnd(session.User.UUID, session.ID, record.ReasonLogout))
}
