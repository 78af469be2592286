package login

import (
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

	"belfry/pkg/auth"
	"belfry/pkg/auth/oauth"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/object"
	"belfry/pkg/store/query"
	"belfry/test/provider"
)

// desk is the service alone, over records that several of them may share.
type desk struct {
	*testing.T
	*auth.Service
	stores    auth.Options // of Service: its stores
	providers *provider.Server
	records   *records

	mu   sync.Mutex
	now  time.Time
	told []event.Envelope
}

const deskURL = "https://belfry.test"

func open(t *testing.T) *desk {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &desk{T: t, providers: provider.Start(t), records: &records{Backend: backend, stores: map[string]driver.Store{}}, now: time.Now()}
	d.providers.Register(deskURL + auth.CallbackPath)
	d.Service = d.another(0)
	return d
}

// another makes a service on the same records, as in another process. It waits
// for a provider for so long; 0 is as long as usual.
func (d *desk) another(timeout time.Duration) *auth.Service {
	d.Helper()
	o := auth.Options{
		BaseURL: deskURL, Providers: map[string]oauth.Provider{}, Now: d.time, Log: slog.New(slog.DiscardHandler),
		Users: d.store("Users"), Idents: d.store("Idents"), Sessions: d.store("Sessions"), Tokens: d.store("Tokens"),
	}
	for _, name := range oauth2Names[:4] {
		c := d.providers.Config(name)
		p, err := oauth.New(name, oauth.Config{
			ClientID: c.ClientID, ClientSecret: c.ClientSecret, AuthURL: c.AuthURL, TokenURL: c.TokenURL, ProfileURL: c.ProfileURL, Timeout: timeout,
		})
		d.must(err)
		o.Providers[name] = p
	}
	c, t := d.providers.Config("oidc"), d.providers.Twitter()
	o.Providers["oidc"] = oauth.NewOIDC(oauth.OIDCConfig{Issuer: d.providers.Issuer(), ClientID: c.ClientID, ClientSecret: c.ClientSecret, Timeout: timeout})
	o.Providers["twitter"] = oauth.NewTwitter(oauth.OAuth1Config{
		ConsumerKey: t.ConsumerKey, ConsumerSecret: t.ConsumerSecret, Timeout: timeout,
		RequestTokenURL: t.RequestTokenURL, AuthorizeURL: t.AuthorizeURL, AccessTokenURL: t.AccessTokenURL, ProfileURL: t.ProfileURL,
	})
	if d.Service == nil {
		d.stores = o
	}
	s := auth.New(o)
	d.Cleanup(s.Close)
	return s
}

func (d *desk) store(name string) *store.Store {
	d.Helper()
	o := store.Options{Name: name, Now: d.time, Outbox: d, Indexes: []query.Index{{Name: auth.ExpiresIndex, Fields: []string{auth.ExpiresIndex}}}}
	if name == "Idents" || name == "Sessions" {
		o.Maps = []store.Mapping{{Source: name, Target: "Users", Key: "user", Cascade: true}}
	}
	s, err := store.Open(d.Context(), d.records, o)
	d.must(err)
	return s
}

func (d *desk) time() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) pass(t time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(t)
}

