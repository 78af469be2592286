package app

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"belfry/config"
	"belfry/pkg/account/admin"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// reader reads pages of the console and sends their forms, as a browser without a script does.
type reader struct {
	*editing
	client *http.Client
}

const readerPassword = "a fine password"

// read logs an admin in.
func (e *editing) read() *reader {
	e.Helper()
	if _, err := e.a.now().Auth.Admin.CreateUser(e.Context(), admin.NewUser{Login: "root@example.com",
		Password: readerPassword, Admin: true, Validated: true}); err != nil {
		e.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		e.Fatal(err)
	}
	r := &reader{editing: e, client: &http.Client{Jar: jar}}
	r.logIn()
	return r
}

// logIn logs in again, since changes of the model need a login of the last ten minutes.
func (r *reader) logIn() {
	r.Helper()
	r.send("/console/login", url.Values{"login": {"root@example.com"}, "password": {readerPassword}}, http.StatusOK)
}

// page is a page that was read.
type page struct {
	reader *reader
	path   string
	status int
	text   string
	root   *html.Node
}

func (r *reader) open(path string, status int) *page {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://"+r.a.HTTPAddress()+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	return r.reply(req, status)
}

func (r *reader) send(path string, values url.Values, status int) *page {
	r.Helper()
	address := "http://" + r.a.HTTPAddress()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, address+path, strings.NewReader(values.Encode()))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Origin", address)
	return r.reply(req, status)
}

// reply returns the page of a status; 0: of any.
func (r *reader) reply(req *http.Request, status int) *page {
	r.Helper()
	res, err := r.client.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.Fatal(err)
	}
	p := &page{reader: r, path: res.Request.URL.RequestURI(), status: res.StatusCode, text: string(text)}
	if p.root, err = html.Parse(strings.NewReader(p.text)); err != nil {
		r.Fatal(err)
	}
	if status != 0 && res.StatusCode != status {
		r.Fatalf("%s %s: %s, want %d: %s", req.Method, req.URL, res.Status, status, p.words())
	}
	return p
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func textOf(n *html.Node) string {
	if n.Type == html.TextNode {
		return n.Data
	}
	var b strings.Builder
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		b.WriteString(textOf(c))
	}
	return b.String()
}

// words is the text of the page, without what is around it.
func (p *page) words() string {
	for n := range p.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "main" {
			return strings.Join(strings.Fields(textOf(n)), " ")
		}
	}
	return p.text
}

// form returns the form of the page that has an input, and what a browser would send of it.
func (p *page) form(input string) (values url.Values, action string) {
	for n := range p.root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		values = url.Values{}
		for in := range n.Descendants() {
			name, named := attr(in, "name")
			if in.Type != html.ElementNode || !named {
				continue
			}
			value, _ := attr(in, "value")
			switch kind, _ := attr(in, "type"); in.Data {
			case "input":
				_, checked := attr(in, "checked")
				if kind != "checkbox" && kind != "radio" || checked {
					values.Add(name, value)
				}
			case "textarea":
				values.Add(name, strings.TrimPrefix(textOf(in), "\n"))
			case "select":
				chosen := ""
				for option := range in.Descendants() {
					if _, selected := attr(option, "selected"); selected {
						if chosen, _ = attr(option, "value"); chosen == "" {
							chosen = textOf(option)
						}
					}
				}
				values.Add(name, chosen)
			}
		}
		if values.Has(input) {
			action, _ = attr(n, "action")
			return values, action
		}
	}
	p.reader.Fatalf("%s has no form with %s: %s", p.path, input, p.words())
	return nil, ""
}

// fill sends the form of the page with other values, names and values in turn.
func (p *page) fill(status int, pairs ...string) *page {
	p.reader.Helper()
	values, action := p.form("document")
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] == "step" || pairs[i] == "add" || pairs[i] == "remove" || strings.HasPrefix(pairs[i], "set:") {
			values.Set(pairs[i], pairs[i+1])
			continue
		}
		if !values.Has(pairs[i]) {
			p.reader.Fatalf("%s has no input %s, only %v", p.path, pairs[i], values)
		}
		values.Set(pairs[i], p.option(pairs[i], pairs[i+1]))
	}
	return p.reader.send(action, values, status)
}

// option returns the value of an option with a label, or the label itself for other inputs.
func (p *page) option(name, label string) string {
	for n := range p.root.Descendants() {
		if is, _ := attr(n, "name"); n.Type != html.ElementNode || n.Data != "select" || is != name {
			continue
		}
		for option := range n.Descendants() {
			if value, has := attr(option, "value"); has && textOf(option) == label {
				return value
			}
		}
	}
	return label
}

