package app

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

const modeled = `
listen: 127.0.0.1:0
bus: {listen: ""}
mailers: {default: {type: file, folder: mails}}
authentication: {providers: {email: {postValidation: true, skipEmailValidation: true}}}
binaries: {default: {map: {Notes: [photos]}, maxSize: 2MiB}}
stores:
  Users: {private: [pin]}
  Lists:
    expose: {list: true}
    owner: author
    policy: owner
    schema: list.json
  Open: {expose: {restrict: {delete: true}}}
  Notes:
    expose: {list: true}
    owner: author
    private: [grade]
    readOnly: [state]
    unique: [code]
    indexes: ["year, title"]
    search: {fields: title, language: en}
    maxObjectSize: 64KiB
    computed: {upper: 'string(title)'}
    references: {list: {store: Lists, required: true, onDelete: restrict}}
    copies: {listName: {from: list.name, read: 'true'}}
    map: {Lists: {key: list, target: notes, fields: title, aggregates: {count: count()}}}
    fields:
      phone: {read: "isOwner || user.admin == true", write: "isOwner && input.phone != ''"}
      flag: {write: "user.admin == true"}
      hidden: {read: "false", write: "isOwner"}
    policy:
      create: user != null && (user.admin == true || linked.list.author == user.uuid)
      get: isOwner || object.public == true || user.admin == true || user.uuid in object.readers
      list: isOwner || user.admin == true
      update: isOwner && (!has(input.title) || input.title != "locked")
      delete: "user.admin == true && session.aal == 2 || object.author == user.uuid && !(object.kept == true)"
    intercept: {save: [{name: checks}]}
`

type modeledPlace struct {
	*place
	app   *App
	admin string // token of a session
	users map[string]string
}

func startModeled(t *testing.T) *modeledPlace {
	t.Helper()
	m := &modeledPlace{place: &place{T: t, folder: t.TempDir()}, users: map[string]string{"nobody": ""}}
	m.place = newPlaceIn(t, map[string]string{"list.json": `{"type":"object","required":["name"],
		"properties":{"name":{"type":"string","minLength":1,"description":"<b>What</b> it is called."},
			"kind":{"enum":["a","b"],"default":"a"}},"additionalProperties":true}`}, modeled)
	m.app = m.start()
	service := m.app.now().Auth
	for _, name := range []string{"ann", "bob", "root"} {
		user := must(service.Admin.CreateUser(t.Context(), admin.NewUser{Login: name + "@example.com",
			Password: "a fine password", Admin: name == "root", Validated: true}))
		m.users[name] = user.UUID
	}
	session := must(service.Login.Login(t.Context(),
		passwords.Credentials{Login: "root@example.com", Password: "a fine password"}, sessions.Client{}))
	m.admin = session.Token
	bodies := map[string]string{
		"l-ann": `{"name":"Ann's","author":"ANN"}`, "l-carl": `{"name":"Carl's","author":"carl"}`,
		"n-ann": `{"author":"ANN","list":"l-ann","title":"One","code":1,"grade":7531,"phone":"12","year":1}`,
		"n-ann2": `{"author":"ANN","list":"l-carl","public":true,"kept":true,"code":2,"flag":1,"readers":["BOB"],` +
			`"<script>x":1}`,
		"n-ann3": `{"author":"ANN","list":"l-ann","public":"true","kept":0,"code":3,"readers":{"ANN":1},"hidden":2}`,
		"n-carl": `{"author":"carl","list":"l-carl","title":"locked","code":4,"readers":["ANN","BOB"],"phone":""}`,
		"n-none": `{"list":"l-carl","public":false,"code":5}`,
		"o-one":  `{"a":1}`,
	}
	for _, uuid := range slices.Sorted(maps.Keys(bodies)) { // lists before those that name them
		body := strings.NewReplacer("ANN", m.users["ann"], "BOB", m.users["bob"]).Replace(bodies[uuid])
		name := map[byte]string{'l': "Lists", 'n': "Notes", 'o': "Open"}[uuid[0]]
		if _, err := m.app.Set().Store(name).Save(t.Context(), must(object.Parse([]byte(body))), uuid); err != nil {
			t.Fatal(uuid, err)
		}
	}
	return m
}

func newPlaceIn(t *testing.T, files map[string]string, text string) *place {
	t.Helper()
	p := newPlace(t, "listen: 127.0.0.1:0\n")
	for name, content := range files {
		p.write(name, content)
	}
	p.config = p.load(text)
	return p
}

