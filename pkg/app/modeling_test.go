package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/modeling"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit"
)

const edited = `# The recipe site.
development: true
listen: 127.0.0.1:0
bus: {listen: ""}

stores:
  # Everyone reads.
  Recipes:
    expose: {list: true}  # GET /recipes
    uuid: client
    policy: {default: allow, update: "true"}
    schema: recipe.json

mailers:
  post: {type: smtp, host: "${MAIL_HOST:-mail.example.com}", user: ada, password: hunter2-in-the-file}
`

// editing is a belfry whose configuration an admin changes.
type editing struct {
	*place
	a  *App
	by console.ModelActor
}

func newEditing(t *testing.T, text string) *editing {
	t.Helper()
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.write("recipe.json", `{"type": "object", "properties": {"title": {"type": "string"}, "text": {"type": "string"}}}`)
	p.config = p.load(text)
	e := &editing{place: p, by: console.ModelActor{UUID: "ada", Name: "ada@example.com", Request: "r1"}}
	e.begin()
	return e
}

func (e *editing) begin() {
	e.Helper()
	e.a = e.start()
	e.a.OnReload(e.reloading())
}

// reloading reads the configuration of the place again.
func (p *place) reloading() Reloading {
	return Reloading{
		Read: func() (*config.Config, error) { return config.Load(p.path("belfry.yaml"), os.LookupEnv) },
		Parse: func(text []byte) (*config.Config, error) {
			return config.Parse(p.path("belfry.yaml"), text, os.LookupEnv)
		},
	}
}

func (e *editing) editor() console.ModelEditor { return e.a.wiring.views.Editor }

func (e *editing) base() string {
	e.Helper()
	d, err := e.editor().Document(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	return d.Base
}

// set is a draft that sets a key.
func (e *editing) set(key, value string) *console.ModelDraft {
	e.Helper()
	return &console.ModelDraft{Base: e.base(),
		Changes: []console.ModelChange{{Path: strings.Split(key, "/"), Value: json.RawMessage(value)}}}
}

func (e *editing) apply(d *console.ModelDraft) *console.ModelVersion {
	e.Helper()
	v, err := e.editor().Apply(e.Context(), d, e.by)
	if err != nil {
		e.Fatal(err)
	}
	return v
}

// file returns the content of a file beside the configuration.
func (e *editing) file(name string) string {
	e.Helper()
	text, err := os.ReadFile(e.path(name))
	if err != nil {
		e.Fatal(err)
	}
	return string(text)
}

// files returns all files beside the configuration, other than data.
func (e *editing) files() map[string]string {
	e.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(e.folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && path == e.path("data") {
			return fs.SkipDir
		}
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(e.folder, path)
			all[name] = e.file(name)
		}
		return err
	})
	if err != nil {
		e.Fatal(err)
	}
	return all
}

// changes returns the events Config.Changed in the log.
func (e *editing) changes() (all []event.Envelope) {
	e.Helper()
	page, _, err := eventlog.Newest(e.Context(), e.a.Bus().Conn(), e.a.Bus().JetStream(),
		eventlog.Object{Store: "Users", UUID: e.by.UUID}, []event.Name{event.ConfigChanged}, 0, 100)
	if err != nil {
		e.Fatal(err)
	}
	for _, one := range page {
		envelope, err := event.Decode(one.Data)
		if err != nil {
			e.Fatal(err)
		}
		all = append(all, envelope)
	}
	return all
}

func (e *editing) awaitChanges(n int) []event.Envelope {
	e.Helper()
	kit.WaitFor(e.T, "the events of changes", func() bool { return len(e.changes()) >= n })
	all := e.changes()
	if len(all) != n {
		e.Fatalf("%d events, want %d", len(all), n)
	}
	return all
}

