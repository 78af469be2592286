package app

import (
	"cmp"
	"context"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/app/plan"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

// reads counts the records that requests read from drivers. Only requests carry one in their context: what workers and
// sweeps read at the same time does not count.
type reads struct{ records, requests atomic.Int64 }

type readsKey struct{}

func counted(ctx context.Context, records int) {
	if r, ok := ctx.Value(readsKey{}).(*reads); ok {
		r.records.Add(int64(records))
		r.requests.Add(1)
	}
}

type countedBackend struct{ driver.Backend }

func (b countedBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return countedStore{s}, err
}

type countedStore struct{ driver.Store }

func (s countedStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	counted(ctx, 1)
	return s.Store.Get(ctx, uuid)
}

func (s countedStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	page, err := s.Store.Query(ctx, q)
	counted(ctx, len(page.Records))
	return page, err
}

func (s countedStore) ScanBackward(ctx context.Context, before []byte, limit int) (driver.Page, error) {
	page, err := s.Store.ScanBackward(ctx, before, limit)
	counted(ctx, len(page.Records))
	return page, err
}

// CountKeys reads no records.
func (s countedStore) CountKeys(ctx context.Context, q driver.Query, limit int) (int, bool, error) {
	return s.Store.(driver.KeyCounter).CountKeys(ctx, q, limit)
}

func (s countedStore) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	page, err := s.Store.Scan(ctx, after, limit)
	counted(ctx, len(page.Records))
	return page, err
}

func (s countedStore) Pending(ctx context.Context, after []byte, limit int) ([]driver.Pending, []byte, error) {
	events, next, err := s.Store.Pending(ctx, after, limit)
	counted(ctx, len(events))
	return events, next, err
}

