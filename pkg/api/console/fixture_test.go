package console_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
)

// fixture is a front with a console, an admin, and a user who is none.
type fixture struct {
	*apitest.Front
	Admin, User string // tokens of sessions
}

// start starts a front with the views of the options.
func start(t *testing.T, o console.Options, change ...any) *fixture {
	t.Helper()
	admins, problems := policy.CompileUserRule("user.admin == true")
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, c := range change {
		if c, ok := c.(func(*console.Options)); ok {
			c(&o)
		}
	}
	change = append(change, func(a *account.Options) { a.Admins = admins }, func(a *api.Options) { a.Console = &o })
	f := &fixture{Front: apitest.StartLogin(t, 1, change...)[0]}
	f.Admin = f.Register("ada@example.com", "a fine password")
	f.User = f.Register("bob@example.com", "another password")
	ada, err := f.Auth.Admin.FindUser(t.Context(), "ada@example.com")
	f.Must(err)
	_, err = f.Auth.Admin.SetAdmin(t.Context(), ada.UUID, true)
	f.Must(err)
	return f
}

// stores opens stores over files, and returns the view of them.
func stores(t *testing.T, mappings []store.Mapping, all ...store.Options) *console.Objects {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	o := &console.Objects{}
	var opened []*store.Store
	for _, options := range all {
		for _, m := range mappings {
			if m.Source == options.Name {
				options.Maps = append(options.Maps, m)
			}
			if m.Target == options.Name && m.Array != "" {
				options.Arrays = append(options.Arrays, m.Array)
			}
		}
		st, err := store.Open(t.Context(), backend, options)
		if err != nil {
			t.Fatal(err)
		}
		opened = append(opened, st)
		info := console.StoreInfo{Name: options.Name, URL: "/" + strings.ToLower(options.Name), List: true,
			Schema: options.Schema != nil, Search: options.Search, Computed: options.Computed.Names()}
		for _, i := range options.Indexes {
			info.Indexes = append(info.Indexes, i.Fields)
		}
		o.Stores = append(o.Stores, info)
	}
	o.Set = store.NewSet(opened, mappings)
	return o
}

// get requests a page with the cookie of a session; "" for nobody.
func (f *fixture) get(token, path string, headers ...string) apitest.Reply {
	f.Helper()
	return f.send("GET", token, path, "", headers...)
}

// post sends a form, as a page of the console does.
func (f *fixture) post(token, path, form string, headers ...string) apitest.Reply {
	f.Helper()
	return f.send("POST", token, path, form,
		append([]string{"Content-Type", "", "Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

func (f *fixture) send(method, token, path, body string, headers ...string) apitest.Reply {
	f.Helper()
	if token != "" {
		headers = append(headers, "Cookie", "belfry="+token)
	}
	return f.Do(method, path, body, headers...)
}

// is checks a status; error pages of the console are no problem documents.
func is(t *testing.T, r apitest.Reply, status int) apitest.Reply {
	t.Helper()
	if r.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", r.Request.Method, r.Request.URL, r.StatusCode, status, r.Text)
	}
	return r
}

// shows checks what a page has.
func shows(t *testing.T, r apitest.Reply, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(r.Text, text) {
			t.Errorf("%s does not show %q: %s", r.Request.URL, text, r.Text)
		}
	}
}

// leads checks that a reply redirects.
func leads(t *testing.T, r apitest.Reply, target string) {
	t.Helper()
	is(t, r, http.StatusSeeOther).HasHeader("Location", target)
}

// recordUsers keeps events.
type recordUsers struct {
	mu  sync.Mutex
	all []event.Envelope
}

// Committed implements store.Outbox.
func (e *recordUsers) Committed(_ string, p driver.Pending) {
	var decoded event.Envelope
	if err := json.Unmarshal(p.Payload, &decoded); err != nil {
		panic(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, decoded)
}

func (e *recordUsers) reset() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = nil
}

// last returns the last event that somebody has caused, nil for none.
func (e *recordUsers) last() *event.Envelope {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := len(e.all) - 1; i >= 0; i-- {
		if e.all[i].Actor != nil {
			return &e.all[i]
		}
	}
	return nil
}
