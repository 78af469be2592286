package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/post"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/login"
	"belfry/pkg/httpkit"
	"belfry/pkg/mail"
	"belfry/test/kit/authenticator"
)

const (
	adasAddress  = "ada@example.com"
	adasPassword = "the password of ada"
)

// allPages are the options of a server with a page for all that links and forms lead to.
func allPages(o *login.Options) {
	o.SecondFactorRedirect, o.MailLoginRedirect, o.AddressRedirect, o.AccountRedirect = "/second", "/code", "/address",
		"/account"
	o.AccountPage = func(*httpkit.Exchange, *sessions.Session, login.AccountReply) ([]byte, string, error) {
		return []byte("codes"), "", nil
	}
}

// everyWayIn turns all ways to log in on, with limits that a few repetitions would reach if they counted.
func everyWayIn(o *account.Options) {
	o.Limits = config.Limits{Address: 30, Account: 3}
	o.Passkeys = &config.Passkeys{RPID: "belfry.example", RPName: "Belfry", Origins: []string{"http://belfry.example"}}
	text := func(subject string) *mail.Templates {
		t, err := mail.ParseTemplates(subject, "", "{{.Token}}")
		if err != nil {
			panic(err)
		}
		return t
	}
	o.Email.Change, o.Email.Undo = text("change"), text("undo")
	o.Email.Login = post.MailLogin{Code: true, Link: true, TTL: 10 * time.Minute, CodeMail: text("code"),
		LinkMail: text("link")}
}

// form sends an HTML form as a page of belfry does.
func (b *browser) form(path string, fields ...string) response {
	b.f.Helper()
	values := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		values.Set(fields[i], fields[i+1])
	}
	return b.request("POST", path, values.Encode(), "Content-Type", "application/x-www-form-urlencoded")
}

func (b *browser) follow(token string) response {
	b.f.Helper()
	return b.followTo(adasAddress, token)
}

func (b *browser) followTo(address, token string) response {
	b.f.Helper()
	return b.request("GET", "/auth/email/callback?"+url.Values{"login": {address}, "token": {token}}.Encode(), "")
}

// mailed has a mail requested, and returns its token.
func (b *browser) mailed(path, body, subject string) string {
	b.f.Helper()
	b.wantStatus(b.request("POST", path, body), http.StatusAccepted)
	return b.f.deliverMails(adasAddress, subject)
}

// registered registers Ada, and returns the browser.
func (b *browser) registered() *browser {
	b.f.Helper()
	b.wantStatus(b.register(adasAddress, adasPassword), http.StatusNoContent)
	return b
}

// oneUse makes the first use of something, in a browser, and returns how to send the same again.
type oneUse func(p *attackFixture, b *browser) (again func(*browser) response)

// firstThen sends something, and returns it to be sent again.
func firstThen(p *attackFixture, b *browser, send func(*browser) response) func(*browser) response {
	p.Helper()
	if p.unused {
		return send
	}
	first := send(b)
	if first.StatusCode >= 400 || strings.Contains(first.Header.Get("Location"), "reason=") {
		p.Fatalf("the first use fails: %d %s %s", first.StatusCode, first.Header.Get("Location"), first.text)
	}
	return send
}

const asked = `{"login":"` + adasAddress + `"}`

