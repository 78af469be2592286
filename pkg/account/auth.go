package account

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"belfry/internal/baseurl"
	"belfry/internal/seal"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/places"
	"belfry/pkg/account/record"
	"belfry/pkg/account/weak"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// Limits bound what can be tried.
type Limits = guess.Limits

// Options configure a Service. The stores and BaseURL are required.
type Options struct {
	Users, Idents, Sessions, Tokens *store.Store

	// BaseURL is where clients reach belfry, without a slash at the end.
	BaseURL string

	// Cookie is the name of the cookie of sessions; "": belfry. FormerCookies are names that it had before.
	Cookie        string
	FormerCookies []FormerCookie

	// Redirects are where applications may get codes: https URLs and URLs with a scheme of their
	// own, which have to be equal, and http://127.0.0.1/path and http://[::1]/path, with any port.
	Redirects []string

	Email     *Email // nil: no registration or login by e-mail
	Providers map[string]oauth.Provider
	Sealer    *seal.Sealer // encrypts the tokens of providers that keep them, and the secrets of authenticator apps; nil: none are kept, and these are stored as they are
	Passkeys  *Passkeys    // nil: no login by passkey
	Limits    Limits
	Hash      HashParams // of new passwords; zero: DefaultHashParams
	Passwords weak.Options

	Deletion *Deletion // of accounts by their users; nil: they can't

	Places *places.Database // of network addresses, for the lists of sessions and activity; nil: they have none

	Interceptor store.Interceptor // asked before a user is created; nil: none
	Admins      *policy.UserRule  // who is an admin; nil: nobody
	MFA         MFA               // who needs a second factor
	Audit       *policy.UserRule  // who may receive the events about the security of all accounts; nil: nobody

	// Previous is the service that the new one replaces. It continues with its limits as far as
	// they are the same, so that a replacement gives nobody further attempts. nil: none.
	Previous *Service

	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // nil: time.Now
}

// Email configures registration and login by e-mail.
type Email struct {
	PostValidation bool // users are created before their address is validated
	SkipValidation bool // no validation mail is sent at all
	UniformErrors  bool // an unknown login is reported like a wrong password

	TokenTTL     time.Duration // of the token in a validation mail
	RecoveryTTL  time.Duration // of the token in a recovery mail
	MailInterval time.Duration // minimum between two mails to one address

	From                        string
	Sender                      mail.Sender
	Validation, Recovery, Taken *mail.Templates

	Change, Undo *mail.Templates // of a change of address: to the new one, and to the old one

	Login   MailLogin // without a password
	Notices map[Notice]*mail.Templates
}

// Service authenticates users. It is safe for concurrent use. Its only state
// outside the stores are limits, which may differ between processes.
type Service struct {
	db *record.Stores

	base        baseurl.URL
	cookie      string
	former      []FormerCookie
	redirects   []string
	email       *Email // nil without login by e-mail
	providers   map[string]oauth.Provider
	deletion    *Deletion         // nil: users can't delete their accounts
	sealer      *seal.Sealer      // may be nil
	places      *places.Database  // may be nil
	passkeys    *Passkeys         // nil without login by passkey
	interceptor store.Interceptor // may be nil
	admins      *policy.UserRule  // may be nil
	mfa         MFA
	auditors    *policy.UserRule // may be nil
	log         *slog.Logger
	now         func() time.Time

	composers map[record.Purpose]composer
	guesses   *guess.Guesses
	hasher    *hasher
	weak      *weak.Checker // of passwords that are set
	rules     keyRules
	exports   chan struct{}  // holds those in progress
	repeats   chan struct{}  // holds the repetitions that wait for a first use
	pending   sync.WaitGroup // background work that no reply waits for
}

