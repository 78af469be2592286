package account

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

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

// Fields that several files use.
const (
	fieldUser     = "user"
	fieldExpires  = "expires"
	fieldEpoch    = "_epoch"
	fieldPassword = "password"

	fieldPasswordSet = "_passwordSet" // when a session began because its user changed the password
)

// Session is a session of a user who is logged in.
type Session struct {
	ID      string
	User    store.Stored  // with all fields
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
	if s == nil {
		return false
	}
	encoded, _ := object.Text(object.Field(s.User.Body, fieldPassword))
	return encoded != ""
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
func (s *Service) startSession(ctx context.Context, user store.Stored, p proof, c Client) (IssuedSession, error) {
	ctx = asService(ctx, user.UUID)
	if c.Application == nil {
		issued, err := s.saveSession(ctx, user, newSession{id: randomText(idSize), proof: p}, c)
		if err == nil {
			issued.Device = s.recordDevice(ctx, user, c)
		}
		return issued, err
	}
	issued := IssuedSession{Application: c.Application}
	o, err := user.Object()
	if err == nil {
		err = s.requireOpen(o)
	}
	if err == nil {
		issued.Code, err = s.issueCode(ctx, user.UUID, epoch(o), p, c.Application)
	}
	if err == nil {
		issued.Device = s.recordDevice(ctx, user, c)
	}
	return issued, err
}

// replaceSession starts a session in place of that of the client, of the same browser, program or application. The former one has
// ended when it returns: somebody else may have its token.
func (s *Service) replaceSession(ctx context.Context, user store.Stored, p proof, c Client) (IssuedSession, error) {
	return s.replaceBy(ctx, user, newSession{proof: p}, c)
}

func (s *Service) replaceBy(ctx context.Context, user store.Stored, n newSession, c Client) (IssuedSession, error) {
	ctx, before := asService(ctx, user.UUID), c.Session
	c.Session = nil
	n.id, n.application = randomText(idSize), before.Application
	session, err := s.saveSession(ctx, user, n, c)
	if err != nil {
		return IssuedSession{}, err
	}
	return session, s.endSession(ctx, before.ID, s.auditEnd(before.User.UUID, before.ID, reasonReplaced))
}

// requireOpen returns an error that is Denied for a user who is disabled, or is being deleted.
func (s *Service) requireOpen(user object.Object) error {
	switch {
	case isMarked(user, markDisabled):
		return errDisabled()
	case s.isDue(user):
		return errDeleted()
	}
	return nil
}

// newSession is a session to be saved. application is "" for that of a browser or a program.
type newSession struct {
	proof
	id, application string
	passwordSet     bool
}

func (s *Service) saveSession(ctx context.Context, user store.Stored, n newSession, c Client) (IssuedSession, error) {
	o, err := user.Object()
	if err != nil {
		return IssuedSession{}, err
	}
	if err := s.requireOpen(o); err != nil {
		return IssuedSession{}, err
	}
	now, secret := s.now(), newSecret()
	expires := now.Add(SessionIdleTimeout)
	session := object.Object{}
	session.Set(fieldUser, user.UUID)
	if n.application != "" {
		session.Set("application", n.application)
	}
	session.Set(fieldExpires, timestamp(expires))
	session.Set("lastUsed", timestamp(now))
	n.write(session)
	if n.passwordSet {
		session.Set(fieldPasswordSet, timestamp(now))
	}
	session.Set("address", c.Address)
	session.Set("userAgent", c.UserAgent)
	session.Set("_hash", digest(secret))
	session.Set(fieldEpoch, epoch(o))
	name := event.AuthLoggedIn
	if n.again {
		name = event.AuthSteppedUp
	}
	begun := s.audit(name, user.UUID, event.AuthDetails{Method: strings.Join(n.methods, " "), Session: n.id, AAL: n.aal})
	if _, err := s.sessions.Save(ctx, session, n.id, begun); err != nil {
		return IssuedSession{}, err
	}
	s.runInBackground(ctx, "ending excess sessions", func(ctx context.Context) error { return s.endExcessSessions(ctx, user) })
	if c.Session != nil {
		s.runInBackground(ctx, "ending the previous session", func(ctx context.Context) error {
			return s.endSession(ctx, c.Session.ID, s.auditEnd(c.Session.User.UUID, c.Session.ID, reasonReplaced))
		})
	}
	visible, err := s.seenByRules(user, o)
	issued := Session{ID: n.id, User: user, Visible: visible, Expires: expires, Type: n.provider, Application: n.application, Methods: n.methods, AAL: n.aal, AuthenticatedAt: n.at, limited: n.limited}
	issued.Missing = s.missingStep(ctx, &issued)
	return IssuedSession{Session: issued, Token: n.id + secret}, err
}

// epoch is the number of times that all sessions of a user were ended.
func epoch(o object.Object) uint64 {
	n, _ := strconv.ParseUint(string(o[fieldEpoch]), 10, 64)
	return n
}

// Authenticate returns the session of a token; nil for a token that is malformed,
// unknown, expired or revoked, or whose user was deleted or disabled.
func (s *Service) Authenticate(ctx context.Context, token string) (*Session, error) {
	id, secret, ok := splitToken(token)
	if !ok {
		return nil, nil
	}
	ctx = asService(ctx, "")
	stored, err := s.sessions.Get(ctx, id)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	session, err := stored.Object()
	if err != nil {
		return nil, err
	}
	now := s.now()
	hash, _ := session.Text("_hash")
	if !secretMatches(secret, hash) || !now.Before(timeField(session, fieldExpires)) {
		return nil, nil
	}
	userID, _ := session.Text(fieldUser)
	user, err := s.users.Get(ctx, userID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	o, err := user.Object()
	if err != nil || epoch(o) != epoch(session) || isMarked(o, markDisabled) || s.isDue(o) {
		return nil, err
	}
	visible, err := s.seenByRules(user, o)
	if err != nil {
		return nil, err
	}
	if now.Sub(timeField(session, "lastUsed")) >= extendInterval {
		s.extend(ctx, id)
	}
	me := &Session{ID: id, User: user, Visible: visible, Expires: timeField(session, fieldExpires), Key: s.keyOf(session)}
	p := proofOf(session)
	me.Type, me.Methods, me.AAL, me.AuthenticatedAt, me.limited = p.provider, p.methods, p.aal, p.at, p.limited
	me.passwordSet = timeField(session, fieldPasswordSet)
	me.Application, _ = session.Text("application")
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
	_, err := s.sessions.Get(ctx, me.ID)
	if errors.Is(err, errs.NotFound) {
		return errSessionEnded()
	}
	if err != nil {
		return err
	}
	user, err := s.users.Get(ctx, me.User.UUID)
	if errors.Is(err, errs.NotFound) {
		return errSessionEnded()
	}
	if err != nil {
		return err
	}
	if !sameEpoch(user, me.User) {
		return errSessionEnded()
	}
	return nil
}

// sameEpoch reports whether two states of a user have the same epoch.
func sameEpoch(a, b store.Stored) bool {
	return string(object.Field(a.Body, fieldEpoch)) == string(object.Field(b.Body, fieldEpoch))
}

// updateCurrentUser changes fields of the user who is logged in. It reports
// errSessionEnded when all sessions were ended since the request began, also if
// there are no fields to change. The extra events are those of a change.
func (s *Service) updateCurrentUser(ctx context.Context, me *Session, fields func(now object.Object) object.Object, also ...store.ExtraEvent) (store.Stored, error) {
	return s.users.Mutate(asService(ctx, me.User.UUID), me.User.UUID, func(now store.Stored) (store.Mutation, error) {
		if !sameEpoch(now, me.User) {
			return store.Mutation{}, errSessionEnded()
		}
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		return store.Mutation{Fields: fields(o), ExtraEvents: also}, nil
	})
}

// ignoreNotFound returns err unless it is NotFound.
func ignoreNotFound(err error) error {
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// ignoreStale returns err unless the object was deleted or changed since it was
// read.
func ignoreStale(err error) error {
	if errors.Is(err, errs.Mismatch) {
		return nil
	}
	return ignoreNotFound(err)
}

// extend records that a session is in use and extends it, in the background.
func (s *Service) extend(ctx context.Context, id string) {
	s.runInBackground(ctx, "extending a session", func(ctx context.Context) error {
		_, err := s.sessions.Mutate(ctx, id, func(session store.Stored) (store.Mutation, error) {
			o, err := session.Object()
			if err != nil || s.now().Sub(timeField(o, "lastUsed")) < extendInterval {
				return store.Mutation{}, err
			}
			now, fields := s.now(), object.Object{}
			fields.Set("lastUsed", timestamp(now))
			if isKey(o) {
				return store.Mutation{Fields: fields}, nil
			}
			fields.Set(fieldExpires, timestamp(earlier(now.Add(SessionIdleTimeout), timeField(o, "created").Add(SessionMaxAge))))
			return store.Mutation{Fields: fields}, nil
		})
		return ignoreNotFound(err)
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
	return ignoreNotFound(s.sessions.Delete(ctx, id, 0, ended))
}

// Logout ends a session.
func (s *Service) Logout(ctx context.Context, session *Session) error {
	ctx = asService(ctx, session.User.UUID)
	return s.endSession(ctx, session.ID, s.auditEnd(session.User.UUID, session.ID, reasonLogout))
}