// An admin creates a store with a schema and rules, which is served at once, and takes it back.
func TestAnAdminChangesTheModel(t *testing.T) {
	e := newEditing(t, edited)
	before := e.files()
	draft := e.set("stores/Comments", `{"expose": {"list": true}, "uuid": "client", "owner": "by",
		"policy": {"create": "user != null", "get": "true"}, "indexes": ["recipe"], "map": {"Recipes": {"key": "recipe", "target": "comments", "fields": ["text"]}}}`)
	draft.Schemas = map[string]json.RawMessage{"Comments": json.RawMessage(
		`{"type": "object", "properties": {"text": {"type": "string"}, "recipe": {"type": "string"}}}`)}
	p, err := e.editor().Propose(e.Context(), draft)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Problems) > 0 || p.ReadOnly != "" || !slices.Contains(p.Keys, "stores.Comments") || len(p.Files) != 2 ||
		p.Files[0].Name != e.path("schemas/Comments.json") || !p.Files[0].New {
		t.Errorf("%+v", p)
	}
	if now := e.files(); len(now) != len(before) {
		t.Error("a proposal has written files")
	}
	e.want(e.a, "GET", "/comments", "", http.StatusNotFound)

	made := e.apply(draft)
	e.want(e.a, "GET", "/comments", "", http.StatusOK)
	e.want(e.a, "POST", "/comments", `{"uuid": "c1", "text": "x"}`, http.StatusUnauthorized)
	text := e.file("belfry.yaml")
	for _, kept := range []string{"# The recipe site.\n", "  # Everyone reads.\n", "{list: true}  # GET /recipes",
		"${MAIL_HOST:-mail.example.com}", "schema: schemas/Comments.json"} {
		if !strings.Contains(text, kept) {
			t.Errorf("%q is not in\n%s", kept, text)
		}
	}
	if changes := e.awaitChanges(1); changes[0].Actor == nil || *changes[0].Actor != "ada" ||
		!slices.Equal(changes[0].Changed, made.Keys) || changes[0].Ctx.Request != "r1" {
		t.Errorf("%+v", changes[0])
	}

	undo, err := e.editor().ProposeUndo(e.Context(), made.Number)
	if err != nil {
		t.Fatal(err)
	}
	undone, err := e.editor().Undo(e.Context(), made.Number, undo.Base, e.by)
	if err != nil {
		t.Fatal(err)
	}
	e.want(e.a, "GET", "/comments", "", http.StatusNotFound)
	if now := e.files(); !mapsEqual(now, before) {
		t.Errorf("%v after the undo, %v before", now, before)
	}
	again, err := e.editor().ProposeUndo(e.Context(), undone.Number)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = e.editor().Undo(e.Context(), undone.Number, again.Base, e.by); err != nil {
		t.Fatal(err)
	}
	e.want(e.a, "GET", "/comments", "", http.StatusOK)
	if versions, err := e.editor().Versions(e.Context()); err != nil || len(versions) != 3 ||
		versions[0].Undoes != undone.Number || !versions[0].Undoable {
		t.Errorf("%+v, %v", versions, err)
	}
	e.awaitChanges(3)
}

func mapsEqual(a, b map[string]string) bool {
	if len(a) != len(b) {
		return false
	}
	for name, text := range a {
		if b[name] != text {
			return false
		}
	}
	return true
}