// apply fills the form, and applies the change that the next page shows.
func (p *page) apply(pairs ...string) *page {
	p.reader.Helper()
	return p.fill(http.StatusOK, pairs...).fill(http.StatusOK, "step", "apply")
}

// An admin builds a model by forms: stores with fields, references, rules, indexes and mappings. They are served.
func TestAnAdminBuildsAModelByForms(t *testing.T) {
	e := newEditing(t, "# Empty.\ndevelopment: true\nlisten: 127.0.0.1:0\nbus: {listen: \"\"}\n"+
		"authentication: {providers: {email: {}}}\nmailers: {default: {type: file}}\n")
	r := e.read()
	list := r.open("/console/model", http.StatusOK)
	if !strings.Contains(list.text, "/console/configuration/new-store") {
		t.Fatal(list.words())
	}
	r.open("/console/configuration/new-store", http.StatusOK).
		fill(http.StatusOK, "/name", "Recipes", "/access", "everyone", "add", "/fields").
		apply("/fields/1/name", "minutes", "/fields/1/type", "integer")
	e.want(e.a, "POST", "/recipes", `{"minutes": 3}`, http.StatusBadRequest)
	e.want(e.a, "POST", "/recipes", `{"uuid": "soup", "title": "Soup"}`, http.StatusCreated)
	r.open("/console/configuration/new-store", http.StatusOK).
		fill(http.StatusOK, "/name", "Comments", "/access", "everyone", "add", "/fields").
		apply("/fields/0/name", "text", "/fields/1/name", "recipe", "/fields/1/type", "reference", "/fields/1/store", "Recipes")
	if got := e.a.now().Config.Stores["Comments"].References["recipe"]; got.Store != "Recipes" {
		t.Errorf("%+v\n%s", got, e.file("belfry.yaml"))
	}
	// A mapping: a row of a map, whose name is the store.
	review := r.open("/console/configuration/stores/Comments/edit/mappings", http.StatusOK).
		fill(http.StatusOK, "add", "/map").
		fill(http.StatusOK, "name:/map/~r0", "Recipes", "/map/~r0/key", "recipe", "/map/~r0/target", "comments", "add", "/map/~r0/fields").
		fill(http.StatusOK, "/map/~r0/fields/0", "text")
	if !strings.Contains(review.words(), "comments of Recipes is filled from the 0 objects of Comments") {
		t.Error(review.words())
	}
	review.fill(http.StatusOK, "step", "apply")
	e.want(e.a, "POST", "/comments", `{"recipe": "soup", "text": "Great!"}`, http.StatusCreated)
	r.open("/console/configuration/stores/Recipes/edit/indexes", http.StatusOK).
		fill(http.StatusOK, "add", "/indexes").apply("/indexes/0", "minutes")
	r.open("/console/configuration/stores/Recipes/field", http.StatusOK).
		apply("/name", "servings", "/type", "integer", "/minimum", "1", "/default", "4")
	e.want(e.a, "POST", "/recipes", `{"title": "x", "servings": 0}`, http.StatusBadRequest)
	r.open("/console/configuration/stores/Recipes/field?name=servings", http.StatusOK).apply("/minimum", "0")
	e.want(e.a, "POST", "/recipes", `{"title": "x", "servings": 0}`, http.StatusCreated)

	// Rules, with what is wrong in one at its field.
	rules := r.open("/console/configuration/stores/Comments/edit/rules", http.StatusOK)
	if !strings.Contains(rules.text, `data-names="/console/model/Comments/names"`) ||
		!strings.Contains(rules.text, `<code-editor class="line" language="cel"`) {
		t.Error(rules.text)
	}
	wrong := rules.fill(http.StatusUnprocessableEntity, "/policy/update", "user.(")
	if !strings.Contains(wrong.text, "user.(") || !strings.Contains(wrong.text, "aria-invalid") {
		t.Error(wrong.words())
	}
	wrong.apply("/policy/update", "user != null")
	e.want(e.a, "PATCH", "/comments/x", `{"text": "y"}`, http.StatusNotFound)
	if got := e.a.now().Config.Stores["Comments"].Policy.Update; got != "user != null" {
		t.Errorf("%q", got)
	}

	// What is removed asks for its name.
	remove := r.open("/console/configuration/stores/Recipes/remove-field?name=servings", http.StatusOK)
	remove.fill(http.StatusUnprocessableEntity).apply("confirmed", "servings")
	if strings.Contains(e.file("schemas/Recipes.json"), "servings") {
		t.Error(e.file("schemas/Recipes.json"))
	}
	r.open("/console/configuration/stores/Comments/remove", http.StatusOK).
		fill(http.StatusUnprocessableEntity, "confirmed", "comments").apply("confirmed", "Comments")
	e.want(e.a, "GET", "/comments", "", http.StatusNotFound)

	// And all of it can be undone, the latest change first.
	changes := r.open("/console/configuration/changes", http.StatusOK)
	if !strings.Contains(changes.text, "Undo change 9") || strings.Contains(changes.text, "Undo change 7") || !strings.Contains(changes.words(), "root@example.com") {
		t.Error(changes.words())
	}
	all, err := e.editor().Versions(t.Context())
	if err != nil || len(all) != 9 {
		t.Fatalf("%d changes, %v", len(all), err)
	}
	undo := r.open("/console/configuration/changes/9", http.StatusOK)
	undo.fill(http.StatusOK)
	e.want(e.a, "GET", "/comments", "", http.StatusOK)
	if !strings.HasPrefix(e.file("belfry.yaml"), "# Empty.\n") {
		t.Error(e.file("belfry.yaml"))
	}
}

