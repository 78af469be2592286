package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/keys"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

const stepUpURL = "/console/step-up"

// named returns the events of a name.
func (e *recordUsers) named(name event.Name) (all []event.Envelope) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, one := range e.all {
		if one.Event == name {
			all = append(all, one)
		}
	}
	return all
}

func TestAnAdminResetsSecondFactorsAfterARecentLogin(t *testing.T) {
	t.Parallel()
	c, events := &clock{}, recordUsers{}
	f := startUsers(t, c.use, func(o *account.Options) {
		o.Users = o.Users.WithOptions(func(o *store.Options) { o.Outbox = &events })
	})
	p, bobs := f.enroll(c, f.User)
	uuid := f.uuidOf(bob)
	page, referer := "/console/users/"+uuid, "http://belfry.example.org/console/users/"+uuid
	shows(t, is(t, f.get(f.Admin, page), http.StatusOK), "Authenticator app", "10 left", "Reset the second factors",
		`action="`+page+`/factors"`, "Optional: users who have one", "password, totp", "AAL 2")
	shows(t, is(t, f.get(f.Admin, "/console/users"), http.StatusOK), `<span class="tag">second factor</span>`)
	for _, secret := range []string{p.secret, "_factors", p.codes[0]} {
		if strings.Contains(f.get(f.Admin, page).Text, secret) {
			t.Errorf("the page shows %q", secret)
		}
	}

	c.advance(11 * time.Minute)
	events.reset()
	leads(t, f.post(f.Admin, page+"/factors", ""), stepUpURL) // from no page of the console
	leads(t, f.post(f.Admin, page+"/factors", "", "Referer", "http://belfry.example.org/auth"), stepUpURL)
	r := f.post(f.Admin, page+"/factors", "", "Referer", referer)
	leads(t, r, stepUpURL+"?next="+url.QueryEscape(page))
	if a := f.account(bob); !a.HasFactor || len(events.named(event.AuthFactorRemoved)) != 0 {
		t.Fatalf("an old session resets second factors: %+v", a)
	}
	form := is(t, f.get(f.Admin, r.Header.Get("Location")), http.StatusOK)
	shows(t, form, "Nothing has been changed yet", `for="password"`, `value="`+page+`"`)
	shows(t, is(t, f.post(f.Admin, stepUpURL, "password=wrong&next="+page), http.StatusForbidden),
		"the password is not that of your account", `value="`+page+`"`)
	is(t, f.post(f.Admin, stepUpURL, ""), http.StatusBadRequest)
	r = f.post(f.Admin, stepUpURL, "password=a+fine+password&next="+page)
	leads(t, r, page)
	fresh := apitest.Token(r)
	f.Auth.Close() // waits for the end of the session that was replaced
	f.Me(f.Admin).Want(http.StatusUnauthorized)

	leads(t, f.post(fresh, page+"/factors", ""), page)
	shows(t, is(t, f.get(fresh, page), http.StatusOK), "No second factor.")
	removed := events.named(event.AuthFactorRemoved)
	if len(removed) != 1 || removed[0].Actor == nil || *removed[0].Actor != f.uuidOf(ada) || removed[0].UUID != uuid ||
		removed[0].Origin != event.OriginHTTP {
		t.Fatalf("events %+v", removed)
	}
	var details event.AuthDetails
	if err := json.Unmarshal(removed[0].Auth, &details); err != nil || details.Factor != "all" ||
		details.Reason != "reset" {
		t.Errorf("%v %+v", err, details)
	}
	f.Me(bobs).Want(http.StatusUnauthorized)
	f.LogIn(bob, "another password")
	is(t, f.post(fresh, "/console/users/none/factors", ""), http.StatusNotFound)
}

// An admin who reset their own second factors would weaken their account past the account's own protection; those of
// another admin can be lost, too.
func TestAnAdminResetsTheSecondFactorsOfOtherAdminsAlone(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f := startUsers(t, c.use)
	_, adas := f.enroll(c, f.Admin)
	own := "/console/users/" + f.uuidOf(ada)
	if r := is(t, f.get(adas, own), http.StatusOK); strings.Contains(r.Text,
		"Reset the second factors") || !strings.Contains(r.Text, "You can&#39;t reset your own") &&
		!strings.Contains(r.Text, "You can't reset your own") {
		t.Errorf("the own page: %s", r.Text)
	}
	shows(t, is(t, f.post(adas, own+"/factors", ""), http.StatusConflict), "reset your own second factors")
	if !f.account(ada).HasFactor {
		t.Error("they are reset")
	}
	_, err := f.Auth.Admin.SetAdmin(t.Context(), f.uuidOf(bob), true)
	f.Must(err)
	f.enroll(c, f.User)
	leads(t, f.post(adas, "/console/users/"+f.uuidOf(bob)+"/factors", ""), "/console/users/"+f.uuidOf(bob))
	if f.account(bob).HasFactor {
		t.Error("they are not reset")
	}
}

