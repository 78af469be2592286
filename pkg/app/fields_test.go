package app

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/client"
	"belfry/pkg/operations/importer"
	"belfry/test/kit"
)

const fieldRules = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
stores:
  Users:
    expose: {list: true}
    policy: {create: "false", get: "true", update: isOwner, delete: "false", list: "true"}
    fields: {role: {write: user.role == 'admin'}}
  People:
    expose: {list: true}
    owner: user
    uuid: client
    policy: {create: user != null, get: "true", update: user != null, delete: isOwner}
    indexes: [team, phone, salary, "team, phone", "user, team"]
    fields:
      phone: {read: isOwner}
      salary: {read: user.role == 'admin'}
      rank: {write: user.role == 'admin'}
      diary: {read: isOwner, write: isOwner}
      broken: {read: object.missing == 1}
      tags: {read: isOwner}
      photos: {read: isOwner}
  Tags: {expose: {}, map: {People: {key: person, target: tags, fields: label}}}
  Marks: {expose: {list: true}}
  Letters: {expose: {}, uuid: client, intercept: {get: [{name: editor, timeout: 1m}]}, fields: {grade: {write: user.role == 'admin'}}}
binaries:
  files: {map: {People: [photos]}}
authentication:
  trustedOrigins: ["https://app.example.com"]
  providers:
    email: {postValidation: true, skipEmailValidation: true}
`

// fieldFixture is a belfry with rules for fields, and callers: the owner of the object, another user, an admin, and
// nobody.
type fieldFixture struct {
	*place
	app    *App
	tokens map[string]string
	person string // the uuid of the object
	ada    string // those of users
	root   string
	bus    *client.Client
	header http.Header // of the last reply
}

func (f *fieldFixture) ask(caller, method, path, body string, headers ...string) (int, string) {
	f.Helper()
	r, err := http.NewRequestWithContext(f.Context(), method, "http://"+f.app.HTTPAddress()+path,
		strings.NewReader(body))
	f.must(err)
	if method == "PATCH" {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	} else if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if f.tokens[caller] != "" {
		r.Header.Set("Authorization", "Bearer "+f.tokens[caller])
	}
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	resp, err := http.DefaultClient.Do(r)
	f.must(err)
	defer func() { _ = resp.Body.Close() }()
	for _, c := range resp.Cookies() {
		if strings.HasSuffix(c.Name, "belfry") && c.MaxAge > 0 {
			f.tokens[caller] = c.Value
		}
	}
	text, err := io.ReadAll(resp.Body)
	f.must(err)
	f.header = resp.Header
	return resp.StatusCode, string(text)
}

func (f *fieldFixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// text is the reply to a request, which must have a status.
func (f *fieldFixture) text(caller string, status int, method, path, body string, headers ...string) string {
	f.Helper()
	got, text := f.ask(caller, method, path, body, headers...)
	if got != status {
		f.Fatalf("%s of %s by %s: %d, want %d: %s", method, path, caller, got, status, text)
	}
	return text
}

// events returns the events about the object that a caller receives.
func (f *fieldFixture) events(caller, after string) string {
	f.Helper()
	mark := field(f.text("ada", 201, "POST", "/marks", `{}`), "uuid")
	ctx, cancel := context.WithCancel(f.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet,
		"http://"+f.app.HTTPAddress()+"/events?lastEventId="+after, nil)
	f.must(err)
	if f.tokens[caller] != "" {
		r.Header.Set("Authorization", "Bearer "+f.tokens[caller])
	}
	resp, err := http.DefaultClient.Do(r)
	f.must(err)
	defer func() { _ = resp.Body.Close() }()
	var all strings.Builder
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), mark) {
			return all.String()
		}
		if strings.Contains(lines.Text(), `"uuid":"`+f.person+`"`) {
			all.WriteString(lines.Text() + "\n")
		}
	}
	f.Fatalf("the stream has ended: %v", lines.Err())
	return ""
}

// field returns a field of JSON text whose value is a string.
func field(text, name string) string {
	_, rest, _ := strings.Cut(text, `"`+name+`":"`)
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// waitFor waits until a reply to Ada has a text.
func (f *fieldFixture) waitFor(path, want string) {
	f.Helper()
	kit.WaitUntil(f, func() error {
		if _, text := f.ask("ada", "GET", path, ""); !strings.Contains(text, want) {
			return fmt.Errorf("%s has no %s: %s", path, want, text)
		}
		return nil
	})
}

