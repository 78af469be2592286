package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/oauth"
	"belfry/pkg/account/post"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/login"
	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
	"belfry/test/model"
)

// The tests of the attack_ files attack authentication through the HTTP server.

// attackFixture is a server with its stores, a provider and a mail server.
type attackFixture struct {
	*testing.T
	*httptest.Server
	auth                            *account.Service
	users, idents, sessions, tokens *store.Store
	github                          *fakeProvider
	outbox                          *attackOutbox
	opts                            account.Options
	login                           func(*login.Options) // changes the options of the routes; nil: does not
	unused                          bool                 // tests of repetitions make no first use themselves
}

// newAttackFixture starts a server. change may set options before.
func newAttackFixture(t *testing.T, change ...any) *attackFixture {
	t.Helper()
	p := &attackFixture{T: t, github: &fakeProvider{}, outbox: &attackOutbox{}}
	o := account.Options{
		BaseURL: "http://belfry.example", Providers: map[string]oauth.Provider{"github": p.github},
		Email: &post.Email{
			PostValidation: true, TokenTTL: time.Hour, RecoveryTTL: time.Hour,
			From: "belfry@example.com", Sender: p.outbox, Validation: p.text("validate"), Recovery: p.text("recover"),
			Taken: p.text("taken"),
		},
		Hash: passwords.HashParams{Memory: 64, Time: 1, Threads: 1},
		Log:  slog.New(slog.DiscardHandler),
	}
	for _, c := range change {
		switch c := c.(type) {
		case func(*account.Options):
			c(&o)
		case func(*login.Options):
			p.login = c
		}
	}
	p.open(&o)
	p.opts = o
	p.serve(account.New(o))
	return p
}

// serve serves another service.
func (p *attackFixture) serve(s *account.Service) {
	p.auth = s
	p.Cleanup(s.Close)
	store.NewSet([]*store.Store{p.users, p.idents, p.sessions, p.tokens}, nil)
	routes := &login.Options{Service: s, BrowserRedirects: config.BrowserRedirects{SuccessRedirect: "/in",
		FailureRedirect: "/out", RegisterRedirect: "/register", RecoveryRedirect: "/again", AccountRedirect: "/in"}}
	if p.login != nil {
		p.login(routes)
	}
	o := api.Options{Logger: p.opts.Log, Login: routes}
	apitest.Expose(&o, p.users, config.Expose{URL: "/users"})
	p.Server = httptest.NewServer(apitest.New(o))
	p.Cleanup(p.Close)
}

func withMailInterval(o *account.Options)    { o.Email.MailInterval = time.Minute }
func withValidationFirst(o *account.Options) { o.Email.PostValidation = false }
func withUniformErrors(o *account.Options)   { o.Email.UniformErrors = true }

// open opens the stores.
func (p *attackFixture) open(o *account.Options) {
	p.Helper()
	backend := model.NewMemory()
	owner, problems := policy.Compile(policy.Rules{Owner: true, Create: "false"})
	if problems != nil {
		p.Fatal(problems)
	}
	open := func(s store.Options) *store.Store {
		s.Outbox = p.outbox
		opened, err := store.Open(p.Context(), backend, s)
		p.must(err)
		return opened
	}
	ofUser := func(source string) []store.Mapping {
		return []store.Mapping{{Source: source, Target: "Users", Key: "user", Cascade: true}}
	}
	expires := []query.Index{{Name: account.ExpiresIndex, Fields: []string{account.ExpiresIndex}}}
	p.users = open(store.Options{Name: "Users", Private: []string{"password"}, Policy: owner,
		Arrays: []string{"idents"}})
	p.idents = open(store.Options{Name: "Idents", Announce: p.outbox, Policy: owner, Maps: ofUser("Idents")})
	p.sessions = open(store.Options{Name: "Sessions", Maps: ofUser("Sessions"), Indexes: expires})
	p.tokens = open(store.Options{Name: "Tokens", Indexes: expires})
	o.Users, o.Idents, o.Sessions, o.Tokens = p.users, p.idents, p.sessions, p.tokens
}

func (p *attackFixture) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *attackFixture) text(subject string) *mail.Templates {
	t, err := mail.ParseTemplates(subject, "", "{{.Token}}")
	p.must(err)
	return t
}

// attackOutbox is the bus and the mail server.
type attackOutbox struct {
	mu     sync.Mutex
	events []event.Envelope
	mails  []mail.Message

	onUserEvent func(event.Envelope)
	beforeSave  func()             // before an object of Idents is saved
	afterSend   func(token string) // a mail is out, which has not been noted yet
}

func (p *attackOutbox) HasInterest(name event.Name) bool {
	return p.beforeSave != nil && name == event.StoreSave
}
func (p *attackOutbox) Live(event.Name, []byte) { p.beforeSave() }

func (p *attackOutbox) Committed(name string, e driver.Pending) {
	decoded, err := event.Decode(e.Payload)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "Tokens" {
		p.events = append(p.events, decoded)
	}
	if name == "Users" && p.onUserEvent != nil {
		p.onUserEvent(decoded)
	}
}

func (p *attackOutbox) Send(_ context.Context, m mail.Message) error {
	p.mu.Lock()
	p.mails = append(p.mails, m)
	p.mu.Unlock()
	if p.afterSend != nil {
		p.afterSend(m.Text)
	}
	return nil
}

