package app

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"belfry/config"
	"belfry/config/edit"
)

// attacked is a configuration that has a value for nearly every input of the forms, and is read-only in the console, so
// that each review shows the whole file.
const attacked = `listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Cooks:
    expose: {list: true, events: true}
    policy: {create: user != null, get: "true"}
    references: {boss: Cooks, friend: {store: Cooks, onDelete: clear}}
    copies: {bossName: {from: boss.name, read: "true"}}
    private: a, b
    unique: ["code", "x, y"]
    search: {fields: "name, text", language: de}
    fields: {c: {read: "isOwner"}}
    owner: by
    computed: {upper: "string(object.name)"}
    indexes: [name, "-age, name"]
    map: {Recipes: {key: recipe, target: cooks, fields: "name", limit: 5, maxBytes: 64KiB, aggregates: {n: count()}}}
    maxObjectSize: 65536
    intercept: {save: [{name: check, timeout: 500ms}]}
  Recipes: {expose: {list: true}, uuid: client, schema: recipe.json}
limits: {address: {reads: 10, listBytes: 1048576}, loopback: false}
authentication:
  providers:
    email: {subject: Hello}
    google: {clientID: a, clientSecret: hunter2-secret}
    own: {type: oidc, issuer: "https://example.com", clientID: x, clientSecret: hunter2-own}
mailers:
  post: {type: smtp, host: "${MAIL_HOST:-mail.example.com}", user: ada, password: hunter2-in-the-file}
`

// What no page may show.
const (
	secretFile        = "the-content-of-a-file"
	secretEnvironment = "the-value-of-the-environment"
)

const newStorePath = "/console/configuration/new-store"

// attackedForms are the pages of forms, with the section of the configuration that each may change; none: none, since
// it changes a schema.
func attackedForms() map[string][]string {
	forms := map[string][]string{
		newStorePath: {"stores"},
		"/console/configuration/stores/Recipes/field":                  nil,
		"/console/configuration/stores/Recipes/field?name=title":       nil,
		"/console/configuration/stores/Recipes/remove-field?name=text": nil,
		"/console/configuration/stores/Recipes/remove":                 {"stores", "Recipes"},
		"/console/configuration/limits":                                {"limits"},
		"/console/configuration/settings/mailers/post":                 {"mailers", "post"},
		"/console/configuration/settings/mailers/new":                  {"mailers", "new"},
	}
	for _, provider := range []string{"email", "google", "own", "apple", "microsoft", "twitter", "gitlab"} {
		forms["/console/configuration/settings/providers/"+provider] = []string{"authentication", "providers", provider}
	}
	for _, section := range []string{"routes", "rules", "field-rules", "indexes", "links", "mappings", "computed",
		"settings"} {
		forms["/console/configuration/stores/Cooks/edit/"+section] = []string{"stores", "Cooks"}
	}
	return forms
}

// hostileTexts are texts that are something else than a value, to YAML, to belfry, to a shell or to a page.
func hostileTexts(file, link string) []string {
	return []string{
		"${ATTACKED}", "${file:" + file + "}", "$${ATTACKED}", "$$${file:" + file + "}", "${ATTACKED:-${file:" + file + "}}",
		file, link, "../../etc/passwd", "file://" + file, "secret.txt", "./secret.txt\x00",
		"x\nadmins: \"true\"", "x\r\nhosts: ['*']", "x\u2028admins: true", "x\u0085admins: true", "x\u2029y", "\ufeffx",
		"*a", "&a x", "<<: *a", "!!binary aGk=", "!!python/object:os", "{<<: {admins: \"true\"}}", "- x\n- y", "? x", "x: y",
		"# x", "\"", "'", "\\", "|\n  x", ">-", "%TAG ! tag:x", "---\nadmins: x\n...", "\tx", "\x00", "\x1b[2J",
		`{"$ref": "file://` + file + `"}`, `{"$ref": "secret.txt#/x"}`, strings.Repeat("[", 3000),
		strings.Repeat(`{"a":`, 3000), strings.Repeat("x", 300<<10), "true", "null", "~", "0x7fffffffffffffff", "1e999",
		"<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "user != null || true", "object[\"x\"] == (",
		"Sessions", "Idents", "../Sessions", "_internal", "admins", "uuid", "__proto__",
	}
}

// attack is a belfry whose model an admin attacks by its forms.
type attack struct {
	*reader
	before map[string]string // leaves of the configuration
	schema map[string]string // and of the schema of Recipes
}

func newAttack(t *testing.T) (a *attack, texts []string) {
	t.Setenv("ATTACKED", secretEnvironment)
	e := newEditing(t, attacked)
	file, link := e.write("secret.txt", secretFile), e.path("link.txt")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	a = &attack{reader: e.read(), before: map[string]string{}, schema: map[string]string{}}
	values, err := edit.Read([]byte(attacked))
	if err != nil {
		t.Fatal(err)
	}
	leaves(values, "", a.before)
	jsonLeaves([]byte(e.file("recipe.json")), a.schema)
	return a, hostileTexts(file, link)
}

const within = "\x1f" // between the keys of a leaf

// leaves adds the single values of a configuration, by their keys.
func leaves(v edit.Value, at string, into map[string]string) {
	switch v := v.(type) {
	case edit.Map:
		for _, m := range v {
			leaves(m.Value, at+within+m.Key, into)
		}
	case []edit.Value:
		for i, item := range v {
			leaves(item, at+within+strconv.Itoa(i), into)
		}
	default:
		text, _ := edit.Text(v)
		into[at] = strings.ReplaceAll(text, "$${", "${") // as belfry reads it
	}
}

// jsonLeaves adds the single values of JSON; all that is no JSON has none.
func jsonLeaves(text []byte, into map[string]string) {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return
	}
	var add func(v any, at string)
	add = func(v any, at string) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				add(inner, at+within+key)
			}
		case []any:
			for i, inner := range v {
				add(inner, at+within+strconv.Itoa(i))
			}
		case string:
			into[at] = v
		default:
			data, _ := json.Marshal(v)
			into[at] = string(data)
		}
	}
	add(v, "")
}