// What the table of a store's page says of a kind of callers is what `access check` explains of each of them.
func TestTheTableOfRightsAgreesWithWhatIsExplained(t *testing.T) {
	m := startModeled(t)
	model := m.app.console().Model
	inputs := []string{`{}`, `{"title":"locked","list":"l-carl"}`, `{"title":"x","phone":"","list":"l-ann"}`,
		`{"phone":"7","flag":2,"hidden":1,"list":"l-carl"}`}
	columns := [][]string{{"nobody"}, {"bob", "ann", "root"}, {"ann"}, {"root"}}
	compared := map[policy.Outcome]int{}
	for _, s := range model.Stores() {
		objects := map[string][]string{"Lists": {"l-ann", "l-carl"}, "Open": {"o-one"},
			"Notes": {"n-ann", "n-ann2", "n-ann3", "n-carl", "n-none"}, "Users": {m.users["ann"], m.users["bob"]}}[s.Name]
		for _, right := range s.Rights() {
			for column, cell := range right.Cells {
				compared[cell.Outcome]++
				if cell.Outcome == "" || cell.Outcome == policy.Depends {
					continue
				}
				for _, name := range columns[column] {
					for _, uuid := range objects {
						own := strings.HasSuffix(strings.TrimRight(uuid, "23"), "-"+name) || uuid == m.users[name]
						if !strings.Contains(right.What, "create") && own != (column == 2) {
							continue
						}
						for _, input := range inputs {
							m.agrees(model, s, right, cell, name, uuid, input)
						}
					}
				}
			}
		}
	}
	if compared[policy.Always] < 15 || compared[policy.Never] < 15 || compared[policy.Depends] < 5 {
		t.Errorf("%v cells were compared", compared)
	}
}

// agrees compares a cell with one explanation.
func (m *modeledPlace) agrees(model *console.Model, s console.ModelStore, right console.ModelRight, cell policy.Partial,
	user, uuid, input string) {
	m.Helper()
	words := strings.Fields(right.What)
	op, field := policy.Op(words[0]), ""
	switch words[0] {
	case "read":
		op, field = policy.Get, words[1]
	case "write":
		op, field = policy.Op(words[3]), words[1]
	}
	q := console.RuleQuestion{User: m.users[user], AAL: 1 + len(input)%2, Store: s.Name, Operation: op, UUID: uuid}
	if op == policy.Create {
		q.UUID = ""
	}
	if op == policy.Create || op == policy.Update {
		q.Input = []byte(input)
	}
	answer, err := model.Try(m.Context(), q)
	if err != nil {
		m.Fatalf("%+v: %v", q, err)
	}
	if field == "" && answer.NoRoute != right.NoRoute {
		m.Errorf("%s of %s: %q, and explained %q", right.What, s.Name, right.NoRoute, answer.NoRoute)
	}
	if field != "" && right.NoRoute != "" {
		return // which the page shows alone
	}
	allowed, known := answer.Allowed, field == ""
	for _, f := range answer.Fields {
		switch {
		case f.Field != field:
		case words[0] == "read" && f.Read != nil:
			allowed, known = f.Read.Allowed, true
		case words[0] == "write" && f.Write != nil && f.Write.Rule != "none: the value stays as it is":
			allowed, known = f.Write.Allowed, true
		}
	}
	if known && allowed != (cell.Outcome == policy.Always) {
		m.Errorf("%s of %s says %s, and %s with %s and %s is explained as %v", right.What, s.Name, cell.Outcome, user,
			uuid, input, allowed)
	}
}

// open requests a page as the admin.
func (m *modeledPlace) open(method, path, form string, headers ...string) (int, string) {
	m.Helper()
	r := httptest.NewRequestWithContext(m.Context(), method, "http://"+m.app.HTTPAddress()+path, strings.NewReader(form))
	r.Header.Set("Authorization", "Bearer "+m.admin)
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+m.app.HTTPAddress())
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	m.app.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (m *modeledPlace) shows(page string, texts ...string) {
	m.Helper()
	for _, text := range texts {
		if !strings.Contains(page, text) {
			m.Errorf("the page does not show %q", text)
		}
	}
	if m.Failed() {
		m.Log(page)
	}
}

