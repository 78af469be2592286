// Package method adds a method to belfry as an engineer does, and finds it wherever people and programs meet methods.
package method

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/method/test"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/api/login"
	"belfry/pkg/api/pages"
	"belfry/pkg/apidoc/openapi"
	"belfry/pkg/apimodel"
	"belfry/pkg/store/policy"
)

const (
	ada      = "ada@example.com"
	password = "a fine password"
)

// front is belfry with pages, a console and the added method.
type front struct{ *apitest.Front }

func start(t *testing.T) front {
	t.Helper()
	templates, err := pages.Load("")
	if err != nil {
		t.Fatal(err)
	}
	admins, problems := policy.CompileUserRule("true")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return front{apitest.StartLogin(t, 1,
		func(o *account.Options) { o.Methods, o.Admins = append(o.Methods, test.New), admins },
		func(o *login.Options) { o.SecondFactorRedirect, o.AccountRedirect = "/second-factor", "/account" },
		func(o *api.Options) {
			o.Console = &console.Options{}
			o.Site = &pages.Options{
				Templates: templates, Paths: map[string]string{"login": "/login", "second-factor": "/second-factor",
					"account": "/account"},
				Links: pages.Links{Login: "/login", Account: "/account"}, Redirects: []string{"/"},
			}
		})[0]}
}

// send sends a form, as a page does, with a cookie header, and expects a status.
func (f front) send(cookie, path string, status int, fields ...string) apitest.Reply {
	f.Helper()
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	r := f.Do("POST", path, form.Encode(), "Content-Type", "", "Content-Type", "application/x-www-form-urlencoded",
		"Cookie", cookie)
	if r.StatusCode != status {
		f.Fatalf("POST %s: status %d, want %d: %s", path, r.StatusCode, status, r.Text)
	}
	return r
}

// shows requests a page, which has texts.
func (f front) shows(cookie, path string, texts ...string) {
	f.Helper()
	r := f.Do("GET", path, "", "Cookie", cookie)
	for _, text := range texts {
		if !strings.Contains(r.Text, text) {
			f.Errorf("GET %s has no %q: %s", path, text, r.Text)
		}
	}
}

// cookie is the cookie header with what a reply has set under a name.
func (f front) cookie(r apitest.Reply, name string) string {
	f.Helper()
	for _, c := range r.Cookies() {
		if c.Name == name && c.MaxAge > 0 {
			return c.Name + "=" + c.Value
		}
	}
	f.Fatalf("no cookie %s: %v", name, r.Header)
	return ""
}

// leads fails unless a reply redirects to a target.
func (f front) leads(r apitest.Reply, target string) {
	f.Helper()
	if got := r.Header.Get("Location"); !strings.HasPrefix(got, target) {
		f.Errorf("%s leads to %q, want %q", r.Request.URL, got, target)
	}
}

// learn adds a word to the account of a session by JSON, and returns it with the token of the session that replaces
// that.
func (f front) learn(token string) (word, raised string) {
	f.Helper()
	var made struct{ Secret, URI, QR string }
	f.Do("POST", "/auth/factors/word", "", "Authorization", "Bearer "+token).Want(http.StatusOK).JSON(&made)
	var added struct {
		Token         string
		RecoveryCodes []string
	}
	f.Do("PUT", "/auth/factors/word", `{"code":"`+made.Secret+`"}`, "Authorization", "Bearer "+token, "Prefer",
		"return=representation").Want(http.StatusOK).JSON(&added)
	if made.Secret == "" || made.QR != "" || added.Token == "" || len(added.RecoveryCodes) != 10 {
		f.Fatalf("set up %+v, added %+v", made, added)
	}
	return made.Secret, added.Token
}

func TestProgramsUseAnAddedMethod(t *testing.T) {
	f := start(t)
	f.shows("", "/auth", `"name":"word","url":"/auth/word"`)
	word, raised := f.learn(f.Register(ada, password))
	f.shows("belfry="+raised, "/auth/factors", `"type":"word"`)
	f.Do("POST", "/auth/factors/word", "", "Authorization", "Bearer "+raised).Want(http.StatusConflict)

	pending := func(path, body string, factors ...string) string {
		t.Helper()
		var p struct {
			Flow    string
			Factors []string
		}
		f.Do("POST", path, body, "Prefer", "return=representation").Want(http.StatusUnauthorized).JSON(&p)
		if p.Flow == "" || !slices.Equal(p.Factors, factors) {
			t.Fatalf("%s waits for %+v", path, p)
		}
		return p.Flow
	}
	flow := pending("/auth/email", `{"login":"`+ada+`","password":"`+password+`"}`, "word", "recovery")
	f.Do("POST", "/auth/second-factor", `{"type":"word","code":"wrong","flow":"`+flow+`"}`).Want(http.StatusForbidden)
	in := apitest.Token(f.Do("POST", "/auth/second-factor",
		`{"type":"word","code":"`+word+`","flow":"`+flow+`"}`).Want(http.StatusNoContent))
	pending("/auth/word", `{"login":"`+ada+`","code":"`+word+`"}`, "recovery")
	f.Do("POST", "/auth/word", `{"login":"`+ada+`","code":"wrong"}`).Want(http.StatusForbidden)
	f.Do("POST", "/auth/word", `{"login":"`+ada+`"}`).Want(http.StatusBadRequest)

	f.Do("POST", "/auth/step-up", `{"type":"word","code":"wrong"}`, "Authorization",
		"Bearer "+in).Want(http.StatusForbidden)
	again := apitest.Token(f.Do("POST", "/auth/step-up", `{"type":"word","code":"`+word+`"}`, "Authorization",
		"Bearer "+in).Want(http.StatusNoContent))
	f.Do("DELETE", "/auth/factors/word", "", "Authorization", "Bearer "+again).Want(http.StatusNoContent)
	f.LogIn(ada, password)
	f.Do("POST", "/auth/word", `{"login":"`+ada+`","code":"`+word+`"}`).Want(http.StatusForbidden)
}

