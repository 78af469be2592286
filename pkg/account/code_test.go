package account_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/flow/applications"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

const (
	siteRedirect     = "https://app.example.net/in?a=b"
	schemeRedirect   = "com.example.app:/in"
	loopbackRedirect = "http://127.0.0.1/in"

	verifier      = "a-verifier-of-at-least-43-characters.0123456789~"
	otherVerifier = "another_verifier_of_at_least_43_characters_01234"
)

// configuredApplications configures redirects.
func configuredApplications(o *account.Options) {
	o.Redirects = []string{siteRedirect, schemeRedirect, loopbackRedirect, "http://[::1]/in"}
}

// challengeOf is the challenge of a verifier by S256.
func challengeOf(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// request is the request of an application.
func request(redirect string, changes ...string) url.Values {
	q := url.Values{
		"response_type": {"code"}, "redirect_uri": {redirect}, "state": {"the state of the application"},
		"code_challenge": {challengeOf(verifier)}, "code_challenge_method": {"S256"},
	}
	for i := 0; i < len(changes); i += 2 {
		if q.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			q.Del(changes[i])
		}
	}
	return q
}

// forApplication is a client that logs in for an application.
func (w *fixture) forApplication(redirect string, changes ...string) sessions.Client {
	w.Helper()
	app, err := w.Applications.Of(request(redirect, changes...))
	w.must(err)
	c := from
	c.Application = app
	return c
}

// code logs in for an application and returns the code.
func (w *fixture) code(redirect string, changes ...string) string {
	w.Helper()
	issued, err := w.Login.Login(w.Context(), credentials(ada, password), w.forApplication(redirect, changes...))
	w.must(err)
	if issued.Code == "" || issued.Token != "" || issued.ID != "" {
		w.Fatalf("issued: %+v", issued)
	}
	return issued.Code
}

func exchangeOf(code, redirect string) applications.Exchange {
	return applications.Exchange{Code: code, Redirect: redirect, Verifier: verifier}
}

// wantProtocol fails unless an error is one of the protocol.
func (w *fixture) wantProtocol(err error, code string) {
	w.Helper()
	var protocol *applications.ProtocolError
	if !errors.As(err, &protocol) || protocol.Code != code {
		w.Fatalf("error %v, want %s", err, code)
	}
}

func TestRedirectsOfApplications(t *testing.T) {
	w := newFixture(t, configuredApplications)
	for _, ok := range []string{
		siteRedirect, schemeRedirect, loopbackRedirect,
		"http://127.0.0.1:1/in", "http://127.0.0.1:65535/in", "http://[::1]/in", "http://[::1]:4711/in",
	} {
		if a, err := w.Applications.Of(request(ok)); err != nil || a.Redirect != ok ||
			a.Native() != !strings.HasPrefix(ok, "https:") {
			t.Errorf("%s: %+v, %v", ok, a, err)
		}
	}
	for _, wrong := range []string{
		"", "/in", "//app.example.net/in?a=b", "https://evil.example/in?a=b",
		"https://app.example.net/in", "https://app.example.net/in?a=b&c", "https://app.example.net/in?a=b#",
		"https://app.example.net:443/in?a=b",
		"https://APP.example.net/in?a=b", "HTTPS://app.example.net/in?a=b", "http://app.example.net/in?a=b",
		" " + siteRedirect, siteRedirect + "\n",
		"https://app.example.net/./in?a=b", "https://app.example.net/x/../in?a=b", "https://app.example.net/%69n?a=b",
		`https://app.example.net\in?a=b`,
		"https://app.example.net@evil.example/in?a=b", "https://app.example.net.evil.example/in?a=b",
		"com.example.app:/in/", "com.example.app:/in?x", "com.example.app://in", "com.example.app:in",
		"com.example.apps:/in", "COM.EXAMPLE.APP:/in", "com.example.app:/in#x",
		"javascript:alert(1)", "data:text/html,x", "file:///in",
		"http://127.0.0.1:/in", "http://127.0.0.1:123456/in", "http://127.0.0.1:1/in/", "http://127.0.0.1:1/",
		"http://127.0.0.1:1/in?x", "http://127.0.0.1:1/in#x",
		"http://127.0.0.1:1@evil.example/in", "http://127.0.0.1:x/in", "http://127.0.0.1:-1/in",
		"http://127.0.0.1.evil.example/in", "http://127.0.0.1:1.evil.example/in", "http://127.0.0.1:1//in",
		"http://localhost:1/in", "http://127.0.0.2:1/in", "http://127.1:1/in", "http://0x7f.1:1/in",
		"http://[::1]:1/out", "http://[0:0:0:0:0:0:0:1]:1/in", "http://[::1%25lo]:1/in", "https://127.0.0.1:1/in",
	} {
		if a, err := w.Applications.Of(request(wrong)); a != nil || !errors.Is(err, errs.Invalid) {
			t.Errorf("%s: %+v, %v", wrong, a, err)
		}
	}
	twice := request(siteRedirect)
	twice.Add("redirect_uri", siteRedirect)
	if a, err := w.Applications.Of(twice); a != nil || err == nil {
		t.Errorf("given twice: %+v, %v", a, err)
	}
}

