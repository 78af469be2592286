package apitest

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/api"
	"belfry/pkg/api/login"
	"belfry/pkg/mail"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/query"
)

// shared is a backend whose stores several fronts open, as several processes
// do with a database.
type shared struct {
	driver.Backend
	open map[string]driver.Store
}

func (b *shared) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	if b.open[spec.Name] == nil {
		s, err := b.Backend.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		b.open[spec.Name] = s
	}
	return b.open[spec.Name], nil
}

// StartLogin starts n fronts with logins over the same records. change may set
// the options of each.
func StartLogin(t *testing.T, n int, change ...any) []*Front {
	t.Helper()
	folder, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := folder.Close(); err != nil {
			t.Error(err)
		}
	})
	backend := &shared{folder, map[string]driver.Store{}}
	all := make([]*Front, n)
	for i := range all {
		all[i] = startLogin(t, backend, change)
	}
	return all
}

func startLogin(t *testing.T, backend driver.Backend, change []any) *Front {
	t.Helper()
	fails := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	o := account.Options{BaseURL: "http://belfry.example.org",
		Hash: passwords.HashParams{Memory: 8, Time: 1, Threads: 1}}
	users := []store.Mapping{
		{Source: "Idents", Target: "Users", Key: "user", Array: "idents", Cascade: true},
		{Source: "Sessions", Target: "Users", Key: "user", Cascade: true},
	}
	expires := []query.Index{{Name: account.ExpiresIndex, Fields: []string{account.ExpiresIndex}}}
	for _, s := range []struct {
		into **store.Store
		opts store.Options
	}{
		{&o.Users, store.Options{Name: "Users", Private: []string{"password"}, Reserved: []string{"admin", "disabled"},
			Arrays: []string{"idents"}, KeyIndexes: []store.KeyIndex{o.Finder.Index()}}},
		{&o.Idents, store.Options{Name: "Idents", Maps: users[:1], KeyIndexes: []store.KeyIndex{record.IdentIndex()}}},
		{&o.Sessions, store.Options{Name: "Sessions", Maps: users[1:], Indexes: expires,
			KeyIndexes: record.SessionIndexes()}},
		{&o.Tokens, store.Options{Name: "Tokens", Indexes: expires}},
	} {
		opened, err := store.Open(t.Context(), backend, s.opts)
		fails(err)
		*s.into = opened
	}
	texts, err := mail.ParseTemplates("a mail", "", "{{.Link}}")
	fails(err)
	o.Email = &post.Email{
		PostValidation: true, SkipValidation: true, TokenTTL: time.Hour, RecoveryTTL: time.Hour,
		MailInterval: time.Hour, From: "belfry@example.org", Validation: texts, Recovery: texts, Taken: texts,
		Change: texts, Undo: texts,
		Login: post.MailLogin{Code: true, Link: true, TTL: 10 * time.Minute, CodeMail: texts, LinkMail: texts},
	}
	a := &login.Options{BrowserRedirects: config.BrowserRedirects{
		SuccessRedirect: "/in", FailureRedirect: "/out", RegisterRedirect: "/register", RecoveryRedirect: "/recovery",
		MailLoginRedirect: "/login/mail", AddressRedirect: "/login/address", AccountRedirect: "/in",
	}}
	for _, c := range change {
		switch c := c.(type) {
		case func(*account.Options):
			c(&o)
		case func(*login.Options):
			c(a)
		}
	}
	a.Service = account.New(o)
	t.Cleanup(a.Service.Close)
	f := Start(t, append(change, func(o *api.Options) { o.Login = a })...)
	f.Auth = a.Service
	f.Server.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return f
}

// Ada is the body of a login.
const Ada = `{"login":"ada@example.com","password":"a fine password"}`

// Register registers a user and returns the token of a session.
func (f *Front) Register(login, password string) string {
	f.Helper()
	return Token(f.Do("POST", "/auth/email",
		`{"register":true,"login":"`+login+`","password":"`+password+`"}`).Want(204))
}

// LogIn logs in and returns the token of a session.
func (f *Front) LogIn(login, password string) string {
	f.Helper()
	return Token(f.Do("POST", "/auth/email", `{"login":"`+login+`","password":"`+password+`"}`).Want(204))
}

// Token returns the session token that a reply sets as a cookie.
func Token(r Reply) string {
	r.front.Helper()
	for _, c := range r.Cookies() {
		if strings.HasSuffix(c.Name, "belfry") && c.MaxAge > 0 {
			return c.Value
		}
	}
	r.front.Fatalf("no session: %v", r.Header)
	return ""
}

// Me requests the user of a token.
func (f *Front) Me(token string) Reply {
	f.Helper()
	return f.Do("GET", "/auth/me", "", "Authorization", "Bearer "+token)
}