// shownFiles returns the files of a review, whole; of another page, no files.
func (p *page) shownFiles() (all []string) {
	for n := range p.root.Descendants() {
		if id, _ := attr(n, "id"); n.Type == html.ElementNode && n.Data == "textarea" && strings.HasPrefix(id, "diff-") {
			all = append(all, textOf(n))
		}
	}
	return all
}

// sends sends a form, and checks that it does no harm. It reports whether the reply is the review of a change.
func (a *attack) sends(action string, section []string, values url.Values) (reviewed bool) {
	a.Helper()
	p := a.send(action, values, 0)
	switch p.status {
	case http.StatusOK, http.StatusBadRequest, http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity,
		http.StatusRequestEntityTooLarge:
	default:
		a.Errorf("%s: %d of %q", action, p.status, brief(values))
	}
	for _, never := range []string{secretFile, secretEnvironment, "hunter2", "root:x:0", "<script>alert", "<img src=x"} {
		if strings.Contains(p.text, never) {
			a.Errorf("%s: the page has %q after %q", action, never, brief(values))
		}
	}
	for _, text := range p.shownFiles() {
		reviewed = true
		a.changes(action, section, values, text)
	}
	return reviewed
}

func brief(values url.Values) string { return values.Encode()[:min(len(values.Encode()), 3000)] }

// changes checks that a file has changed in the section alone, and has there what was sent.
func (a *attack) changes(action string, section []string, sent url.Values, text string) {
	a.Helper()
	known, now, schema := a.before, map[string]string{}, json.Valid([]byte(text))
	if schema {
		known = a.schema
		jsonLeaves([]byte(text), now)
	} else {
		values, err := edit.Read([]byte(text))
		if err != nil {
			a.Errorf("%s: %v after %q", action, err, brief(sent))
			return
		}
		leaves(values, "", now)
	}
	typed := a.texts(sent)
	for _, at := range slices.Concat(slices.Collect(maps.Keys(now)), slices.Collect(maps.Keys(known))) {
		value, is := now[at]
		if before, was := known[at]; is == was && before == value || is && was && value == "[secret]" {
			continue
		}
		keys := strings.Split(at, within)[1:]
		switch {
		case schema:
			if i := slices.Index([]string{"properties", "required", "$schema", "type"}, keys[0]); i < 0 {
				a.Errorf("%s: %q of a schema has changed after %q", action, keys, brief(sent))
			}
		case len(section) == 0 || len(keys) <= len(section) || !slices.Equal(keys[:len(section)], section):
			a.Errorf("%s: %q has changed after %q", action, keys, brief(sent))
		case action == newStorePath && (keys[1] == "Cooks" || keys[1] == "Recipes"):
			a.Errorf("%s: the store %q has changed after %q", action, keys, brief(sent))
		case config.NamesPath(keys) && value != "schemas/"+keys[1]+".json":
			a.Errorf("%s: the path %q is %q after %q", action, keys, value, brief(sent))
		case section[0] != "stores" && config.SecretKey(keys[len(keys)-1]):
			a.Errorf("%s: the secret %q is %q after %q", action, keys, value, brief(sent))
		}
		if is && !typed[value] && value != "schemas/"+keys[min(1, len(keys)-1)]+".json" {
			a.Errorf("%s: %q is %q, which was not sent, after %q", action, keys, value, brief(sent))
		}
	}
}

// texts are the values that a change may have: those that were sent, and those of before in other forms.
func (a *attack) texts(sent url.Values) map[string]bool {
	all := map[string]bool{"": true, "true": true, "false": true, "owner": true, "oidc": true,
		"https://json-schema.org/draft/2020-12/schema": true}
	for _, kind := range []string{"object", "string", "number", "integer", "boolean", "array", "date", "date-time", "email",
		"uri"} { // of new fields
		all[kind] = true
	}
	add := func(text string) {
		all[text] = true
		inner := map[string]string{}
		jsonLeaves([]byte(text), inner)
		for _, one := range inner {
			all[one] = true
		}
	}
	for _, values := range sent {
		for _, text := range values {
			add(text)
			add(strings.ReplaceAll(text, "\r\n", "\n")) // as browsers send the ends of lines
		}
	}
	for _, text := range a.before {
		for part := range strings.SplitSeq(text, ",") {
			add(strings.TrimSpace(part))
		}
	}
	return all
}