// twice are what can be sent twice, by the rows of the table of docs/reference/authentication.md.
var twice = map[string]struct {
	first bool // addresses are validated first
	led   bool // what is repeated is not what has used the secret up, or is no secret
	use   oneUse
}{
	"confirmation link": {use: func(p *attackFixture, b *browser) func(*browser) response {
		b.registered()
		token := p.deliverMails(adasAddress, "validate")
		return firstThen(p, b, func(b *browser) response { return b.follow(token) })
	}},
	"registration form with the mailed token": {first: true,
		use: func(p *attackFixture, b *browser) func(*browser) response {
			p.newBrowser().register(adasAddress, adasPassword)
			token := p.deliverMails(adasAddress, "validate")
			b.follow(token)
			return firstThen(p, b, func(b *browser) response {
				return b.form("/auth/email", "register", "true", "login", adasAddress, "password", adasPassword,
					"token", token)
			})
		}},
	"link to that form": {first: true, led: true, use: func(p *attackFixture, b *browser) func(*browser) response {
		p.newBrowser().register(adasAddress, adasPassword)
		token := p.deliverMails(adasAddress, "validate")
		b.follow(token)
		firstThen(p, b, func(b *browser) response {
			return b.form("/auth/email", "register", "true", "login", adasAddress, "password", adasPassword, "token",
				token)
		})
		return func(b *browser) response { return b.follow(token) }
	}},
	"registration form without a token": {led: true, use: func(p *attackFixture, b *browser) func(*browser) response {
		return firstThen(p, b, func(b *browser) response {
			return b.form("/auth/email", "register", "true", "login", adasAddress, "password", adasPassword)
		})
	}},
	"recovery form with the mailed token": {use: func(p *attackFixture, b *browser) func(*browser) response {
		p.newBrowser().registered()
		token := b.mailed("/auth/email/recovery", asked, "recover")
		b.follow(token)
		return firstThen(p, b, func(b *browser) response {
			return b.form("/auth/email/recovery", "login", adasAddress, "password", "another password", "token", token)
		})
	}},
	"link to the recovery form": {led: true, use: func(p *attackFixture, b *browser) func(*browser) response {
		p.newBrowser().registered()
		token := b.mailed("/auth/email/recovery", asked, "recover")
		b.follow(token)
		firstThen(p, b, func(b *browser) response {
			return b.form("/auth/email/recovery", "login", adasAddress, "password", "another password", "token", token)
		})
		return func(b *browser) response { return b.follow(token) }
	}},
	"mailed login code": {use: func(p *attackFixture, b *browser) func(*browser) response {
		p.newBrowser().registered()
		code := b.mailed("/auth/email/code", asked, "code")
		return firstThen(p, b, func(b *browser) response {
			return b.form("/auth/email/code", "login", adasAddress, "code", code)
		})
	}},
	"button of a mailed login link": {use: useLink(func(b *browser, token string) response {
		return b.form("/auth/email/code", "login", adasAddress, "token", token)
	})},
	"link to that button": {led: true, use: useLink((*browser).follow)},
	"button that confirms an address": {use: changed("change", func(b *browser, token string) response {
		return b.form("/auth/email/address", "login", "new@example.com", "token", token)
	})},
	"button that undoes a change": {use: changed("undo", func(b *browser, token string) response {
		return b.form("/auth/email/address", "login", adasAddress, "token", token)
	})},
	"button that keeps a change": {use: changed("undo", func(b *browser, token string) response {
		return b.form("/auth/email/address", "login", adasAddress, "token", token, "keep", "true")
	})},
	"provider's callback": {use: func(p *attackFixture, b *browser) func(*browser) response {
		state := b.redirect()
		return firstThen(p, b, func(b *browser) response {
			return b.request("GET",
				"/auth/callback?code=ada&state="+state, "")
		})
	}},
	"second factor": {use: func(p *attackFixture, b *browser) func(*browser) response {
		code := p.enroll(p.newBrowser().registered())
		b.form("/auth/email", "login", adasAddress, "password", adasPassword)
		return firstThen(p, b, func(b *browser) response {
			return b.form("/auth/second-factor", "type", "recovery",
				"code", code)
		})
	}},
	"passkey that logs in": {use: func(p *attackFixture, b *browser) func(*browser) response {
		key := p.addPasskey(p.newBrowser().registered())
		options := b.wantStatus(b.request("POST", "/auth/passkey/options", ""), http.StatusOK).text
		answer := string(key.Get([]byte(options)))
		return firstThen(p, b, func(b *browser) response { return b.form("/auth/passkey", "credential", answer) })
	}},
	"passkey that is added": {use: func(p *attackFixture, b *browser) func(*browser) response {
		b.registered()
		key := authenticator.New(p.T, authenticator.ES256, "http://belfry.example")
		options := b.wantStatus(b.request("POST", "/auth/passkeys/registration", ""), http.StatusOK).text
		answer := string(key.Create([]byte(options)))
		return firstThen(p, b, func(b *browser) response {
			return b.form("/auth/passkeys", "name", "Laptop",
				"credential", answer)
		})
	}},
	"password change form": {led: true,
		use: accountForm("password", adasPassword, "newPassword", "another password")("/auth/email")},
}