func newFieldFixture(t *testing.T) *fieldFixture {
	t.Helper()
	f := &fieldFixture{place: newPlace(t, fieldRules), tokens: map[string]string{}}
	f.app = f.start()
	conn, err := nats.Connect(f.app.Bus().ClientURL(), nats.Timeout(kit.Limit))
	f.must(err)
	t.Cleanup(conn.Close)
	f.bus = client.New(conn)
	for _, caller := range []string{"ada", "bob", "root"} {
		f.text(caller, 204, "POST", "/auth/email",
			fmt.Sprintf(`{"register":true,"login":"%s@example.com","password":"a fine password"}`, caller))
	}
	f.ada = field(f.text("ada", 200, "GET", "/auth/me", ""), "uuid")
	f.root = field(f.text("root", 200, "GET", "/auth/me", ""), "uuid")
	_, err = f.bus.Store("Users").Update(t.Context(), map[string]any{"uuid": f.root, "role": "admin"})
	f.must(err)
	f.person = field(f.text("ada", 201, "POST", "/people",
		`{"team":"x","phone":"the-phone","diary":"the-diary","broken":"the-secret"}`), "uuid")
	_, err = f.bus.Store("People").Update(t.Context(),
		map[string]any{"uuid": f.person, "salary": "the-salary", "rank": 1})
	f.must(err)
	f.text("ada", 201, "POST", "/tags", fmt.Sprintf(`{"person":%q,"label":"the-tag"}`, f.person))
	f.text("ada", 201, "PUT", "/binary/upload/People/"+f.person+"/photos/add", "the-photo", "Content-Type", "image/png",
		"X-Filename", "the-photo.png")
	f.waitFor("/people/"+f.person, "the-tag")
	return f
}

// A field with a read rule leaves belfry in no way for whom the rule does not hold.
func TestFieldsAreShownToThoseForWhomTheirRuleHolds(t *testing.T) {
	f := newFieldFixture(t)
	get, all := "/people/"+f.person,
		[]string{"the-phone", "the-diary", "the-salary", "the-tag", "the-photo", "the-secret"}
	owned := []string{"the-phone", "the-diary", "the-tag", "the-photo"}
	shown := map[string][]string{"ada": owned, "bob": nil, "root": {"the-salary"}, "nobody": nil}
	ways := map[string]func(caller string) string{
		"get":  func(caller string) string { return f.text(caller, 200, "GET", get, "") },
		"list": func(caller string) string { return f.text(caller, 200, "GET", "/people", "") },
		"filtered list": func(caller string) string {
			return f.text(caller, 200, "GET", "/people?filter=team==%22x%22", "")
		},
		"list of the owner's index": func(caller string) string {
			return f.text(caller, 200, "GET",
				"/people?filter=user==%22"+field(f.text("ada", 200, "GET", get, ""), "user")+"%22", "")
		},
		"reply of PUT": func(caller string) string {
			return f.text(caller, map[bool]int{true: 401, false: 200}[caller == "nobody"], "PUT", get, `{"team":"x"}`)
		},
		"reply of PATCH": func(caller string) string {
			return f.text(caller, map[bool]int{true: 401, false: 200}[caller == "nobody"], "PATCH", get, `{"team":"x"}`)
		},
		"waiting PUT": func(caller string) string {
			return f.text(caller, map[bool]int{true: 401, false: 200}[caller == "nobody"], "PUT", get, `{"team":"x"}`,
				"Prefer", "wait=60")
		},
		"events": func(caller string) string { return f.events(caller, "0") },
	}
	for way, ask := range ways {
		for caller, fields := range shown {
			text := ask(caller)
			if way != "events" && !strings.Contains(text, f.person) && !strings.Contains(text, "401") {
				t.Errorf("%s by %s: %s", way, caller, text)
			}
			for _, value := range all {
				if strings.Contains(text, value) != slices.Contains(fields, value) {
					t.Errorf("%s by %s: %s is shown: %v\n%s", way, caller, value, strings.Contains(text, value), text)
				}
			}
		}
	}
	for caller, want := range map[string]bool{"ada": true, "bob": false, "root": false, "nobody": false} {
		f.text("ada", 200, "PUT", get, `{"team":"x"}`) // the events before are of earlier states
		if got := strings.Contains(f.events(caller, "0"), "Binary.Uploaded"); got != want {
			t.Errorf("%s receives the event of the photo: %v", caller, got)
		}
		if got, _ := f.ask(caller, "GET", "/binary/People/"+f.person+"/photos/0", ""); (got == 200) != want {
			t.Errorf("%s gets the photo: %d", caller, got)
		}
	}
	f.text("bob", 403, "PUT", "/binary/upload/People/"+f.person+"/photos/add", "x", "Content-Type", "image/png")
	trusted, err := f.bus.Store("People").Get(t.Context(), f.person)
	f.must(err)
	for _, value := range all {
		if !strings.Contains(string(trusted.Object.Encode()), value) {
			t.Errorf("a program on the bus does not get %s", value)
		}
	}
}

