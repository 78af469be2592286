package account

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"belfry/config"
	"belfry/internal/baseurl"
	"belfry/internal/seal"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/exports"
	"belfry/pkg/account/flow/addresses"
	"belfry/pkg/account/flow/applications"
	"belfry/pkg/account/flow/changes"
	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/flow/enrollment"
	"belfry/pkg/account/flow/firstadmin"
	"belfry/pkg/account/flow/links"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/flow/recovery"
	"belfry/pkg/account/flow/registration"
	"belfry/pkg/account/flow/stepup"
	"belfry/pkg/account/guess"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/method/mails"
	"belfry/pkg/account/method/passkeys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/method/recoverycodes"
	"belfry/pkg/account/method/totp"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/once"
	"belfry/pkg/account/places"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/account/users"
	"belfry/pkg/account/weak"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/texts"
)

// Options configure a Service. The stores and BaseURL are required.
type Options struct {
	Users, Idents, Sessions, Tokens *store.Store

	Finder record.UserFinder // whose index Users has, as Idents has record.IdentIndex

	// BaseURL is the URL at which clients reach belfry, without a slash at the end.
	BaseURL string

	// Cookie is the name of the cookie of sessions; "": belfry. FormerCookies are its former names.
	Cookie        string
	FormerCookies []sessions.FormerCookie

	// Redirects are the URLs to which applications may have codes sent: https URLs and URLs with a private scheme,
	// which must match exactly, and http://127.0.0.1/path and http://[::1]/path, with any port.
	Redirects []string

	Name      string         // of the application, for people; "": the host of BaseURL
	Languages *texts.Catalog // of pages and mails; nil: the embedded ones

	Email     *post.Email // nil: no registration or login by e-mail
	Providers map[string]oauth.Provider
	// encrypts kept tokens of providers, and the secrets of authenticator apps; nil: no tokens are kept, and secrets
	// are stored in plain text
	Sealer    *seal.Sealer
	Passkeys  *config.Passkeys // nil: no login by passkey
	Limits    config.Limits
	Hash      passwords.HashParams // of new passwords; zero: the default ones
	Hashes    int                  // at once; 0: as many as there are cores
	Passwords weak.Options

	Methods []NewMethod // besides belfry's own ones

	Deletion *config.Deletion // of accounts by their users; nil: they can't

	// of network addresses, for the lists of sessions and activity; nil: addresses are shown without places
	Places *places.Database

	Interceptor store.Interceptor // called before a user is created; may be nil
	Admins      *policy.UserRule  // of admins; nil: nobody
	MFA         sessions.MFA      // of users who need a second factor
	Audit       *policy.UserRule  // of users who may receive the events about the security of all accounts; nil: nobody

	// Previous is the service that the new one replaces. The new service continues with its counters if the limits are
	// the same, so that a replacement does not allow further attempts. nil: none.
	Previous *Service

	Log *slog.Logger     // nil: nothing is logged
	Now func() time.Time // nil: time.Now
}

// NewMethod makes a method of the stores and of the sealer of its secrets, which may be nil.
type NewMethod func(db *record.Stores, sealer *seal.Sealer) method.Method

// Service authenticates users. It is safe for concurrent use. Its only state
// outside the stores are limits, which may differ between processes.
type Service struct {
	Sessions *sessions.Sessions
	Post     *post.Post
	Notices  *notices.Notices

	// Methods are the methods by which users prove their identity, in the order in which they are shown. Some have
	// further functions:
	Methods   method.Methods
	Passwords *passwords.Method
	Mails     *mails.Method
	Passkeys  *passkeys.Method
	Providers *providers.Method

	Login        *logins.Flow
	Applications *applications.Flow
	StepUp       *stepup.Flow
	Registration *registration.Flow
	Recovery     *recovery.Flow
	Enrollment   *enrollment.Flow
	Links        *links.Flow
	Addresses    *addresses.Flow
	Deletion     *deletion.Flow
	FirstAdmin   *firstadmin.Flow

	Users   *users.Users
	Admin   *admin.Admin
	Keys    *keys.Keys
	Exports *exports.Exports

	Languages *texts.Catalog

	db      *record.Stores
	guesses *guess.Guesses
	base    baseurl.URL
	name    string
	email   *post.Email
	pending *sync.WaitGroup // background work that no reply waits for
}