func TestPeopleUseAnAddedMethodOnPages(t *testing.T) {
	f := start(t)
	f.shows("", "/login", `action="/auth/word"`, "Your word", "Log in with a word")
	session := "belfry=" + f.Register(ada, password)
	f.shows(session, "/account", "Add a word")
	made := f.send(session, "/auth/factors/word", http.StatusOK)
	_, word, _ := strings.Cut(made.Text, `<code id="secret">`)
	word, _, _ = strings.Cut(word, "<")
	for _, text := range []string{"<title>Add a word", "Learn the word, and type it.", `action="/auth/factors/word"`,
		">The word</label>", ">Add the word</button>"} {
		if !strings.Contains(made.Text, text) || strings.Contains(made.Text, "<img src=\"\"") {
			t.Errorf("the page that shows the word has no %q: %s", text, made.Text)
		}
	}
	f.leads(f.send(session, "/auth/factors/word", http.StatusSeeOther, "code", "wrong"), "/account?")
	f.shows(session, "/account?setup=word", "Your new word")
	added := f.send(session, "/auth/factors/word", http.StatusOK, "code", word)
	if !strings.Contains(added.Text, `<ul class="codes">`) {
		t.Errorf("no recovery codes: %s", added.Text)
	}
	session = f.cookie(added, "belfry")
	f.shows(session, "/account", "<strong>Word</strong>", `aria-label="Remove: Word"`)

	pending := f.send("", "/auth/email", http.StatusSeeOther, "login", ada, "password", password)
	f.leads(pending, "/second-factor?")
	waits := f.cookie(pending, "belfry-second")
	f.shows(waits, pending.Header.Get("Location"), `name="type" value="word"`, `id="word"`, "Your word",
		"Use a recovery code")
	f.leads(f.send(waits, "/auth/second-factor", http.StatusSeeOther, "type", "word", "factors", "word", "code",
		"wrong"), "/second-factor?")
	f.leads(f.send(waits, "/auth/second-factor", http.StatusSeeOther, "type", "word", "code", word), "/in?")
	f.leads(f.send("", "/auth/word", http.StatusSeeOther, "login", ada, "code", word),
		"/second-factor?factors=recovery")
	f.leads(f.send("", "/auth/word", http.StatusSeeOther, "login", ada, "code", "wrong"), "/out?")

	again := f.send(session, "/auth/step-up", http.StatusSeeOther, "type", "word", "code", word)
	f.leads(again, "/account?outcome=proven")
	f.leads(f.send(f.cookie(again, "belfry"), "/auth/factors/word", http.StatusSeeOther, "remove", "true"),
		"/account?outcome=factor-removed")
	f.LogIn(ada, password)
}

func TestAdminsUseAnAddedMethodAtTheConsole(t *testing.T) {
	f := start(t)
	f.shows("", "/console/login", `action="/console/login/word"`, "Log in with a word")
	word, raised := f.learn(f.Register(ada, password))
	pending := f.send("", "/console/login", http.StatusSeeOther, "login", ada, "password", password)
	f.leads(pending, "/console/second-factor")
	waits := f.cookie(pending, "belfry-console-second")
	f.shows(waits, "/console/second-factor", `name="type" value="word"`, "Your word")
	f.send(waits, "/console/second-factor", http.StatusForbidden, "type", "word", "code", "wrong")
	f.leads(f.send(waits, "/console/second-factor", http.StatusSeeOther, "type", "word", "code", word), "/console")
	f.leads(f.send("", "/console/login/word", http.StatusSeeOther, "login", ada, "code", word),
		"/console/second-factor")
	f.send("", "/console/login/word", http.StatusForbidden, "login", ada, "code", "wrong")

	session := "belfry=" + raised
	f.shows(session, "/console/step-up", `name="type" value="word"`, "Your word")
	f.send(session, "/console/step-up", http.StatusForbidden, "type", "word", "code", "wrong")
	f.leads(f.send(session, "/console/step-up", http.StatusSeeOther, "type", "word", "code", word), "/console")
}

func TestTheDocumentHasAnAddedMethod(t *testing.T) {
	c, err := config.Parse("it.yaml",
		[]byte("authentication: {providers: {email: {mailer: console}}}\nmailers: {console: {}}\n"),
		func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	describe := func(more ...account.NewMethod) map[string]map[string]any {
		t.Helper()
		k, err := apimodel.Of(c, account.About(true, false, more...), "1.2.3", "http://localhost")
		if err != nil {
			t.Fatal(err)
		}
		text, err := openapi.Document(api.Operations(k))
		if err != nil {
			t.Fatal(err)
		}
		var document struct{ Paths map[string]map[string]any }
		if err := json.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		return document.Paths
	}
	without, with := describe(), describe(test.New)
	for path, methods := range map[string][]string{"/auth/factors/word": {"delete", "post", "put"},
		"/auth/word": {"post"}} {
		var got []string
		for method := range with[path] {
			got = append(got, method)
		}
		if slices.Sort(got); !slices.Equal(got, methods) || without[path] != nil {
			t.Errorf("%s has %q, want %q; without the method it has %v", path, got, methods, without[path])
		}
	}
	if text, _ := json.Marshal(with["/auth/second-factor"]); !strings.Contains(string(text), `"word"`) {
		t.Errorf("the second factor is not that of a word: %s", text)
	}
}
