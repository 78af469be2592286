package login

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/pkg/account"
	"belfry/pkg/account/method/providers"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/provider"
)

// keepingFixture is a serviceFixture whose providers keep tokens.
type keepingFixture struct {
	*serviceFixture
	key   seal.Key
	ahead time.Duration // of the time
}

// advance is that of the clock; the provider, whose clock is the real one, issues tokens that are valid as much longer.
func (k *keepingFixture) advance(d time.Duration) {
	k.serviceFixture.advance(d)
	k.ahead += d
	k.providers.Lifetime(k.ahead + time.Hour)
}

// keptNames are the providers that keep.
var keptNames = []string{"gitlab", "github", "amazon", "google", "linkedin"}

func newKeepingFixture(t *testing.T) *keepingFixture {
	t.Helper()
	k := &keepingFixture{serviceFixture: newServiceFixture(t), key: seal.Key{Secret: seal.NewKey()}}
	k.Service = k.keep(0, k.key)
	return k
}

// keep makes a service that keeps tokens, as in another process. The last key seals.
func (k *keepingFixture) keep(timeout time.Duration, keys ...seal.Key) *account.Service {
	k.Helper()
	timeout = cmp.Or(timeout, kit.Limit)
	return k.newService(timeout, func(o *account.Options) {
		var err error
		o.Sealer, err = seal.NewWithKeys(keys, k.time)
		k.must(err)
		for _, name := range keptNames {
			c := k.providers.Config(name)
			o.Providers[name], err = oauth.New(name, config.OAuth2{
				ClientID: c.ClientID, ClientSecret: config.Secret(c.ClientSecret), AuthURL: c.AuthURL,
				TokenURL: c.TokenURL, ProfileURL: c.ProfileURL, KeepTokens: true,
			}, oauth.Requests{Timeout: timeout})
			k.must(err)
		}
	})
}

// login logs in and returns the session and the uuid of the ident.
func (k *keepingFixture) login(name, id string) (*sessions.Session, string) {
	k.Helper()
	k.providers.User(id)
	in, err := k.begin(name, sessions.Client{}).finish(k.Context(), k.Service, sessions.Client{})
	k.must(err)
	return &in.Session, identOf(id, name)
}

// token returns a token that the provider accepts.
func (k *keepingFixture) token(s *account.Service, me *sessions.Session, ident, name string) providers.ProviderToken {
	k.Helper()
	token, err := s.Providers.ProviderToken(k.Context(), me, ident)
	k.must(err)
	if !k.providers.Accepts(name, token.AccessToken) {
		k.Fatal("the provider does not accept the token")
	}
	return token
}

// requests is how often tokens were requested.
func (k *keepingFixture) requests() int { return len(k.providers.Requests(provider.Token)) }

// wantSealed searches the records, the events and what clients see for secrets of the provider.
func (k *keepingFixture) wantSealed(ident string) {
	k.Helper()
	k.mu.Lock()
	events, err := json.Marshal(k.events)
	k.mu.Unlock()
	k.must(err)
	if bytes.Contains(events, []byte("_tokens")) || bytes.Contains(events, []byte("_refresh")) {
		k.Errorf("an event has the field: %s", events)
	}
	stored, err := k.stores.Idents.Get(k.Context(), ident)
	k.must(err)
	shown, err := k.stores.Idents.Shown(store.WithCall(k.Context(), store.Call{Client: true, Trusted: true}), stored)
	k.must(err)
	if bytes.Contains(shown.Body, []byte(`"_`)) {
		k.Errorf("a client sees %s", shown.Body)
	}
	for _, secret := range k.providers.Secrets() {
		if secret != "" && (bytes.Contains(stored.Body, []byte(secret)) || bytes.Contains(events, []byte(secret))) {
			k.Errorf("%s is stored or published in plain text", secret)
		}
	}
}