func TestRequestsOfApplicationsNeedPKCE(t *testing.T) {
	w := newFixture(t, configuredApplications)
	for _, c := range []struct{ name, field, value, want string }{
		{"no challenge", "code_challenge", "", applications.InvalidRequest},
		{"no method, which is plain", "code_challenge_method", "", applications.InvalidRequest},
		{"plain", "code_challenge_method", "plain", applications.InvalidRequest},
		{"lower case", "code_challenge_method", "s256", applications.InvalidRequest},
		{"a verifier as the challenge", "code_challenge", verifier, applications.InvalidRequest},
		{"a short challenge", "code_challenge", challengeOf(verifier)[1:], applications.InvalidRequest},
		{"a challenge in base64", "code_challenge", challengeOf(verifier)[1:] + "+", applications.InvalidRequest},
		{"a token for the browser", "response_type", "token", applications.UnsupportedResponseType},
		{"no response type", "response_type", "", applications.UnsupportedResponseType},
		{"a long state", "state", strings.Repeat("x", 2001), applications.InvalidRequest},
		{"a long client", "client_id", strings.Repeat("x", 201), applications.InvalidRequest},
		{"no text", "state", "\xff", applications.InvalidRequest},
	} {
		a, err := w.Applications.Of(request(siteRedirect, c.field, c.value))
		if a == nil {
			t.Fatalf("%s: no application: %v", c.name, err)
		}
		w.wantProtocol(err, c.want)
		twice := request(siteRedirect)
		twice[c.field] = []string{"a", "a"}
		if a, err := w.Applications.Of(twice); a == nil || err == nil {
			t.Errorf("%s twice: %+v, %v", c.field, a, err)
		}
	}
}

func TestACodeIsExchangedOnceForASession(t *testing.T) {
	w := newFixture(t, configuredApplications, github)
	user := w.register(ada, password).User.UUID
	for _, redirect := range []string{siteRedirect, schemeRedirect, "http://127.0.0.1:4711/in"} {
		code := w.code(redirect, "client_id", "app")
		e := exchangeOf(code, redirect)
		e.Client = "app"
		in, err := w.Applications.Exchange(t.Context(), e, from)
		w.must(err)
		if in.User.UUID != user || !w.valid(in.Token) {
			t.Fatalf("the session is %+v", in)
		}
		list, err := w.Sessions.List(t.Context(), &in.Session)
		w.must(err)
		i := slices.IndexFunc(list, func(s sessions.Info) bool { return s.ID == in.ID })
		if i < 0 || !list[i].Current || list[i].Type != "email" ||
			list[i].Application != strings.Replace(redirect, ":4711", "", 1) {
			t.Errorf("listed: %+v", list)
		}
		_, err = w.Applications.Exchange(t.Context(), e, from)
		w.wantProtocol(err, applications.InvalidGrant)
		if w.valid(in.Token) {
			t.Error("the session outlives a second use of its code")
		}
	}
}

// A login for an application neither ends nor starts a session of the browser, and links nothing.
func TestALoginForAnApplicationLeavesTheBrowserAlone(t *testing.T) {
	w := newFixture(t, configuredApplications, github)
	browser := w.register(ada, password)
	for name, login := range map[string]func(sessions.Client) (sessions.Issued, error){
		"email": func(c sessions.Client) (sessions.Issued, error) {
			return w.Login.Login(t.Context(), credentials(ada, password), c)
		},
		"github": func(c sessions.Client) (sessions.Issued, error) { return w.loginByProvider("grace", c) },
	} {
		count := len(w.objects("Sessions"))
		c := w.forApplication(siteRedirect)
		if name == "github" {
			c.Session = &browser.Session // a client that is logged in opens the URL
		}
		issued, err := login(c)
		w.must(err)
		w.Close()
		if issued.Code == "" || issued.Token != "" || !w.valid(browser.Token) || len(w.objects("Sessions")) != count {
			t.Fatalf("%s: %+v, %d sessions", name, issued, len(w.objects("Sessions")))
		}
		in, err := w.Applications.Exchange(t.Context(), exchangeOf(issued.Code, siteRedirect), with(browser))
		w.must(err)
		w.Close()
		if !w.valid(browser.Token) || (in.User.UUID == browser.User.UUID) != (name == "email") {
			t.Errorf("%s: %+v", name, in)
		}
	}
}