// Each form that is sent as it was opened changes nothing, whatever the configuration has.
func TestFormsOfTheModelChangeNothingByThemselves(t *testing.T) {
	e := newEditing(t, strings.Replace(edited, "  Recipes:\n", `  Cooks:
    expose:
    policy: owner
    references: {boss: Cooks, friend: {store: Cooks, onDelete: clear}}
    copies: {bossName: {from: boss.name, read: "true"}, friendName: {from: friend.name, read: isOwner}}
    private: a, b
    unique: ["code", "x, y"]
    search: {fields: "name, text", language: de}
    fields: {c: {read: "isOwner"}}
    computed: {upper: "string(object.name)"}
    indexes: [name, "-age, name"]
    map: {Recipes: {key: recipe, target: cooks, fields: "name", limit: 5, maxBytes: 64KiB, aggregates: {n: count()}}}
    maxObjectSize: 65536
    bus: "false"
    intercept: {save: [{name: check, timeout: 500ms}]}
  Recipes:
`, 1)+"limits: {address: {reads: 10, listBytes: 1048576}, loopback: false}\n"+
		"authentication: {providers: {google: {clientID: a, clientSecret: hunter2-secret}, own: {type: oidc, issuer: 'https://example.com', clientID: x, clientSecret: yy}}}\n")
	r := e.read()
	before := e.files()
	paths := []string{"/console/configuration/limits", "/console/configuration/settings/mailers/post",
		"/console/configuration/settings/providers/google", "/console/configuration/settings/providers/own"}
	for _, store := range []string{"Cooks", "Recipes"} {
		for _, section := range []string{"routes", "rules", "field-rules", "indexes", "links", "mappings", "computed", "settings"} {
			paths = append(paths, "/console/configuration/stores/"+store+"/edit/"+section)
		}
	}
	for _, path := range paths {
		p := r.open(path, http.StatusOK)
		if strings.Contains(p.text, "hunter2") {
			t.Errorf("%s shows a secret", path)
		}
		sent := p.fill(http.StatusUnprocessableEntity)
		if !strings.Contains(sent.words(), "Nothing changes") {
			t.Errorf("%s: %s", path, sent.words())
		}
	}
	if now := e.files(); !mapsEqual(now, before) {
		t.Error(now)
	}
	// Secrets are typed on the last page, which no reply repeats.
	p := r.open("/console/configuration/settings/providers/google", http.StatusOK).
		fill(http.StatusOK, "set:secret:authentication.providers.google.clientSecret", "true")
	made := p.fill(http.StatusOK, "step", "apply", "secret:authentication.providers.google.clientSecret", "s3cret-typed")
	if strings.Contains(p.text+made.text, "s3cret-typed") || e.google() != "s3cret-typed" {
		t.Errorf("%q: %s", e.google(), made.words())
	}
	// New ones.
	r.open("/console/configuration/settings/mailers/other", http.StatusOK).apply("/host", "mail.example.org")
	if m := e.a.now().Config.Mailers["other"]; m.SMTP == nil || m.SMTP.Host != "mail.example.org" {
		t.Errorf("%+v", m)
	}
	r.open("/console/configuration/limits", http.StatusOK).apply("/address/reads", "20")
	if got := e.a.now().Config.Limits.Address.Reads; got != 20 {
		t.Error(got)
	}
	if after := strings.Split(e.file("belfry.yaml"), "\n"); !strings.Contains(strings.Join(after, "\n"), "private: a, b") {
		t.Error(e.file("belfry.yaml"))
	}
}

