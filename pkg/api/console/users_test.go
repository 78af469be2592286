package console_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/places"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// startUsers starts a console with the view Users. The service is known once it has started.
func startUsers(t *testing.T, change ...any) *fixture {
	t.Helper()
	users := &lateAccounts{}
	all := &lateKeys{}
	f := start(t, console.Options{Users: &console.Users{Accounts: users, Keys: all, Store: "Users", Mails: true}},
		change...)
	users.Admin, all.Keys = f.Auth.Admin, f.Auth.Keys
	return f
}

type (
	lateAccounts struct{ *admin.Admin }
	lateKeys     struct{ *keys.Keys }
)

// uuidOf returns the uuid of a user.
func (f *fixture) uuidOf(who string) string {
	f.Helper()
	user, err := f.Auth.Admin.FindUser(f.Context(), who)
	f.Must(err)
	return user.UUID
}

// account returns a user as admins see them.
func (f *fixture) account(who string) admin.Account {
	f.Helper()
	user, err := f.Auth.Admin.FindUser(f.Context(), who)
	f.Must(err)
	a, err := f.Auth.Admin.AccountDetails(f.Context(), user)
	f.Must(err)
	return a
}

// link adds an address to the user of a session.
func (f *fixture) link(token, address string) {
	f.Helper()
	session, err := f.Auth.Sessions.Authenticate(f.Context(), token)
	f.Must(err)
	_, _, err = f.Auth.Registration.Register(f.Context(),
		passwords.Credentials{Login: address, Password: "another password"}, sessions.Client{Session: session})
	f.Must(err)
}

const (
	ada = "ada@example.com" // the admin
	bob = "bob@example.com"
)

// changesOfUsers are the paths of POSTs that change bob.
func changesOfUsers(uuid string) map[string]string {
	return map[string]string{
		"/console/users":                                   "kind=person&login=eve@example.com&admin=true",
		"/console/users/" + uuid + "/admin":                "to=true",
		"/console/users/" + uuid + "/disabled":             "to=true",
		"/console/users/" + uuid + "/sessions":             "",
		"/console/users/" + uuid + "/sessions/none":        "",
		"/console/users/" + uuid + "/recovery":             "address=" + bob,
		"/console/users/" + uuid + "/invitation":           "",
		"/console/users/" + uuid + "/idents/b@x.org_email": "",
		"/console/users/" + uuid + "/factors":              "",
		"/console/users/" + uuid + "/keys":                 "name=x",
		"/console/users/" + uuid + "/keys/none":            "",
	}
}