// inputs returns what a form sends, complete enough to be reviewed where nothing is wrong, and the same with a row more
// of each list and map. All forms together can take longer than a login is recent.
func (a *attack) inputs(path string) (values, more url.Values, action string) {
	a.Helper()
	a.logIn()
	p := a.open(path, http.StatusOK)
	values, action = p.form("document")
	for name, text := range map[string]string{"/name": "extra", "confirmed": "extra"} {
		if values.Has(name) && values.Get(name) == "" {
			values.Set(name, text)
		}
	}
	more = maps.Clone(values)
	for n := range p.root.Descendants() {
		if name, _ := attr(n, "name"); n.Type == html.ElementNode && n.Data == "button" && name == "add" {
			list, _ := attr(n, "value")
			more.Set("add", list)
			more, _ = a.send(action, more, http.StatusOK).form("document")
		}
	}
	return values, more, action
}

// No text in any field of any form changes anything but the value of that field, or reads a file or the environment.
func TestNoFieldOfTheModelReadsFilesOrGainsRights(t *testing.T) {
	a, texts := newAttack(t)
	files := a.files()
	fields, reviews := 0, 0
	forms := attackedForms()
	for _, path := range slices.Sorted(maps.Keys(forms)) {
		section := forms[path]
		values, more, action := a.inputs(path)
		tried := 0
		for _, name := range slices.Sorted(maps.Keys(more)) {
			if name == "document" || name == "base" || strings.HasPrefix(name, "rows:") {
				continue
			}
			fields++
			with := maps.Clone(more)
			if values.Has(name) {
				with = maps.Clone(values)
			}
			for i, text := range texts {
				// Many texts for one field of the form, some for each other one.
				if tried > 0 && i%30 != fields%30 || i%4 != fields%4 && tried == 0 {
					continue
				}
				with[name] = []string{text}
				if a.sends(action, section, with) {
					reviews++
				}
			}
			tried++
		}
		if tried == 0 {
			t.Errorf("%s has no fields", path)
		}
	}
	t.Logf("%d fields, %d reviews", fields, reviews)
	if fields < 250 || reviews < 100 {
		t.Errorf("only %d fields were tried, and %d changes reviewed", fields, reviews)
	}
	if now := a.files(); !mapsEqual(now, files) {
		t.Error("a review has written files")
	}
}

// What a form does not have is not changed by sending it, also to be applied at once.
func TestTheModelHasNoKeysBesideItsForms(t *testing.T) {
	a, texts := newAttack(t)
	files := a.files()
	const outsiders = `"admins": "true", "hosts": ["*"], "proxies": ["0.0.0.0/0"], "listen": "0.0.0.0:1", "data": "/",
		"static": {"folder": "/"}, "bus": {"listen": ":4222"}, "backend": "other", "backends": {"x": {"folder": "/"}},
		"metrics": {"token": ""}, "schema": "link.txt", "folder": "/etc", "privateKeyFile": "link.txt", "ca": "link.txt",
		"password": "typed", "clientSecret": "typed", "privateKey": "typed", "../admins": "true", "": "x", "$ref": "link.txt"`
	turn, forms := 0, attackedForms()
	for _, path := range slices.Sorted(maps.Keys(forms)) {
		section := forms[path]
		values, _, action := a.inputs(path)
		with := maps.Clone(values)
		with.Set("step", "apply")
		with.Set("base", `{`+outsiders+`}`)
		a.sends(action, section, with)
		if base := values.Get("base"); len(base) > 2 {
			with.Set("base", strings.TrimSuffix(strings.TrimSpace(base), "}")+`, `+outsiders+`}`)
			a.sends(action, section, with)
		}
		turn++
		for i, name := range []string{"/admins", "/hosts/0", "/schema", "/backend", "/folder", "/privateKeyFile", "/password",
			"/clientSecret", "/stores/Sessions/expose/url", "/../admins", "//", "/~2", "name:/map/~r0", "name:/~r0",
			"rows:/admins", "set:secret:admins", "set:secret:stores.Cooks.schema", "secret:admins"} {
			if i%3 != turn%3 {
				continue
			}
			with := maps.Clone(values)
			with.Set("step", "apply")
			with.Set(name, "true")
			a.sends(action, section, with)
		}
	}
	for _, text := range texts {
		for kind, section := range map[string][]string{"mailers": {"mailers"}, "providers": {"authentication", "providers"}} {
			path := "/console/configuration/settings/" + kind + "/" + url.PathEscape(text)
			if p := a.open(path, 0); p.status == http.StatusOK {
				values, action := p.form("document")
				values.Set("/host", "x")
				a.sends(action, append(slices.Clone(section), text), values)
			}
		}
	}
	if now := a.files(); !mapsEqual(now, files) {
		t.Error("something was written")
	}
	if all, err := a.editor().Versions(t.Context()); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}
