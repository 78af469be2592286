package sessions

import (
	"context"
	"errors"
	"strings"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
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

// Session is a session of a logged-in user.
type Session struct {
	ID      string
	User    record.User   // with all fields
	Visible object.Object // as rules see the user: the fields that the user may see
	Expires time.Time
	Key     *Key // the API key of the session; nil after a login

	Type string // the provider of the login
	// the configured redirect of the application that the session is of; "" for a browser or a program
	Application     string
	Methods         []string  // by which the user has proven their identity, as in event.AuthDetails
	AAL             int       // authenticator assurance level: 1, or 2 with a second factor
	AuthenticatedAt time.Time // the last time that they have; zero for an API key
	Limited         bool      // the user has a second factor that could not be requested
	PasswordSet     time.Time // when the session began because its user changed the password; zero otherwise
	// the user as whom an admin sees in the console, and until when; "" for nobody
	Impersonated      string
	ImpersonatedUntil time.Time
	Missing           string // a step that the user first has to take, as in errs.StepUp; "" for none
}

// ForRules returns the view of a session for rules; nil without one.
func (me *Session) ForRules() *policy.Session {
	if me == nil {
		return nil
	}
	return &policy.Session{AAL: me.AAL, AuthenticatedAt: me.AuthenticatedAt, StepUp: me.Key == nil}
}

// HasPassword reports whether the user of a session has a password.
func HasPassword(s *Session) bool {
	return s != nil && s.User.Password != ""
}

// Issued is a new session with its token, or a code for an application. Neither is stored
// anywhere.
type Issued struct {
	Session
	Token string

	// Application is the application of the login, also if the login failed; nil for the client itself. Code is ""
	// unless the login succeeded. There is no session yet.
	Application *record.Application
	Code        string

	Device string // the secret of a new cookie that will identify the device; "" for none
}

// Start starts a session of a user who has proven their identity. The client's previous session ends, so that no token
// outlives a login.
func (s *Sessions) Start(ctx context.Context, user record.User, p record.Proof, c Client) (Issued, error) {
	return s.Save(record.AsService(ctx, user.UUID), user, New{ID: secret.Random(IDSize), Proof: p}, c)
}

// Replace replaces the session of the client by a new one of the same browser, program or application. The former
// session has ended when Replace returns, because somebody else may have its token.
func (s *Sessions) Replace(ctx context.Context, user record.User, p record.Proof, c Client) (Issued, error) {
	return s.ReplaceBy(ctx, user, New{Proof: p}, c)
}

// ReplaceBy is Replace by a session with further data besides the proof.
func (s *Sessions) ReplaceBy(ctx context.Context, user record.User, n New, c Client) (Issued, error) {
	ctx, before := record.AsService(ctx, user.UUID), c.Session
	c.Session = nil
	n.ID, n.Application = secret.Random(IDSize), before.Application
	session, err := s.Save(ctx, user, n, c)
	if err != nil {
		return Issued{}, err
	}
	return session, s.End(ctx, before.ID, s.DB.AuditEnd(before.User.UUID, before.ID, record.ReasonReplaced))
}

// RequireOpen returns Denied for a user who is disabled or being deleted.
func (s *Sessions) RequireOpen(user record.User) error {
	switch {
	case user.MarkedDisabled:
		return DisabledError()
	case user.IsDue(s.DB.Now()):
		return DeletedError()
	}
	return nil
}

// UserOf returns the user of a token for a login without a session yet. If all sessions of the user have ended since,
// the login has ended too, and the error is ended. Denied for a disabled user.
func UserOf(ctx context.Context, db *record.Stores, login record.Token, ended error) (record.User, error) {
	user, err := db.Users.Read(ctx, login.User)
	switch {
	case errors.Is(err, errs.NotFound):
		return user, ended
	case err != nil:
		return user, err
	case user.MarkedDisabled:
		return user, DisabledError()
	case user.Epoch != login.InEpoch():
		return user, ended
	}
	return user, nil
}

// New returns a session to save. application is "" for a browser or a program.
type New struct {
	record.Proof
	ID, Application string
	PasswordSet     bool
}

// Save stores a session, and ends sessions beyond the limit.
func (s *Sessions) Save(ctx context.Context, user record.User, n New, c Client) (Issued, error) {
	if err := s.RequireOpen(user); err != nil {
		return Issued{}, err
	}
	now, token := s.DB.Now(), secret.New()
	session := record.Session{
		User: user.UUID, Proof: n.Proof, Application: n.Application, Expires: now.Add(SessionIdleTimeout),
		LastUsed: now, Address: c.Address, UserAgent: c.UserAgent, Hash: secret.Digest(token), Epoch: user.Epoch,
	}
	if n.PasswordSet {
		session.PasswordSet = now
	}
	name := event.AuthLoggedIn
	if n.Again {
		name = event.AuthSteppedUp
	}
	session.Publish(s.DB.Audit(name, user.UUID,
		event.AuthDetails{Method: strings.Join(n.Methods, " "), Session: n.ID, AAL: n.AAL}))
	if _, err := s.DB.Sessions.Create(ctx, n.ID, session); err != nil {
		return Issued{}, err
	}
	s.RunInBackground(ctx, "ending excess sessions",
		func(ctx context.Context) error { return s.endExcessSessions(ctx, user) })
	if c.Session != nil {
		s.RunInBackground(ctx, "ending the previous session", func(ctx context.Context) error {
			return s.End(ctx, c.Session.ID, s.DB.AuditEnd(c.Session.User.UUID, c.Session.ID, record.ReasonReplaced))
		})
	}
	visible, err := s.SeenByRules(user)
	issued := Session{ID: n.ID, User: user, Visible: visible, Expires: session.Expires, Application: n.Application}
	issued.setProof(n.Proof)
	issued.Missing = s.missingStep(ctx, &issued)
	return Issued{Session: issued, Token: n.ID + token}, err
}

func (me *Session) setProof(p record.Proof) {
	me.Type, me.Methods, me.AAL, me.AuthenticatedAt, me.Limited = p.Provider, p.Methods, p.AAL, p.At, p.Limited
}

// IDSize is how many random bytes a session's id has.
const IDSize = 16

// splitToken splits a session's token into the session's id and a secret.
func splitToken(token string) (id, half string, ok bool) {
	size := secret.B64.EncodedLen(IDSize)
	if len(token) != size+secret.B64.EncodedLen(secret.Size) || strings.Trim(token, secret.Letters) != "" {
		return "", "", false
	}
	return token[:size], token[size:], true
}

// Authenticate returns the session of a token; nil for a token that is malformed,
// unknown, expired or revoked, or whose user was deleted or disabled.
func (s *Sessions) Authenticate(ctx context.Context, token string) (*Session, error) {
	id, half, ok := splitToken(token)
	if !ok {
		return nil, nil
	}
	ctx = record.AsService(ctx, "")
	session, err := s.DB.Sessions.Read(ctx, id)
	if err != nil {
		return nil, record.IgnoreNotFound(err)
	}
	now := s.DB.Now()
	if !secret.Matches(half, session.Hash) || !now.Before(session.Expires) {
		return nil, nil
	}
	user, err := s.DB.Users.Read(ctx, session.User)
	if err != nil {
		return nil, record.IgnoreNotFound(err)
	}
	if user.Epoch != session.Epoch || user.MarkedDisabled || user.IsDue(now) {
		return nil, nil
	}
	visible, err := s.SeenByRules(user)
	if err != nil {
		return nil, err
	}
	if now.Sub(session.LastUsed) >= extendInterval {
		s.extend(ctx, id)
	}
	me := &Session{
		ID: id, User: user, Visible: visible, Expires: session.Expires, Key: s.keyOf(session),
		Application: session.Application, PasswordSet: session.PasswordSet,
		Impersonated: session.Impersonated, ImpersonatedUntil: session.ImpersonatedUntil,
	}
	me.setProof(session.Proven())
	me.Missing = s.missingStep(ctx, me)
	return me, nil
}

// Causes of errors about the token of a request, for programs that sent it in Authorization (RFC 6750, section 3.1).
var (
	ErrInvalidToken      = errors.New("the token is not valid")             // Unauthenticated
	ErrInsufficientScope = errors.New("the token is not for such requests") // Denied
)

// EndedError is returned when a session has ended during a request.
func EndedError() error {
	return errs.Wrap(ErrInvalidToken, errs.Unauthenticated, "your session has ended: log in again")
}

// CheckActive returns EndedError for a session that has ended since the request began. A slow body or provider can
// delay a request for long.
func (s *Sessions) CheckActive(ctx context.Context, me *Session) error {
	_, err := s.DB.Sessions.Store.Get(ctx, me.ID)
	if errors.Is(err, errs.NotFound) {
		return EndedError()
	}
	if err != nil {
		return err
	}
	user, err := s.DB.Users.Read(ctx, me.User.UUID)
	if errors.Is(err, errs.NotFound) {
		return EndedError()
	}
	if err != nil {
		return err
	}
	if !user.SameEpoch(me.User) {
		return EndedError()
	}
	return nil
}

// ChangeCurrent changes the logged-in user. It returns EndedError if all sessions were ended since the request began,
// even if there is nothing to change.
func (s *Sessions) ChangeCurrent(ctx context.Context, me *Session,
	change func(*record.User) error) (record.User, error) {
	return s.DB.Users.Change(record.AsService(ctx, me.User.UUID), me.User.UUID, func(now *record.User) error {
		if !now.SameEpoch(me.User) {
			return EndedError()
		}
		return change(now)
	})
}

// extend records that a session is in use and extends it, in the background.
func (s *Sessions) extend(ctx context.Context, id string) {
	s.RunInBackground(ctx, "extending a session", func(ctx context.Context) error {
		_, err := s.DB.Sessions.Change(ctx, id, func(session *record.Session) error {
			now := s.DB.Now()
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

// End ends a session, with an event. Ending a session again is not an error, and sends no event.
func (s *Sessions) End(ctx context.Context, id string, ended store.ExtraEvent) error {
	return record.IgnoreNotFound(s.DB.Sessions.Store.Delete(ctx, id, 0, ended))
}

// Logout ends a session.
func (s *Sessions) Logout(ctx context.Context, session *Session) error {
	ctx = record.AsService(ctx, session.User.UUID)
	return s.End(ctx, session.ID, s.DB.AuditEnd(session.User.UUID, session.ID, record.ReasonLogout))
}