func useLink(again func(b *browser, token string) response) oneUse {
	return func(p *attackFixture, b *browser) func(*browser) response {
		p.newBrowser().registered()
		token := b.mailed("/auth/email/code", `{"login":"`+adasAddress+`","kind":"link"}`, "link")
		b.follow(token)
		firstThen(p, b, func(b *browser) response {
			return b.form("/auth/email/code", "login", adasAddress, "token", token)
		})
		return func(b *browser) response { return again(b, token) }
	}
}

func changed(subject string, send func(b *browser, token string) response) oneUse {
	return func(p *attackFixture, b *browser) func(*browser) response {
		b.registered().follow(p.deliverMails(adasAddress, "validate"))
		body := fmt.Sprintf(`{"address":"new@example.com","password":%q}`, adasPassword)
		b.wantStatus(b.request("PUT", "/auth/idents/"+adasAddress+"_email/address", body), http.StatusAccepted)
		to := adasAddress
		if subject == "change" {
			to = "new@example.com"
		}
		token := p.deliverMails(to, subject)
		b.followTo(to, token)
		return firstThen(p, b, func(b *browser) response { return send(b, token) })
	}
}

func accountForm(fields ...string) func(path string) oneUse {
	return func(path string) oneUse {
		return func(p *attackFixture, b *browser) func(*browser) response {
			b.registered()
			return firstThen(p, b, func(b *browser) response { return b.form(path, fields...) })
		}
	}
}

// enroll adds an app as the second factor of who is logged in, and returns a recovery code.
func (p *attackFixture) enroll(b *browser) string {
	p.Helper()
	var app struct{ Secret string }
	p.must(json.Unmarshal([]byte(b.wantStatus(b.request("POST", "/auth/factors/totp", ""), http.StatusOK).text), &app))
	var added struct{ RecoveryCodes []string }
	code, err := totp.GenerateCode(app.Secret, time.Now())
	p.must(err)
	p.must(json.Unmarshal([]byte(b.wantStatus(b.request("PUT", "/auth/factors/totp", fmt.Sprintf(`{"code":%q}`, code)),
		http.StatusOK).text), &added))
	return added.RecoveryCodes[0]
}

// addPasskey adds a passkey to the account of who is logged in.
func (p *attackFixture) addPasskey(b *browser) *authenticator.Credential {
	p.Helper()
	key := authenticator.New(p.T, authenticator.ES256, "http://belfry.example")
	options := b.wantStatus(b.request("POST", "/auth/passkeys/registration", ""), http.StatusOK).text
	b.wantStatus(b.request("POST", "/auth/passkeys", `{"credential":`+string(key.Create([]byte(options)))+`}`),
		http.StatusCreated)
	return key
}

// secondClicks returns the table of docs/reference/authentication.md: what a row's repetition gets from the same
// browser, and from another one.
func secondClicks(t *testing.T) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/reference/authentication.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## Sent twice\n")
	section, _, _ = strings.Cut(section, "\n## ")
	places := strings.NewReplacer("`", "", "successRedirect", "/in", "failureRedirect", "/out", "recoveryRedirect",
		"/again",
		"mailLoginRedirect", "/code", "addressRedirect", "/address", "accountRedirect", "/account",
		"secondFactorRedirect", "/second")
	rows := map[string][2]string{}
	for line := range strings.Lines(section) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) == 5 && strings.Contains(cells[2], "`") {
			rows[strings.TrimSpace(cells[1])] = [2]string{places.Replace(strings.TrimSpace(cells[2])),
				places.Replace(strings.TrimSpace(cells[3]))}
		}
	}
	if len(rows) == 0 {
		t.Fatal("docs/reference/authentication.md has no table of what is sent twice")
	}
	return rows
}

