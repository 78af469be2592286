package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/console"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// asFixture is a console in which admins see as users: ada, who has a second factor, and bob, who has notes.
type asFixture struct {
	*fixture
	clock
	sessions recordUsers // of sessions
	notes    *store.Store
	bob, as  string // uuid; path of the pages
}

func startAs(t *testing.T) *asFixture {
	t.Helper()
	f := &asFixture{}
	rules, problems := policy.Compile(policy.Rules{
		Get: "object.owner == user.uuid", List: "object.owner == user.uuid", Update: "true",
	})
	strong, more := policy.Compile(policy.Rules{Get: "session.aal == 2", List: "session.aal == 2"})
	closed, most := policy.CompileFields(policy.Rules{}, map[string]policy.FieldRule{"grade": {Read: "user.teacher == true"}})
	if len(problems)+len(more)+len(most) > 0 {
		t.Fatal(problems, more, most)
	}
	o := stores(t, nil,
		store.Options{Name: "Notes", Policy: rules, Fields: closed, Private: []string{"secret"}},
		store.Options{Name: "Safes", Policy: strong}, store.Options{Name: "Hidden"}, store.Options{Name: "Letters"})
	for i := range o.Stores {
		o.Stores[i].Get = o.Stores[i].Name != "Letters"
		o.Stores[i].List = o.Stores[i].Name != "Letters"
		o.Stores[i].Title = []string{"title"}
		if o.Stores[i].Name == "Hidden" {
			o.Stores[i].URL = ""
		}
	}
	f.fixture = startUsers(t, f.use, func(c *console.Options) {
		c.Objects, c.Users.Impersonation = o, true
	}, func(a *account.Options) {
		a.Sessions = a.Sessions.WithOptions(func(o *store.Options) { o.Outbox = &f.sessions })
	})
	f.notes, f.bob = o.Set.Store("Notes"), f.uuidOf(bob)
	f.as = "/console/users/" + f.bob + "/as"
	f.note("bobs", f.bob)
	f.note("adas", f.uuidOf(ada))
	return f
}

func (f *asFixture) note(uuid, owner string) {
	f.Helper()
	o := object.Object{}
	for name, value := range map[string]string{"title": "Note of " + uuid, "owner": owner, "secret": "a secret",
		"grade": "poor"} {
		o.Set(name, value)
	}
	_, err := f.notes.Save(f.Context(), o, uuid)
	f.Must(err)
}

// strong returns a session of ada that was raised by a second factor just now.
func (f *asFixture) strong() string {
	f.Helper()
	_, token := f.enroll(&f.clock, f.Admin)
	return token
}

func TestAnAdminSeesWhatAUserMayRead(t *testing.T) {
	t.Parallel()
	f := startAs(t)
	admin := f.strong()
	shows(t, is(t, f.get(admin, "/console/users/"+f.bob), http.StatusOK), `action="`+f.as+`"`)
	leads(t, f.post(admin, f.as, ""), f.as)

	page := is(t, f.get(admin, f.as), http.StatusOK)
	shows(t, page, f.as+"/Notes", "lists and objects", "neither lists nor objects", `action="`+f.as+`/end"`)
	if strings.Contains(page.Text, f.as+"/Hidden") {
		t.Error("a store without a route is shown")
	}
	list := is(t, f.get(admin, f.as+"/Notes"), http.StatusOK)
	shows(t, list, "Note of bobs", f.as+"/Notes/bobs")
	one := is(t, f.get(admin, f.as+"/Notes/bobs"), http.StatusOK)
	shows(t, one, "Note of bobs")
	for _, r := range []string{list.Text, one.Text} {
		for _, hidden := range []string{"Note of adas", "a secret", "poor"} {
			if strings.Contains(r, hidden) {
				t.Errorf("a page shows %q, which the user may not read: %s", hidden, r)
			}
		}
	}
	// An admin reads all of that elsewhere in the console.
	shows(t, is(t, f.get(admin, "/console/objects/Notes"), http.StatusOK), "Note of adas", "poor")

	for path, want := range map[string]string{
		"/Notes/adas":                           "The API answers 403",
		"/Notes/none":                           "The API answers 404",
		"/Notes?filter=grade+%3D%3D+%22poor%22": "The API answers 40",
		"/Notes?filter=%3D":                     "The API answers 400",
		"/Safes":                                "The API answers 40",
		"/Letters":                              "The API answers 404",
		"/Letters/one":                          "The API answers 404",
	} {
		shows(t, is(t, f.get(admin, f.as+path), http.StatusOK), want)
	}
	leads(t, f.get(admin, f.as+"/Notes?object=+bobs+"), f.as+"/Notes/bobs")
	is(t, f.get(admin, f.as+"/Hidden"), http.StatusNotFound)
	is(t, f.get(admin, f.as+"/Sessions"), http.StatusNotFound)
	is(t, f.get(admin, f.as+"/Notes/a%2Fb"), http.StatusBadRequest)

	// A user with a second factor is seen as logged in with it.
	f.enroll(&f.clock, f.User)
	shows(t, is(t, f.get(admin, f.as+"/Safes"), http.StatusOK), "The list is empty for the user.")
}