// deliverMails sends the mails that were requested, and returns the token of
// the last one to an address with a subject.
func (p *attackFixture) deliverMails(to, subject string) string {
	p.Helper()
	for {
		p.outbox.mu.Lock()
		if len(p.outbox.events) == 0 {
			break
		}
		next := p.outbox.events[0]
		p.outbox.events = p.outbox.events[1:]
		p.outbox.mu.Unlock()
		p.must(p.auth.Post.Deliver(p.Context(), &next))
	}
	defer p.outbox.mu.Unlock()
	for i := len(p.outbox.mails) - 1; i >= 0; i-- {
		if m := p.outbox.mails[i]; m.To == to && m.Subject == subject {
			return m.Text
		}
	}
	return ""
}

// fakeProvider is a provider whose users are identified by the code in the
// query.
type fakeProvider struct {
	mu           sync.Mutex
	beforeFinish func() // before a Finish returns
}

func (p *fakeProvider) Begin(_ context.Context, b oauth.AuthRequest) (oauth.Redirect, error) {
	return oauth.Redirect{URL: "http://provider.example/?state=" + b.State}, nil
}

func (p *fakeProvider) Finish(_ context.Context, f oauth.Callback) (oauth.Identity, error) {
	p.mu.Lock()
	pause := p.beforeFinish
	p.mu.Unlock()
	if pause != nil {
		pause()
	}
	return oauth.Identity{ID: f.Query.Get("code")}, nil
}

// browser is a client with cookies that follows no redirect.
type browser struct {
	f *attackFixture
	http.Client
}

func (p *attackFixture) newBrowser() *browser {
	jar, _ := cookiejar.New(nil) // never fails
	return &browser{f: p, Client: http.Client{
		Jar: jar, Transport: p.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// response is a response whose body was read.
type response struct {
	*http.Response
	text string
}

// request sends a request. headers alternates names and values.
func (b *browser) request(method, path, body string, headers ...string) response {
	b.f.Helper()
	return b.send(method, path, strings.NewReader(body), headers...)
}

func (b *browser) send(method, path string, body io.Reader, headers ...string) response {
	b.f.Helper()
	r, err := http.NewRequestWithContext(b.f.Context(), method, b.f.URL+path, body)
	b.f.must(err)
	if method != http.MethodGet && method != http.MethodDelete {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.Do(r)
	if err != nil {
		b.f.Error(err) // Fatal is for the test's own goroutine alone
		return response{Response: &http.Response{}}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.f.Error(err)
	}
	return response{resp, string(text)}
}

// wantStatus checks the status of a response.
func (b *browser) wantStatus(a response, status int) response {
	b.f.Helper()
	if a.StatusCode != status {
		b.f.Fatalf("status %d, want %d: %s", a.StatusCode, status, a.text)
	}
	return a
}

func (b *browser) register(login, password string, fields ...string) response {
	b.f.Helper()
	return b.request("POST",
		"/auth/email", fmt.Sprintf(`{"register":true,"login":%q,"password":%q%s}`, login, password,
			strings.Join(append([]string{""}, fields...), ",")))
}

func (b *browser) login(login, password string) response {
	b.f.Helper()
	return b.request("POST", "/auth/email", fmt.Sprintf(`{"login":%q,"password":%q}`, login, password))
}

// loginByProvider completes a flow as a user of the provider.
func (b *browser) loginByProvider(id string, headers ...string) response {
	b.f.Helper()
	return b.request("GET", "/auth/callback?code="+id+"&state="+b.redirect(headers...), "")
}

// redirect starts a flow and returns its state.
func (b *browser) redirect(headers ...string) string {
	b.f.Helper()
	to, err := url.Parse(b.wantStatus(b.request("GET", "/auth/github", "", headers...),
		http.StatusFound).Header.Get("Location"))
	b.f.must(err)
	return to.Query().Get("state")
}

// recover sets a new password by a recovery mail.
func (b *browser) recover(login, password string) {
	b.f.Helper()
	b.f.deliverMails("", "")
	b.wantStatus(b.request("POST", "/auth/email/recovery", fmt.Sprintf(`{"login":%q}`, login)), http.StatusAccepted)
	b.wantStatus(b.request("PUT", "/auth/email/recovery",
		fmt.Sprintf(`{"login":%q,"password":%q,"token":%q}`, login, password, b.f.deliverMails(login, "recover"))),
		http.StatusNoContent)
}

// currentUser is the uuid of the user who is logged in, "" for none.
func (b *browser) currentUser() string {
	b.f.Helper()
	a := b.request("GET", "/auth/me", "")
	if a.StatusCode == http.StatusUnauthorized {
		return ""
	}
	var user struct{ UUID string }
	b.f.must(json.Unmarshal([]byte(b.wantStatus(a, http.StatusOK).text), &user))
	return user.UUID
}

// session is the browser's session.
func (b *browser) session() *sessions.Session {
	b.f.Helper()
	at, err := url.Parse(b.f.URL)
	b.f.must(err)
	for _, c := range b.Jar.Cookies(at) {
		if c.Name == "belfry" {
			s, err := b.f.auth.Sessions.Authenticate(b.f.Context(), c.Value)
			b.f.must(err)
			return s
		}
	}
	return nil
}