// A list reveals nothing about a field that the caller may not read, by a filter, an order or an index.
func TestListsAreNotFilteredOrSortedByFieldsThatAreHidden(t *testing.T) {
	f := newFieldFixture(t)
	for _, of := range []struct {
		query  string
		status map[string]int
	}{
		{"filter=phone==%22the-phone%22", map[string]int{"ada": 400, "bob": 400, "root": 400, "nobody": 400}},
		{"filter=team==%22x%22%26%26phone>%22a%22", map[string]int{"ada": 400, "bob": 400, "root": 400, "nobody": 400}},
		{"sort=phone", map[string]int{"ada": 400, "bob": 400, "root": 400, "nobody": 400}},
		{"filter=salary==%22the-salary%22", map[string]int{"ada": 403, "bob": 403, "root": 200, "nobody": 401}},
		{"sort=-salary", map[string]int{"ada": 403, "bob": 403, "root": 200, "nobody": 401}},
		{"sort=team", map[string]int{"ada": 200, "bob": 200, "root": 200, "nobody": 200}},
	} {
		for caller, want := range of.status {
			if got, text := f.ask(caller, "GET", "/people?"+of.query, ""); got != want {
				t.Errorf("%s by %s: %d, want %d: %s", of.query, caller, got, want, text)
			}
		}
	}
}

// A field with a write rule is changed by those for whom it holds, at creation, by PUT, PATCH, import and upload. Who
// can't read it can't try values.
func TestFieldsAreChangedByThoseForWhomTheirRuleHolds(t *testing.T) {
	f := newFieldFixture(t)
	person := "/people/" + f.person
	me := "/users/" + field(f.text("ada", 200, "GET", "/auth/me", ""), "uuid")
	for _, of := range []struct {
		caller, method, path, body string
		status                     int
		names                      string
	}{
		{"bob", "POST", "/people", `{"rank":9}`, 403, "rank"},
		{"bob", "POST", "/people", `{"diary":"mine"}`, 201, ""},
		{"root", "POST", "/people", `{"rank":9}`, 201, ""},
		{"ada", "PUT", person, `{"rank":2}`, 403, "rank"},
		{"ada", "PUT", person, `{"rank":1,"team":"x"}`, 200, ""},
		{"ada", "PUT", person, `{"team":"x"}`, 200, ""},
		{"ada", "PATCH", person, `{"rank":null}`, 403, "rank"},
		{"ada", "PATCH", person, `{"rank":1}`, 200, ""},
		{"root", "PATCH", person, `{"rank":1}`, 200, ""},
		{"bob", "PUT", person, `{"diary":"the-diary"}`, 403, "diary"},
		{"bob", "PUT", person, `{"diary":"a guess"}`, 403, "diary"},
		{"bob", "PATCH", person, `{"diary":null}`, 403, "diary"},
		{"ada", "PATCH", person, `{"diary":"the-diary"}`, 200, ""},
		{"ada", "PUT", me, `{"role":"admin"}`, 403, "role"},
		{"nobody", "POST", "/auth/email",
			`{"register":true,"login":"eve@example.com","password":"a fine password","role":"admin"}`, 403, "role"},
	} {
		status, text := f.ask(of.caller, of.method, of.path, of.body)
		if status != of.status || of.names != "" && !strings.Contains(text, `\"`+of.names+`\"`) {
			t.Errorf("%s %s %s by %s: %d, want %d: %s", of.method, of.path, of.body, of.caller, status, of.status, text)
		}
	}
	if text := f.text("ada", 200, "GET", person, ""); !strings.Contains(text, `"diary":"the-diary"`) ||
		!strings.Contains(text, `"rank":1`) {
		t.Error(text)
	}
	for caller, want := range map[string]importer.Progress{"bob": {Created: 1, Failed: 1}, "root": {Created: 2}} {
		i := importer.New(importer.Options{URL: "http://" + f.app.HTTPAddress() + "/people", Token: f.tokens[caller]})
		f.must(i.Run(t.Context(),
			strings.NewReader(fmt.Sprintf(`[{"uuid":"1-%s","rank":9},{"uuid":"2-%s"}]`, caller, caller))))
		if got := i.Progress(); got.Created != want.Created || got.Failed != want.Failed {
			t.Errorf("the import of %s: %+v", caller, got)
		}
	}
}

// A user's public view is without their idents, which the user sees.
func TestIdentsAreShownToTheirUserAlone(t *testing.T) {
	f := newFieldFixture(t)
	uuid := field(f.text("ada", 200, "GET", "/auth/me", ""), "uuid")
	f.waitFor("/auth/me", "ada@example.com")
	for caller, want := range map[string]bool{"ada": true, "bob": false, "nobody": false} {
		for _, path := range []string{"/users/" + uuid, "/users"} {
			if got := strings.Contains(f.text(caller, 200, "GET", path, ""), "ada@example.com"); got != want {
				t.Errorf("%s by %s: the address is shown: %v", path, caller, got)
			}
		}
	}
}

// Rules that don't compile are reported with store, field and position.
func TestRulesForFieldsAreChecked(t *testing.T) {
	p := newPlace(t, "stores: {A: {fields: {b: {read: 'input.x', write: '1 +'}, c: {read: isOwner}}}}\n")
	err := plan.Check(p.config)
	for _, want := range []string{
		"stores.A.fields.b.read: in the expression at 1:1: input is for write rules",
		"stores.A.fields.b.write: in the expression at 1:4: ",
		"stores.A.fields.c.read: in the expression at 1:1: isOwner is for stores whose objects have an owner",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := config.Load(p.write("belfry.yaml", fieldRules), os.LookupEnv); err != nil {
		t.Error(err)
	}
}