func (k *keepingFixture) hasTokens(ident string) bool {
	k.Helper()
	return k.ident(ident)["_tokens"] != nil
}

func TestProviderTokens(t *testing.T) {
	k := newKeepingFixture(t)
	for _, name := range keptNames {
		me, ident := k.login(name, "1")
		first := k.token(k.Service, me, ident, name)
		if again := k.token(k.Service, me, ident, name); again != first || first.Scope == "" ||
			first.Expires.IsZero() != (name == "github") {
			t.Errorf("%s: scope %q until %v, then until %v", name, first.Scope, first.Expires, again.Expires)
		}
		k.wantSealed(ident)
		k.advance(time.Hour - 30*time.Second)
		next, err := k.Providers.ProviderToken(t.Context(), me, ident)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case name == "github" || name == "linkedin": // no refresh token: as long as it is valid
			if next != first {
				t.Errorf("%s: another token", name)
			}
		case next.AccessToken == first.AccessToken || !k.providers.Accepts(name, next.AccessToken) ||
			next.Scope != first.Scope:
			t.Errorf("%s: not refreshed, scope %q", name, next.Scope)
		}
		if k.ident(ident)["_refresh"] != nil {
			t.Errorf("%s: the lease stays", name)
		}
		k.wantSealed(ident)
		k.advance(-time.Hour + 30*time.Second)
	}
}

// Without a refresh token an access token ends.
func TestATokenWithoutARefreshTokenExpires(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("linkedin", "1")
	k.advance(60*24*time.Hour + time.Minute)
	_, err := k.Providers.ProviderToken(t.Context(), me, ident)
	k.wantKind(err, errs.NotFound)
}

// A rotating refresh token is valid once, and the provider ends all when it gets one again.
func TestOneProcessRefreshesAtATime(t *testing.T) {
	k := newKeepingFixture(t)
	services := []*account.Service{k.Service, k.keep(0, k.key), k.keep(0, k.key)}
	me, ident := k.login("gitlab", "1")
	for round := range 5 {
		k.advance(time.Hour)
		before := k.requests()
		tokens := make([]string, 12)
		var all sync.WaitGroup
		for i := range tokens {
			all.Go(func() {
				token, err := services[i%len(services)].Providers.ProviderToken(t.Context(), me, ident)
				if err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				tokens[i] = token.AccessToken
			})
		}
		all.Wait()
		if n := k.requests() - before; n != 1 || k.providers.Reused() != 0 {
			t.Fatalf("round %d: %d refreshes, %d refresh tokens were used again", round, n, k.providers.Reused())
		}
		for _, token := range tokens {
			if token != tokens[0] || !k.providers.Accepts("gitlab", token) {
				t.Fatalf("round %d: different tokens", round)
			}
		}
	}
}

// The next refresh token is stored though nobody waits for it any more.
func TestARefreshOutlivesItsRequest(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("gitlab", "1")
	k.advance(time.Hour)
	waiting, release := k.providers.Slow(provider.Token)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-waiting
		cancel()
	}()
	_, err := k.Providers.ProviderToken(ctx, me, ident)
	k.wantKind(err, errs.Canceled)
	before := k.requests()
	release()
	k.token(k.Service, me, ident, "gitlab")
	if n := k.requests(); n != before || k.providers.Reused() != 0 {
		t.Errorf("%d more refreshes, %d refresh tokens were used again", n-before, k.providers.Reused())
	}
}

// The lease of a process that has ended expires.
func TestALeaseExpires(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("gitlab", "1")
	k.advance(time.Hour)
	_, err := k.stores.Idents.Mutate(t.Context(), ident, func(store.Stored) (store.Mutation, error) {
		fields := object.Object{}
		fields.Set("_refresh", map[string]any{"holder": "another", "until": k.time().Add(time.Minute)})
		return store.Mutation{Fields: fields}, nil
	})
	k.must(err)
	before := k.requests()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = k.Providers.ProviderToken(ctx, me, ident)
	k.wantKind(err, errs.Canceled)
	if k.requests() != before {
		t.Error("two processes refresh at once")
	}
	k.advance(time.Minute)
	k.token(k.Service, me, ident, "gitlab")
}

