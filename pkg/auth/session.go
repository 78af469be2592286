package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// How long a session lasts: idle without a request, and at most.
const (
	SessionIdleTimeout = 7 * 24 * time.Hour
	SessionMaxAge      = 90 * 24 * time.Hour

	// maxSessions is how many sessions a user has. Of more those go that were
	// not used for longest: who logs in again and again fills no disk.
	maxSessions = 100

	// slideEvery is how seldom a request of a session is noted in it.
	extendInterval = time.Hour
)

// Fields of the stores' objects that other files name too.
const (
	fieldUser     = "user"
	fieldExpires  = "expires"
	fieldEpoch    = "_epoch"
	fieldPassword = "password"
)

// Session is a session of a user who is logged in.
type Session struct {
	ID      string
	User    store.Stored  // as the server sees it
	Visible object.Object // as its user may see it
	Expires time.Time
}

// Issued is a session that has just begun, with the token that is its proof.
// Nothing else ever holds the token.
type IssuedSession struct {
	Session
	Token string
}

// issue begins a session. One that the client has had ends: a token never
// outlives a login.
func (s *Service) startSession(ctx context.Context, user store.Stored, way string, c Client) (IssuedSession, error) {
	ctx = asService(ctx, user.UUID)
	o, err := user.Object()
	if err != nil {
		return IssuedSession{}, err
	}
	now := s.now()
	id, secret := randomText(idSize), newSecret()
	expires := now.Add(SessionIdleTimeout)
	session := object.Object{}
	session.Set(fieldUser, user.UUID)
	session.Set("type", way)
	session.Set(fieldExpires, timestamp(expires))
	session.Set("lastUsed", timestamp(now))
	session.Set("address", c.Address)
	session.Set("userAgent", c.UserAgent)
	session.Set("_hash", digest(secret))
	session.Set(fieldEpoch, epoch(o))
	if _, err := s.sessions.Save(ctx, session, id); err != nil {
		return IssuedSession{}, err
	}
	s.runInBackground(ctx, "the end of old sessions", func(ctx context.Context) error { return s.endExcessSessions(ctx, user) })
	if c.Session != nil {
		s.runInBackground(ctx, "the end of a session", func(ctx context.Context) error { return s.endSession(ctx, c.Session.ID) })
	}
	visible, err := s.users.Visible(user).Object()
	return IssuedSession{Session{ID: id, User: user, Visible: visible, Expires: expires}, id + secret}, err
}

// epoch counts how often all sessions of a user were ended.
func epoch(o object.Object) uint64 {
	n, _ := strconv.ParseUint(string(o[fieldEpoch]), 10, 64)
	return n
}

// Identify returns the session that a token is the proof of, nil when it is
// the proof of none: unknown, expired, revoked, or its user is gone.
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
	kept, _ := session.Text("_hash")
	if !secretMatches(secret, kept) || !now.Before(timeField(session, fieldExpires)) {
		return nil, nil
	}
	userID, _ := session.Text(fieldUser)
	user, err := s.users.Get(ctx, userID)
	if err != nil {
		return nil, ignoreNotFound(err)
	}
	o, err := user.Object()
	if err != nil || epoch(o) != epoch(session) {
		return nil, err
	}
	visible, err := s.users.Visible(user).Object()
	if err != nil {
		return nil, err
	}
	if now.Sub(timeField(session, "lastUsed")) >= extendInterval {
		s.extend(ctx, id)
	}
	return &Session{ID: id, User: user, Visible: visible, Expires: timeField(session, fieldExpires)}, nil
}

// ended says that a session has ended while a request of it was under way.
func errSessionEnded() error {
	return errs.New(errs.Unauthenticated, "your session has ended meanwhile: log in again")
}

// alive reports ended for a session that is over. A request may have begun long
// ago: its body was slow, or a provider was.
func (s *Service) checkActive(ctx context.Context, me *Session) error {
	_, err := s.sessions.Get(ctx, me.ID)
	if err == nil {
		var user store.Stored
		if user, err = s.users.Get(ctx, me.User.UUID); err == nil && !sameEpoch(user, me.User) {
			return errSessionEnded()
		}
	}
	if errors.Is(err, errs.NotFound) {
		return errSessionEnded()
	}
	return err
}

// sameEpoch reports whether no one has ended all sessions between two states of
// a user.
func sameEpoch(a, b store.Stored) bool {
	return string(object.Field(a.Body, fieldEpoch)) == string(object.Field(b.Body, fieldEpoch))
}

// reviseMe changes fields of the user who is logged in, and reports ended when
// all sessions were ended since the request began. No fields change nothing.
func (s *Service) updateCurrentUser(ctx context.Context, me *Session, fields func(now object.Object) object.Object) (store.Stored, error) {
	return s.users.Mutate(asService(ctx, me.User.UUID), me.User.UUID, func(now store.Stored) (store.Mutation, error) {
		if !sameEpoch(now, me.User) {
			return store.Mutation{}, errSessionEnded()
		}
		o, err := now.Object()
		if err != nil {
			return store.Mutation{}, err
		}
		return store.Mutation{Fields: fields(o)}, nil
	})
}

