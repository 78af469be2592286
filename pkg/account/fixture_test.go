package account_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/listeners/cascade"
	"belfry/pkg/account"
	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
	"belfry/test/kit"
	"belfry/test/model"
)

// fixture has the records of the stores, a clock, recorders of mails and
// events, and a service. newService makes services with stores of their own on
// the same records, as in another process.
type fixture struct {
	*testing.T
	*account.Service
	set      *store.Set
	backend  *faultyBackend
	clock    *clock
	recorder *recorder
	sender   *mailRecorder
	log      *kit.Tail
	email    post.Email     // of the service
	rules    *policy.Policy // of users
	opts     account.Options
}

const (
	ada      = "ada@example.com"
	password = "a fine password"
)

// cheapHash is for tests whose subject is not hashing.
var cheapHash = passwords.HashParams{Memory: 8, Time: 1, Threads: 1}

// newFixture makes a fixture; change may set options before. By default
// addresses are validated afterwards and nothing is limited.
func newFixture(t *testing.T, change ...func(*account.Options)) *fixture {
	t.Helper()
	w := &fixture{
		T: t, backend: &faultyBackend{Backend: model.NewMemory(), open: map[string]driver.Store{}},
		recorder: &recorder{}, sender: &mailRecorder{}, log: &kit.Tail{},
		clock: &clock{now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)},
	}
	w.email = post.Email{
		PostValidation: true, TokenTTL: 24 * time.Hour, RecoveryTTL: time.Hour, MailInterval: time.Minute,
		From: "Belfry <no-reply@example.org>", Sender: w.sender,
		Validation: w.templates("validate"), Recovery: w.templates("recover"), Taken: w.templates("taken"),
		Invitation: w.templates("invite"), Change: w.templates("change"), Undo: w.templates("undo"),
		Login: post.MailLogin{Code: true, Link: true, TTL: 10 * time.Minute, CodeMail: w.templates("code"),
			LinkMail: w.templates("link")},
	}
	w.opts = account.Options{
		BaseURL: "https://example.org", Email: &w.email, Hash: cheapHash, Now: w.clock.Now,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		c(&w.opts)
	}
	w.Service, w.set = w.newService()
	return w
}

// validatedFirst makes addresses be validated before a user is created.
func validatedFirst(o *account.Options) { o.Email.PostValidation = false }

func (w *fixture) templates(kind string) *mail.Templates {
	w.Helper()
	t, err := mail.ParseTemplates(kind, "", kind+" {{.Login}} {{.Link}} {{.Token}}")
	w.must(err)
	return t
}

// newService makes a service with stores of its own.
func (w *fixture) newService() (*account.Service, *store.Set) {
	w.Helper()
	mappings := []store.Mapping{
		{Source: "Idents", Target: "Users", Key: "user", Array: "idents", Fields: []string{"type"}, Cascade: true,
			Limit: 100},
		{Source: "Sessions", Target: "Users", Key: "user", Cascade: true},
	}
	var stores []*store.Store
	for _, o := range []store.Options{
		{Name: "Users", Private: []string{"password"}, Reserved: []string{"admin", "disabled"},
			Arrays: []string{"idents"}, Schema: schema{}, Policy: w.rules,
			Indexes:    []query.Index{{Name: deletion.DeletionIndex, Fields: []string{deletion.DeletionIndex}}},
			KeyIndexes: []store.KeyIndex{w.opts.Finder.Index()}},
		{Name: "Idents", Maps: mappings[:1], KeyIndexes: []store.KeyIndex{record.IdentIndex()}},
		{Name: "Sessions", Maps: mappings[1:], KeyIndexes: record.SessionIndexes(),
			Indexes: []query.Index{{Name: account.ExpiresIndex, Fields: []string{account.ExpiresIndex}}}},
		{Name: "Tokens", Indexes: []query.Index{{Name: account.ExpiresIndex, Fields: []string{account.ExpiresIndex}}}},
	} {
		o.Now, o.Outbox = w.clock.Now, w.recorder
		s, err := store.Open(w.Context(), w.backend, o)
		w.must(err)
		stores = append(stores, s)
	}
	set := store.NewSet(stores, mappings)
	o := w.opts
	o.Users, o.Idents, o.Sessions, o.Tokens = stores[0], stores[1], stores[2], stores[3]
	s := account.New(o)
	w.Cleanup(s.Close)
	return s, set
}

// schema rejects a user with a field "bad".
type schema struct{}