// What is typed into any field of any form is a value, and no page shows it as markup.
func TestHostileTextsInFormsOfTheModel(t *testing.T) {
	e := newEditing(t, edited)
	r := e.read()
	before := e.files()
	for _, text := range []string{"<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>\n  y: z", "${file:/etc/passwd}",
		"../../x"} {
		for path, fields := range map[string][]string{
			"/console/configuration/new-store":                                {"/name", "/fields/0/name"},
			"/console/configuration/stores/Recipes/field":                     {"/name", "/title", "/description", "/pattern", "/default"},
			"/console/configuration/stores/Recipes/edit/rules":                {"/owner", "/policy/create", "/policy/get"},
			"/console/configuration/stores/Recipes/edit/routes":               {"/expose/url"},
			"/console/configuration/stores/Recipes/edit/settings":             {"/maxObjectSize"},
			"/console/configuration/settings/mailers/post":                    {"/host", "/user"},
			"/console/configuration/settings/mailers/" + url.PathEscape(text): {"/host"},
			"/console/configuration/settings/providers/google":                {"/clientID"},
			"/console/configuration/limits":                                   {"/address/listBytes"},
			"/console/configuration/stores/Recipes/remove":                    {"confirmed"},
		} {
			for _, field := range fields {
				values, action := r.open(path, http.StatusOK).form("document")
				values.Set(field, text)
				req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+e.a.HTTPAddress()+action, strings.NewReader(values.Encode()))
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				req.Header.Set("Origin", "http://"+e.a.HTTPAddress())
				res, err := r.client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				reply, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if res.StatusCode >= 500 || res.StatusCode == http.StatusNotFound {
					t.Errorf("%s %s %q: %s", path, field, text, res.Status)
				}
				for _, markup := range []string{"<script>alert", "<img src=x", "root:x:0:0"} {
					if strings.Contains(string(reply), markup) {
						t.Errorf("%s %s: the page has the markup of %q", path, field, text)
					}
				}
			}
		}
	}
	if now := e.files(); !mapsEqual(now, before) {
		t.Error("a review has written files")
	}
	// A text that can be applied is the value that is served.
	r.open("/console/configuration/stores/Recipes/field", http.StatusOK).
		apply("/name", "note", "/type", "string", "/description", "${HOME} <b>: # {x}\" '")
	var schema struct {
		Properties map[string]struct{ Description string }
	}
	if err := json.Unmarshal([]byte(e.file("recipe.json")), &schema); err != nil || schema.Properties["note"].Description != "${HOME} <b>: # {x}\" '" {
		t.Errorf("%v, %s", err, e.file("recipe.json"))
	}
	r.open("/console/model/Recipes", http.StatusOK)
}

// The forms are for admins whose login is recent, from pages of belfry's own.
func TestWhoMayChangeTheModel(t *testing.T) {
	e := newEditing(t, edited)
	r := e.read()
	values, action := r.open("/console/configuration/stores/Recipes/edit/indexes", http.StatusOK).form("document")
	send := func(origin string, client *http.Client) *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", "http://"+e.a.HTTPAddress()+action, strings.NewReader(values.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", origin)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return res
	}
	if res := send("https://evil.example", r.client); res.StatusCode != http.StatusForbidden {
		t.Errorf("from another origin: %s", res.Status)
	}
	if res := send("http://"+e.a.HTTPAddress(), http.DefaultClient); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a login: %s", res.Status)
	}
	for _, path := range []string{"/console/configuration/stores/Idents/edit/rules", "/console/configuration/stores/Idents/field",
		"/console/configuration/stores/Idents/remove"} {
		r.open(path, http.StatusForbidden)
	}
	for _, path := range []string{"/console/configuration/stores/Sessions/edit/rules", "/console/configuration/stores/None/field",
		"/console/configuration/stores/Recipes/edit/none", "/console/configuration/settings/none/x",
		"/console/configuration/settings/mailers/none/remove", "/console/configuration/changes/7",
		"/console/configuration/changes/x", "/console/configuration/stores/Recipes/field?name=none"} {
		r.open(path, http.StatusNotFound)
	}
	old := object.Object{}
	old.Set("authenticatedAt", "2020-01-01T00:00:00.000000Z")
	sessions := e.a.now().Set.Store(config.SessionStore)
	all, _, err := sessions.Scan(t.Context(), nil, 10)
	if err != nil || len(all) == 0 {
		t.Fatalf("%d sessions, %v", len(all), err)
	}
	for _, s := range all {
		if _, err := sessions.Mutate(t.Context(), s.UUID, func(store.Stored) (store.Mutation, error) {
			return store.Mutation{Fields: old}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	before := e.files()
	for _, path := range []string{action, "/console/configuration/limits", "/console/configuration/settings",
		"/console/configuration/new-store"} {
		if p := r.open(path, 0); !strings.HasPrefix(p.path, "/console/step-up") {
			t.Errorf("%s after an old login: %d, %s", path, p.status, p.path)
		}
	}
	values.Set("step", "apply")
	r.send(action, values, http.StatusUnauthorized)
	if now := e.files(); !mapsEqual(now, before) {
		t.Error("an old login changes the configuration")
	}
}
