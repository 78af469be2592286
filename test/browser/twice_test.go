package browser

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"belfry/test/kit"
	"belfry/test/mailbox"
	"belfry/test/provider"
)

// recorder is a proxy that remembers replies, and can hold back that to the first of two forms.
type recorder struct {
	URL string

	mu     sync.Mutex
	seen   []recorded
	held   string        // path of the forms
	posted int           // forms to it
	second chan struct{} // closed when the second of them arrives
}

// numbered is the key of the number of a form in the context of its request.
type numbered struct{}

// recorded is a request and its reply.
type recorded struct {
	number         int // of a form to the path of hold, in the order in which they arrive
	method, target string
	status         int
	location       string
	cookies        []string // lines that set or remove one
}

func record(t *testing.T, port int) *recorder {
	t.Helper()
	r := &recorder{second: make(chan struct{})}
	// belfry never learns that the browser has canceled a request.
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	proxy.ModifyResponse = func(res *http.Response) error {
		r.mu.Lock()
		req := res.Request
		number, _ := req.Context().Value(numbered{}).(int)
		r.seen = append(r.seen, recorded{number, req.Method, req.URL.RequestURI(), res.StatusCode,
			res.Header.Get("Location"), res.Header.Values("Set-Cookie")})
		second := r.second
		r.mu.Unlock()
		if number == 1 && second != nil {
			select {
			case <-second:
			case <-t.Context().Done():
			}
		}
		return nil
	}
	proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // the end of the test
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return // the browser has canceled the request before all of it was sent
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		// The proxy looks for the end of the connection itself where a context can't be canceled.
		ctx, done := context.WithCancel(context.WithoutCancel(req.Context()))
		defer done()
		r.mu.Lock()
		if req.Method == http.MethodPost && req.URL.Path == r.held {
			if r.posted++; r.posted == 2 {
				close(r.second)
			}
			ctx = context.WithValue(ctx, numbered{}, r.posted)
		}
		r.mu.Unlock()
		proxy.ServeHTTP(w, req.WithContext(ctx))
	}))
	t.Cleanup(server.Close)
	r.URL = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	return r
}

// hold has the reply to the next form to a path wait for another form to it.
func (r *recorder) hold(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.posted, r.second = path, 0, make(chan struct{})
}

// to returns what was sent to a path, since the last call.
func (r *recorder) to(path string) (all []recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.seen {
		if at, _, _ := strings.Cut(one.target, "?"); at == path {
			all = append(all, one)
		}
	}
	r.seen = nil
	return all
}

func (r *recorder) forget() { r.to("") }

// twice is a belfry behind a recorder, and a tab.
type twice struct {
	*fixture
	browser context.Context
	replies *recorder
	mails   *mailbox.Server
	read    map[string]int // mails that were read, by address
}

func startTwice(t *testing.T, browser context.Context, postValidation bool, settings string) *twice {
	t.Helper()
	port, providers := kit.FreePort(t), provider.Start(t)
	w := &twice{
		fixture: &fixture{top: t, folder: t.TempDir(), worksOnly: true},
		browser: browser, replies: record(t, port), mails: mailbox.Start(t), read: map[string]int{},
	}
	providers.Register(w.replies.URL + "/auth/callback")
	github := providers.Config("github")
	w.write(t, "belfry.yaml", fmt.Appendf(nil, `
listen: 127.0.0.1:%d
baseURL: %s
bus: {listen: "127.0.0.1:0"}
stores: {Users: {expose: {}}}
mailers: {default: {type: smtp, host: localhost, port: %d, tls: none}}
authentication:
  passkeys: {}
  providers:
    email: {postValidation: %t, %slogin: {code: true, link: true, codeMail: {subject: "{{.Token}}"}, linkMail: {text: "{{.Link}}"}}}
    github: {clientID: %q, clientSecret: %q, authURL: %q, tokenURL: %q, profileURL: %q}
`, port, w.replies.URL, w.mails.Port, postValidation, settings, github.ClientID, github.ClientSecret, github.AuthURL,
		github.TokenURL, github.ProfileURL))
	w.serve(t)
	w.URL = w.replies.URL
	w.openTab(t, browser)
	return w
}

// elsewhere returns a tab with cookies of its own.
func (w *twice) elsewhere(t *testing.T) *fixture {
	t.Helper()
	other := &fixture{URL: w.URL, worksOnly: true}
	other.openTab(t, w.browser)
	return other
}

// mail returns the next mail to an address.
func (w *twice) mail(t *testing.T, to string) mailbox.Mail {
	t.Helper()
	w.read[to]++
	return w.mails.Await(t, to, w.read[to])[w.read[to]-1]
}