// The tokens of a login during a refresh are newer than those of the refresh.
func TestALoginDuringARefreshWins(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("gitlab", "1")
	k.advance(time.Hour)
	waiting, release := k.providers.Slow(provider.Token)
	done := make(chan error, 1)
	go func(s *account.Service) {
		_, err := s.Providers.ProviderToken(t.Context(), me, ident)
		done <- err
	}(k.Service)
	<-waiting
	// The write of the refresh comes after a login in another process.
	refreshing := k.Service
	k.Service = k.keep(0, k.key)
	var once atomic.Bool
	var newer []byte
	k.records.mu.Lock()
	k.records.step = func(name string) error {
		if name == "Idents" && once.CompareAndSwap(false, true) {
			k.login("gitlab", "1")
			newer = k.ident(ident)["_tokens"]
		}
		return nil
	}
	k.records.mu.Unlock()
	release()
	k.must(<-done)
	k.records.mu.Lock()
	k.records.step = nil
	k.records.mu.Unlock()
	k.Service = refreshing
	if now := k.ident(ident); len(newer) == 0 || !bytes.Equal(now["_tokens"], newer) || now["_refresh"] != nil {
		t.Error("the tokens of the login are lost, or the lease stays")
	}
	before := k.requests()
	k.token(k.Service, me, ident, "gitlab")
	k.advance(2 * time.Hour)
	k.token(k.Service, me, ident, "gitlab")
	if n := k.requests() - before; n != 1 || k.providers.Reused() != 0 {
		t.Errorf("%d refreshes, %d refresh tokens were used again", n, k.providers.Reused())
	}
}

func TestTokensThatTheProviderRefuses(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("gitlab", "1")
	k.advance(time.Hour)
	k.providers.Down(provider.Token)
	_, err := k.Providers.ProviderToken(t.Context(), me, ident)
	k.wantKind(err, errs.Unavailable)
	k.providers.TokenError(401, `{"error":"invalid_client"}`)
	_, err = k.Providers.ProviderToken(t.Context(), me, ident)
	k.wantKind(err, errs.Internal)
	k.providers.TokenError(200, `{"access_token":"`+strings.Repeat("x", 100<<10)+`"}`)
	_, err = k.Providers.ProviderToken(t.Context(), me, ident)
	k.wantKind(err, errs.Unavailable)
	k.providers.Up()
	k.token(k.Service, me, ident, "gitlab") // nothing is lost
	k.advance(time.Hour)
	k.providers.Revoke()
	_, err = k.Providers.ProviderToken(t.Context(), me, ident)
	k.wantKind(err, errs.NotFound)
	if k.hasTokens(ident) {
		t.Error("tokens are kept that are worth nothing")
	}
	me, _ = k.login("gitlab", "1")
	k.token(k.Service, me, ident, "gitlab")
}

// A provider can issue tokens for less than a minute.
func TestTokensThatExpireAtOnce(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("gitlab", "1")
	k.advance(time.Hour)
	k.providers.TokenError(200, `{"access_token":"short","token_type":"Bearer","expires_in":1,"refresh_token":"next"}`)
	before := k.requests()
	token, err := k.Providers.ProviderToken(t.Context(), me, ident)
	if err != nil || token.AccessToken != "short" || k.requests() != before+1 {
		t.Errorf("%v, %d refreshes", err, k.requests()-before)
	}
}