// New makes a service of a copy of its options. Close stops it.
func New(o Options) *Service {
	log, now := cmp.Or(o.Log, slog.New(slog.DiscardHandler)), o.Now
	if now == nil {
		now = time.Now
	}
	s := &Service{
		db: record.Open(o.Users, o.Idents, o.Sessions, o.Tokens, o.Finder, now), base: baseurl.Parse(o.BaseURL),
		pending: &sync.WaitGroup{}, email: copyOf(o.Email), name: o.Name, Languages: o.Languages,
	}
	hasher, slots, guesses := passwords.NewHasher(cmp.Or(o.Hash, passwords.DefaultHashParams()), o.Hashes),
		make(chan struct{}, exports.MaxExports), (*guess.Guesses)(nil)
	if before := o.Previous; before != nil {
		slots, guesses = before.Exports.Slots, before.guesses
		if hasher.Params == before.Passwords.Hasher.Params {
			hasher = before.Passwords.Hasher
		}
	}
	s.guesses = guess.New(s.db, o.Limits, guesses)

	s.Sessions = &sessions.Sessions{
		DB: s.db, Guesses: s.guesses, Log: log, MFA: o.MFA, Admins: o.Admins, Auditors: o.Audit, Places: o.Places,
		Cookie: cmp.Or(o.Cookie, sessions.DefaultCookie), Former: slices.Clone(o.FormerCookies), Pending: s.pending,
	}
	s.Applications = &applications.Flow{DB: s.db, Guesses: s.guesses, Log: log, Redirects: slices.Clone(o.Redirects),
		Sessions: s.Sessions}
	uses := once.New(s.db, log)
	s.Post = post.New(post.Post{DB: s.db, Guesses: s.guesses, Log: log, Base: s.base, Email: s.email, Uses: uses})
	s.Notices = &notices.Notices{DB: s.db, Log: log, Base: s.base, Email: s.email, Languages: o.Languages, Post: s.Post,
		Sessions: s.Sessions}
	s.Users = &users.Users{DB: s.db, Interceptor: o.Interceptor}
	changed := &changes.Changes{DB: s.db, Guesses: s.guesses, Notices: s.Notices, Uses: uses, Post: s.Post}
	s.Links = &links.Flow{DB: s.db, Email: s.email, Changes: changed, Notices: s.Notices, Sessions: s.Sessions,
		Users: s.Users}

	s.Passwords = passwords.New(passwords.Method{DB: s.db, Guesses: s.guesses, Email: s.email, Hasher: hasher,
		Uses: uses, Sessions: s.Sessions}, o.Passwords)
	s.Mails = &mails.Method{DB: s.db, Guesses: s.guesses, Base: s.base, Email: s.email, Links: s.Links, Uses: uses,
		Post: s.Post}
	s.Passkeys = &passkeys.Method{
		DB: s.db, Guesses: s.guesses, Config: copyOf(o.Passkeys), Links: s.Links, Notices: s.Notices, Uses: uses,
		Sessions: s.Sessions, Users: s.Users,
	}
	app := &totp.Method{DB: s.db, Base: s.base, Name: o.Name, Sealer: o.Sealer, Users: s.Users}
	s.Providers = &providers.Method{
		DB: s.db, Guesses: s.guesses, Log: log, Base: s.base, Providers: maps.Clone(o.Providers), Sealer: o.Sealer,
		Pending: s.pending, Uses: uses, Sessions: s.Sessions,
	}
	s.Methods = methods(s, app, o.Sealer, o.Methods)
	s.Enrollment = &enrollment.Flow{DB: s.db, Guesses: s.guesses, Methods: s.Methods, Sealer: o.Sealer,
		Notices: s.Notices, Sessions: s.Sessions}

	s.Recovery = &recovery.Flow{
		DB: s.db, Guesses: s.guesses, Changes: changed, Links: s.Links, Notices: s.Notices, Passwords: s.Passwords,
		Post: s.Post, Sessions: s.Sessions, Users: s.Users,
	}
	s.Login = &logins.Flow{
		DB: s.db, Guesses: s.guesses, Log: log, Email: s.email, Methods: s.Methods, Applications: s.Applications,
		Changes: changed, Links: s.Links, Mails: s.Mails, Notices: s.Notices, Uses: uses,
		Passwords: s.Passwords, Post: s.Post, Providers: s.Providers, Recovery: s.Recovery, Sessions: s.Sessions,
		Users: s.Users,
	}
	s.StepUp = &stepup.Flow{Guesses: s.guesses, Login: s.Login, Passwords: s.Passwords, Sessions: s.Sessions}
	s.Registration = &registration.Flow{
		DB: s.db, Guesses: s.guesses, Log: log, Email: s.email, Links: s.Links, Login: s.Login, Mails: s.Mails,
		Notices: s.Notices, Uses: uses, Passwords: s.Passwords, Post: s.Post, Sessions: s.Sessions, Users: s.Users,
	}
	s.Addresses = &addresses.Flow{
		DB: s.db, Guesses: s.guesses, Log: log, Changes: changed, Links: s.Links, Notices: s.Notices,
		Passwords: s.Passwords, Post: s.Post, Sessions: s.Sessions,
	}
	s.Deletion = &deletion.Flow{DB: s.db, Guesses: s.guesses, Log: log, Config: o.Deletion, Notices: s.Notices,
		Passwords: s.Passwords, Sessions: s.Sessions}

	s.Keys = &keys.Keys{DB: s.db, Guesses: s.guesses, Notices: s.Notices, Passwords: s.Passwords, Sessions: s.Sessions}
	s.Admin = &admin.Admin{Addresses: s.Addresses, Deletion: s.Deletion, Links: s.Links,
		DB: s.db, Guesses: s.guesses, Email: s.email, Admins: o.Admins, Changes: changed, Enrollment: s.Enrollment,
		Keys: s.Keys, Notices: s.Notices, Passwords: s.Passwords,
		Post: s.Post, Sessions: s.Sessions, Users: s.Users,
	}
	s.FirstAdmin = &firstadmin.Flow{
		DB: s.db, Guesses: s.guesses, Admins: o.Admins, Admin: s.Admin, Login: s.Login, Uses: uses,
		Passwords: s.Passwords, Post: s.Post, Sessions: s.Sessions, Users: s.Users,
	}
	s.Exports = &exports.Exports{DB: s.db, Log: log, Slots: slots, Enrollment: s.Enrollment, Keys: s.Keys,
		Passkeys: s.Passkeys, Sessions: s.Sessions}
	s.composeMails()
	return s
}

