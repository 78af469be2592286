package login

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
	"belfry/test/kit"
	"belfry/test/model"
	"belfry/test/provider"
)

// serviceFixture is the service alone, on records that several services may
// share.
type serviceFixture struct {
	*testing.T
	*account.Service
	stores    account.Options // of Service: its stores
	providers *provider.Server
	records   *faultyBackend

	mu     sync.Mutex
	now    time.Time
	events []event.Envelope
}

const baseURL = "https://belfry.test"

func newServiceFixture(t *testing.T) *serviceFixture {
	t.Helper()
	d := &serviceFixture{T: t, providers: provider.Start(t),
		records: &faultyBackend{Backend: model.NewMemory(), stores: map[string]driver.Store{}}, now: time.Now()}
	d.providers.Register(baseURL + providers.CallbackPath)
	d.Service = d.newService(0)
	return d
}

// newService makes a service on the same records, as in another process.
// timeout is that of providers; 0 is one that is not reached.
func (d *serviceFixture) newService(timeout time.Duration, change ...func(*account.Options)) *account.Service {
	d.Helper()
	by := oauth.Requests{Timeout: cmp.Or(timeout, kit.Limit)}
	o := account.Options{
		BaseURL: baseURL, Providers: map[string]oauth.Provider{}, Now: d.time, Log: slog.New(slog.DiscardHandler),
		Users: d.store("Users"), Idents: d.store("Idents"), Sessions: d.store("Sessions"), Tokens: d.store("Tokens"),
	}
	for _, name := range oauth2Names[:4] {
		c := d.providers.Config(name)
		p, err := oauth.New(name, config.OAuth2{
			ClientID: c.ClientID, ClientSecret: config.Secret(c.ClientSecret), AuthURL: c.AuthURL, TokenURL: c.TokenURL,
			ProfileURL: c.ProfileURL,
		}, by)
		d.must(err)
		o.Providers[name] = p
	}
	c, t := d.providers.Config("oidc"), d.providers.Twitter()
	o.Providers["oidc"] = oauth.NewOIDC(config.OIDC{Issuer: d.providers.Issuer(), ClientID: c.ClientID,
		ClientSecret: config.Secret(c.ClientSecret)}, by)
	o.Providers["twitter"] = oauth.NewTwitter(config.OAuth1{
		ConsumerKey: t.ConsumerKey, ConsumerSecret: config.Secret(t.ConsumerSecret),
		RequestTokenURL: t.RequestTokenURL, AuthorizeURL: t.AuthorizeURL, AccessTokenURL: t.AccessTokenURL,
		ProfileURL: t.ProfileURL,
	}, by)
	if d.Service == nil {
		d.stores = o
	}
	for _, c := range change {
		c(&o)
	}
	s := account.New(o)
	d.Cleanup(s.Close)
	return s
}

func (d *serviceFixture) store(name string) *store.Store {
	d.Helper()
	o := store.Options{Name: name, Now: d.time, Outbox: d,
		Indexes: []query.Index{{Name: account.ExpiresIndex, Fields: []string{account.ExpiresIndex}}}}
	if name == "Idents" || name == "Sessions" {
		o.Maps = []store.Mapping{{Source: name, Target: "Users", Key: "user", Cascade: true}}
	}
	s, err := store.Open(d.Context(), d.records, o)
	d.must(err)
	return s
}

func (d *serviceFixture) time() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *serviceFixture) advance(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(t)
}

// Committed makes a serviceFixture the outbox of its stores.
func (d *serviceFixture) Committed(_ string, p driver.Pending) {
	var e event.Envelope
	if err := json.Unmarshal(p.Payload, &e); err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

// registerEvents counts the Register events.
func (d *serviceFixture) registerEvents() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.events {
		if e.Event == event.Register {
			n++
		}
	}
	return n
}

func (d *serviceFixture) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *serviceFixture) wantKind(err error, want errs.Kind) {
	d.Helper()
	if err == nil || errs.KindOf(err) != want {
		d.Fatalf("error %v (%v), want one that is %v", err, errs.KindOf(err), want)
	}
}

// objects returns the objects of a store.
func (d *serviceFixture) objects(s *store.Store) (list []object.Object) {
	d.Helper()
	found, _, err := s.Scan(d.Context(), nil, 10_000)
	d.must(err)
	for _, stored := range found {
		o, err := stored.Object()
		d.must(err)
		list = append(list, o)
	}
	return list
}

// flow is a flow whose user has consented at the provider.
type flow struct {
	query  url.Values
	secret string
}