// The first use of a code is its only one, also if what comes with it is wrong.
func TestACodeIsForItsOwnRequest(t *testing.T) {
	w := newFixture(t, configuredApplications)
	w.register(ada, password)
	for _, c := range []struct {
		name   string
		change func(*applications.Exchange)
		want   string
		used   bool
	}{
		{"another verifier", func(e *applications.Exchange) { e.Verifier = otherVerifier }, applications.InvalidGrant,
			true},
		{"the challenge as the verifier", func(e *applications.Exchange) { e.Verifier = challengeOf(verifier) },
			applications.InvalidGrant, true},
		{"another redirect", func(e *applications.Exchange) { e.Redirect = schemeRedirect }, applications.InvalidGrant,
			true},
		{"another port", func(e *applications.Exchange) { e.Redirect = "http://127.0.0.1:4712/in" },
			applications.InvalidGrant, true},
		{"another client", func(e *applications.Exchange) { e.Client = "other" }, applications.InvalidGrant, true},
		{"no client", func(e *applications.Exchange) { e.Client = "" }, applications.InvalidClient, false},
		{"no verifier", func(e *applications.Exchange) { e.Verifier = "" }, applications.InvalidRequest, false},
		{"a short verifier", func(e *applications.Exchange) { e.Verifier = verifier[:42] }, applications.InvalidRequest,
			false},
		{"a long verifier", func(e *applications.Exchange) { e.Verifier = strings.Repeat("a", 129) },
			applications.InvalidRequest, false},
		{"a verifier with other characters", func(e *applications.Exchange) { e.Verifier += "=" },
			applications.InvalidRequest, false},
		{"no redirect", func(e *applications.Exchange) { e.Redirect = "" }, applications.InvalidRequest, false},
		{"no code", func(e *applications.Exchange) { e.Code = "" }, applications.InvalidRequest, false},
		{"an unknown code", func(e *applications.Exchange) { e.Code = account.NewSecret() }, applications.InvalidGrant,
			false},
		{"a code of a uuid's characters", func(e *applications.Exchange) { e.Code = "../" + e.Code },
			applications.InvalidGrant, false},
	} {
		right := exchangeOf(w.code("http://127.0.0.1:4711/in", "client_id", "app"), "http://127.0.0.1:4711/in")
		right.Client = "app"
		wrong := right
		c.change(&wrong)
		count := len(w.objects("Sessions"))
		_, err := w.Applications.Exchange(t.Context(), wrong, from)
		w.wantProtocol(err, c.want)
		if len(w.objects("Sessions")) != count {
			t.Errorf("%s: a session", c.name)
		}
		_, err = w.Applications.Exchange(t.Context(), right, from)
		if used := err != nil; used != c.used {
			t.Errorf("%s: then %v", c.name, err)
		}
	}
}

// A used code that comes again is noticed whatever comes with it; one that has expired is wrong for everybody.
func TestACodeWithoutItsClientIsNoSecondChance(t *testing.T) {
	w := newFixture(t, configuredApplications)
	w.register(ada, password)
	right := exchangeOf(w.code(siteRedirect, "client_id", "app"), siteRedirect)
	right.Client = "app"
	in, err := w.Applications.Exchange(t.Context(), right, from)
	w.must(err)
	none := right
	none.Client = ""
	_, err = w.Applications.Exchange(t.Context(), none, from)
	w.wantProtocol(err, applications.InvalidGrant)
	if w.valid(in.Token) {
		t.Error("the session outlives a second use of its code without a client")
	}
	none.Code = w.code(siteRedirect, "client_id", "app")
	w.clock.advance(applications.CodeTTL)
	_, err = w.Applications.Exchange(t.Context(), none, from)
	w.wantProtocol(err, applications.InvalidGrant)
}

// Two flows of one application are in progress; their codes are mixed up.
func TestCodesOfTwoFlowsAreNotMixed(t *testing.T) {
	w := newFixture(t, configuredApplications)
	w.register(ada, password)
	first := w.code(siteRedirect)
	second := w.code(siteRedirect, "code_challenge", challengeOf(otherVerifier))
	for _, e := range []applications.Exchange{
		{Code: first, Redirect: siteRedirect, Verifier: otherVerifier},
		{Code: second, Redirect: siteRedirect, Verifier: verifier},
		{Code: first, Redirect: siteRedirect, Verifier: verifier},
	} {
		_, err := w.Applications.Exchange(t.Context(), e, from)
		w.wantProtocol(err, applications.InvalidGrant)
	}
}

