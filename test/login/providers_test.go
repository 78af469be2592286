package login

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"testing"

	"belfry/pkg/account/sessions"
	"belfry/pkg/event"
	"belfry/test/provider"
)

// idField is the field of a profile that contains the user's id.
var idField = map[string]string{
	"github": "id", "google": "sub", "facebook": "id", "amazon": "user_id", "twitter": "id_str", "oidc": "sub",
	"gitlab": "sub", "discord": "id", "linkedin": "sub", "apple": "sub", "slack": "sub",
}

func TestEachProvider(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	names := slices.Concat(names, keeping)
	for i, name := range names {
		next := names[(i+1)%len(names)]
		id := func(n int) string { return fmt.Sprint(1000*(i+1) + n) }
		w.sub(name, func(w *fixture) {
			w.sub("the first login", func(w *fixture) { w.firstLogin(name, id(1)) })
			w.sub("the next login", func(w *fixture) { w.nextLogin(name, id(2)) })
			w.sub("linking", func(w *fixture) { w.linkNext(name, id(3), next, id(4)) })
			w.sub("taken", func(w *fixture) { w.linkTaken(name, id(5), next, id(6)) })
			w.sub("denial", func(w *fixture) { w.deny(name, id(7)) })
			w.sub("Prefer", func(w *fixture) { w.waitForIdent(name, id(8)) })
		})
	}
}

func (w *fixture) firstLogin(name, id string) {
	w.providers.User(id)
	b := w.browser()
	user := b.mustLogin(name)
	if user == "" {
		w.Fatal("no user is logged in")
	}
	ident := w.ident(id, name)
	profile, _ := ident["profile"].(map[string]any)
	if ident["user"] != user || ident["type"] != name || ident["validated"] != true || !hasID(profile, name, id) ||
		profile["name"] == nil && name != "discord" {
		w.Errorf("the ident is %v", ident)
	}
	b.waitForIdents(identOf(id, name))
	events := w.registerEvents(user)
	if len(events) != 1 {
		w.Fatalf("%d times Register", len(events))
	}
	e := events[0]
	var datas map[string]any
	var made fields
	w.must(json.Unmarshal(e.Datas, &datas))
	w.must(json.Unmarshal(e.User, &made))
	if !reflect.DeepEqual(datas, profile) || made["uuid"] != user || e.UUID != user || e.Store != "Users" {
		w.Errorf("the event of Register has uuid %s, user %s, datas %s", e.UUID, e.User, e.Datas)
	}
	if e.Origin != event.OriginAuth || e.Actor == nil || *e.Actor != user || e.Ctx.Request == "" ||
		e.Ctx.Address == "" || e.Ctx.UserAgent == "" {
		w.Errorf("the event of Register has actor %v, ctx %+v", e.Actor, e.Ctx)
	}
	var list struct{ Sessions []sessions.Info }
	_, body := b.request(http.MethodGet, "/auth/sessions", "")
	w.must(json.Unmarshal(body, &list))
	if len(list.Sessions) != 1 || list.Sessions[0].Type != name || !list.Sessions[0].Current {
		w.Errorf("the sessions are %s", body)
	}
	if cookies := b.cookies(); len(cookies) != 2 || cookies[0].Name != "belfry" || cookies[1].Name != "belfry-once" {
		w.Errorf("the cookies are %v", cookies)
	}
}

// hasID reports whether a profile has the id of a user.
func hasID(profile map[string]any, name, id string) bool {
	if name == "microsoft" {
		return profile["oid"] == provider.MicrosoftUser(id) && profile["tid"] == provider.Tenant
	}
	return fmt.Sprint(profile[idField[name]]) == id
}

func (w *fixture) nextLogin(name, id string) {
	w.providers.User(id)
	user := w.browser().mustLogin(name)
	used := ""
	for _, called := range []string{"Ada King", "Countess of Lovelace"} {
		w.providers.User(id, "name", called, "location", "x")
		b := w.browser()
		b.wantText(b.mustLogin(name), user)
		eventually(w, func() error {
			ident := w.ident(id, name)
			profile := ident["profile"].(map[string]any)
			if now, _ := ident["lastUsed"].(string); profile["name"] != called || now <= used {
				return fmt.Errorf("the ident is %v", ident)
			}
			return nil
		})
		used = w.ident(id, name)["lastUsed"].(string)
	}
	if n := len(w.registerEvents(user)); n != 1 {
		w.Errorf("%d times Register", n)
	}
}