// Committed makes a desk the outbox of its stores.
func (d *desk) Committed(_ string, p driver.Pending) {
	var e event.Envelope
	if err := json.Unmarshal(p.Payload, &e); err != nil {
		panic(err)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.told = append(d.told, e)
}

// registered counts the events Register.
func (d *desk) registered() (n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.told {
		if e.Event == event.Register {
			n++
		}
	}
	return n
}

func (d *desk) must(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

func (d *desk) kind(err error, want errs.Kind) {
	d.Helper()
	if err == nil || errs.KindOf(err) != want {
		d.Fatalf("error %v (%v), want one that is %v", err, errs.KindOf(err), want)
	}
}

// all are the objects of a store.
func (d *desk) all(s *store.Store) (list []object.Object) {
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

// visit is one that has been to the provider.
type visit struct {
	query  url.Values
	secret string
}

// goes begins a visit and goes to the provider with it.
func (d *desk) goes(name string, from auth.Client) visit {
	d.Helper()
	flow, err := d.BeginOAuth(d.Context(), name, true, from)
	d.must(err)
	res, err := http.DefaultTransport.RoundTrip(must(http.NewRequestWithContext(d.Context(), http.MethodGet, flow.URL, http.NoBody)))
	d.must(err)
	_ = res.Body.Close()
	to, err := res.Location()
	d.must(err)
	return visit{to.Query(), flow.Secret}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// comes is the browser's return to a service.
func (v visit) comes(ctx context.Context, s *auth.Service, from auth.Client) (auth.IssuedSession, error) {
	in, _, err := s.FinishOAuth(ctx, v.query, v.secret, from)
	return in, err
}

// with is a client that is logged in.
func with(in auth.IssuedSession) auth.Client { return auth.Client{Session: &in.Session} }

// records are a backend into whose writes a test can step.
type records struct {
	driver.Backend
	mu     sync.Mutex
	stores map[string]driver.Store
	step   func(store string) error // before a write; an error is returned instead
}

func (r *records) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stores[spec.Name] == nil {
		s, err := r.Backend.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		r.stores[spec.Name] = stepped{s, r, spec.Name}
	}
	return r.stores[spec.Name], nil
}

// before has a function step in before the next write to a store, once.
func (r *records) before(store string, do func() error) {
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

type stepped struct {
	driver.Store
	records *records
	name    string
}

func (s stepped) Put(ctx context.Context, w driver.Write) error {
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
	d := open(t)
	for i, name := range names {
		d.providers.User(name)
		fresh, old := d.goes(name, auth.Client{}), d.goes(name, auth.Client{})
		d.pass(auth.FlowTTL - time.Microsecond)
		_, err := fresh.comes(t.Context(), d.Service, auth.Client{})
		d.must(err)
		d.pass(time.Microsecond)
		_, err = old.comes(t.Context(), d.Service, auth.Client{})
		d.kind(err, errs.Mismatch)
		if n := len(d.all(d.stores.Users)); n != i+1 || len(d.all(d.stores.Tokens)) > 0 {
			t.Errorf("%d users, %v", n, d.all(d.stores.Tokens))
		}
	}
	// What is not come back to goes in the end.
	d.goes("github", auth.Client{})
	d.pass(auth.FlowTTL + time.Second)
	if n, err := d.DeleteExpired(t.Context(), 100); err != nil || n == 0 || len(d.all(d.stores.Tokens)) > 0 {
		t.Errorf("%d removed, %v, %v are left", n, err, d.all(d.stores.Tokens))
	}
}

// Belfry waits for a provider so long and no longer.
func TestASlowProvider(t *testing.T) {
	d := open(t)
	impatient := d.another(200 * time.Millisecond)
	slow := func(at provider.Endpoint, name string) {
		d.providers.Slow(at)
		_, err := impatient.BeginOAuth(t.Context(), name, true, auth.Client{})
		d.kind(err, errs.Unavailable)
		d.providers.Up()
	}
	slow(provider.Discovery, "oidc")
	slow(provider.RequestToken, "twitter")
	for _, at := range []provider.Endpoint{provider.Token, provider.Profile} {
		for _, name := range names {
			v := d.goes(name, auth.Client{})
			d.providers.Slow(at)
			_, err := v.comes(t.Context(), impatient, auth.Client{})
			d.kind(err, errs.Unavailable)
			d.providers.Up()
		}
	}
	if len(d.all(d.stores.Users))+len(d.all(d.stores.Idents))+len(d.all(d.stores.Sessions))+len(d.all(d.stores.Tokens)) > 0 {
		t.Error("something was made")
	}
}

// The first login of one identity, finished by many at once in two processes.
func TestConcurrentFlowsCreateOneUser(t *testing.T) {
	d := open(t)
	services := []*auth.Service{d.Service, d.another(0)}
	const rounds, tabs = 60, 4
	for i := range rounds {
		name := names[i%len(names)]
		d.providers.User(time.Duration(i).String())
		var visits []visit
		for range tabs {
			visits = append(visits, d.goes(name, auth.Client{}))
		}
		users := make([]string, tabs)
		var all sync.WaitGroup
		for j, v := range visits {
			all.Go(func() {
				in, err := v.comes(t.Context(), services[j%2], auth.Client{})
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
	if users, idents := d.all(d.stores.Users), d.all(d.stores.Idents); len(users) != rounds || len(idents) != rounds || d.registered() != rounds {
		t.Errorf("%d users, %d idents, %d times Register, want %d", len(users), len(idents), d.registered(), rounds)
	}
}

// One callback that comes many times at once, to two processes, is good once.
func TestACallbackIsValidOnce(t *testing.T) {
	d := open(t)
	services := []*auth.Service{d.Service, d.another(0)}
	for i := range 30 {
		v := d.goes(names[i%len(names)], auth.Client{})
		var all sync.WaitGroup
		var good atomic.Int64
		for j := range 4 {
			all.Go(func() {
				_, err := v.comes(t.Context(), services[j%2], auth.Client{})
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
func (d *desk) ident(uuid string) object.Object {
	d.Helper()
	stored, err := d.stores.Idents.Get(d.Context(), uuid)
	d.must(err)
	o, err := stored.Object()
	d.must(err)
	return o
}