func (schema) Validate(_ context.Context, doc []byte) error {
	if strings.Contains(string(doc), `:"bad"`) {
		return &errs.Error{Kind: errs.Invalid, Message: "bad"}
	}
	return nil
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// wantKind fails unless an error is of a kind.
func (w *fixture) wantKind(err error, want errs.Kind) {
	w.Helper()
	if err == nil || errs.KindOf(err) != want {
		w.Fatalf("error %v (%v), want one that is %v", err, errs.KindOf(err), want)
	}
}

// allowKinds reports an error of any other kind. It can be called in
// goroutines.
func (w *fixture) allowKinds(err error, kinds ...errs.Kind) {
	w.Helper()
	if err != nil && !slices.Contains(kinds, errs.KindOf(err)) {
		w.Errorf("error %v (%v), want none, or one of %v", err, errs.KindOf(err), kinds)
	}
}

// from is a client without a session.
var from = sessions.Client{Address: "192.0.2.1", UserAgent: "tester/1.0"}

// with is a client with a session.
func with(in sessions.Issued) sessions.Client {
	c := from
	c.Session = &in.Session
	return c
}

func credentials(login, password string) passwords.Credentials {
	return passwords.Credentials{Login: login, Password: password}
}

// register registers a user and returns their session.
func (w *fixture) register(login, password string) sessions.Issued {
	w.Helper()
	if w.email.PostValidation {
		in, _, err := w.Registration.Register(w.Context(), credentials(login, password), from)
		w.must(err)
		return in
	}
	_, mailed, err := w.Registration.Register(w.Context(), credentials(login, password), from)
	w.must(err)
	if !mailed {
		w.Fatal("no mail was requested")
	}
	c := credentials(login, password)
	c.Token = w.lastMail(login).token
	in, _, err := w.Registration.Register(w.Context(), c, from)
	w.must(err)
	return in
}

// mustLogin fails unless a login succeeds, as this user.
func (w *fixture) mustLogin(login, password, user string) sessions.Issued {
	w.Helper()
	in, err := w.Login.Login(w.Context(), credentials(login, password), from)
	w.must(err)
	if in.User.UUID != user {
		w.Fatalf("%s logs in as %s, want %s", login, in.User.UUID, user)
	}
	return in
}

// valid reports whether a token is that of a session.
func (w *fixture) valid(token string) bool {
	w.Helper()
	session, err := w.Sessions.Authenticate(w.Context(), token)
	w.must(err)
	return session != nil
}

// record returns an object of a store, nil when there is none.
func (w *fixture) record(store, uuid string) object.Object {
	w.Helper()
	stored, err := w.set.Store(store).Get(w.Context(), uuid)
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	w.must(err)
	o, err := stored.Object()
	w.must(err)
	return o
}

// userOf reads a stored user.
func (w *fixture) userOf(stored store.Stored) record.User {
	w.Helper()
	user, err := w.UserOf(stored)
	w.must(err)
	return user
}

// objects returns all objects of a store.
func (w *fixture) objects(name string) []store.Stored {
	w.Helper()
	all, next, err := w.set.Store(name).Scan(w.Context(), nil, 1000)
	w.must(err)
	if next != nil {
		w.Fatalf("too much in %s", name)
	}
	return all
}

// deliverMails does the work of the mail listener for events since the last
// call.
func (w *fixture) deliverMails() error {
	w.recorder.mu.Lock()
	fresh := w.recorder.all[w.recorder.read:]
	w.recorder.read = len(w.recorder.all)
	w.recorder.mu.Unlock()
	var all []error
	for _, e := range fresh {
		if e.Store == "Tokens" && e.Origin != event.OriginMail && e.Event != event.StoreDeleted {
			all = append(all, w.Post.Deliver(w.Context(), e))
		}
	}
	return errors.Join(all...)
}

// cascade does the work of the cascade listener.
func (w *fixture) cascade() {
	w.Helper()
	worker := cascade.NewWorker(w.set, cascade.Options{})
	for _, e := range w.recorder.of(event.StoreDeleted, "Users") {
		w.must(worker.Handle(w.Context(), e))
	}
}

// sentMail is a mail that was sent.
type sentMail struct {
	mail.Message
	kind  string // validate, recover or taken
	token string
}

// lastMail delivers requested mails and returns the last one to an address.
func (w *fixture) lastMail(to string) sentMail {
	w.Helper()
	w.must(w.deliverMails())
	all := w.sender.to(to)
	if len(all) == 0 {
		w.Fatalf("no mail to %s", to)
	}
	return all[len(all)-1]
}

// countMails delivers requested mails and counts those to an address.
func (w *fixture) countMails(to string) int {
	w.Helper()
	w.must(w.deliverMails())
	return len(w.sender.to(to))
}