// What an admin may not change leaves everything as it was.
func TestRefusedChangesOfTheModel(t *testing.T) {
	e := newEditing(t, edited)
	secret := e.write("secret.txt", "the content of the secret file")
	before, versions := e.files(), 0
	for name, c := range map[string]struct {
		draft *console.ModelDraft
		want  errs.Kind
		says  string
	}{
		"admins":               {e.set("admins", `"true"`), errs.Denied, "only in the file"},
		"hosts":                {e.set("hosts", `["*"]`), errs.Denied, "only in the file"},
		"proxies":              {e.set("proxies", `["0.0.0.0/0"]`), errs.Denied, "only in the file"},
		"listen":               {e.set("listen", `"0.0.0.0:1"`), errs.Denied, "only in the file"},
		"data":                 {e.set("data", `"/"`), errs.Denied, "only in the file"},
		"static":               {e.set("static", `{"folder": "/"}`), errs.Denied, "only in the file"},
		"bus":                  {e.set("bus/listen", `"0.0.0.0:4222"`), errs.Denied, "only in the file"},
		"backends":             {e.set("backends/default", `{"folder": "/"}`), errs.Denied, "only in the file"},
		"metrics":              {e.set("metrics/token", `"x"`), errs.Denied, "only in the file"},
		"console":              {e.set("console/edit", `true`), errs.Denied, "only in the file"},
		"development":          {e.set("development", `false`), errs.Denied, "only in the file"},
		"binaries":             {e.set("binaries/x", `{"folder": "/"}`), errs.Denied, "only in the file"},
		"audit":                {e.set("authentication/audit", `"true"`), errs.Denied, "only in the file"},
		"all stores":           {e.set("stores", `{}`), errs.Invalid, "one by one"},
		"all providers":        {e.set("authentication/providers", `{}`), errs.Invalid, "one by one"},
		"sessions":             {e.set("stores/Sessions", `{"expose": {}}`), errs.Denied, "of belfry's own"},
		"tokens":               {e.set("stores/Tokens/expose", `{}`), errs.Denied, "of belfry's own"},
		"idents":               {e.set("stores/Idents/policy", `{"create": "true"}`), errs.Denied, "logins of all users"},
		"a path":               {e.set("stores/Recipes/schema", `"`+secret+`"`), errs.Denied, "names a file"},
		"a missing path":       {e.set("stores/Recipes/schema", `"/none"`), errs.Denied, "names a file"},
		"a path within":        {e.set("stores/New", `{"schema": "`+secret+`"}`), errs.Denied, "names a file"},
		"a folder":             {e.set("mailers/new", `{"type": "file", "folder": "/etc"}`), errs.Denied, "names a file"},
		"a key of a file":      {e.set("authentication/providers/apple", `{"privateKeyFile": "/etc/passwd"}`), errs.Denied, "names a file"},
		"a secret":             {e.set("mailers/post/password", `"typed"`), errs.Invalid, "a file of its own"},
		"an old base":          {&console.ModelDraft{Base: "x"}, errs.Mismatch, "open the page again"},
		"nothing":              {&console.ModelDraft{Base: e.base()}, errs.Invalid, "nothing changes"},
		"no name":              {e.set("stores/", `{}`), errs.Invalid, "no name"},
		"no JSON":              {e.set("stores/Recipes/indexes", `[`), errs.Invalid, "not JSON"},
		"deep JSON":            {e.set("stores/Recipes/indexes", strings.Repeat("[", 100_000)), errs.Invalid, "not JSON"},
		"removal":              {e.set("stores/Recipes", ``), errs.Invalid, "type the name"},
		"removal of a field":   {&console.ModelDraft{Base: e.base(), Schemas: map[string]json.RawMessage{"Recipes": json.RawMessage(`{"type": "object", "properties": {"title": {"type": "string"}}}`)}}, errs.Invalid, "type the name"},
		"a schema's path":      {&console.ModelDraft{Base: e.base(), Schemas: map[string]json.RawMessage{"../../x": json.RawMessage(`{}`)}}, errs.Invalid, "name"},
		"a schema of belfry's": {&console.ModelDraft{Base: e.base(), Schemas: map[string]json.RawMessage{"Sessions": json.RawMessage(`{}`)}}, errs.Denied, "of belfry's own"},
		"a rule":               {e.set("stores/Recipes/policy", `{"update": "user.("}`), errs.Invalid, "problems"},
		"an unknown key":       {e.set("stores/Recipes/x", `1`), errs.Invalid, "problems"},
		"another backend":      {e.set("stores/Recipes/backend", `"none"`), errs.Invalid, "problems"},
	} {
		if len(c.draft.Changes) > 0 && string(c.draft.Changes[0].Value) == "" {
			c.draft.Changes[0].Value = nil
		}
		_, err := e.editor().Apply(e.Context(), c.draft, e.by)
		if errs.KindOf(err) != c.want || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v with %q", name, err, c.want, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "content of the secret") {
			t.Errorf("%s: the error has the content of a file: %v", name, err)
		}
		if now := e.files(); !mapsEqual(now, before) {
			t.Fatalf("%s: the files have changed: %v", name, now)
		}
	}
	if all, err := e.editor().Versions(e.Context()); err != nil || len(all) != versions {
		t.Errorf("%+v, %v", all, err)
	}
	e.want(e.a, "GET", "/recipes", "", http.StatusOK)
}

