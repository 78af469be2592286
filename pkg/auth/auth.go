// Package auth knows who someone is: it registers users, logs them in by
// e-mail and password or through other providers, and keeps their sessions.
//
// Everything lies in stores, written through package store like anything else:
//
//   - Users: one object a user. password holds the encoded hash and never
//     leaves the server; _epoch counts the times that all sessions were ended.
//   - Idents: one object for each way in. Its uuid is made of the provider and
//     the provider's id of the user, and created only if absent, so that one
//     way in never belongs to two users. A mapping keeps Users.idents.
//   - Sessions: one object a session, found by its id. Only a hash of the
//     secret half of the token is kept.
//   - Tokens: what is under way. One object for each address that mails were
//     asked for, and one for each visit to another provider.
//
// # Two records, no transaction
//
// Registration writes the ident first, which claims the address, and then the
// user with the event Register in the same act. A crash in between leaves an
// ident whose user never was. It does not block the address: whoever registers
// it next adopts the ident and the uuid that it names. The user's record is
// created only if absent, so of two who adopt at once one succeeds.
//
// # Ending sessions
//
// A session remembers the epoch of its user. The write that changes a password
// raises the epoch, and with that ends every session in the same act, whatever
// an index has yet to find.
package auth

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"belfry/pkg/auth/oauth"
	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/ratelimit"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// Options are what a Service is made of. The stores and BaseURL are required.
type Options struct {
	Users, Idents, Sessions, Tokens *store.Store

	// BaseURL is where clients reach belfry, without a slash at the end.
	BaseURL string

	Email     *Email // nil: no registration or login by e-mail
	Providers map[string]oauth.Provider
	Limits    Limits
	Hash      HashParams // of new passwords; zero: DefaultHashParams

	Interceptor store.Interceptor // asked before a user is made; nil: nobody is

	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // nil: time.Now
}

// Email says how registration by e-mail goes.
type Email struct {
	PostValidation bool // users are made before their address is validated
	SkipValidation bool // no validation mail is sent at all
	UniformErrors  bool // an unknown login looks like a wrong password

	TokenTTL     time.Duration // how long the token of a validation mail is good
	RecoveryTTL  time.Duration // the same of a recovery mail
	MailInterval time.Duration // between two mails to one address, at least

	From                        string
	Sender                      mail.Sender
	Validation, Recovery, Taken *mail.Templates
}

// Service authenticates. It is safe for concurrent use; what it remembers
// outside the stores are limits, which may differ between processes.
type Service struct {
	users, idents, sessions, tokens *store.Store

	baseURL     string
	email       *Email // nil without login by e-mail
	providers   map[string]oauth.Provider
	interceptor store.Interceptor // may be nil
	log         *slog.Logger
	now         func() time.Time

	hasher    *hasher
	accounts  *accountLimiter
	addresses *ratelimit.Limiter
	pending   sync.WaitGroup // background work that no reply waits for
}

// New makes a service of a copy of its options. Close stops it.
func New(o Options) *Service {
	s := &Service{
		users: o.Users, idents: o.Idents, sessions: o.Sessions, tokens: o.Tokens,
		baseURL: o.BaseURL, providers: maps.Clone(o.Providers), interceptor: o.Interceptor, log: o.Log, now: o.Now,
	}
	if o.Email != nil {
		email := *o.Email
		s.email = &email
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.hasher = newHasher(cmp.Or(o.Hash, DefaultHashParams()))
	s.addresses = ratelimit.New(o.Limits.Address, s.now)
	s.accounts = newAccountLimiter(o.Limits.Account, s.now)
	return s
}

// Close waits for background work.
func (s *Service) Close() { s.pending.Wait() }

// BaseURL is where clients reach belfry, without a trailing slash.
func (s *Service) BaseURL() string { return s.baseURL }

// EmailEnabled reports whether login by e-mail is configured.
func (s *Service) EmailEnabled() bool { return s.email != nil }

// ProviderNames returns the names of the configured OAuth providers, sorted.
func (s *Service) ProviderNames() []string { return slices.Sorted(maps.Keys(s.providers)) }

// VisibleUser returns the user of a session with the fields that the user may see.
func (s *Service) VisibleUser(session *Session) store.Stored { return s.users.Visible(session.User) }

// TokenStore is the name of the store whose events DeliverMail handles.
func (s *Service) TokenStore() string { return s.tokens.Name }

// Client is where a request comes from.
type Client struct {
	Address   string // network address
	UserAgent string
	Session   *Session // the session that the request carries; nil for none
}

// own is a context in which the service itself acts, on behalf of the request
// whose context it is and of a user, if there is one.
func asService(ctx context.Context, user string) context.Context {
	call := store.Call{Origin: event.OriginAuth, Ctx: store.CallOf(ctx).Ctx}
	if user != "" {
		call.Actor = &user
	}
	return store.WithCall(ctx, call)
}

// background bounds what a reply does not wait for.
const backgroundTimeout = 30 * time.Second

// later does something that a reply does not wait for. What fails is logged:
// nothing that was promised depends on it.
func (s *Service) runInBackground(ctx context.Context, what string, do func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backgroundTimeout)
	s.pending.Go(func() {
		defer cancel()
		if err := do(ctx); err != nil {
			s.log.Warn("authentication could not note something", "what", what, "error", err)
		}
	})
}

// Times are kept as text that sorts like them.
const timeFormat = "2006-01-02T15:04:05.000000Z"

func timestamp(t time.Time) string { return t.UTC().Format(timeFormat) }

// moment reads a time that a field holds; one that holds none is long past.
func timeField(o object.Object, name string) time.Time {
	text, _ := o.Text(name)
	t, _ := time.Parse(timeFormat, text)
	return t
}