func TestACodeExpires(t *testing.T) {
	w := newFixture(t, configuredApplications)
	w.register(ada, password)
	for _, late := range []bool{false, true} {
		e := exchangeOf(w.code(siteRedirect), siteRedirect)
		w.clock.advance(applications.CodeTTL - time.Microsecond)
		if late {
			w.clock.advance(time.Microsecond)
		}
		_, err := w.Applications.Exchange(t.Context(), e, from)
		if late {
			w.wantProtocol(err, applications.InvalidGrant)
		} else {
			w.must(err)
		}
	}
	w.clock.advance(25 * time.Hour)
	_, err := w.DeleteExpired(t.Context(), 100)
	w.must(err)
	for _, left := range w.objects("Tokens") {
		if strings.HasPrefix(left.UUID, "code-") {
			t.Errorf("left: %s", left.Body)
		}
	}
}

// What ends all sessions of a user ends codes that were issued before.
func TestACodeEndsWithTheSessionsOfItsUser(t *testing.T) {
	for name, end := range map[string]func(w *fixture, user string) error{
		"disabled": func(w *fixture, user string) error {
			_, err := w.Admin.SetDisabled(w.Context(), user, true)
			return err
		},
		"disabled and enabled": func(w *fixture, user string) error {
			_, err := w.Admin.SetDisabled(w.Context(), user, true)
			w.must(err)
			_, err = w.Admin.SetDisabled(w.Context(), user, false)
			return err
		},
		"a new password": func(w *fixture, user string) error {
			_, err := w.Admin.SetPassword(w.Context(), user, "a new password")
			return err
		},
		"deleted": func(w *fixture, user string) error { return w.Admin.DeleteUser(w.Context(), user) },
	} {
		w := newFixture(t, configuredApplications)
		user := w.register(ada, password).User.UUID
		e := exchangeOf(w.code(siteRedirect), siteRedirect)
		w.must(end(w, user))
		count := len(w.objects("Sessions"))
		_, err := w.Applications.Exchange(t.Context(), e, from)
		if disabled := errors.Is(err, sessions.ErrDisabled); disabled != (name == "disabled") {
			t.Errorf("%s: %v", name, err)
		}
		if name != "disabled" {
			w.wantProtocol(err, applications.InvalidGrant)
		}
		if len(w.objects("Sessions")) != count {
			t.Errorf("%s: a session", name)
		}
	}
	w := newFixture(t, configuredApplications)
	user := w.register(ada, password).User.UUID
	_, err := w.Admin.SetDisabled(t.Context(), user, true)
	w.must(err)
	issued, err := w.Login.Login(t.Context(), credentials(ada, password), w.forApplication(siteRedirect))
	if !errors.Is(err, sessions.ErrDisabled) || issued.Code != "" {
		t.Errorf("a disabled user gets a code: %+v, %v", issued, err)
	}
}

// Of exchanges in several processes at most one succeeds, and its session ends, since the code was used
// twice.
func TestConcurrentExchangesLeaveNoSession(t *testing.T) {
	w := newFixture(t, configuredApplications)
	w.register(ada, password)
	services := w.twoServices()
	for range 50 {
		e := exchangeOf(w.code(siteRedirect), siteRedirect)
		var won atomic.Pointer[sessions.Issued]
		concurrently(services, 4, func(_ int, s *account.Service) {
			in, err := s.Applications.Exchange(t.Context(), e, from)
			if err == nil && !won.CompareAndSwap(nil, &in) {
				t.Error("two exchanges succeeded")
			}
			w.allowKinds(err, errs.Invalid)
		})
		if in := won.Load(); in != nil && w.valid(in.Token) {
			t.Fatal("a session outlives a second use of its code")
		}
	}
}