// setsCookie reports whether a reply sets a cookie that is not empty.
func (r response) setsCookie() bool {
	return slices.ContainsFunc(r.Cookies(), func(c *http.Cookie) bool { return c.MaxAge >= 0 })
}

// isPlace reports whether a redirect leads to a place of the table. What the client has sent itself may be in its
// query.
func isPlace(location, want string) bool {
	to, err := url.Parse(location)
	if err != nil {
		return false
	}
	query := to.Query()
	query.Del("login")
	expected, err := url.Parse(want)
	return err == nil && to.Path == expected.Path && query.Encode() == expected.Query().Encode()
}

// What is sent twice gets what the table of docs/reference/authentication.md says: no session, no cookie, nothing about
// the account, and it never counts as a wrong guess, in whatever process.
func TestWhatIsSentTwice(t *testing.T) {
	rows := secondClicks(t)
	for row := range rows {
		if _, ok := twice[row]; !ok {
			t.Errorf("the row %q has no test", row)
		}
	}
	for row, c := range twice {
		t.Run(row, func(t *testing.T) {
			want, ok := rows[row]
			if !ok {
				t.Fatal("no row in docs/reference/authentication.md")
			}
			change := []any{everyWayIn, allPages, func(o *account.Options) {
				o.Email.PostValidation = !c.first
			}}
			p := newAttackFixture(t, change...)
			own, other := p.newBrowser(), p.newBrowser()
			again := c.use(p, own)
			p.serve(account.New(p.opts)) // another process
			sessions := p.countSessions()
			for range 40 {
				r := again(own)
				if !isPlace(r.Header.Get("Location"), want[0]) || r.setsCookie() {
					t.Fatalf("the same browser: %d %s %v, want %s", r.StatusCode, r.Header.Get("Location"), r.Cookies(),
						want[0])
				}
			}
			times := 40
			// An attempt of its own.
			if strings.HasSuffix(want[1], "reason=denied") || strings.HasSuffix(want[1], "reason=taken") {
				times = 1
			}
			for range times {
				r := again(other)
				if !isPlace(r.Header.Get("Location"), want[1]) || r.setsCookie() {
					t.Fatalf("another browser: %d %s %v, want %s", r.StatusCode, r.Header.Get("Location"), r.Cookies(),
						want[1])
				}
			}
			if n := p.countSessions(); n != sessions {
				t.Errorf("%d sessions, %d before", n, sessions)
			}
			if who := other.currentUser(); who != "" {
				t.Errorf("another browser is logged in as %s", who)
			}
		})
	}
}

func (p *attackFixture) countSessions() (n int) {
	p.Helper()
	for _, err := range p.sessions.All(p.Context(), 100) {
		p.must(err)
		n++
	}
	return n
}

// Of several at once, as of a double click, one is the first, and the others lead to where it does.
func TestWhatIsSentTwiceAtOnce(t *testing.T) {
	rows := secondClicks(t)
	for row, c := range twice {
		if c.led {
			continue
		}
		t.Run(row, func(t *testing.T) {
			p := newAttackFixture(t, everyWayIn, allPages,
				func(o *account.Options) { o.Email.PostValidation = !c.first })
			p.unused = true
			own := p.newBrowser()
			send := c.use(p, own)
			sessions := p.countSessions()
			replies := make([]response, 4)
			var all sync.WaitGroup
			for i := range replies {
				all.Go(func() { replies[i] = send(own) })
			}
			all.Wait()
			cookies := 0
			for _, r := range replies {
				if len(r.Cookies()) > 0 { // set, or removed
					cookies++
				}
				if !isPlace(r.Header.Get("Location"), rows[row][0]) {
					t.Errorf("%d %s, want %s", r.StatusCode, r.Header.Get("Location"), rows[row][0])
				}
			}
			if cookies > 1 {
				t.Errorf("%d replies have cookies", cookies)
			}
			if n := p.countSessions(); n > sessions+1 {
				t.Errorf("%d sessions more", n-sessions)
			}
		})
	}
}