// linkNext links another identity to the account of the user who is logged in.
func (w *fixture) linkNext(name, id, next, nextID string) {
	w.providers.User(id)
	b := w.browser()
	user, users, registered := b.mustLogin(name), w.count()[0], len(w.registerEvents("*"))
	for range 2 { // the second time the way in is theirs already
		w.providers.User(nextID)
		before := b.session()
		b.wantText(b.mustLogin(next), user)
		b.wantText(b.session(), before)
		if ident := w.ident(nextID, next); ident["user"] != user || ident["validated"] != true ||
			ident["type"] != next {
			w.Errorf("the ident is %v", ident)
		}
		b.waitForIdents(identOf(id, name), identOf(nextID, next))
	}
	other := w.browser()
	other.wantText(other.mustLogin(next), user)
	w.providers.User(id)
	other.wantText(w.browser().mustLogin(name), user)
	if w.count()[0] != users || len(w.registerEvents("*")) != registered {
		w.Error("somebody was registered")
	}
}

// linkTaken tries to link an identity of another user.
func (w *fixture) linkTaken(name, id, next, nextID string) {
	w.providers.User(id)
	owner := w.browser().mustLogin(name)
	w.providers.User(nextID)
	b := w.browser()
	user := b.mustLogin(next)
	b.waitForIdents(identOf(nextID, next))
	counted, ident, cookie := w.count(), w.ident(id, name), b.session()
	w.providers.User(id, "name", "Somebody else")
	b.wantText(b.login(name), "out taken")
	b.wantText(b.userUUID(), user)
	b.wantText(b.session(), cookie)
	b.waitForIdents(identOf(nextID, next))
	if now := w.ident(id, name); w.count() != counted || !reflect.DeepEqual(now, ident) || ident["user"] != owner {
		w.Errorf("something has changed: %v", now)
	}
}

func (w *fixture) deny(name, id string) {
	w.providers.User(id)
	w.providers.Deny(true)
	defer w.providers.Deny(false)
	counted, b := w.count(), w.browser()
	b.wantText(b.login(name), "out denied")
	if b.userUUID() != "" || len(b.cookies()) != 0 || w.count() != counted {
		w.Errorf("cookies %v", b.cookies())
	}
}

// waitForIdent waits for the effects of a registration.
func (w *fixture) waitForIdent(name, id string) {
	w.providers.User(id)
	b := w.browser()
	b.header.Set("Prefer", "wait=60")
	b.mustLogin(name)
	if got := b.idents(); len(got) != 1 || got[0] != identOf(id, name) {
		w.Errorf("idents %v", got)
	}
}

// Cookies are hidden from scripts and other sites.
func TestCookies(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	b := w.browser()
	res, _ := b.request(http.MethodGet, "/auth/github", "")
	begun := res.Cookies()
	callback := b.begin("github")
	res, _ = b.request(http.MethodGet, callback.RequestURI(), "")
	for _, c := range append(begun, res.Cookies()...) {
		if !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" || c.MaxAge == 0 {
			t.Errorf("cookie %s", c)
		}
	}
	for _, name := range []string{"Cache-Control", "Referrer-Policy"} {
		if res.Header.Get(name) == "" {
			t.Errorf("no %s", name)
		}
	}
	if n := len(begun) + len(res.Cookies()); n != 4 {
		t.Errorf("%d cookies: of the visit, the end of one, of the session, and of what is sent twice", n)
	}
}

// Equal addresses do not prove that two users are one.
func TestAnEqualAddressLinksNothing(t *testing.T) {
	t.Parallel()
	w := newFixture(t, options{})
	res, body := w.browser().request(http.MethodPost, "/auth/email",
		`{"register":true,"login":"ada@example.com","password":"a fine password"}`)
	if res.StatusCode != http.StatusNoContent {
		t.Fatalf("%s %s", res.Status, body)
	}
	users := map[string]bool{w.ident("ada@example.com", "email")["user"].(string): true}
	for _, name := range names {
		w.providers.User("1", "email", "ada@example.com")
		users[w.browser().mustLogin(name)] = true
	}
	if len(users) != len(names)+1 || w.count() != [2]int{len(names) + 1, len(names) + 1} {
		t.Errorf("%d users with the same address, not %d", len(users), len(names)+1)
	}
}