// Nobody but the owner gets a token, and no API key does.
func TestTokensAreForTheirOwner(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("gitlab", "1")
	stranger, other := k.login("gitlab", "2")
	plain, unkept := k.login("facebook", "3")
	for _, c := range []struct {
		me    *sessions.Session
		ident string
	}{{stranger, ident}, {me, other}, {me, "unknown_gitlab"}, {me, ""}, {me, "../x"}, {plain, unkept}, {plain, ident}} {
		_, err := k.Providers.ProviderToken(t.Context(), c.me, c.ident)
		k.wantKind(err, errs.NotFound)
	}
	if k.hasTokens(unkept) {
		t.Error("tokens are kept unasked")
	}
	key := *me
	key.Key = &sessions.Key{Name: "k"}
	_, err := k.Providers.ProviderToken(t.Context(), &key, ident)
	k.wantKind(err, errs.Denied)
	k.token(k.Service, me, ident, "gitlab")

	// Linked, and unlinked.
	k.providers.User("9")
	_, err = k.begin("amazon", sessions.Client{Session: me}).finish(t.Context(), k.Service,
		sessions.Client{Session: me})
	k.must(err)
	linked := identOf("9", "amazon")
	k.token(k.Service, me, linked, "amazon")
	k.must(k.Links.Unlink(t.Context(), me, linked))
	_, err = k.Providers.ProviderToken(t.Context(), me, linked)
	k.wantKind(err, errs.NotFound)
	for _, o := range k.objects(k.stores.Idents) {
		if uuid, _ := o.Text("uuid"); uuid == linked {
			t.Error("the ident is there still")
		}
	}
}

// A session that ends while the token is refreshed gets none.
func TestASessionThatEndsDuringARefreshGetsNoToken(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("gitlab", "1")
	k.advance(time.Hour)
	waiting, release := k.providers.Slow(provider.Token)
	done := make(chan error, 1)
	go func() {
		_, err := k.Providers.ProviderToken(t.Context(), me, ident)
		done <- err
	}()
	<-waiting
	k.must(k.Sessions.Logout(t.Context(), me))
	release()
	k.wantKind(<-done, errs.Unauthenticated)
	in, _ := k.login("gitlab", "1")
	k.token(k.Service, in, ident, "gitlab")
}

// Tokens are sealed with the first key of the configuration once they are used; a key that is gone opens none.
func TestTokensAreSealedAgainWithTheNextKey(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("gitlab", "1")
	next := seal.Key{Secret: seal.NewKey()}
	alone := k.keep(0, next)
	_, err := alone.Providers.ProviderToken(t.Context(), me, ident)
	k.wantKind(err, errs.NotFound)
	if !k.hasTokens(ident) {
		t.Fatal("tokens are lost whose key is not configured")
	}
	k.token(k.keep(0, k.key, next), me, ident, "gitlab")
	k.token(alone, me, ident, "gitlab")
	_, err = k.Providers.ProviderToken(t.Context(), me, ident)
	k.wantKind(err, errs.NotFound)
}

// Sealed tokens that are moved to another ident are worth nothing there.
func TestTokensAreSealedForTheirIdent(t *testing.T) {
	k := newKeepingFixture(t)
	_, ident := k.login("gitlab", "1")
	thief, other := k.login("gitlab", "2")
	_, err := k.stores.Idents.Mutate(t.Context(), other, func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: object.Object{"_tokens": k.ident(ident)["_tokens"]}}, nil
	})
	k.must(err)
	_, err = k.Providers.ProviderToken(t.Context(), thief, other)
	k.wantKind(err, errs.NotFound)
}

// A provider that issues a refresh token at the first consent alone returns none later.
func TestALaterLoginKeepsTheRefreshToken(t *testing.T) {
	k := newKeepingFixture(t)
	k.login("google", "1")
	k.providers.Withhold(true)
	me, ident := k.login("google", "1")
	k.advance(time.Hour + time.Minute)
	k.token(k.Service, me, ident, "google")
}