const populated = `
listen: 127.0.0.1:0
bus: {listen: ""}
mailers: {default: {type: file, folder: mails}}
stores:
  Items: {expose: {list: true}, indexes: ["year, n"]}
  Parents: {expose: {}}
  Children:
    expose: {}
    schema: child.json
    map: {Parents: {key: parent, target: children, fields: title, cascade: true}}
authentication:
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

// population is a belfry in which there are more and more objects.
type population struct {
	*place
	app   *App
	admin string // token of a session
	user  string // uuid of the admin
	have  int
}

func startPopulation(t *testing.T) *population {
	t.Helper()
	c := &population{place: &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}}
	c.write("child.json", `{"required": ["birthday"], "properties": {"title": {"type": "string"}}}`)
	c.config = c.load(populated)
	c.app = newApp(c.config, must(plan.CompileFor(c.config, nil)), c.log(), nil)
	c.app.OnReload(c.reloading()) // forms of the model read the file
	t.Cleanup(func() { _ = c.app.Stop(context.Background()) })
	for _, p := range c.app.wiring.parts {
		if err := c.app.parts.Start(t.Context(), p, c.app.now()); err != nil {
			t.Fatal(err)
		}
		for name, b := range c.app.now().Backends {
			if _, done := b.(countedBackend); !done {
				c.app.now().Backends[name] = countedBackend{b}
			}
		}
	}
	service := c.app.now().Auth
	user := must(service.Admin.CreateUser(t.Context(),
		admin.NewUser{Login: "ada@example.com", Password: "a fine password", Admin: true, Validated: true}))
	session := must(service.Login.Login(t.Context(),
		passwords.Credentials{Login: "ada@example.com", Password: "a fine password"}, sessions.Client{}))
	c.user, c.admin = user.UUID, session.Token
	if _, err := service.Admin.SendRecovery(t.Context(), c.user, ""); err != nil {
		t.Fatal(err)
	}
	return c
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func (c *population) save(name, uuid, body string) {
	c.Helper()
	if _, err := c.app.now().Set.Store(name).Save(c.Context(), must(object.Parse([]byte(body))), uuid); err != nil {
		c.Fatal(err)
	}
}

// grow adds objects, children of one parent, users and updates of one object until there are n of each, and waits until
// the workers are done.
func (c *population) grow(n int) {
	c.Helper()
	// Written before their store had a schema, which none of them matches.
	children := c.app.now().Set.Store("Children").WithOptions(func(o *store.Options) { o.Schema = nil })
	if c.have == 0 {
		c.save("Parents", "all", `{"title":"All"}`)
		c.save("Items", "one", `{"title":"One"}`)
	}
	var all errgroup.Group
	all.SetLimit(32)
	for i := c.have; i < n; i++ {
		all.Go(func() error {
			c.save("Items", fmt.Sprintf("i-%05d", i), fmt.Sprintf(`{"title":"An item","year":1887,"n":%d}`, i))
			if _, err := children.Save(c.Context(), must(object.Parse([]byte(`{"title":"A child","parent":"all"}`))),
				fmt.Sprintf("c-%05d", i)); err != nil {
				return err
			}
			_, err := c.app.now().Auth.Admin.CreateUser(c.Context(),
				admin.NewUser{Login: fmt.Sprintf("reader%d@example.com", i)})
			return err
		})
	}
	if err := all.Wait(); err != nil {
		c.Fatal(err)
	}
	for i := c.have; i < n; i += 4 {
		o := object.Object{}
		o.Set("note", fmt.Sprint(i))
		if _, err := c.app.now().Set.Store("Items").Update(c.Context(), o,
			store.UpdateOptions{UUID: "one"}); err != nil {
			c.Fatal(err)
		}
	}
	c.have = n
	c.check()
	kit.WaitFor(c.T, "all copies", func() bool {
		parent := must(c.app.now().Set.Store("Parents").Get(c.Context(), "all"))
		copies := 0
		object.Elements(object.Field(parent.Body, "children"), func([]byte) bool { copies++; return true })
		lag := must(c.app.console().Graph.Lag(c.Context()))
		return copies == n && lag["mapping"]+lag["cascade"] == 0
	})
}

// check has a run of the view Schemas find objects, which its page lists.
func (c *population) check() {
	c.Helper()
	run, found := c.app.checkSchema(c.T, c.user, "Children")
	if run.Err != nil || found.Failing != c.have || len(found.First) != 10 {
		c.Fatalf("%+v, %+v", run, found)
	}
}

// open requests a page as the admin, and returns how many records were read for it. A view waits a second for the bus:
// a page without what the bus has is requested again.
func (c *population) open(path string) (read, requests int64, page string) {
	c.Helper()
	kit.WaitFor(c.T, path+" with what the bus has", func() bool {
		counts := &reads{}
		r := httptest.NewRequestWithContext(context.WithValue(c.Context(), readsKey{}, counts), "GET",
			"http://"+c.app.HTTPAddress()+path, nil)
		r.Header.Set("Authorization", "Bearer "+c.admin)
		w := httptest.NewRecorder()
		c.app.ServeHTTP(w, r)
		if w.Code >= http.StatusBadRequest && w.Code != http.StatusServiceUnavailable {
			c.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		read, requests, page = counts.records.Load(), counts.requests.Load(), w.Body.String()
		return w.Code < http.StatusBadRequest && !incomplete.MatchString(page)
	})
	return read, requests, page
}

var (
	links   = regexp.MustCompile(`(?:href|hx-get)="(/console[^"]*)`)
	named   = regexp.MustCompile(`/(object|users|letters|workers|mails|history)/[^/?]+`)
	skipped = regexp.MustCompile(`^/console/(assets|docs)/`)
	// incomplete is a page without what the bus has.
	incomplete = regexp.MustCompile(`The lag is not known|The (history|listeners?) can't be read`)
)

// shape is a path without what differs between pages of one view.
func shape(path string) string {
	path, query, _ := strings.Cut(path, "?")
	if !strings.HasSuffix(path, "/new") {
		path = named.ReplaceAllString(path, "/$1/*")
	}
	values, _ := url.ParseQuery(query)
	return path + strings.Join(slices.Sorted(maps.Keys(values)), "&")
}