// New makes a service of a copy of its options. Close stops it.
func New(o Options) *Service {
	s := &Service{
		base: baseurl.Parse(o.BaseURL), cookie: cmp.Or(o.Cookie, DefaultCookie), former: slices.Clone(o.FormerCookies), redirects: slices.Clone(o.Redirects), providers: maps.Clone(o.Providers), interceptor: o.Interceptor, admins: o.Admins, auditors: o.Audit, log: o.Log, now: o.Now,
		mfa: o.MFA, sealer: o.Sealer, deletion: o.Deletion, places: o.Places,
	}
	if o.Email != nil {
		email := *o.Email
		s.email = &email
	}
	if o.Passkeys != nil {
		passkeys := *o.Passkeys
		s.passkeys = &passkeys
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if s.now == nil {
		s.now = time.Now
	}
	s.db = record.Open(o.Users, o.Idents, o.Sessions, o.Tokens, s.now)
	s.exports, s.repeats = make(chan struct{}, maxExports), make(chan struct{}, maxRepeatWaits)
	s.hasher = newHasher(cmp.Or(o.Hash, DefaultHashParams()))
	// The hasher may become that of another service, below.
	o.Passwords.Slot = func(ctx context.Context) (func(), error) { return s.hasher.acquire(ctx) }
	s.weak = weak.New(o.Passwords)
	var guesses *guess.Guesses
	if before := o.Previous; before != nil {
		s.exports, guesses = before.exports, before.guesses
		if s.hasher.params == before.hasher.params {
			s.hasher = before.hasher
		}
	}
	s.guesses = guess.New(s.db, o.Limits, guesses)
	s.composers = map[record.Purpose]composer{}
	if e := s.email; e != nil {
		s.composeBy(s.withToken(e.Validation, e.TokenTTL, nil), record.PurposeValidate)
		s.composeBy(s.withoutToken(e.Taken), record.PurposeTaken)
		s.composeBy(s.withToken(e.Recovery, e.RecoveryTTL, s.bindRecovery), record.PurposeRecover)
		s.composeBy(s.withToken(e.Change, e.TokenTTL, bindChange), record.PurposeChange)
		s.composeBy(s.withToken(e.Undo, s.undoTTL(), bindChange), record.PurposeUndo)
		s.composeBy(s.composeLogin, record.PurposeCode, record.PurposeLink, record.PurposeNone)
		s.composeBy(s.composeNotice, record.NoticePurpose)
	}
	return s
}

// Close waits for background work.
func (s *Service) Close() { s.pending.Wait() }

// BaseURL is where clients reach belfry, without a trailing slash.
func (s *Service) BaseURL() string { return s.base.String() }

// Base is the same, of which URLs are made.
func (s *Service) Base() baseurl.URL { return s.base }

// EmailEnabled reports whether login by e-mail is configured.
func (s *Service) EmailEnabled() bool { return s.email != nil }

// ValidatesFirst reports whether a registration begins with the mail that validates its address.
func (s *Service) ValidatesFirst() bool { return s.email != nil && !s.email.PostValidation }

// ProviderNames returns the names of the configured OAuth providers, sorted.
func (s *Service) ProviderNames() []string { return slices.Sorted(maps.Keys(s.providers)) }

// PostsCallback reports whether a provider sends browsers to the callback by POST.
func (s *Service) PostsCallback() bool {
	for _, p := range s.providers {
		if oauth.PostsCallback(p) {
			return true
		}
	}
	return false
}

// KeepsTokens reports whether the tokens of a provider are kept.
func (s *Service) KeepsTokens() bool {
	for _, p := range s.providers {
		if k, ok := p.(oauth.Keeper); ok && k.KeepsTokens() {
			return true
		}
	}
	return false
}

// VisibleUser returns the user of a session with the fields that the user may see.
func (s *Service) VisibleUser(ctx context.Context, session *Session) (store.Stored, error) {
	call := store.CallOf(ctx)
	call.Client, call.User, call.Session = true, session.Visible, session.ForRules()
	return s.db.Users.Shown(store.WithCall(ctx, call), session.User.Stored)
}

// LoggedIn returns the user of a session that has just been issued as a get of the user would
// return them, as they are now: the uuid alone where a get would be refused. Nothing here
// fails: the session has begun.
func (s *Service) LoggedIn(ctx context.Context, session *Session) store.Stored {
	user, err := s.db.Users.Get(record.AsService(ctx, session.User.UUID), session.User.UUID)
	if err != nil {
		user = session.User.Stored
	}
	call := store.CallOf(ctx)
	call.Client, call.User, call.Session, call.Actor = true, session.Visible, session.ForRules(), nil
	return s.db.Users.ReplyWith(store.WithCall(ctx, call), user)
}

// TokenStore is the name of the store whose events DeliverMail handles.
func (s *Service) TokenStore() string { return s.db.Tokens.Name() }

// Client is the origin of a request.
type Client struct {
	Address   string // network address
	UserAgent string
	Session   *Session // the session that the request carries; nil for none
	Device    string   // the secret of the cookie by which the device is known; "" for none
	Binding   string   // the secret of a login by mail that the client asked for; "" for none
	Browser   string   // the secret of the cookie by which the browser of a repetition is known; "" for none
	Devices   []string // further values of the cookie of Device, of which browsers send several; the valid one counts
	Browsers  []string // the same of Browser
	Cookie    bool     // the secret of what the request continues, such as Binding, comes from a cookie

	// Application is what the login is for. The login ends with a code for it and not with a session,
	// and leaves the session that the request carries alone. nil: for the client itself.
	Application *Application
}

// backgroundTimeout limits background work.
const backgroundTimeout = 30 * time.Second

// runInBackground does what a reply does not wait for. Errors are logged: no
// promise depends on this work.
func (s *Service) runInBackground(ctx context.Context, what string, do func(ctx context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backgroundTimeout)
	s.pending.Go(func() {
		defer cancel()
		if err := do(ctx); err != nil {
			s.log.WarnContext(ctx, "auth: background work failed", "work", what, "error", err)
		}
	})
}