// Nothing writes on behalf of the user, and none of the admin's rights comes with the view.
func TestWhoSeesAsAUserChangesNothing(t *testing.T) {
	t.Parallel()
	f := startAs(t)
	admin := f.strong()
	leads(t, f.post(admin, f.as, ""), f.as)
	before, err := f.notes.Get(f.Context(), "bobs")
	f.Must(err)
	for _, path := range []string{"/Notes", "/Notes/bobs", "/Notes/bobs/delete"} {
		if r := f.post(admin, f.as+path, "text=%7B%7D&revision=1"); r.StatusCode < 400 {
			t.Errorf("POST %s: %d", path, r.StatusCode)
		}
	}
	after, err := f.notes.Get(f.Context(), "bobs")
	f.Must(err)
	if before.Revision != after.Revision {
		t.Error("the object was changed")
	}
	// The session of the admin is still that of the admin.
	if me := f.Me(admin).Want(http.StatusOK); !strings.Contains(me.Text, f.uuidOf(ada)) {
		t.Errorf("the session is of %s", me.Text)
	}
}

func TestSeeingAsAUserIsInTheLogOfEvents(t *testing.T) {
	t.Parallel()
	f := startAs(t)
	admin := f.strong()
	leads(t, f.post(admin, f.as, ""), f.as)
	all := f.sessions.named(event.AuthImpersonated)
	if len(all) != 1 || all[0].UUID != f.bob || all[0].Store != "Users" || all[0].Actor == nil ||
		*all[0].Actor != f.uuidOf(ada) {
		t.Fatalf("events %+v", all)
	}
	var details event.AuthDetails
	if err := json.Unmarshal(all[0].Auth, &details); err != nil || details.Due == "" || details.Session != "" {
		t.Errorf("%v %+v", err, details)
	}
	if reads := len(f.sessions.all); f.get(admin, f.as+"/Notes").StatusCode != http.StatusOK || len(f.sessions.all) != reads {
		t.Error("reading is another event")
	}
}