// What an admin types is a value, with all characters that it has, and no reference to the environment or a file.
func TestTypedValuesAreLiteral(t *testing.T) {
	e := newEditing(t, edited)
	secret := e.write("secret.txt", "hunter2-of-the-machine")
	t.Log(e.folder)
	for _, text := range []string{"${HOME}", "${file:" + secret + "}", "$${HOME}", "$$${HOME}", "${", "a: b", "# x", "- x",
		"\"", "'", "&a", "*a", "!!binary x", "\ttab", "line\nbreak", "x\n    y: z", "true", "007", "~", "{a: b}", "\u2028",
		"%TAG", "<<", "---", "...", "ä\u0085ö", " x ", "${HOME:-x}"} {
		value, _ := json.Marshal("object.title == " + quoted(text))
		draft := e.set("stores/Recipes/fields/title", `{"read": `+string(value)+`}`)
		if _, err := e.editor().Apply(e.Context(), draft, e.by); err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		c, err := config.Load(e.path("belfry.yaml"), os.LookupEnv)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := json.Marshal(c.Stores["Recipes"].Fields["title"].Read); string(got) != string(value) {
			t.Errorf("%q became %s", text, got)
		}
		if strings.Contains(c.Stores["Recipes"].Fields["title"].Read, "hunter2") {
			t.Errorf("%q reads a file", text)
		}
		d, err := e.editor().Document(e.Context())
		if err != nil {
			t.Fatal(err)
		}
		if shown, _ := d.Values("stores", "Recipes", "fields", "title", "read"); string(shown) != string(value) {
			t.Errorf("%q is shown as %s", text, shown)
		}
	}
}

func quoted(text string) string {
	data, _ := json.Marshal(text)
	return string(data)
}

// A secret is in a file of its own, which only belfry's user reads. Neither a proposal, nor the log, nor the event, nor
// the document has it, or the secrets that the file has had before.
func TestTypedSecretsHaveFilesOfTheirOwn(t *testing.T) {
	e := newEditing(t, edited)
	const typed = "s3cret-${HOME}-of-google"
	key := "authentication.providers.google.clientSecret"
	draft := &console.ModelDraft{Base: e.base(), Changes: []console.ModelChange{
		{Path: []string{"authentication", "providers", "google"}, Value: json.RawMessage(`{"clientID": "id"}`)},
		{Path: strings.Split(key, "."), Secret: true},
	}}
	p, err := e.editor().Propose(e.Context(), draft)
	if err != nil || len(p.Problems) > 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	if _, err := e.editor().Apply(e.Context(), draft, e.by); errs.KindOf(err) != errs.Invalid {
		t.Errorf("without the secret: %v", err)
	}
	draft.Secrets = map[string]string{key: typed}
	made := e.apply(draft)
	path := e.path("secrets/" + key)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || e.file("secrets/"+key) != typed {
		t.Errorf("%v, %v", info, err)
	}
	if got := e.google(); got != typed {
		t.Errorf("the secret is %q", got)
	}
	if strings.Contains(e.file("belfry.yaml"), typed) {
		t.Error("the configuration has the secret")
	}
	// Another one is another file, so the change can be undone.
	draft = &console.ModelDraft{Base: e.base(), Changes: []console.ModelChange{{Path: strings.Split(key, "."), Secret: true}},
		Secrets: map[string]string{key: "another-secret"}}
	rotated := e.apply(draft)
	if got := e.google(); got != "another-secret" {
		t.Errorf("the secret is %q", got)
	}
	undo, err := e.editor().ProposeUndo(e.Context(), rotated.Number)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.editor().Undo(e.Context(), rotated.Number, undo.Base, e.by); err != nil {
		t.Fatal(err)
	}
	if got := e.google(); got != typed {
		t.Errorf("the secret is %q after the undo", got)
	}
	// A mailer keeps what is not shown when its other keys are sent.
	mailer := e.set("mailers/post", `{"type": "smtp", "user": "ada", "port": 25}`)
	p, err = e.editor().Propose(e.Context(), mailer)
	if err != nil || len(p.Problems) > 0 {
		t.Fatalf("%+v, %v", p, err)
	}
	e.apply(mailer)
	if m := e.a.now().Config.Mailers["post"].SMTP; m.Port != 25 || string(m.Password) != "hunter2-in-the-file" ||
		m.Host != "mail.example.com" || !strings.Contains(e.file("belfry.yaml"), "${MAIL_HOST:-mail.example.com}") {
		t.Errorf("%+v\n%s", m, e.file("belfry.yaml"))
	}
	d, err := e.editor().Document(e.Context())
	if err != nil {
		t.Fatal(err)
	}
	whole, _ := d.Values()
	events, _ := json.Marshal(e.awaitChanges(4))
	proposals, _ := json.Marshal([]any{p, undo, made})
	for _, secret := range []string{typed, "another-secret", "hunter2-in-the-file", "s3cret"} {
		for where, text := range map[string]string{"the document": string(whole), "the events": string(events),
			"a proposal": string(proposals), "the log": e.logged.String()} {
			if strings.Contains(text, secret) {
				t.Errorf("%s has the secret %s: %s", where, secret, text)
			}
		}
	}
}