// doubleClick presses a button, and again before the reply to the first form has arrived, which is then lost. It
// returns the replies to all forms: a browser on a slow machine may send a third.
func (w *twice) doubleClick(t *testing.T, button, path string) (first recorded, others []recorded) {
	t.Helper()
	w.replies.forget()
	w.replies.hold(path)
	// Chromium answers no command while a page is on its way, so the page itself presses the button.
	evaluate[bool](t, w.fixture, fmt.Sprintf(`(() => {
		window.clicked = true;
		const button = [...document.querySelectorAll("main button")].find(b => b.textContent.trim() === %q && b.checkVisibility());
		const press = wait => setTimeout(() => { button.click(); press(2 * wait); }, wait);
		press(100);
		return button !== undefined;
	})()`, button))
	var all []recorded
	w.until(t, func() error {
		all = append(all, w.replies.to(path)...)
		w.replies.mu.Lock()
		defer w.replies.mu.Unlock()
		if posts := w.replies.posted; len(all) < 2 || len(all) < posts {
			return fmt.Errorf("the form to %s was sent %d times, and answered %d times", path, posts, len(all))
		}
		return nil
	})
	// Not before: a command that is sent while a page is on its way can be lost.
	w.until(t, func() error {
		arrived, err := attempt[bool](w.fixture, `!window.clicked && document.readyState === "complete"`)
		if err == nil && !arrived {
			err = errors.New("the form has not led to another page")
		}
		return err
	})
	all = append(all, w.replies.to(path)...)
	w.replies.hold("")
	slices.SortFunc(all, func(a, b recorded) int { return a.number - b.number })
	return all[0], all[1:]
}

// leads checks where a reply leads, and that it sets no cookie and removes none.
func (r recorded) leads(t *testing.T, to string) {
	t.Helper()
	if r.location != to || len(r.cookies) > 0 {
		t.Errorf("%s %s: %d to %s with %q, want %s", r.method, r.target, r.status, r.location, r.cookies, to)
	}
}

// again goes back to a form, and sends it once more.
func (w *twice) again(t *testing.T, path string, send func()) recorded {
	t.Helper()
	w.run(t, chromedp.NavigateBack(), chromedp.WaitReady(chromedp.CSS("main")))
	w.replies.forget()
	send()
	return w.await(t, path)
}

// What people and scanners of mails do twice, in a browser: nothing happens the second time, and it is no error.
func TestSentTwice(t *testing.T) {
	browser := openBrowser(t)
	for name, c := range map[string]struct {
		first    bool   // addresses are validated first
		settings string // of the provider email
		part     func(*twice, *testing.T)
	}{
		"a registration":                      {part: (*twice).testRegistration},
		"a link that a scanner has opened":    {part: (*twice).testScanned},
		"a login":                             {part: (*twice).testLogin},
		"a login by mail":                     {settings: "mailInterval: 0s, ", part: (*twice).testMailLogin},
		"a new password":                      {part: (*twice).testNewPassword},
		"a second factor":                     {part: (*twice).testFactor},
		"a callback":                          {part: (*twice).testCallback},
		"passkeys in two tabs":                {part: (*twice).testTabs},
		"a registration, with a scanned link": {first: true, part: (*twice).testValidatedFirst},
	} {
		t.Run(name, func(t *testing.T) {
			w := startTwice(t, browser, !c.first, c.settings)
			c.part(w, t)
			w.checkComplaints(t)
		})
	}
}