// With tokens: discard a login removes those of before, and none is returned.
func TestTokensAreRemovedWhereTheyAreKeptNoMore(t *testing.T) {
	k := newKeepingFixture(t)
	me, ident := k.login("github", "1")
	k.token(k.Service, me, ident, "github")
	discarding := k.newService(0)
	_, err := discarding.Providers.ProviderToken(t.Context(), me, ident)
	k.wantKind(err, errs.NotFound)
	k.Service = discarding
	k.login("github", "1")
	discarding.Close() // which writes in the background
	if k.hasTokens(ident) {
		t.Error("the tokens are there still")
	}
}

// Apple sends the name at the first login alone, also when that login was interrupted.
func TestTheNameThatIsSentOnceStays(t *testing.T) {
	d := newServiceFixture(t)
	s := d.newService(0, func(o *account.Options) {
		c := d.providers.Config("apple")
		var err error
		o.Providers["apple"], err = oauth.NewApple(config.Apple{Site: config.Site{
			ClientID: c.ClientID, Issuer: c.Issuer, AuthURL: c.AuthURL, TokenURL: c.TokenURL, KeysURL: c.KeysURL,
		}, TeamID: provider.AppleTeam, KeyID: provider.AppleKey, PrivateKey: config.Secret(provider.ApplePrivateKey())},
			oauth.Requests{})
		d.must(err)
	})
	d.Service = s
	crash := errors.New("crash")
	for _, interrupted := range []bool{false, true} {
		id := map[bool]string{false: "1", true: "2"}[interrupted]
		d.providers.User(id)
		v := d.begin("apple", sessions.Client{})
		if interrupted {
			d.records.before("Users", func() error { return crash })
			_, err := v.finish(t.Context(), s, sessions.Client{})
			if err == nil {
				t.Fatal("the login was not interrupted")
			}
			v = d.begin("apple", sessions.Client{})
		}
		_, err := v.finish(t.Context(), s, sessions.Client{})
		d.must(err)
		d.providers.User(id, "email", "other@privaterelay.appleid.com")
		_, err = d.begin("apple", sessions.Client{}).finish(t.Context(), s, sessions.Client{})
		d.must(err)
		s.Close() // which writes in the background
		profile, err := object.Decode(d.ident(id + "_apple")["profile"])
		d.must(err)
		name, _ := profile.Text("name")
		address, _ := profile.Text("email")
		if name != "Ada Lovelace" || address != "other@privaterelay.appleid.com" {
			t.Errorf("interrupted %v: the profile is %s", interrupted, profile.Encode())
		}
	}
}

// The route replies with a token that the provider accepts, to its owner alone.
func TestTheRouteOfProviderTokens(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	w.providers.User("1")
	b := w.browser()
	b.mustLogin("gitlab")
	path := "/auth/idents/" + identOf("1", "gitlab") + "/token"
	// The reply has a secret, which the fixture would find: it is not recorded.
	get := func(jar http.CookieJar) (status int, header http.Header, body map[string]string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+path, http.NoBody)
		w.must(err)
		res, err := (&http.Client{Jar: jar}).Do(req)
		w.must(err)
		defer func() { _ = res.Body.Close() }()
		_ = json.NewDecoder(res.Body).Decode(&body) // a problem has numbers
		return res.StatusCode, res.Header, body
	}
	status, header, body := get(b.Jar)
	if status != http.StatusOK || header.Get("Cache-Control") != "no-store" || len(body) != 3 ||
		body["expires"] == "" || body["scope"] == "" || !w.providers.Accepts("gitlab", body["accessToken"]) {
		t.Errorf("status %d, %v, %d fields", status, header, len(body))
	}
	if status, _, _ := get(nil); status != http.StatusUnauthorized {
		t.Errorf("without a session: status %d", status)
	}
	w.providers.User("2")
	stranger := w.browser()
	stranger.mustLogin("gitlab")
	if status, _, _ := get(stranger.Jar); status != http.StatusNotFound {
		t.Errorf("another user: status %d", status)
	}
}