// Of two admins who change the model at once, the second has to see the first one's change.
func TestTwoAdminsChangeTheModel(t *testing.T) {
	e := newEditing(t, edited)
	first, second := e.set("stores/Recipes/indexes", `["title"]`), e.set("stores/Recipes/indexes", `["text"]`)
	schema := func(property string) *console.ModelDraft {
		return &console.ModelDraft{Base: e.base(), Schemas: map[string]json.RawMessage{"Recipes": json.RawMessage(
			`{"type": "object", "properties": {"title": {"type": "string"}, "text": {"type": "string"}, "` + property + `": {}}}`)}}
	}
	results := make(chan error, 2)
	for _, d := range []*console.ModelDraft{first, second} {
		go func() {
			_, err := e.editor().Apply(e.Context(), d, e.by)
			results <- err
		}()
	}
	one, other := <-results, <-results
	if (one == nil) == (other == nil) || errs.KindOf(errors.Join(one, other)) != errs.Mismatch {
		t.Errorf("%v and %v", one, other)
	}
	s1, s2 := schema("a"), schema("b")
	e.apply(s1)
	if _, err := e.editor().Apply(e.Context(), s2, e.by); errs.KindOf(err) != errs.Mismatch {
		t.Errorf("a schema is replaced that the admin has not seen: %v", err)
	}
	// Someone edits the file by hand: nobody applies that unseen.
	e.write("belfry.yaml", e.file("belfry.yaml")+"shutdownTimeout: 7s\n")
	if _, err := e.editor().Document(e.Context()); errs.KindOf(err) != errs.Conflict ||
		!strings.Contains(err.Error(), "shutdownTimeout") {
		t.Errorf("%v", err)
	}
}

// A change that the reload refuses leaves the files as they were, and what is served.
func TestAChangeThatTheReloadRefuses(t *testing.T) {
	e := newEditing(t, edited)
	editor := e.editor().(*modeling.Editor)
	before := e.files()
	for _, failed := range []error{errs.New(errs.Unavailable, "the backend is down"),
		config.Problems{{Key: "stores.Recipes.indexes", Message: "no"}}} {
		reload := editor.Reload
		editor.Reload = func(context.Context) error { return failed }
		draft := e.set("stores/New", `{"expose": {}}`)
		draft.Schemas = map[string]json.RawMessage{"New": json.RawMessage(`{"type": "object"}`)}
		if _, err := editor.Apply(e.Context(), draft, e.by); errs.KindOf(err) != errs.KindOf(failed) || err == nil {
			t.Errorf("%v", err)
		}
		editor.Reload = reload
		if now := e.files(); !mapsEqual(now, before) {
			t.Errorf("%v", now)
		}
		if all, err := editor.Versions(e.Context()); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	}
	if len(e.changes()) != 0 {
		t.Error("a change that was not made is published")
	}
}