func TestOnlyAdminsSeeAndChangeUsers(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	uuid := f.uuidOf(bob)
	f.link(f.LogIn(bob, "another password"), "b@x.org")
	for _, path := range []string{"/console/users", "/console/users?q=" + ada, "/console/users/new",
		"/console/users/" + uuid} {
		is(t, f.get("", path), http.StatusSeeOther)
		if r := is(t, f.get(f.User, path), http.StatusForbidden); strings.Contains(r.Text, ada) {
			t.Errorf("%s shows an address", path)
		}
	}
	for path, form := range changesOfUsers(uuid) {
		leads(t, f.post("", path, form), "/console/login")
		is(t, f.post(f.User, path, form), http.StatusForbidden)
		is(t, f.post(f.Admin, path, form, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
		is(t, f.post(f.Admin, path, form, "Origin", "https://evil.example.org"), http.StatusForbidden)
	}
	a := f.account(bob)
	if a.Admin || a.Disabled || len(a.Sessions) == 0 || len(a.Keys) != 0 || len(a.Idents) != 2 {
		t.Errorf("bob was changed: %+v", a)
	}
	f.Me(f.User).Want(http.StatusOK)
	if page, _, err := f.Auth.Admin.Accounts(t.Context(), nil, 10); err != nil || len(page) != 2 {
		t.Errorf("%d users, %v", len(page), err)
	}
}

func TestAUserIsShownWithLoginsSessionsAndKeysAndWithoutSecrets(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	user, err := f.Auth.Admin.FindUser(t.Context(), bob)
	f.Must(err)
	_, token, err := f.Auth.Admin.IssueKey(t.Context(), user,
		keys.New{Name: `<img src=x>`, Rule: `method == "GET"`, Expires: time.Now().Add(time.Hour)})
	f.Must(err)
	r := is(t, f.get(f.Admin, "/console/users/"+user.UUID), http.StatusOK)
	shows(t, r, "bob@example.com_email", "not validated", "&lt;img src=x&gt;", `method == &#34;GET&#34;`,
		"End the session", "Make an admin", "Disable the user", `href="/console/objects/Users/object/`+user.UUID)
	for _, secret := range []string{"<img src=x>", token, f.User, f.User[22:], "argon2id", "_hash", "_epoch",
		"_admin"} {
		if strings.Contains(r.Text, secret) {
			t.Errorf("the page shows %q", secret)
		}
	}
	r = is(t, f.get(f.Admin, "/console/users/"+f.uuidOf(ada)), http.StatusOK)
	shows(t, r, "This is you")
	if strings.Contains(r.Text, ">Disable the user<") || strings.Contains(r.Text, "Take away the rights") {
		t.Error("an admin is offered to disable themselves")
	}
	is(t, f.get(f.Admin, "/console/users/none"), http.StatusNotFound)
}

// A user agent is a text of a client: the page shows the device that it names, and the text as it is, escaped.
func TestSessionsOfAUserAreShownWithDeviceAndPlace(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../account/places/testdata/GeoLite2-City-Test.mmdb")
	if err != nil {
		t.Fatal(err)
	}
	database, err := places.Open(content)
	if err != nil {
		t.Fatal(err)
	}
	f := startUsers(t, func(o *account.Options) { o.Places = database })
	from := sessions.Client{Address: "89.160.20.112",
		UserAgent: "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0 <b>"}
	_, err = f.Auth.Login.Login(t.Context(), passwords.Credentials{Login: bob, Password: "another password"}, from)
	f.Must(err)
	r := is(t, f.get(f.Admin, "/console/users/"+f.uuidOf(bob)), http.StatusOK)
	shows(t, r, "89.160.20.112, Linköping, Sweden", "<summary>Firefox on Linux</summary>Mozilla/5.0", "Firefox/140.0 &lt;b&gt;")
}

func TestAnAdminChangesUsers(t *testing.T) {
	t.Parallel()
	events := recordUsers{}
	f := startUsers(t, func(o *account.Options) {
		o.Users = o.Users.WithOptions(func(o *store.Options) { o.Outbox = &events })
		o.Sessions = o.Sessions.WithOptions(func(o *store.Options) { o.Outbox = &events })
		o.Idents = o.Idents.WithOptions(func(o *store.Options) { o.Outbox = &events })
	})
	uuid := f.uuidOf(bob)
	page := "/console/users/" + uuid
	do := func(path, form string) {
		t.Helper()
		events.reset()
		leads(t, f.post(f.Admin, page+path, form), page)
		if e := events.last(); e == nil || e.Actor == nil || *e.Actor != f.uuidOf(ada) || e.Origin != event.OriginHTTP {
			t.Errorf("%s: the event is %+v", path, e)
		}
	}
	do("/admin", "to=true")
	if !f.account(bob).Admin {
		t.Error("no admin")
	}
	do("/admin", "to=false")
	if f.account(bob).Admin {
		t.Error("an admin still")
	}
	for _, path := range []string{"/admin", "/disabled"} {
		for _, form := range []string{"", "to=", "to=maybe"} {
			is(t, f.post(f.Admin, page+path, form), http.StatusBadRequest)
		}
	}
	second := f.LogIn(bob, "another password")
	do("/sessions/"+second[:22], "")
	f.Me(second).Want(http.StatusUnauthorized)
	f.Me(f.User).Want(http.StatusOK)
	is(t, f.post(f.Admin, page+"/sessions/"+f.Admin[:22], ""), http.StatusNotFound)

	r := is(t, f.post(f.Admin, page+"/keys", "name=deploy&expires=2099-12-31&rule=method+%3D%3D+%22GET%22"),
		http.StatusOK)
	keys := f.account(bob).Keys
	token := regexp.MustCompile(`<code id="token">([\w-]{65})</code>`).FindStringSubmatch(r.Text)
	if len(keys) != 1 || keys[0].Name != "deploy" || token == nil {
		t.Fatalf("%+v, %v: %s", keys, token, r.Text)
	}
	f.Me(token[1]).Want(http.StatusOK)
	if strings.Contains(f.get(f.Admin, page).Text, token[1]) {
		t.Error("the token is shown again")
	}
	for form, says := range map[string]string{"name=": "must have 1 to 100 bytes",
		"name=x&rule=object.x": "undeclared reference", "name=x&expires=2001-01-01": "must be in the future"} {
		shows(t, is(t, f.post(f.Admin, page+"/keys", form), http.StatusBadRequest), says)
	}
	do("/keys/"+keys[0].ID, "")
	f.Me(token[1]).Want(http.StatusUnauthorized)

	shows(t, is(t, f.get(f.Admin, page), http.StatusOK), "The only login can't be removed")
	shows(t, is(t, f.post(f.Admin, page+"/idents/"+bob+"_email", ""), http.StatusConflict),
		"the last login of the user", "disable the user")
	f.link(f.LogIn(bob, "another password"), "b@x.org")
	shows(t, is(t, f.get(f.Admin, page), http.StatusOK), `action="`+page+`/idents/b@x.org_email"`)
	is(t, f.post(f.Admin, page+"/idents/"+ada+"_email", ""), http.StatusNotFound)
	do("/idents/b@x.org_email", "")
	if idents := f.account(bob).Idents; len(idents) != 1 || idents[0].UUID != bob+"_email" {
		t.Errorf("%+v", idents)
	}

	do("/sessions", "")
	f.Me(f.User).Want(http.StatusUnauthorized)
	do("/disabled", "to=true")
	if !f.account(bob).Disabled {
		t.Error("not disabled")
	}
	shows(t, is(t, f.get(f.Admin, page), http.StatusOK), "Enable the user", ">disabled<")
	is(t, f.post(f.Admin, page+"/recovery", "address="+bob), http.StatusConflict)
	do("/disabled", "to=false")
	leads(t, f.post(f.Admin, page+"/recovery", "address="+bob), page)
	is(t, f.post(f.Admin, page+"/recovery", "address="+bob), http.StatusTooManyRequests)
	is(t, f.post(f.Admin, page+"/recovery", "address="+ada), http.StatusConflict)

	// Nobody stops being an admin by accident.
	own := "/console/users/" + f.uuidOf(ada)
	for path, form := range map[string]string{"/admin": "to=false", "/disabled": "to=true"} {
		shows(t, is(t, f.post(f.Admin, own+path, form), http.StatusConflict), "you may be the last admin")
	}
	is(t, f.get(f.Admin, own), http.StatusOK)
	is(t, f.post(f.Admin, "/console/users/none/admin", "to=true"), http.StatusNotFound)
}

func TestAnAdminCreatesUsers(t *testing.T) {
	t.Parallel()
	f := startUsers(t, func(o *account.Options) { o.Passwords.Common, o.Passwords.MinScore = true, 2 })
	shows(t, is(t, f.get(f.Admin, "/console/users/new"), http.StatusOK), `for="login"`, `name="admin"`)
	for form, says := range map[string]string{
		"kind=person&login=nobody":                         "is not an e-mail address",
		"kind=person&login=" + bob:                         "There is already an account with this login",
		"kind=person&login=eve@example.com&password=short": "must have 8 to 1024 bytes", "": "is not an e-mail address",
		"kind=person&login=eve@example.com&password=football": "is one of the most common passwords: " +
			"choose another",
		"kind=person&login=zvorkblin@example.com&password=Zvorkblin1": "is too easy to guess",
		"kind=machine&name=a%00b":                                     "A NUL character",
		"kind=person&login=eve@example.com&name=%00":                  "A NUL character",
	} {
		r := is(t, f.post(f.Admin, "/console/users", form), http.StatusBadRequest)
		shows(t, r, says)
		if strings.Contains(r.Text, `"short"`) {
			t.Error("a password is repeated")
		}
	}
	is(t, f.post(f.Admin, "/console/users",
		"kind=person&login=eve@example.com&password=a+good+password&name=Eve&validated=true&admin=true"),
		http.StatusSeeOther)
	eve := f.account("eve@example.com")
	if !eve.Admin || !eve.Idents[0].Validated || !eve.HasPassword {
		t.Errorf("%+v", eve)
	}
	f.LogIn("eve@example.com", "a good password")
	is(t, f.post(f.Admin, "/console/users", "kind=person&login=dan@example.com&mail=true"), http.StatusSeeOther)
	dan := f.account("dan@example.com")
	if dan.Admin || dan.HasPassword || dan.Invitation == nil {
		t.Errorf("%+v", dan)
	}
	page := "/console/users/" + dan.UUID
	shows(t, is(t, f.get(f.Admin, page), http.StatusOK), ">invited</span>", "Send the invitation again")
	shows(t, is(t, f.get(f.Admin, "/console/users"), http.StatusOK), ">invited</span>")
	is(t, f.post(f.Admin, page+"/invitation", ""), http.StatusTooManyRequests) // the mail was just requested
	is(t, f.post(f.Admin, "/console/users/"+f.uuidOf(bob)+"/invitation", ""), http.StatusConflict)
	r := is(t, f.post(f.Admin, "/console/users", "kind=machine&name=ci&login=ignored@example.com"), http.StatusSeeOther)
	shows(t, is(t, f.get(f.Admin, r.Header.Get("Location")), http.StatusOK), "<h1>ci</h1>",
		"No login: the user is a program")
}

func TestAnAdminDoesNotDeleteThemselvesAsAnObject(t *testing.T) {
	t.Parallel()
	l := startLibrary(t, func(o *console.Objects) { o.Stores[0].Users = true })
	for _, who := range []string{ada, bob} {
		l.save("Authors", l.uuidOf(who), `{}`)
		l.save("Chapters", l.uuidOf(who), `{}`)
	}
	remove := func(store, who string) apitest.Reply {
		t.Helper()
		path := "/console/objects/" + store + "/object/" + l.uuidOf(who)
		page := is(t, l.get(l.Admin, path), http.StatusOK)
		return l.post(l.Admin, path+"/delete",
			form("revision", regexp.MustCompile(`name="revision" value="(\d+)"`).FindStringSubmatch(page.Text)[1]))
	}
	shows(t, is(t, remove("Authors", ada), http.StatusConflict), "you may be the last admin")
	is(t, remove("Authors", bob), http.StatusSeeOther)
	is(t, remove("Chapters", ada), http.StatusSeeOther)
}

// A cascade is a deletion, too: of the admin who asks for it, through any number of mappings and objects.
func TestACascadeDoesNotDeleteTheAdminWhoAsksForIt(t *testing.T) {
	t.Parallel()
	l := startLibrary(t, func(o *console.Objects) { o.Stores[2].Users = true })
	_, err := l.Auth.Admin.SetAdmin(t.Context(), l.uuidOf(bob), true)
	l.Must(err)
	l.save("Authors", "austen", `{}`)
	l.save("Authors", "alone", `{}`)
	l.save("Books", "emma", `{"title":"Emma","author":["austen"]}`)
	l.save("Books", "other", `{"title":"Other","author":"alone"}`)
	for i := range 120 { // so that the admin is not among those that are listed
		l.save("Books", fmt.Sprintf("b%03d", i), `{"title":"B","author":"austen"}`)
	}
	l.save("Chapters", l.uuidOf(ada), `{"book":["none","emma"]}`)
	l.save("Chapters", l.uuidOf(bob), `{"book":"other","_admin":true}`)
	for _, path := range []string{"Authors/object/austen", "Books/object/emma", "Chapters/object/" + l.uuidOf(ada)} {
		object := is(t, l.get(l.Admin, "/console/objects/"+path), http.StatusOK)
		page := is(t, l.get(l.Admin, "/console/objects/"+path+"/delete"), http.StatusOK)
		shows(t, page, "you may be the last admin", "belfry user")
		if strings.Contains(page.Text, `name="revision"`) {
			t.Errorf("%s: the page offers what is refused", path)
		}
		revision := regexp.MustCompile(`name="revision" value="(\d+)"`).FindStringSubmatch(object.Text)[1]
		shows(t, is(t, l.post(l.Admin, "/console/objects/"+path+"/delete", form("revision", revision)),
			http.StatusConflict), "you may be the last admin")
		is(t, l.get(l.Admin, "/console/objects/"+path), http.StatusOK)
	}
	page := is(t, l.get(l.Admin, "/console/objects/Authors/object/alone/delete"), http.StatusOK)
	shows(t, page, "2 other objects", "One of them is a user who is an admin",
		l.uuidOf(bob)+`</a> <span class="tag bad">admin</span>`)
	leads(t, l.post(l.Admin, "/console/objects/Authors/object/alone/delete",
		form("revision", regexp.MustCompile(`name="revision" value="(\d+)"`).FindStringSubmatch(page.Text)[1])),
		"/console/objects/Authors")
	// More links than are followed: what can't be decided is refused.
	for i := range 5 {
		var authors []string
		for k := range 220 {
			authors = append(authors, fmt.Sprintf("%q", fmt.Sprintf("a%d-%d", i, k)))
		}
		l.save("Books", fmt.Sprintf("many%d", i), `{"title":"M","author":[`+strings.Join(authors, ",")+`]}`)
	}
	_, err = l.set.Store("Chapters").Update(t.Context(),
		object.Object{"book": []byte(`["many0","many1","many2","many3","many4"]`)},
		store.UpdateOptions{UUID: l.uuidOf(ada)})
	l.Must(err)
	shows(t, is(t, l.get(l.Admin, "/console/objects/Authors/object/austen/delete"), http.StatusOK),
		"more than 1000 objects", "Back to the object")
	l.save("Chapters", "reader", `{"_admin":true}`)
	shows(t, is(t, l.get(l.Admin, "/console/objects/Chapters/object/reader/delete"), http.StatusOK),
		"This user is an admin")
}

func TestAnAdminKeepsAChangeOfAddress(t *testing.T) {
	t.Parallel()
	f := startUsers(t)
	page := "/console/users/" + f.uuidOf(bob)
	is(t, f.post(f.Admin, page+"/changes", ""), http.StatusConflict)
	f.Must(f.Auth.Addresses.Request(t.Context(), bob+"_email", "bob@example.org", "another password", f.client(f.User)))
	shows(t, is(t, f.get(f.Admin, page), http.StatusOK), "was to be replaced by bob@example.org",
		"Whoever reads the mails of "+bob, "Keep the changes of address")
	is(t, f.post(f.LogIn(bob, "another password"), page+"/changes", ""), http.StatusForbidden)
	leads(t, f.post(f.Admin, page+"/changes", ""), page)
	if text := is(t, f.get(f.Admin, page), http.StatusOK).Text; strings.Contains(text, "Keep the changes") {
		t.Error("the change can be undone still")
	}
}

func TestAnAdminKeepsAnAccountWhoseDeletionIsPlanned(t *testing.T) {
	t.Parallel()
	f := startUsers(t, func(o *account.Options) { o.Deletion = &config.Deletion{Grace: 14 * 24 * time.Hour} })
	page := "/console/users/" + f.uuidOf(bob)
	if text := is(t, f.get(f.Admin, page), http.StatusOK).Text; strings.Contains(text, "deletion") {
		t.Errorf("a page without a plan shows %s", text)
	}
	is(t, f.post(f.Admin, page+"/deletion", ""), http.StatusConflict)
	plan, _, err := f.Auth.Deletion.Plan(t.Context(), "another password", f.client(f.User))
	f.Must(err)
	at, err := time.Parse(time.RFC3339Nano, plan.Deleted)
	f.Must(err)
	shows(t, is(t, f.get(f.Admin, page), http.StatusOK), "deletion planned",
		"which happens at "+at.UTC().Format("2006-01-02 15:04:05"), "Keep the account")
	shows(t, is(t, f.get(f.Admin, "/console/users"), http.StatusOK), "deletion planned")
	is(t, f.post(f.LogIn(bob, "another password"), page+"/deletion", ""), http.StatusForbidden)
	if f.account(bob).Deletion == nil {
		t.Fatal("who is no admin keeps an account")
	}
	leads(t, f.post(f.Admin, page+"/deletion", ""), page)
	if f.account(bob).Deletion != nil {
		t.Error("the deletion is still planned")
	}
}