// The second use comes before the session of the first is there to be ended.
func TestASecondUseEndsASessionThatIsBeingMade(t *testing.T) {
	w := newFixture(t, configuredApplications)
	w.register(ada, password)
	other := w.twoServices()[1]
	for name, right := range map[string]func(step) bool{
		"before the session": func(s step) bool { return s.store == "Sessions" && s.write != nil && !s.after },
		"after the session":  func(s step) bool { return s.store == "Sessions" && s.write != nil && s.after },
	} {
		e := exchangeOf(w.code(siteRedirect), siteRedirect)
		count := len(w.objects("Sessions"))
		w.backend.onStep(onceAt(right, func() {
			_, err := other.Applications.Exchange(t.Context(), e, from)
			w.wantProtocol(err, applications.InvalidGrant)
		}))
		in, err := w.Applications.Exchange(t.Context(), e, from)
		w.backend.onStep(nil)
		w.wantProtocol(err, applications.InvalidGrant)
		if in.Token != "" || len(w.objects("Sessions")) != count {
			t.Errorf("%s: %+v, %d sessions", name, in, len(w.objects("Sessions"))-count)
		}
	}
}

// If it is unknown whether the code was used twice, the session ends.
func TestAFailingBackendLeavesNoSessionOfACode(t *testing.T) {
	w := newFixture(t, configuredApplications)
	w.register(ada, password)
	e := exchangeOf(w.code(siteRedirect), siteRedirect)
	count := len(w.objects("Sessions"))
	saved := atomic.Bool{}
	w.backend.onStep(func(_ context.Context, s step) error {
		if s.store == "Sessions" && s.after {
			saved.Store(true)
		}
		if s.store == "Tokens" && saved.Load() {
			return errs.New(errs.Unavailable, "away")
		}
		return nil
	})
	_, err := w.Applications.Exchange(t.Context(), e, from)
	w.backend.onStep(nil)
	w.wantKind(err, errs.Unavailable)
	if len(w.objects("Sessions")) != count {
		t.Error("a session is left")
	}
}

func TestExchangesAreLimitedByAddress(t *testing.T) {
	w := newFixture(t, configuredApplications, limits(3, 0))
	w.register(ada, password)
	for range 5 { // those that succeed do not count
		_, err := w.Applications.Exchange(t.Context(), exchangeOf(w.code(siteRedirect), siteRedirect), from)
		w.must(err)
	}
	var err error
	for range 4 {
		_, err = w.Applications.Exchange(t.Context(), exchangeOf(account.NewSecret(), siteRedirect), from)
	}
	w.wantKind(err, errs.Limited)
}

// A flow ends where its redirect is not configured any more.
func TestAFlowNeedsItsRedirectToTheEnd(t *testing.T) {
	w := newFixture(t, configuredApplications, github)
	c := w.forApplication(siteRedirect)
	flow, err := w.Providers.Begin(t.Context(), "github", false, c)
	w.must(err)
	u, err := url.Parse(flow.URL)
	w.must(err)
	w.opts.Redirects = []string{schemeRedirect}
	later, _ := w.newService()
	issued, _, err := later.Login.FinishProvider(t.Context(),
		url.Values{"state": {u.Query().Get("state")}, "code": {"grace"}}, flow.Secret, from)
	w.wantKind(err, errs.Mismatch)
	if issued.Code != "" || issued.Application != nil {
		t.Errorf("issued: %+v", issued)
	}
}

// Neither what is stored nor what is published or logged has a code, a verifier or a challenge that could be used.
func TestCodesAreInNoRecordEventOrLog(t *testing.T) {
	w := newFixture(t, configuredApplications, github)
	w.register(ada, password)
	codes := []string{w.code(siteRedirect)}
	issued, err := w.loginByProvider("grace", w.forApplication(schemeRedirect))
	w.must(err)
	codes = append(codes, issued.Code)
	_, err = w.Applications.Exchange(t.Context(), exchangeOf(codes[0], siteRedirect), from)
	w.must(err)
	_, twice := w.Applications.Exchange(t.Context(), exchangeOf(codes[0], siteRedirect), from)
	_, wrong := w.Applications.Exchange(t.Context(), exchangeOf(codes[1], siteRedirect), from)
	w.Close()
	public := w.recorder.raw.String() + w.log.String() + fmt.Sprint(twice, wrong)
	for _, name := range []string{"Tokens", "Sessions", "Users", "Idents"} {
		for _, stored := range w.objects(name) {
			for _, secret := range append(codes, verifier) {
				if strings.Contains(string(stored.Body)+stored.UUID, secret) {
					t.Errorf("%s has a code or a verifier: %s", name, stored.Body)
				}
			}
		}
	}
	for _, secret := range append(codes, verifier, challengeOf(verifier), "the state of the application") {
		if strings.Contains(public, secret) {
			t.Errorf("%q is public: %s", secret, public)
		}
	}
	if !strings.Contains(w.log.String(), "used twice") {
		t.Errorf("a second use is not logged: %s", w.log)
	}

}
