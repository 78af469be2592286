package httpkit

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Authenticator finds the session that a request carries.
type Authenticator interface {
	// Authenticate returns nil for a request without a session, and
	// errs.Unauthenticated for a token that is not valid.
	Authenticate(x *Exchange) (*sessions.Session, error)
}

// Waiter waits for the work that a write causes.
type Waiter interface {
	// Begin is called before the write. The subject goes into the context of
	// the write's event; wait returns nil once the consequences of the causes
	// are applied, and an error when its context ends before; end frees what
	// Begin allocated and is always called.
	Begin() (subject string, wait func(ctx context.Context, causes []store.Cause) error, end func())
}

// CallOptions are the options of Calls.
type CallOptions struct {
	Auth     Authenticator   // nil: every request is anonymous
	Waiter   Waiter          // nil: Prefer: wait is ignored
	MaxWait  time.Duration   // longest Prefer: wait
	Stopping context.Context // ends all waiting
	Streams  context.Context // ends streams that clients send, with ErrReplaced as the cause if that is why
	Limits   *Limits         // nil: none

	// Admin reports whether the user of a session, nil for nobody, is an admin; nil: nobody is.
	Admin func(ctx context.Context, me *sessions.Session) bool

	// Audit reports whether the user of a session, nil for nobody, may receive the events about the security of
	// accounts; nil: nobody may.
	Audit func(ctx context.Context, me *sessions.Session) bool
}

// Calls makes the calls of stores on behalf of requests.
type Calls struct{ o CallOptions }

// NewCalls returns Calls with the options.
func NewCalls(o CallOptions) *Calls { return &Calls{o} }

// ErrReplaced is the cause of the end of a stream whose rules the server no longer
// applies.
var ErrReplaced = errs.New(errs.Unavailable, "the configuration of the server has changed")

// Streams returns the context that ends the streams that clients send: when the process stops, or with ErrReplaced.
func (c *Calls) Streams() context.Context { return c.o.Streams }

// Session returns the session of a request's token, nil for none. It is read at
// most once per request. One whose user has to take a step before it is of use is an error, but on routes below /auth,
// where the step is taken.
func (c *Calls) Session(x *Exchange) (*sessions.Session, error) {
	session, err := c.AccountSession(x)
	if err == nil && !ofAccount(x) {
		err = sessions.RequireComplete(session)
	}
	if err != nil {
		return nil, err
	}
	return session, nil
}

// AccountSession is Session for views of the user's own account: the session may not be usable for anything else yet.
func (c *Calls) AccountSession(x *Exchange) (*sessions.Session, error) {
	if c.o.Auth == nil || x.authenticated {
		return x.session, x.refused
	}
	x.varyByCaller()
	return c.authenticate(x)
}

// ofAccount reports whether the route is one of those below /auth. It is the route that decides, not the path, which
// can be written in several ways.
func ofAccount(x *Exchange) bool {
	return x.params != nil && strings.HasPrefix(x.params.Path()+"/", "/auth/")
}

// Reauthenticate reads the session of a request again, for requests that take
// long.
func (c *Calls) Reauthenticate(x *Exchange) (*sessions.Session, error) {
	session, err := c.authenticate(x)
	if err == nil {
		err = sessions.RequireComplete(session)
	}
	if err != nil {
		return nil, err
	}
	return session, nil
}

func (c *Calls) authenticate(x *Exchange) (*sessions.Session, error) {
	if c.o.Auth == nil {
		return nil, nil
	}
	session, err := c.o.Auth.Authenticate(x)
	if err == nil {
		x.session, x.authenticated, x.refused = session, true, nil
		return session, nil
	}
	if kind := errs.KindOf(err); kind == errs.Unauthenticated || kind == errs.Denied { // as often as it is asked
		x.session, x.authenticated, x.refused = nil, true, err
	}
	return session, err
}

// Renew returns the context of the client's call with the user as they are now, for
// a request that has taken long. Unauthenticated when the request began with a
// session that has ended since.
func (c *Calls) Renew(ctx context.Context, x *Exchange) (context.Context, error) {
	began := x.session
	if began == nil {
		return ctx, nil
	}
	now, err := c.Reauthenticate(x)
	if err != nil {
		return nil, err
	}
	if now == nil || now.ID != began.ID {
		return nil, errs.Wrap(sessions.ErrInvalidToken, errs.Unauthenticated,
			"your session ended during the request: log in and send it again")
	}
	call := store.CallOf(ctx)
	call.User, call.Session, call.Actor = now.Visible, now.ForRules(), nil
	return store.WithCall(ctx, call), nil
}

// Allow returns Denied when the request has an API key whose rule does not allow a request of a method and a path, for
// what a request does besides itself. There can be much of that, so the rule costs what the rules of a request may.
func (c *Calls) Allow(x *Exchange, method, path string) error {
	session, err := c.Session(x)
	if err != nil || session == nil || session.Key == nil {
		return err
	}
	if err := x.RuleBudget().Check(); err != nil {
		return err
	}
	return RequireAllowed(x, session.Key, x.RuleBudget(), method, path)
}