// A process that ends within a change leaves the files as they were before, at each point of it.
func TestAnInterruptedChangeIsUndoneAtTheNextStart(t *testing.T) {
	e := newEditing(t, edited)
	editor := e.editor().(*modeling.Editor)
	before := e.files()
	interrupted := func(end func()) {
		reload := editor.Reload
		editor.Reload = func(context.Context) error { end(); return errs.New(errs.Unavailable, "the process ends") }
		defer func() { editor.Reload = reload }()
		draft := e.set("stores/New", `{"expose": {}}`)
		draft.Schemas = map[string]json.RawMessage{"New": json.RawMessage(`{"type": "object"}`)}
		_, _ = editor.Apply(e.Context(), draft, e.by)
	}
	journal := filepath.Join(e.a.now().Config.Data, "configuration")
	var during map[string]string
	var entry []byte
	interrupted(func() {
		during = e.files()
		var err error
		if entry, err = os.ReadFile(filepath.Join(journal, "000001.json")); err != nil {
			t.Error(err)
		}
		if restored, err := modeling.Recover(e.a.now().Config.Data, e.log()); restored || err != nil {
			t.Errorf("the change of another process is undone: %v", err)
		}
	})
	if mapsEqual(during, before) {
		t.Fatal("nothing was written")
	}
	e.stop(e.a)
	names := []string{"schemas/New.json", "belfry.yaml"} // in the order in which they are written
	for written := range len(names) + 1 {
		for i, name := range names {
			text, exists := before[name]
			if i < written {
				text, exists = during[name], true
			}
			if !exists {
				_ = os.Remove(e.path(name))
				continue
			}
			e.write(name, text)
		}
		if err := os.WriteFile(filepath.Join(journal, "000001.json"), entry, 0o600); err != nil {
			t.Fatal(err)
		}
		restored, err := modeling.Recover(e.config.Data, e.log())
		if !restored || err != nil {
			t.Fatalf("%v, %v", restored, err)
		}
		if now := e.files(); !mapsEqual(now, before) {
			t.Errorf("after %d files: %v", written, now)
		}
		if restored, err := modeling.Recover(e.config.Data, e.log()); restored || err != nil {
			t.Errorf("restored twice: %v", err)
		}
	}
	// Files that someone has corrected since stay.
	e.write("belfry.yaml", edited+"# by hand\n")
	if err := os.WriteFile(filepath.Join(journal, "000001.json"), entry, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := modeling.Recover(e.config.Data, e.log()); err != nil || !strings.HasSuffix(e.file("belfry.yaml"), "# by hand\n") {
		t.Error(err)
	}
	e.begin()
	e.want(e.a, "GET", "/new", "", http.StatusNotFound)
}

// An event that could not be written before the process ended is published by the next one, and only once.
func TestTheEventOfAChangeIsPublishedAfterACrash(t *testing.T) {
	e := newEditing(t, edited)
	e.apply(e.set("stores/Recipes/indexes", `["title"]`))
	e.awaitChanges(1)
	data := e.a.now().Config.Data
	e.stop(e.a)
	for _, announced := range []bool{true, false} { // as after a crash before, and after, the event was written
		name := filepath.Join(data, "configuration", "000001.json")
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		number := "1"
		if !announced {
			number = "2"
		}
		text = []byte(strings.Replace(strings.Replace(string(text), `"keys"`, `"silent":true,"keys"`, 1), `"number":1`, `"number":`+number, 1))
		if err := os.WriteFile(strings.Replace(name, "000001", "00000"+number, 1), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e.config = e.load(e.file("belfry.yaml"))
	e.begin()
	e.awaitChanges(2)
	kit.WaitFor(t, "the entries", func() bool {
		for _, n := range []string{"1", "2"} {
			text, err := os.ReadFile(filepath.Join(data, "configuration", "00000"+n+".json"))
			if err != nil || strings.Contains(string(text), "silent") {
				return false
			}
		}
		return true
	})
	e.awaitChanges(2)
}

// The latest changes are kept, and no secret of one that is not.
func TestTheLatestChangesAreKept(t *testing.T) {
	e := newEditing(t, edited)
	key := []string{"mailers", "post", "password"}
	for range 24 {
		e.apply(&console.ModelDraft{Base: e.base(), Changes: []console.ModelChange{{Path: key, Secret: true}},
			Secrets: map[string]string{"mailers.post.password": "p" + time.Now().String()}})
	}
	all, err := e.editor().Versions(e.Context())
	if err != nil || len(all) != 20 || all[0].Number != 24 || all[19].Number != 5 || !all[0].Undoable || all[1].Undoable {
		t.Errorf("%d versions, %v", len(all), err)
	}
	kept := 0
	for name := range e.files() {
		if strings.HasPrefix(name, "secrets/") {
			kept++
		}
	}
	if kept != 21 { // of the 20, and the one before them
		t.Errorf("%d secrets are kept", kept)
	}
	e.awaitChanges(24)
}

// Outside of development, belfry does not write its file.
func TestTheModelIsReadOnlyOutsideOfDevelopment(t *testing.T) {
	e := newEditing(t, strings.Replace(edited, "development: true", "", 1))
	before := e.files()
	draft := e.set("stores/Recipes/indexes", `["title"]`)
	p, err := e.editor().Propose(e.Context(), draft)
	if err != nil || !strings.Contains(p.ReadOnly, "console.edit") || len(p.Files) != 1 ||
		!strings.Contains(p.Files[0].After, "indexes: [title]") && !strings.Contains(p.Files[0].After, "- title") {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := e.editor().Apply(e.Context(), draft, e.by); errs.KindOf(err) != errs.Denied {
		t.Error(err)
	}
	if now := e.files(); !mapsEqual(now, before) {
		t.Errorf("%v", now)
	}
}

// google returns the secret of a provider that is served.
func (e *editing) google() string {
	a := e.a.now().Config.Authentication
	return string(a.OAuth2["google"].ClientSecret + a.OIDC["google"].ClientSecret)
}