// The cookie by which the browser of a repetition is known is no secret of the account: who has set it in another
// browser, or has copied it, is redirected, and no more.
func TestTheCookieOfRepetitionsGivesNothing(t *testing.T) {
	c := twice["registration form with the mailed token"]
	p := newAttackFixture(t, everyWayIn, allPages, withValidationFirst)
	victim, thief := p.newBrowser(), p.newBrowser()
	again := c.use(p, victim)
	at, err := url.Parse(p.URL)
	p.must(err)
	for _, cookie := range victim.Jar.Cookies(at) {
		if cookie.Name == "belfry-once" {
			thief.Jar.SetCookies(at, []*http.Cookie{cookie})
		}
	}
	if len(thief.Jar.Cookies(at)) != 1 {
		t.Fatal("the browser has no cookie of repetitions")
	}
	if r := again(thief); r.Header.Get("Location") != "/in?validation=email" || len(r.Cookies()) > 0 {
		t.Errorf("%s %v", r.Header.Get("Location"), r.Cookies())
	}
	if who := thief.currentUser(); who != "" {
		t.Errorf("logged in as %s", who)
	}
	thief.wantStatus(thief.request("GET", "/auth/sessions", ""), http.StatusUnauthorized)
}

// A program gets a problem, or in the browser of the first use the status of that, and no token in either case.
func TestWhatAProgramSendsTwice(t *testing.T) {
	p := newAttackFixture(t, everyWayIn, withValidationFirst)
	own := p.newBrowser()
	own.register(adasAddress, adasPassword)
	token := p.deliverMails(adasAddress, "validate")
	own.follow(token)
	again := func(b *browser) response {
		return b.register(adasAddress, adasPassword, fmt.Sprintf(`"token":%q`, token))
	}
	own.wantStatus(again(own), http.StatusNoContent)
	r := own.wantStatus(again(own), http.StatusNoContent)
	if len(r.Cookies()) > 0 {
		t.Errorf("cookies %v", r.Cookies())
	}
	other := p.newBrowser()
	r = other.wantStatus(again(other), http.StatusForbidden)
	if len(r.Cookies()) > 0 || !strings.Contains(r.text, "the address is registered") ||
		strings.Contains(r.text, adasAddress) {
		t.Errorf("%s %v", r.text, r.Cookies())
	}
}

// The page of a registration gives a browser the cookie by which the first of two forms is known, whose reply a double
// click loses. It gives it once, and to no page that has no need of it.
func TestTheFormOfAPageThatIsSentTwiceWhoseFirstReplyIsLost(t *testing.T) {
	f := startBelow(t, "http")
	cookies := f.Do("GET", "/register", "").Want(200).Cookies()
	if len(cookies) != 1 || cookies[0].Name != "belfry-once" || cookies[0].MaxAge != 3600 {
		t.Fatalf("the page sets %v", cookies)
	}
	once := "belfry-once=" + cookies[0].Value
	f.Do("GET", "/register", "", "Cookie", once).Want(200).HasHeader("Set-Cookie", "")
	for _, path := range []string{"/login", "/recovery", "/register?login=a&token=b"} {
		f.Do("GET", path, "").Want(200).HasHeader("Set-Cookie", "")
	}
	form := "register=true&login=eve@example.com&password=a+fine+password"
	send := func(cookie string) apitest.Reply {
		return f.Do("POST", "/auth/email", form, "Content-Type", "", "Content-Type", formType, "Cookie",
			cookie).Want(303)
	}
	send(once).HasHeader("Location", below+"/?validation=email")
	send(once).HasHeader("Location", below+"/?validation=email").HasHeader("Set-Cookie", "")
	send("").HasHeader("Location", below+"/login-failed?reason=taken").HasHeader("Set-Cookie", "")
}