// scan opens a link as scanners of mails do: it follows redirects, keeps cookies, and sends the forms of the page that
// it finds.
func (w *twice) scan(t *testing.T, link string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	page := get(t, client, link)
	for _, form := range postForm.FindAllStringSubmatch(page, -1) {
		fields := url.Values{}
		for _, field := range formField.FindAllStringSubmatch(form[2], -1) {
			fields.Set(field[1], html.UnescapeString(field[2]))
		}
		res, err := client.PostForm(w.URL+form[1], fields)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
}

var (
	postForm  = regexp.MustCompile(`(?s)<form method="post" action="([^"]*)"[^>]*>(.*?)</form>`)
	formField = regexp.MustCompile(`<input [^>]*name="([^"]*)"[^>]*value="([^"]*)"`)
)

func get(t *testing.T, client *http.Client, link string) string {
	t.Helper()
	res, err := client.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// path returns a link without the base URL.
func (w *twice) path(t *testing.T, link string) string {
	t.Helper()
	path, ok := strings.CutPrefix(link, w.URL)
	if !ok {
		t.Fatalf("the link is %s", link)
	}
	return path
}

func (w *twice) register(t *testing.T, login string) {
	t.Helper()
	w.open(t, "/register")
	w.fill(t, "#login", login)
	w.fill(t, "#password", password)
}

// registered registers, and logs out.
func (w *twice) registered(t *testing.T) {
	t.Helper()
	w.register(t, address)
	w.press(t, "Register")
	w.shows(t, "Welcome, ")
	w.press(t, "Log out")
	w.shows(t, "belfry is running")
	w.mail(t, address)
}

func (w *twice) testRegistration(t *testing.T) {
	w.register(t, address)
	_, others := w.doubleClick(t, "Register", "/auth/email")
	for _, r := range others {
		r.leads(t, "/?validation=email")
	}
	w.shows(t, "you can log in with it") // the session of the first was in the reply that was lost
	w.enterPassword(t, password)
	w.shows(t, "Welcome, ")
	w.press(t, "Log out")
	w.shows(t, "belfry is running")

	w.register(t, "bob@example.com")
	w.press(t, "Register")
	w.shows(t, "Welcome, ")
	w.again(t, "/auth/email", func() {
		w.fill(t, "#login", "bob@example.com")
		w.fill(t, "#password", password)
		w.press(t, "Register")
	}).leads(t, "/?validation=email")
	w.shows(t, "Welcome, ")
}

func (w *twice) testScanned(t *testing.T) {
	w.register(t, address)
	w.press(t, "Register")
	w.shows(t, "Welcome, ")
	link := w.mail(t, address).Link()
	w.scan(t, link)
	w.replies.forget()
	stranger := w.elsewhere(t)
	for range 2 {
		for _, f := range []*fixture{w.fixture, stranger} {
			f.open(t, w.path(t, link))
			f.shows(t, "This e-mail address is confirmed.")
			f.shows(t, "That is done already")
		}
	}
	for _, r := range w.replies.to("/auth/email/callback") {
		r.leads(t, "/login-failed?done=confirmed&reason=token")
	}
	w.open(t, "/account")
	w.shows(t, address) // the session has not ended
	stranger.checkComplaints(t)
}

func (w *twice) testLogin(t *testing.T) {
	w.registered(t)
	w.open(t, "/login")
	w.fill(t, "#login", address)
	w.fill(t, "#password", password)
	w.doubleClick(t, "Log in", "/auth/email") // a login by a password is another one
	w.shows(t, "Welcome, ")
}

func (w *twice) testMailLogin(t *testing.T) {
	w.registered(t)
	for _, kind := range []string{"code", "link"} {
		w.open(t, "/login/mail")
		w.fill(t, "#login", address)
		if kind == "link" {
			evaluate[bool](t,
				w.fixture, `(document.querySelector("form").insertAdjacentHTML("beforeend", '<input type="hidden" name="kind" value="link">'), true)`)
		}
		w.press(t, "Send the mail")
		w.shows(t, "we have sent a mail")
		mail := w.mail(t, address)
		if kind == "code" {
			w.fill(t, "#code", mail.Subject)
		} else {
			w.scan(t, mail.Link())
			w.open(t, w.path(t, mail.Link()))
			w.shows(t, "You log in as "+address)
		}
		_, others := w.doubleClick(t, "Log in", "/auth/email/code")
		for _, r := range others {
			r.leads(t, "/?validation=email")
		}
	}
}

func (w *twice) testNewPassword(t *testing.T) {
	w.registered(t)
	w.open(t, "/recovery")
	w.fill(t, "#login", address)
	_, others := w.doubleClick(t, "Send the mail", "/auth/email/recovery")
	for _, r := range others {
		r.leads(t, "/recovery?mail=sent")
	}
	w.shows(t, "we have sent a mail")
	link := w.mail(t, address).Link()
	w.scan(t, link)
	w.open(t, w.path(t, link))
	w.fill(t, "#password", "another password")
	_, others = w.doubleClick(t, "Set the password", "/auth/email/recovery")
	for _, r := range others {
		r.leads(t, "/recovery?password=set")
	}
	w.shows(t, "Log in with the new password.")
	w.replies.forget()
	w.open(t, w.path(t, link))
	w.shows(t, "Log in with the new password.")
	w.replies.to("/auth/email/callback")[0].leads(t, "/recovery?password=set")
	stranger := w.elsewhere(t)
	stranger.open(t, w.path(t, link))
	stranger.shows(t, "A new password was set by this link.")
	w.enterPassword(t, "another password")
	w.shows(t, "Welcome, ")
}

func (w *twice) testFactor(t *testing.T) {
	secret, _ := w.enroll(t, address)
	w.enterPassword(t, password)
	w.at(t, "/second-factor?factors=totp+recovery")
	code, err := totp.GenerateCode(secret, time.Now().Add(30*time.Second)) // the one of now was used
	if err != nil {
		t.Fatal(err)
	}
	w.fill(t, "#code", code)
	_, others := w.doubleClick(t, "Log in", "/auth/second-factor")
	for _, r := range others {
		r.leads(t, "/?validation=email")
	}
	w.open(t, "/account")
	w.shows(t, "Log in to see your account.") // the session of the first was in the reply that was lost
}

func (w *twice) testCallback(t *testing.T) {
	w.open(t, "/login")
	w.replies.forget()
	w.press(t, "Continue with GitHub")
	w.shows(t, "Welcome, ")
	first := w.replies.to("/auth/callback")[0]
	stranger := w.elsewhere(t)
	for range 2 {
		w.open(t, first.target)
		w.shows(t, "Welcome, ")
		w.replies.to("/auth/callback")[0].leads(t, "/?validation=github")
		stranger.open(t, first.target)
		stranger.shows(t, "This login is finished.")
		w.replies.to("/auth/callback")[0].leads(t, "/login-failed?done=login&reason=state")
	}
	w.run(t, chromedp.NavigateBack(), chromedp.WaitReady(chromedp.CSS("main")))
	w.open(t, "/account")
	w.shows(t, "Log out")
}

// testTabs has two tabs ask for a challenge each, and answers them in either order.
func (w *twice) testTabs(t *testing.T) {
	one := &account{fixture: w.fixture}
	w.register(t, address)
	w.press(t, "Register")
	w.shows(t, "Welcome, ")
	tab, closeTab := chromedp.NewContext(w.tab)
	t.Cleanup(closeTab)
	if err := chromedp.Do(tab); err != nil {
		t.Fatal(err)
	}
	other := &account{fixture: &fixture{URL: w.URL, worksOnly: true, tab: tab}}
	tabs := []*account{one, other}
	for i, a := range tabs { // Chromium has the authenticators of a test for one tab
		a.addAuthenticator(t)
		a.open(t, "/account")
		a.fill(t, "#name", fmt.Sprintf("Key %d", i))
		a.press(t, "Add a passkey")
		a.shows(t, "The passkey is added.")
		call(t, a.fixture, emulation.SetFocusEmulationEnabled, emulation.SetFocusEmulationEnabledParams{Enabled: true})
	}
	w.press(t, "Log out")
	w.shows(t, "belfry is running")
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		w.replies.forget()
		for _, a := range tabs {
			a.open(t, "/login")
			evaluate[bool](t, a.fixture, `(() => {
				const answer = navigator.credentials.get.bind(navigator.credentials);
				const gate = new Promise(opened => { window.touch = opened; });
				navigator.credentials.get = options => gate.then(() => answer(options));
				return true;
			})()`)
			a.press(t, "Log in with a passkey")
			w.await(t, "/auth/passkey/options")
		}
		for _, i := range order {
			evaluate[bool](t, tabs[i].fixture, `(window.touch(), true)`)
			tabs[i].at(t, "/?validation=passkey")
			for _, r := range w.replies.to("/auth/passkey") {
				for _, line := range r.cookies {
					if strings.HasPrefix(line, "belfry-passkey-") {
						t.Errorf("the answer of a tab sets or removes %s", line)
					}
				}
			}
		}
	}
}

// await waits until something was sent to a path.
func (w *twice) await(t *testing.T, path string) recorded {
	t.Helper()
	var all []recorded
	w.until(t, func() error {
		if all = append(all, w.replies.to(path)...); len(all) == 0 {
			return fmt.Errorf("nothing was sent to %s", path)
		}
		return nil
	})
	return all[0]
}

func (w *twice) testValidatedFirst(t *testing.T) {
	w.open(t, "/register")
	w.fill(t, "#login", address)
	_, others := w.doubleClick(t, "Send the mail", "/auth/email/validation")
	for _, r := range others {
		r.leads(t, "/register?mail=sent")
	}
	w.shows(t, "We have sent you a mail.")
	link := w.mail(t, address).Link()
	w.scan(t, link)
	w.open(t, w.path(t, link))
	w.fill(t, "#password", password)
	_, others = w.doubleClick(t, "Register", "/auth/email")
	for _, r := range others {
		r.leads(t, "/?validation=email")
	}
	w.shows(t, "you can log in with it")
	stranger := w.elsewhere(t)
	stranger.open(t, w.path(t, link))
	stranger.shows(t, "This e-mail address is registered.")
	w.enterPassword(t, password)
	w.shows(t, "Welcome, ")
}