// The page of a store shows its model, and no value of an object.
func TestThePageOfAStoreShowsItsModel(t *testing.T) {
	m := startModeled(t)
	status, page := m.open("GET", "/console/model", "")
	if m.shows(page, `href="/console/model/Notes"`, `href="/console/model/Users"`, `href="/console/model/Idents"`); status != 200 ||
		strings.Contains(page, "Sessions") {
		t.Errorf("%d %s", status, page)
	}
	_, page = m.open("GET", "/console/model/Notes", "")
	m.shows(page, "<code>&lt;script&gt;x</code>", "names Lists", "copy of Lists.name", "private", "read only", "computed",
		"the owner, or admins", "5 of 5", "1 of 5", "names an existing object",
		"be deleted while it is named", "copies of <code>uuid</code>, <code>title</code> in the array <code>notes</code>",
		"words of the language en", "64KiB", "at most 2MiB each", "<code>photos</code>", "reject", "<code>checks</code>",
		"<code>year</code>, <code>title</code>", "complete", `href="/console/objects/Notes"`)
	for _, never := range []string{"7531", "<script>x", "l-carl", "locked</"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	_, page = m.open("GET", "/console/model/Lists", "")
	m.shows(page, "&lt;b&gt;What&lt;/b&gt; it is called.", "minLength 1", "required", "By policy: owner.",
		"the owner, or anybody if the object&#39;s public is true", "copies of Notes", "count of Notes")
	for _, path := range []string{"/console/model/Sessions", "/console/model/none", "/console/model/Tokens"} {
		if status, _ := m.open("GET", path, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", path, status)
		}
	}
	_, names := m.open("GET", "/console/model/Notes/names", "")
	if m.shows(names, `"linked":{"list":["author","count","created","kind","name","notes"`, `"session":["aal"`, `"isOwner"`); strings.Contains(names, "grade") ||
		strings.Contains(names, "hidden") || strings.Contains(names, "pin") {
		t.Error(names)
	}
	for _, from := range []string{"/console/objects/Notes", "/console/map"} {
		_, page := m.open("GET", from, "")
		m.shows(page, `href="/console/model/Notes"`)
	}
}

// The rule tester answers as `access check`, writes nothing, and is no way to read private fields.
func TestTheRuleTesterOfTheConsole(t *testing.T) {
	m := startModeled(t)
	revision := func() uint64 { return must(m.app.Set().Store("Notes").Get(context.Background(), "n-ann")).Revision }
	before := revision()
	test := func(fields ...string) (int, string) {
		form := url.Values{"operation": {"get"}, "uuid": {"n-ann"}}
		for i := 0; i < len(fields); i += 2 {
			form.Set(fields[i], fields[i+1])
		}
		return m.open("POST", "/console/model/Notes/test", form.Encode())
	}
	for _, c := range []struct {
		fields []string
		status int
		shows  []string
	}{
		{[]string{}, 200, []string{"denied", "by nobody", "isOwner"}},
		{[]string{"user", "ann@example.com"}, 200, []string{"allowed", m.users["ann"], "decides", "user.admin == true"}},
		{[]string{"user", m.users["bob"]}, 200, []string{"denied", "error"}},
		{[]string{"user", "none@example.com"}, 400, []string{"there is no such user"}},
		{[]string{"uuid", ""}, 400, []string{"get needs the uuid"}},
		{[]string{"uuid", "nothing"}, 400, []string{"has no object"}},
		{[]string{"operation", "drop"}, 400, []string{"Choose an operation"}},
		{[]string{"operation", "update", "user", "ann@example.com", "input", "[1]"}, 400, []string{"expected a JSON object"}},
		{[]string{"operation", "update", "user", "ann@example.com", "input", `{"title":"locked"}`}, 200,
			[]string{"denied", "&#34;locked&#34;"}},
		{[]string{"operation", "update", "user", "ann@example.com", "input", `{"flag":5}`}, 200,
			[]string{"denied", "Refused because of", "<code>flag</code>"}},
		{[]string{"operation", "create", "user", "ann@example.com", "input", `{"list":"l-ann"}`}, 200, []string{"allowed"}},
		{[]string{"operation", "delete", "user", "root@example.com"}, 200, []string{"denied"}},
		{[]string{"operation", "delete", "user", "root@example.com", "aal", "2"}, 200, []string{"allowed"}},
		{[]string{"rule", "user == null"}, 200, []string{"allowed", "Tried rule"}},
		{[]string{"rule", "user == nul"}, 400, []string{"In the rule at 1:9", "undeclared reference"}},
		{[]string{"rule", "user.a = 1"}, 400, []string{"write == to compare"}},
		{[]string{"rule", "linked.liste.a == 1"}, 400, []string{"did you mean list"}},
		{[]string{"rule", strings.Repeat("true && ", 2000) + "true"}, 400, []string{"longer than"}},
		{[]string{"rule", "object.grade == 7531"}, 400, []string{"never leaves the server"}},
		{[]string{"rule", "object['grade'] == 7531"}, 400, []string{"never leaves the server"}},
		{[]string{"rule", "has(object._binaries)"}, 400, []string{"never leaves the server"}},
		{[]string{"rule", "[object].exists(o, o.grade == 7531)"}, 400, []string{"names the fields that it reads"}},
		{[]string{"rule", "object['gra' + 'de'] == 7531"}, 400, []string{"names the fields that it reads"}},
		{[]string{"rule", "linked.list == null"}, 400, []string{"names the fields that it reads"}},
		{[]string{"operation", "list", "rule", "linked.list.name == 'x'"}, 400, []string{"lists read no linked objects"}},
	} {
		status, page := test(c.fields...)
		if m.shows(page, c.shows...); status != c.status || strings.Contains(page, ">7531<") {
			t.Errorf("%q: %d", c.fields, status)
		}
	}
	part := url.Values{"operation": {"get"}, "uuid": {"n-ann"}}.Encode()
	if status, text := m.open("POST", "/console/model/Notes/test", part, "Hx-Request", "true"); status != 200 ||
		strings.Contains(text, "<html") || !strings.Contains(text, "denied") {
		t.Errorf("%d %s", status, text)
	}
	if revision() != before {
		t.Error("the object was written")
	}
	if _, err := m.app.console().Model.Try(t.Context(), console.RuleQuestion{Store: "Notes", Operation: policy.Get,
		UUID: "n-ann", Rule: "object.title == 'One'"}); errs.KindOf(err) == errs.Internal && err != nil {
		t.Error(err)
	}
}