// unlessMissing is an error that is not about there being no object.
func ignoreNotFound(err error) error {
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	return err
}

// unlessStale is an error that is not about an object that is gone, or has
// changed since it was read.
func ignoreStale(err error) error {
	if errors.Is(err, errs.Mismatch) {
		return nil
	}
	return ignoreNotFound(err)
}

// slide notes that a session is in use and lets it last longer.
func (s *Service) extend(ctx context.Context, id string) {
	s.runInBackground(ctx, "the use of a session", func(ctx context.Context) error {
		_, err := s.sessions.Mutate(ctx, id, func(session store.Stored) (store.Mutation, error) {
			o, err := session.Object()
			if err != nil || s.now().Sub(timeField(o, "lastUsed")) < extendInterval {
				return store.Mutation{}, err
			}
			now, fields := s.now(), object.Object{}
			fields.Set("lastUsed", timestamp(now))
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

// end ends a session; that it has ended already is fine.
func (s *Service) endSession(ctx context.Context, id string) error {
	return ignoreNotFound(s.sessions.Delete(ctx, id, 0))
}

// Logout ends a session.
func (s *Service) Logout(ctx context.Context, session *Session) error {
	return s.endSession(asService(ctx, session.User.UUID), session.ID)
}

// SessionInfo is what users see of their sessions.
type SessionInfo struct {
	ID        string `json:"id"`
	Current   bool   `json:"current"`
	Type      string `json:"type"`
	Created   string `json:"created"`
	LastUsed  string `json:"lastUsed"`
	Expires   string `json:"expires"`
	Address   string `json:"address,omitempty"`
	UserAgent string `json:"userAgent,omitempty"`
}

// listPage is how many objects a search reads at a time.
const listPage = 200

// List returns the sessions of the user who is logged in, the oldest first.
func (s *Service) ListSessions(ctx context.Context, me *Session) ([]SessionInfo, error) {
	list := []SessionInfo{}
	err := s.sessionsOf(ctx, me.User, func(stored store.Stored, o object.Object) error {
		text := func(name string) string { t, _ := o.Text(name); return t }
		list = append(list, SessionInfo{
			ID: stored.UUID, Current: stored.UUID == me.ID, Type: text("type"), Created: text("created"),
			LastUsed: text("lastUsed"), Expires: text(fieldExpires), Address: text("address"), UserAgent: text("userAgent"),
		})
		return nil
	})
	slices.SortFunc(list, func(a, b SessionInfo) int { return strings.Compare(a.Created+a.ID, b.Created+b.ID) })
	return list, err
}

// sessionsOf calls each with the sessions of a user that are good.
func (s *Service) sessionsOf(ctx context.Context, user store.Stored, each func(store.Stored, object.Object) error) error {
	owner, err := user.Object()
	if err != nil {
		return err
	}
	ctx = asService(ctx, user.UUID)
	return forEachOwned(ctx, s.sessions, user.UUID, func(stored store.Stored, o object.Object) error {
		if !s.now().Before(timeField(o, fieldExpires)) || epoch(o) != epoch(owner) {
			return nil
		}
		return each(stored, o)
	})
}

// trim ends the sessions of a user that are too many.
func (s *Service) endExcessSessions(ctx context.Context, user store.Stored) error {
	var all []string // by their last use
	err := forEachOwned(ctx, s.sessions, user.UUID, func(stored store.Stored, o object.Object) error {
		used, _ := o.Text("lastUsed")
		all = append(all, used+" "+stored.UUID)
		return nil
	})
	slices.Sort(all)
	for ; err == nil && len(all) > maxSessions; all = all[1:] {
		_, id, _ := strings.Cut(all[0], " ")
		err = s.endSession(ctx, id)
	}
	return err
}

// linked calls each with the objects of a store whose field user names a user.
func forEachOwned(ctx context.Context, in *store.Store, user string, each func(store.Stored, object.Object) error) error {
	var after []byte
	for {
		page, next, err := in.Linked(ctx, fieldUser, user, after, listPage)
		if err != nil {
			return err
		}
		for _, found := range page {
			o, err := found.Object()
			if err != nil {
				return err
			}
			if named, _ := o.Text(fieldUser); named != user {
				continue // the index lags
			}
			if err := each(found, o); err != nil {
				return err
			}
		}
		if next == nil {
			return nil
		}
		after = next
	}
}

// Revoke ends a session of the user who is logged in. NotFound when it is not
// one of theirs.
func (s *Service) RevokeSession(ctx context.Context, me *Session, id string) error {
	ctx = asService(ctx, me.User.UUID)
	missing := errs.New(errs.NotFound, "you have no session with this id")
	if !object.ValidUUID(id) {
		return missing
	}
	stored, err := s.sessions.Get(ctx, id)
	if errors.Is(err, errs.NotFound) {
		return missing
	}
	if err != nil {
		return err
	}
	o, err := stored.Object()
	if err != nil {
		return err
	}
	owner, _ := o.Text(fieldUser)
	if subtle.ConstantTimeCompare([]byte(owner), []byte(me.User.UUID)) != 1 {
		return missing
	}
	return s.endSession(ctx, id)
}