// begin starts a flow and requests the provider's page.
func (d *serviceFixture) begin(name string, from sessions.Client) flow {
	d.Helper()
	begun, err := d.Providers.Begin(d.Context(), name, true, from)
	d.must(err)
	res, err := http.DefaultTransport.RoundTrip(
		must(http.NewRequestWithContext(d.Context(), http.MethodGet, begun.URL, http.NoBody)))
	d.must(err)
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode == http.StatusOK {
		return flow{provider.Form(d, res.Body, baseURL+providers.CallbackPath), begun.Secret}
	}
	to, err := res.Location()
	d.must(err)
	return flow{to.Query(), begun.Secret}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// finish passes the callback to a service.
func (f flow) finish(ctx context.Context, s *account.Service, from sessions.Client) (sessions.Issued, error) {
	in, _, err := s.Login.FinishProvider(ctx, f.query, f.secret, from)
	return in, err
}

// with is a client with a session.
func with(in sessions.Issued) sessions.Client { return sessions.Client{Session: &in.Session} }

// faultyBackend is a backend whose writes a test can intercept.
type faultyBackend struct {
	driver.Backend
	mu     sync.Mutex
	stores map[string]driver.Store
	step   func(store string) error // before a write; an error is returned instead
}

func (r *faultyBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stores[spec.Name] == nil {
		s, err := r.Backend.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		r.stores[spec.Name] = faultyStore{s, r, spec.Name}
	}
	return r.stores[spec.Name], nil
}

// before calls a function before the next write to a store, once.
func (r *faultyBackend) before(store string, do func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first sync.Once
	r.step = func(name string) (err error) {
		if name == store {
			first.Do(func() { err = do() })
		}
		return err
	}
}

type faultyStore struct {
	driver.Store
	records *faultyBackend
	name    string
}

func (s faultyStore) Put(ctx context.Context, w driver.Write) error {
	s.records.mu.Lock()
	step := s.records.step
	s.records.mu.Unlock()
	if step != nil {
		if err := step(s.name); err != nil {
			return err
		}
	}
	return s.Store.Put(ctx, w)
}

func TestAFlowExpires(t *testing.T) {
	d := newServiceFixture(t)
	for i, name := range names {
		d.providers.User(name)
		fresh, old := d.begin(name, sessions.Client{}), d.begin(name, sessions.Client{})
		d.advance(providers.FlowTTL - time.Microsecond)
		_, err := fresh.finish(t.Context(), d.Service, sessions.Client{})
		d.must(err)
		d.advance(time.Microsecond)
		_, err = old.finish(t.Context(), d.Service, sessions.Client{})
		d.wantKind(err, errs.Mismatch)
		// It is known for a while that one was finished.
		flows := slices.DeleteFunc(d.objects(d.stores.Tokens), func(o object.Object) bool { return o["_use"] != nil })
		if n := len(d.objects(d.stores.Users)); n != i+1 || len(flows) > 0 {
			t.Errorf("%d users, %v", n, flows)
		}
	}
	// A flow that is not finished is deleted after it expires.
	d.begin("github", sessions.Client{})
	d.advance(providers.FlowTTL + time.Second)
	if n, err := d.DeleteExpired(t.Context(), 100); err != nil || n == 0 || len(d.objects(d.stores.Tokens)) > 0 {
		t.Errorf("%d removed, %v, %v are left", n, err, d.objects(d.stores.Tokens))
	}
}

func TestASlowProvider(t *testing.T) {
	d := newServiceFixture(t)
	impatient := d.newService(200 * time.Millisecond)
	slow := func(at provider.Endpoint, name string) {
		d.providers.Slow(at)
		_, err := impatient.Providers.Begin(t.Context(), name, true, sessions.Client{})
		d.wantKind(err, errs.Unavailable)
		d.providers.Up()
	}
	slow(provider.Discovery, "oidc")
	slow(provider.RequestToken, "twitter")
	for _, at := range []provider.Endpoint{provider.Token, provider.Profile} {
		for _, name := range names {
			v := d.begin(name, sessions.Client{})
			d.providers.Slow(at)
			_, err := v.finish(t.Context(), impatient, sessions.Client{})
			d.wantKind(err, errs.Unavailable)
			d.providers.Up()
		}
	}
	if len(d.objects(d.stores.Users))+len(d.objects(d.stores.Idents))+len(d.objects(d.stores.Sessions))+
		len(d.objects(d.stores.Tokens)) > 0 {
		t.Error("something was made")
	}
}

// Concurrent callbacks of two processes finish the first login of one identity.
func TestConcurrentFlowsCreateOneUser(t *testing.T) {
	d := newServiceFixture(t)
	services := []*account.Service{d.Service, d.newService(0)}
	const rounds, tabs = 60, 4
	for i := range rounds {
		name := names[i%len(names)]
		d.providers.User(time.Duration(i).String())
		var visits []flow
		for range tabs {
			visits = append(visits, d.begin(name, sessions.Client{}))
		}
		users := make([]string, tabs)
		var all sync.WaitGroup
		for j, v := range visits {
			all.Go(func() {
				in, err := v.finish(t.Context(), services[j%2], sessions.Client{})
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				users[j] = in.User.UUID
			})
		}
		all.Wait()
		if len(slices.Compact(users)) != 1 {
			t.Fatalf("%s: users %v", name, users)
		}
	}
	if users, idents := d.objects(d.stores.Users), d.objects(d.stores.Idents); len(users) != rounds ||
		len(idents) != rounds || d.registerEvents() != rounds {
		t.Errorf("%d users, %d idents, %d times Register, want %d", len(users), len(idents), d.registerEvents(), rounds)
	}
}

// One callback arrives many times concurrently at two processes.
func TestACallbackIsValidOnce(t *testing.T) {
	d := newServiceFixture(t)
	services := []*account.Service{d.Service, d.newService(0)}
	for i := range 30 {
		v := d.begin(names[i%len(names)], sessions.Client{})
		var all sync.WaitGroup
		var good atomic.Int64
		for j := range 4 {
			all.Go(func() {
				_, err := v.finish(t.Context(), services[j%2], sessions.Client{})
				switch {
				case err == nil:
					good.Add(1)
				case !errors.Is(err, errs.Mismatch):
					t.Errorf("error %v (%v)", err, errs.KindOf(err))
				}
			})
		}
		all.Wait()
		if good.Load() != 1 {
			t.Fatalf("it was good %d times", good.Load())
		}
	}
}

// ident is one of the store.
func (d *serviceFixture) ident(uuid string) object.Object {
	d.Helper()
	stored, err := d.stores.Idents.Get(d.Context(), uuid)
	d.must(err)
	o, err := stored.Object()
	d.must(err)
	return o
}