// Each way in which seeing as a user is refused, or ends.
func TestWhoMaySeeAsAUserAndForHowLong(t *testing.T) {
	t.Parallel()
	begun := func(f *asFixture) string {
		admin := f.strong()
		leads(f.T, f.post(admin, f.as, ""), f.as)
		is(f.T, f.get(admin, f.as+"/Notes/bobs"), http.StatusOK)
		return admin
	}
	profile := func(f *asFixture) string { return "/console/users/" + f.bob }
	for name, c := range map[string]func(f *asFixture, t *testing.T){
		"nobody":           func(f *asFixture, t *testing.T) { leads(t, f.post("", f.as, ""), "/console/login") },
		"a user":           func(f *asFixture, t *testing.T) { is(t, f.post(f.User, f.as, ""), http.StatusForbidden) },
		"no second factor": func(f *asFixture, t *testing.T) { is(t, f.post(f.Admin, f.as, ""), http.StatusUnauthorized) },
		"a session without the second factor": func(f *asFixture, t *testing.T) {
			weak := f.LogIn(ada, adasPassword)
			f.strong()
			leads(t, f.post(weak, f.as, ""), stepUpURL)
		},
		"an old login": func(f *asFixture, t *testing.T) {
			admin := f.strong()
			f.advance(11 * time.Minute)
			leads(t, f.post(admin, f.as, ""), stepUpURL)
		},
		"from another site": func(f *asFixture, t *testing.T) {
			is(t, f.post(f.strong(), f.as, "", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
		},
		"oneself": func(f *asFixture, t *testing.T) {
			is(t, f.post(f.strong(), "/console/users/"+f.uuidOf(ada)+"/as", ""), http.StatusConflict)
		},
		"another admin": func(f *asFixture, t *testing.T) {
			_, err := f.Auth.Admin.SetAdmin(f.Context(), f.bob, true)
			f.Must(err)
			is(t, f.post(f.strong(), f.as, ""), http.StatusForbidden)
		},
		"a disabled user": func(f *asFixture, t *testing.T) {
			_, err := f.Auth.Admin.SetDisabled(f.Context(), f.bob, true)
			f.Must(err)
			is(t, f.post(f.strong(), f.as, ""), http.StatusConflict)
		},
		"nobody with the uuid": func(f *asFixture, t *testing.T) {
			is(t, f.post(f.strong(), "/console/users/none/as", ""), http.StatusNotFound)
		},
		"not begun": func(f *asFixture, t *testing.T) { leads(t, f.get(f.strong(), f.as), profile(f)) },
		"another user than the one it began with": func(f *asFixture, t *testing.T) {
			f.Register("eve@example.com", "a third password")
			other := "/console/users/" + f.uuidOf("eve@example.com")
			leads(t, f.get(begun(f), other+"/as/Notes"), other)
		},
		"in another session": func(f *asFixture, t *testing.T) {
			me := f.client(begun(f))
			issued, err := f.Auth.Sessions.Start(f.Context(), me.Session.User, me.Session.Proof(), sessions.Client{})
			f.Must(err)
			leads(t, f.get(issued.Token, f.as), profile(f))
		},
		"without a session": func(f *asFixture, t *testing.T) {
			begun(f)
			is(t, f.get("", f.as), http.StatusSeeOther)
		},
		"by the user": func(f *asFixture, t *testing.T) {
			begun(f)
			is(t, f.get(f.User, f.as), http.StatusForbidden)
		},
		"ended by the button": func(f *asFixture, t *testing.T) {
			admin := begun(f)
			leads(t, f.post(admin, f.as+"/end", ""), profile(f))
			leads(t, f.get(admin, f.as+"/Notes/bobs"), profile(f))
		},
		"ended by the time": func(f *asFixture, t *testing.T) {
			admin := begun(f)
			f.advance(14 * time.Minute)
			is(t, f.get(admin, f.as), http.StatusOK)
			f.advance(2 * time.Minute)
			leads(t, f.get(admin, f.as), profile(f))
		},
		"ended by the end of the session": func(f *asFixture, t *testing.T) {
			admin := begun(f)
			_, err := f.Auth.Admin.EndSessions(f.Context(), f.uuidOf(ada))
			f.Must(err)
			is(t, f.get(admin, f.as), http.StatusSeeOther)
		},
		"ended by another session of the browser": func(f *asFixture, t *testing.T) {
			me := f.client(begun(f))
			issued, err := f.Auth.Sessions.Replace(f.Context(), me.Session.User, me.Session.Proof(), me)
			f.Must(err)
			leads(t, f.get(issued.Token, f.as), profile(f))
		},
		"the admin is no longer one": func(f *asFixture, t *testing.T) {
			admin := begun(f)
			_, err := f.Auth.Admin.SetAdmin(f.Context(), f.uuidOf(ada), false)
			f.Must(err)
			is(t, f.get(admin, f.as+"/Notes/bobs"), http.StatusForbidden)
		},
		"the user becomes an admin": func(f *asFixture, t *testing.T) {
			admin := begun(f)
			_, err := f.Auth.Admin.SetAdmin(f.Context(), f.bob, true)
			f.Must(err)
			is(t, f.get(admin, f.as+"/Notes/bobs"), http.StatusForbidden)
		},
		"the user is disabled": func(f *asFixture, t *testing.T) {
			admin := begun(f)
			_, err := f.Auth.Admin.SetDisabled(f.Context(), f.bob, true)
			f.Must(err)
			is(t, f.get(admin, f.as+"/Notes/bobs"), http.StatusConflict)
		},
		"the user is deleted": func(f *asFixture, t *testing.T) {
			admin := begun(f)
			f.Must(f.Auth.Admin.DeleteUser(f.Context(), f.bob))
			is(t, f.get(admin, f.as+"/Notes/bobs"), http.StatusNotFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := startAs(t)
			c(f, t)
		})
	}
}

func TestNobodySeesAsAUserUnlessConfigured(t *testing.T) {
	t.Parallel()
	c := &clock{}
	f := startUsers(t, c.use, func(o *console.Options) { o.Objects = stores(t, nil, store.Options{Name: "Notes"}) })
	_, admin := f.enroll(c, f.Admin)
	page := "/console/users/" + f.uuidOf(bob)
	if r := is(t, f.get(admin, page), http.StatusOK); strings.Contains(r.Text, "See as this user") {
		t.Error("it is offered")
	}
	is(t, f.get(admin, page+"/as"), http.StatusNotFound)
	if r := f.post(admin, page+"/as", ""); r.StatusCode != http.StatusNotFound && r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", r.StatusCode)
	}
}
