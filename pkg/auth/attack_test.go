package auth_test

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

	"belfry/pkg/api"
	"belfry/pkg/api/login"
	"belfry/pkg/api/objects"
	"belfry/pkg/auth"
	"belfry/pkg/auth/oauth"
	"belfry/pkg/event"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// The tests of attack_test.go and its like attack the whole of logging in, as
// a front serves it.

// prey is what is attacked.
type prey struct {
	*testing.T
	*httptest.Server
	auth                            *auth.Service
	users, idents, sessions, tokens *store.Store
	github                          *hub
	post                            *post
	opts                            auth.Options
	log                             *preyLog
}

// hunt starts what is attacked. change may set options before it is built.
func hunt(t *testing.T, change ...any) *prey {
	t.Helper()
	p := &prey{T: t, github: &hub{}, post: &post{}, log: &preyLog{}}
	o := auth.Options{
		BaseURL: "http://belfry.example", Providers: map[string]oauth.Provider{"github": p.github},
		Email: &auth.Email{
			PostValidation: true, TokenTTL: time.Hour, RecoveryTTL: time.Hour,
			From: "belfry@example.com", Sender: p.post, Validation: p.text("validate"), Recovery: p.text("recover"), Taken: p.text("taken"),
		},
		Hash: auth.HashParams{Memory: 64, Time: 1, Threads: 1},
		Log:  slog.New(slog.NewJSONHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, c := range change {
		if c, ok := c.(func(*auth.Options)); ok {
			c(&o)
		}
	}
	p.open(&o)
	p.opts = o
	p.serve(auth.New(o))
	return p
}

// serve serves a service, instead of the one before.
func (p *prey) serve(s *auth.Service) {
	p.auth = s
	p.Cleanup(s.Close)
	store.NewSet([]*store.Store{p.users, p.idents, p.sessions, p.tokens}, nil)
	p.Server = httptest.NewServer(api.New(api.Options{
		Logger:  p.opts.Log,
		Objects: []objects.Options{{Store: p.users, URL: "/users"}},
		Login:   &login.Options{Service: s, Success: "/in", Failure: "/out", Register: "/register", Recovery: "/again"},
	}))
	p.Cleanup(p.Close)
}

func preyInterval(o *auth.Options) { o.Email.MailInterval = time.Minute }
func preyFirst(o *auth.Options)    { o.Email.PostValidation = false }
func preyUniform(o *auth.Options)  { o.Email.UniformErrors = true }

// open opens the stores in which everything is kept.
func (p *prey) open(o *auth.Options) {
	p.Helper()
	backend, err := filestore.Open(p.TempDir(), filestore.Options{})
	p.must(err)
	p.Cleanup(func() { p.must(backend.Close()) })
	owner, problems := policy.Compile(policy.Rules{Owner: true, Create: "false"})
	if problems != nil {
		p.Fatal(problems)
	}
	open := func(s store.Options) *store.Store {
		s.Outbox = p.post
		opened, err := store.Open(p.Context(), backend, s)
		p.must(err)
		return opened
	}
	ofUser := func(source string) []store.Mapping {
		return []store.Mapping{{Source: source, Target: "Users", Key: "user", Cascade: true}}
	}
	expires := []query.Index{{Name: auth.ExpiresIndex, Fields: []string{auth.ExpiresIndex}}}
	p.users = open(store.Options{Name: "Users", Private: []string{"password"}, Policy: owner, Arrays: []string{"idents"}})
	p.idents = open(store.Options{Name: "Idents", Announce: p.post, Policy: owner, Maps: ofUser("Idents")})
	p.sessions = open(store.Options{Name: "Sessions", Maps: ofUser("Sessions"), Indexes: expires})
	p.tokens = open(store.Options{Name: "Tokens", Indexes: expires})
	o.Users, o.Idents, o.Sessions, o.Tokens = p.users, p.idents, p.sessions, p.tokens
}

func (p *prey) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *prey) text(subject string) *mail.Templates {
	t, err := mail.ParseTemplates(subject, "", "{{.Token}}")
	p.must(err)
	return t
}

// preyLog is what was logged.
type preyLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *preyLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// post is the bus, the mail server and everybody's letter box.
type post struct {
	mu     sync.Mutex
	events []event.Envelope
	mails  []mail.Message

	users   func(event.Envelope)
	saving  func()             // before an object of Idents is saved
	sending func(token string) // a mail is out, which has not been noted yet
}

func (p *post) HasInterest(name event.Name) bool { return p.saving != nil && name == event.StoreSave }
func (p *post) Live(event.Name, []byte)          { p.saving() }

func (p *post) Committed(name string, e driver.Pending) {
	decoded, err := event.Decode(e.Payload)
	if err != nil {
		panic(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == "Tokens" {
		p.events = append(p.events, decoded)
	}
	if name == "Users" && p.users != nil {
		p.users(decoded)
	}
}

func (p *post) Send(_ context.Context, m mail.Message) error {
	p.mu.Lock()
	p.mails = append(p.mails, m)
	p.mu.Unlock()
	if p.sending != nil {
		p.sending(m.Text)
	}
	return nil
}

// deliver delivers the mails that were asked for, and returns what the last to
// an address with a subject says: its token.
func (p *prey) deliver(to, subject string) string {
	p.Helper()
	for {
		p.post.mu.Lock()
		if len(p.post.events) == 0 {
			break
		}
		next := p.post.events[0]
		p.post.events = p.post.events[1:]
		p.post.mu.Unlock()
		p.must(p.auth.DeliverMail(p.Context(), &next))
	}
	defer p.post.mu.Unlock()
	for i := len(p.post.mails) - 1; i >= 0; i-- {
		if m := p.post.mails[i]; m.To == to && m.Subject == subject {
			return m.Text
		}
	}
	return ""
}

// hub is a provider, where users are known by what a browser says in the query.
type hub struct {
	mu    sync.Mutex
	pause func() // before a Finish returns
}

func (p *hub) Begin(_ context.Context, b oauth.AuthRequest) (oauth.Redirect, error) {
	return oauth.Redirect{URL: "http://provider.example/?state=" + b.State}, nil
}

func (p *hub) Finish(_ context.Context, f oauth.Callback) (oauth.Identity, error) {
	p.mu.Lock()
	pause := p.pause
	p.mu.Unlock()
	if pause != nil {
		pause()
	}
	return oauth.Identity{ID: f.Query.Get("code")}, nil
}

// visitor is somebody with cookies who follows no redirect.
type visitor struct {
	prey *prey
	http.Client
}

func (p *prey) visitor() *visitor {
	jar, _ := cookiejar.New(nil) // never fails
	return &visitor{prey: p, Client: http.Client{
		Jar: jar, Transport: p.Client().Transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// answer is a reply, read to its end.
type answer struct {
	*http.Response
	text string
}

// ask sends a request. headers are names and values in turn.
func (b *visitor) ask(method, path, body string, headers ...string) answer {
	b.prey.Helper()
	return b.send(method, path, strings.NewReader(body), headers...)
}

func (b *visitor) send(method, path string, body io.Reader, headers ...string) answer {
	b.prey.Helper()
	r, err := http.NewRequestWithContext(b.prey.Context(), method, b.prey.URL+path, body)
	b.prey.must(err)
	if method != http.MethodGet && method != http.MethodDelete {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := b.Do(r)
	if err != nil {
		b.prey.Error(err) // Fatal is for the test's own goroutine alone
		return answer{Response: &http.Response{}}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.prey.Error(err)
	}
	return answer{resp, string(text)}
}

// is checks a reply's status.
func (b *visitor) is(a answer, status int) answer {
	b.prey.Helper()
	if a.StatusCode != status {
		b.prey.Fatalf("status %d, want %d: %s", a.StatusCode, status, a.text)
	}
	return a
}

func (b *visitor) register(login, password string, fields ...string) answer {
	b.prey.Helper()
	return b.ask("POST", "/auth/email", fmt.Sprintf(`{"register":true,"login":%q,"password":%q%s}`, login, password, strings.Join(append([]string{""}, fields...), ",")))
}

func (b *visitor) login(login, password string) answer {
	b.prey.Helper()
	return b.ask("POST", "/auth/email", fmt.Sprintf(`{"login":%q,"password":%q}`, login, password))
}

// visit goes to the provider and comes back as somebody there.
func (b *visitor) visit(id string, headers ...string) answer {
	b.prey.Helper()
	return b.ask("GET", "/auth/callback?code="+id+"&state="+b.leave(headers...), "")
}

// leave goes to the provider, and returns the state to come back with.
func (b *visitor) leave(headers ...string) string {
	b.prey.Helper()
	to, err := url.Parse(b.is(b.ask("GET", "/auth/github", "", headers...), http.StatusFound).Header.Get("Location"))
	b.prey.must(err)
	return to.Query().Get("state")
}

// recover sets a new password by the mail that brings a token for that.
func (b *visitor) recover(login, password string) {
	b.prey.Helper()
	b.prey.deliver("", "")
	b.is(b.ask("POST", "/auth/email/recovery", fmt.Sprintf(`{"login":%q}`, login)), http.StatusAccepted)
	b.is(b.ask("PUT", "/auth/email/recovery", fmt.Sprintf(`{"login":%q,"password":%q,"token":%q}`, login, password, b.prey.deliver(login, "recover"))), http.StatusNoContent)
}

// whoami is the uuid of who is logged in, "" for nobody.
func (b *visitor) whoami() string {
	b.prey.Helper()
	a := b.ask("GET", "/auth/me", "")
	if a.StatusCode == http.StatusUnauthorized {
		return ""
	}
	var user struct{ UUID string }
	b.prey.must(json.Unmarshal([]byte(b.is(a, http.StatusOK).text), &user))
	return user.UUID
}

// session is the visitor's, as a request that begins now knows it.
func (b *visitor) session() *auth.Session {
	b.prey.Helper()
	at, err := url.Parse(b.prey.URL)
	b.prey.must(err)
	for _, c := range b.Jar.Cookies(at) {
		if c.Name == "belfry" {
			s, err := b.prey.auth.Authenticate(b.prey.Context(), c.Value)
			b.prey.must(err)
			return s
		}
	}
	return nil
}