// RequireAllowed returns Denied unless the rule of an API key allows a request.
func RequireAllowed(x *Exchange, key *sessions.Key, budget *policy.Budget, method, path string) error {
	if key.Allows(x.Context(), budget, method, path) {
		return nil
	}
	return errs.Wrap(sessions.ErrInsufficientScope, errs.Denied,
		"the rule of the API key %q does not allow %s of this path", key.Name, method)
}

// Anonymous has a request count as one without a session from now on.
func (c *Calls) Anonymous(x *Exchange) { x.session, x.authenticated, x.refused = nil, true, nil }

// RequireAdmin refuses a request that only admins may make: Unauthenticated for nobody, else Denied.
func (c *Calls) RequireAdmin(x *Exchange, what string) error {
	session, err := c.Session(x)
	switch {
	case err != nil:
		return err
	case c.o.Admin != nil && c.o.Admin(x.Request.Context(), session):
		return nil
	case session == nil:
		return errs.New(errs.Unauthenticated, "%s is for admins: log in as one", what)
	case session.Key != nil:
		return errs.Wrap(sessions.ErrInsufficientScope, errs.Denied,
			"%s is for admins who are logged in: an API key is not enough", what)
	default:
		return errs.New(errs.Denied, "%s is for admins", what)
	}
}

// MayAudit reports whether the user of a session, nil for nobody, may receive the events about the security of
// accounts.
func (c *Calls) MayAudit(ctx context.Context, me *sessions.Session) bool {
	return c.o.Audit != nil && c.o.Audit(ctx, me)
}

// Client returns the context of a call that the client makes: the rules for
// clients apply.
func (c *Calls) Client(x *Exchange) (context.Context, error) {
	call, err := c.call(x)
	if err != nil {
		return nil, err
	}
	return store.WithCall(x.Request.Context(), call), nil
}

func (c *Calls) call(x *Exchange) (store.Call, error) {
	call := store.Call{Client: true, Origin: event.OriginHTTP, Ctx: x.EventCtx(), RuleBudget: x.RuleBudget()}
	session, err := c.Session(x)
	if session != nil {
		call.User, call.Session = session.Visible, session.ForRules()
	}
	return call, err
}

// RuleBudget returns the budget of all rules of the request.
func (x *Exchange) RuleBudget() *policy.Budget {
	if x.rules == nil {
		x.rules = policy.NewBudget()
	}
	return x.rules
}

// Write makes a write for the client and, if the client prefers it, waits for the
// work that the write causes. The context it returns is that of the client's
// call; applied reports that the work is done, so that a read shows its effect.
func (c *Calls) Write(x *Exchange, act func(context.Context) error) (ctx context.Context, applied bool, err error) {
	call, err := c.call(x)
	if err != nil {
		return nil, false, err
	}
	limit := preferredWait(x.Request.Header["Prefer"], c.o.MaxWait)
	if limit == 0 || c.o.Waiter == nil {
		ctx = store.WithCall(x.Request.Context(), call)
		return ctx, false, act(ctx)
	}
	subject, wait, end := c.o.Waiter.Begin()
	defer end()
	call.Ctx.Wait = subject
	ctx = store.WithCall(x.Request.Context(), call)
	collecting, causes := store.WithCauses(ctx)
	if err := act(collecting); err != nil {
		return ctx, false, err
	}
	if x.replayed {
		return ctx, false, nil
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(c.o.Stopping, cancel)()
	if err := wait(limited, causes.All()); err != nil {
		x.waitFailed(ctx, err)
		return ctx, false, nil
	}
	x.SetHeader("Preference-Applied", "wait")
	return ctx, true, nil
}

// waitFailed logs why waiting for a write's consequences failed, other than by
// the end of the time for it. The write itself succeeded.
func (x *Exchange) waitFailed(ctx context.Context, err error) {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return
	}
	x.router.log.LogAttrs(ctx, slog.LevelWarn, "waiting for the consequences of a write failed; the write succeeded",
		slog.String("error", err.Error()))
}

// Context returns the context of the server's own work for a request: the
// rules for clients do not apply.
func (x *Exchange) Context() context.Context {
	return store.WithCall(x.Request.Context(), store.Call{Ctx: x.EventCtx()})
}

// Log logs a message about the request, with its id.
func (x *Exchange) Log(level slog.Level, message string, attrs ...slog.Attr) {
	x.router.log.LogAttrs(x.Context(), level, message, attrs...)
}

// OnEnd calls f when a context ends, unless stop was called before. The caller must call stop once. stop waits for a
// running f: otherwise f could use an exchange and a connection that belong to another request by then.
func OnEnd(ctx context.Context, f func()) (stop func()) {
	done := make(chan struct{})
	remove := context.AfterFunc(ctx, func() {
		defer close(done)
		f()
	})
	return func() {
		if !remove() {
			<-done
		}
	}
}