// crawl opens the pages of the console from its start on, one of each shape, and returns how many records each has
// read.
func (c *population) crawl() map[string]int64 {
	c.Helper()
	read := map[string]int64{}
	// What has the most is asked first; the rest is found by links.
	queue := []string{
		"/console/objects/Parents/object/all", "/console/objects/Parents/object/all/delete",
		"/console/objects/Items/object/one/history",
		"/console/objects/Items?filter=year+%3D%3D+1887&sort=-n",
		"/console/objects/Items?field=year&op=%3D%3D&value=1887&cols=n&cols=title",
		"/console/users?q=reader7%40example.com", "/console/users?q=reader&cols=none",
		"/console/users/keys?sort=recent", "/console/users/" + c.user, "/console/system/charts", "/console",
	}
	for ; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		kind := cmp.Or(shape(path), path)
		if _, done := read[kind]; done {
			continue
		}
		records, requests, page := c.open(path)
		if read[kind] = records; requests == 0 {
			c.Errorf("%s: no read was counted, not even that of the session", path)
		}
		for _, found := range links.FindAllStringSubmatch(page, -1) {
			if link, _, _ := strings.Cut(html.UnescapeString(found[1]), "#"); !skipped.MatchString(link) {
				queue = append(queue, link)
			}
		}
	}
	return read
}

// No view reads more because there is more in the stores, the log or the arrays.
func TestNoViewOfTheConsoleScansAStore(t *testing.T) {
	c := startPopulation(t)
	c.grow(210) // more than a page, and more than what a page shows of anything
	few := c.crawl()
	c.grow(600)
	many := c.crawl()
	for _, view := range []string{
		"/console", "/console/objects", "/console/objects/Items", "/console/objects/Itemscursor",
		"/console/objects/Itemsfilter&sort", "/console/objects/Itemscursor&filter&sort",
		"/console/objects/Itemssort", "/console/objects/Itemscount", "/console/objects/Itemscount&filter&sort",
		"/console/objects/Itemscols&field&op&value", "/console/objects/Items/bulk",
		"/console/objects/Items/new", "/console/objects/Items/newfrom", "/console/objects/Items/object/*",
		"/console/objects/Parents/object/*", "/console/objects/Parents/object/*/delete",
		"/console/objects/Items/object/*/history", "/console/objects/Items/object/*/historybefore",
		"/console/objects/Items/object/*/history/*", "/console/map",
		"/console/model", "/console/model/Items", "/console/model/Children", "/console/model/Users",
		"/console/configuration/new-store", "/console/configuration/stores/Items/edit/routes",
		"/console/configuration/stores/Items/edit/rules", "/console/configuration/stores/Items/edit/field-rules",
		"/console/configuration/stores/Items/edit/indexes", "/console/configuration/stores/Items/edit/links",
		"/console/configuration/stores/Items/edit/mappings", "/console/configuration/stores/Items/edit/computed",
		"/console/configuration/stores/Items/edit/settings", "/console/configuration/stores/Items/field",
		"/console/configuration/stores/Children/fieldname", "/console/configuration/stores/Children/remove-fieldname",
		"/console/configuration/stores/Items/remove", "/console/configuration/settings",
		"/console/configuration/settings/mailers/default", "/console/configuration/settings/mailers/default/remove",
		"/console/configuration/settings/providers/email", "/console/configuration/limits",
		"/console/configuration/changes", "/console/live", "/console/workers", "/console/workers/*",
		"/console/letters", "/console/verify", "/console/schemas", "/console/objects/Children/object/*",
		"/console/users", "/console/usersafter", "/console/usersq", "/console/userscols&q",
		"/console/usersafter&cols&q", "/console/users/*", "/console/users/*sort", "/console/mails",
		"/console/mails/*", "/console/system", "/console/system/charts", "/console/settings", "/console/logs",
		"/console/mapzoom", "/console/api", "/console/go", "/console/start",
	} {
		if _, seen := many[view]; !seen {
			t.Errorf("%s was not opened", view)
		}
	}
	for view, read := range many {
		if before, seen := few[view]; seen && read > before || read > 250 {
			t.Errorf("%s reads %d records where there are %d of everything, and %d where there are 210", view, read,
				c.have, before)
		}
	}
}
