package sessions

import (
	"context"
	"slices"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/store"
)

// VisibleUser returns the user of a session with the fields that the user may see.
func (s *Sessions) VisibleUser(ctx context.Context, session *Session) (store.Stored, error) {
	call := store.CallOf(ctx)
	call.Client, call.User, call.Session = true, session.Visible, session.ForRules()
	return s.DB.Users.Store.Shown(store.WithCall(ctx, call), session.User.Stored)
}

// LoggedIn returns the present user of a new session, as a get would return the user: only the uuid if a get would be
// refused. It never fails, because the session has begun.
func (s *Sessions) LoggedIn(ctx context.Context, session *Session) store.Stored {
	user, err := s.DB.Users.Store.Get(record.AsService(ctx, session.User.UUID), session.User.UUID)
	if err != nil {
		user = session.User.Stored
	}
	call := store.CallOf(ctx)
	call.Client, call.User, call.Session, call.Actor = true, session.Visible, session.ForRules(), nil
	return s.DB.Users.Store.ReplyWith(store.WithCall(ctx, call), user)
}

// Client is the origin of a request.
type Client struct {
	Address   string // network address
	UserAgent string
	Language  string   // the tag of the language of pages; "" if it is not known
	Session   *Session // the session that the request carries; nil for none
	Device    string   // the secret of the cookie that identifies the device; "" for none
	Binding   string   // the secret of a login by mail that the client requested; "" for none
	Browser   string   // the secret of the cookie that identifies the browser of a repetition; "" for none
	Devices   []string // further values of the cookie of Device, of which browsers send several; the valid one counts
	Browsers  []string // the same of Browser
	Cookie    bool     // the secret of the flow that the request continues, such as Binding, comes from a cookie

	// Application is the application of the login. The login issues a code for it instead of a session, and does not
	// change the session of the request. nil: the login is for the client itself.
	Application *record.Application
}

// BackgroundTimeout limits background work.
const BackgroundTimeout = 30 * time.Second

// RunInBackground runs work that a reply does not wait for. Errors are only logged: no promise depends on this work. do
// may be nil.
func (s *Sessions) RunInBackground(ctx context.Context, what string, do func(ctx context.Context) error) {
	if do == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), BackgroundTimeout)
	s.Pending.Go(func() {
		defer cancel()
		if err := do(ctx); err != nil {
			s.Log.WarnContext(ctx, "auth: background work failed", "work", what, "error", err)
		}
	})
}

// DefaultCookie is the name of the cookie of sessions, unless Options has another one.
const DefaultCookie = "belfry"

// FormerCookie is a former name of the sessions' cookie.
type FormerCookie struct {
	Name  string
	Until time.Time // when it is no longer read, because all its sessions have ended
}

// CookieNames returns the name of the sessions' cookie, followed by the former names that are still read.
func (s *Sessions) CookieNames() []string {
	names := []string{s.Cookie}
	for _, f := range s.Former {
		if s.DB.Now().Before(f.Until) && !slices.Contains(names, f.Name) {
			names = append(names, f.Name)
		}
	}
	return names
}