// methods returns the methods by which users prove their identity, in the order in which they are shown. Add new
// methods here.
func methods(s *Service, app *totp.Method, sealer *seal.Sealer, more []NewMethod) method.Methods {
	all := method.Methods{app, s.Passkeys, s.Mails, &recoverycodes.Method{DB: s.db}, s.Passwords}
	for _, add := range more {
		all = append(all, add(s.db, sealer))
	}
	return all
}

// About returns the descriptions of the methods of a service with or without e-mail and passkeys.
func About(email, withPasskeys bool, more ...NewMethod) (all []about.Configured) {
	s := &Service{Passkeys: &passkeys.Method{}, Mails: &mails.Method{}, Passwords: &passwords.Method{}}
	if email {
		s.Mails.Email = &post.Email{}
	}
	if withPasskeys {
		s.Passkeys.Config = &config.Passkeys{}
	}
	for _, m := range methods(s, &totp.Method{}, nil, more) {
		all = append(all, about.Configured{Method: m.About(), Enabled: m.Enabled()})
	}
	return all
}

func copyOf[T any](options *T) *T {
	if options == nil {
		return nil
	}
	same := *options
	return &same
}

// composeMails sets the composers of the mails of each purpose.
func (s *Service) composeMails() {
	e := s.email
	if e == nil {
		return
	}
	s.Post.ComposeBy(s.Post.WithToken(e.Validation, e.TokenTTL, nil), record.PurposeValidate)
	s.Post.ComposeBy(s.Post.WithoutToken(e.Taken), record.PurposeTaken)
	s.Post.ComposeBy(s.Recovery.Composer(), record.PurposeRecover)
	s.Post.ComposeBy(s.Post.WithToken(e.Change, e.TokenTTL, post.BindChange), record.PurposeChange)
	s.Post.ComposeBy(s.Post.WithToken(e.Undo, s.Post.UndoTTL(), post.BindChange), record.PurposeUndo)
	s.Post.ComposeBy(s.Mails.ComposeLogin, record.PurposeCode, record.PurposeLink, record.PurposeNone)
	s.Post.ComposeBy(s.Notices.ComposeNotice, record.NoticePurpose)
}

// Close waits for background work.
func (s *Service) Close() { s.pending.Wait() }

// Name is the name of the application for people; "" if none is configured.
func (s *Service) Name() string { return s.name }

// BaseURL is the URL at which clients reach belfry, without a trailing slash.
func (s *Service) BaseURL() string { return s.base.String() }

// Base is the same, for making URLs.
func (s *Service) Base() baseurl.URL { return s.base }

// EmailEnabled reports whether login by e-mail is configured.
func (s *Service) EmailEnabled() bool { return s.email != nil }

// ValidatesFirst reports whether a registration begins with the mail that validates its address.
func (s *Service) ValidatesFirst() bool { return s.email != nil && !s.email.PostValidation }

// TokenStore is the name of the store whose events Post.Deliver handles.
func (s *Service) TokenStore() string { return s.db.Tokens.Store.Name() }