// A password alone is not enough for who has a second factor.
func TestAnAdminStepsUpByTheSecondFactor(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f := startUsers(t, c.use)
	weak := f.LogIn(ada, adasPassword)
	p, strong := f.enroll(c, f.Admin)
	_, bobs := f.enroll(c, f.User)
	reset := "/console/users/" + f.uuidOf(bob) + "/factors"
	for _, token := range []string{weak, strong} {
		c.advance(11 * time.Minute)
		leads(t, f.post(token, reset, ""), stepUpURL)
		r := is(t, f.get(token, stepUpURL), http.StatusOK)
		shows(t, r, "Code of your authenticator app", "Use a recovery code")
		if strings.Contains(r.Text, `for="password"`) {
			t.Error("a password is asked for")
		}
		is(t, f.post(token, stepUpURL, "password=a+fine+password"), http.StatusForbidden)
		shows(t, is(t, f.post(token, stepUpURL, factor("totp", "000000", "")), http.StatusForbidden),
			"the code is wrong")
		r = f.post(token, stepUpURL, factor("totp", p.code(t), "https://evil.example.org/console"))
		leads(t, r, "/console")
		if me := f.client(apitest.Token(r)).Session; me.AAL != 2 {
			t.Errorf("the session is %+v", me)
		}
	}
	f.Me(bobs).Want(http.StatusOK)
}

func TestWhoCanNotProveWhoTheyAreLogsInAgain(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	leads(t, f.get("", stepUpURL), "/console/login?next=%2Fconsole%2Fstep-up")
	is(t, f.get(f.User, stepUpURL), http.StatusForbidden)
	is(t, f.post(f.User, stepUpURL, "password=another+password"), http.StatusForbidden)
	_, key, err := f.Auth.Admin.IssueKey(t.Context(), f.client(f.Admin).Session.User.Stored, keys.New{Name: "backup"})
	f.Must(err)
	is(t, f.post("", stepUpURL, "password=a+fine+password", "Authorization", "Bearer "+key), http.StatusForbidden)
}

func TestNoOtherOriginSendsASecondFactor(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f := startUsers(t, c.use)
	p, adas := f.enroll(c, f.Admin)
	cookie := f.logIn(ada, adasPassword, "")
	cookie[1] += "; belfry=" + adas
	for _, path := range []string{secondURL, secondURL + "/code", stepUpURL, stepUpURL + "/code"} {
		for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Origin", "https://evil.example.org"}} {
			r := is(t, f.post("", path, factor("totp", p.code(t), ""), append(headers, cookie...)...),
				http.StatusForbidden)
			if shows(t, r, "another origin"); len(r.Cookies()) != 0 {
				t.Errorf("%s: %v", path, r.Cookies())
			}
		}
	}
	leads(t, f.post("", secondURL, factor("totp", p.code(t), ""), cookie...), "/console")
}

// Where admins need a second factor, a session without one shows and changes nothing.
func TestAnAdminWithoutARequiredSecondFactorIsAskedForOne(t *testing.T) {
	t.Parallel()
	required, problems := policy.CompileUserRule("user.admin == true")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, page := range []string{"", "/account"} {
		c := &clock{}
		f := startUsers(t, c.use, func(o *account.Options) { o.MFA.Required = required },
			func(o *console.Options) { o.Account = page })
		uuid := f.uuidOf(bob)
		says := "POST /auth/factors/totp"
		if page != "" {
			says = `href="/account"`
		}
		for _, path := range []string{"/console", "/console/users", "/console/users/" + uuid, "/console/none"} {
			r := is(t, f.get(f.Admin, path), http.StatusUnauthorized)
			shows(t, r, "A second factor is required", says, "Log out", ada)
			if strings.Contains(r.Text, bob) || strings.Contains(r.Text, `href="/console/users"`) {
				t.Errorf("%s shows more: %s", path, r.Text)
			}
			is(t, f.get(f.User, path), http.StatusForbidden)
		}
		if r := is(t, f.get(f.Admin, "/console/users", "Hx-Request", "true"), http.StatusOK); r.Text != "" ||
			r.Header.Get("Hx-Redirect") != "/console" {
			t.Errorf("htmx gets %v %s", r.Header, r.Text)
		}
		is(t, f.post(f.Admin, "/console/users/"+uuid+"/admin", "to=true"), http.StatusUnauthorized)

		// The same page follows the login.
		r := f.post("", "/console/login", "login=ada@example.com&password=a+fine+password")
		leads(t, r, "/console")
		weak := apitest.Token(r)
		is(t, f.get(weak, "/console"), http.StatusUnauthorized)

		another := f.LogIn(ada, adasPassword)
		p, strong := f.enroll(c, f.Admin)
		is(t, f.get(strong, "/console/users"), http.StatusOK)
		leads(t, f.get(weak, "/console/users?q=x"), stepUpURL+"?next="+url.QueryEscape("/console/users?q=x"))
		leads(t, f.post(weak, "/console/users/"+uuid+"/admin", "to=true"), stepUpURL)
		if f.account(bob).Admin {
			t.Fatal("a session without the second factor changes a user")
		}
		shows(t, is(t, f.get(weak, stepUpURL+"?next=/console/users"), http.StatusOK), "Code of your authenticator app",
			`value="/console/users"`)
		r = f.post(weak, stepUpURL, factor("totp", p.code(t), "/console/users"))
		leads(t, r, "/console/users")
		is(t, f.get(apitest.Token(r), "/console/users"), http.StatusOK)

		// A session that is of no use keeps nobody from logging in or out.
		r = f.post(another, "/console/login", "login=ada@example.com&password=a+fine+password")
		leads(t, r, secondURL)
		leads(t, f.post("", secondURL, factor("totp", p.code(t), ""), "Cookie",
			"belfry="+another+"; belfry-console-second="+r.Cookies()[0].Value), "/console")
		leads(t, f.post(another, "/console/logout", ""), "/console/login")
	}
}
