package console_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/store"
	"belfry/pkg/store/query"
)

// imports are the runs of a test: each has ended when it has begun.
type imports struct {
	runs
	set     *store.Set
	uploads *bulk.Uploads
}

// Start implements console.Runs.
func (i *imports) Start(_ context.Context, by, _ string, form url.Values) error {
	if i.last != nil && i.last.Running() {
		return errs.New(errs.Conflict, "a file import is already in progress")
	}
	q := bulk.ImportRequest{Store: form.Get("store"), File: form.Get("file"), Name: form.Get("name"),
		Existing: form.Get("existing"), Dry: form.Get("dry") == "true", Actor: form.Get("actor")}
	i.started = append(i.started, form.Encode())
	ctx := store.WithCall(context.Background(), store.Call{Client: true, Trusted: true, Actor: &q.Actor})
	report, err := bulk.Import(ctx, i.set.Store(q.Store), i.uploads, q,
		bulk.Host{Log: slog.New(slog.DiscardHandler), Report: func(bulk.Report) {}})
	i.last = &console.Run{By: by, Began: time.Now(), Ended: time.Now(), Err: err, In: q, Out: report}
	return nil
}

// startImports starts a console into whose tasks files are imported: note is private, and total computed.
func startImports(t *testing.T) (*library, *imports) {
	t.Helper()
	o := stores(t, nil, store.Options{Name: "Tasks", Schema: typed{}, Private: []string{"note"}, Computed: total(t),
		Indexes: []query.Index{query.NewIndex([]string{"year"})}}, store.Options{Name: "Others"},
		store.Options{Name: "Idents"})
	o.Stores[2].Fixed = true
	v := &imports{set: o.Set, uploads: bulk.NewUploads(filepath.Join(t.TempDir(), "imports"))}
	t.Cleanup(v.uploads.Close)
	f := start(t, console.Options{Objects: o, Uploads: v.uploads,
		Operations: []console.Operation{{Path: console.ImportPath, Kind: "run", Runs: v}}})
	return &library{set: o.Set, fixture: f}, v
}

// choose sends the form with a file.
func (l *library) choose(token, store, name, content, separator string) apitest.Reply {
	l.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	l.Must(w.WriteField("separator", separator))
	part, err := w.CreateFormFile("file", name)
	l.Must(err)
	_, err = part.Write([]byte(content))
	l.Must(err)
	l.Must(w.Close())
	return l.send("POST", token, "/console/objects/"+store+"/import/file", b.String(), "Content-Type", "",
		"Content-Type", w.FormDataContentType())
}

// waiting returns the form of the file of ada that waits.
func (l *library) waiting(v *imports, store string) url.Values {
	l.Helper()
	ada, err := l.Auth.Admin.FindUser(l.Context(), "ada@example.com")
	l.Must(err)
	form := url.Values{}
	if up, _ := v.uploads.Of(ada.UUID, store); up != nil {
		form.Set("file", up.ID)
	}
	return form
}

// A form is about the file that its page has shown, not about one that was chosen since.
func TestAFormIsAboutItsFile(t *testing.T) {
	t.Parallel()
	l, v := startImports(t)
	choose := func(content string) string {
		leads(t, l.choose(l.Admin, "Tasks", "a.csv", content, ""), tasks+"/import/columns")
		return l.waiting(v, "Tasks").Encode()
	}
	first := choose("uuid,title\na,One\n")
	shows(t, is(t, l.get(l.Admin, tasks+"/import/columns"), http.StatusOK), `name="file" value="`+first[len("file="):])
	mapped := "&to=uuid&to=title&existing=replace&step="
	leads(t, l.post(l.Admin, tasks+"/import/run", first+mapped+"check"), tasks+"/import")
	shows(t, is(t, l.get(l.Admin, tasks+"/import"), http.StatusOK), `name="file" value="`+first[len("file="):])
	second := choose("title,uuid\nTwo,b\n")
	for _, form := range []string{first + mapped + "import", first + "&existing=replace&step=import",
		"existing=replace&step=import"} {
		r := is(t, l.post(l.Admin, tasks+"/import/run", form), http.StatusConflict)
		shows(t, r, "Another file has been chosen", second[len("file="):], `name="to" value="title"`)
	}
	is(t, l.post(l.Admin, tasks+"/import/discard", first), http.StatusConflict)
	if len(v.started) != 1 || l.waiting(v, "Tasks").Encode() != second {
		t.Errorf("%q", v.started)
	}
	leads(t, l.post(l.Admin, tasks+"/import/discard", second), tasks)
	if len(l.waiting(v, "Tasks")) > 0 {
		t.Error("the file is kept")
	}
}

func TestAFileIsImportedInTheConsole(t *testing.T) {
	t.Parallel()
	l, v := startImports(t)
	shows(t, is(t, l.get(l.Admin, tasks), http.StatusOK), `href="/console/objects/Tasks/import/file"`)
	shows(t, is(t, l.get(l.Admin, tasks+"/import"), http.StatusOK), "There was no run yet.")
	shows(t, is(t, l.get(l.Admin, tasks+"/import/file"), http.StatusOK), `enctype="multipart/form-data"`)
	leads(t, l.get(l.Admin, tasks+"/import/columns"), tasks+"/import/file")
	const file = "UUID;Title;YEAR;Done;other;total\r\na;'=1+1;1990;TRUE;x;7\r\nb;Two;later;;;\r\n"
	leads(t, l.choose(l.Admin, "Tasks", hostile+".csv", file, ""), tasks+"/import/columns")
	r := is(t, l.get(l.Admin, tasks+"/import/columns"), http.StatusOK)
	shows(t, r, `name="to" value="uuid"`, `name="to" value="title"`, `name="to" value="year"`, `name="to" value="done"`,
		"belfry keeps it itself", "&#39;=1&#43;1", "2 rows, CSV")
	if n := strings.Count(r.Text, `name="to" value=""`); n != 2 || strings.Contains(r.Text, hostile) ||
		strings.Contains(r.Text, `<option value="note">`) {
		t.Errorf("%d columns are not imported: %s", n, r.Text)
	}
	waits := l.waiting(v, "Tasks")
	mapped := url.Values{"to": {"uuid", "title", "year", "done", "", ""}, "kind": {"", "", "", "", "", ""},
		"existing": {"skip"}, "step": {"check"}, "file": waits["file"]}
	leads(t, l.post(l.Admin, tasks+"/import/run", mapped.Encode()), tasks+"/import")
	r = is(t, l.get(l.Admin, tasks+"/import"), http.StatusOK)
	shows(t, r, "<dt>Would be created</dt><dd>1</dd>", "<dt>Would be refused</dt><dd>1</dd>", "Nothing is written.",
		`<td class="num">3</td><td>YEAR</td>`, "expected a number such as", `name="step" value="import"`)
	if there, err := l.set.Store("Tasks").Exists(t.Context(), "a"); there || err != nil {
		t.Fatalf("the check has written: %t %v", there, err)
	}
	text := is(t, l.get(l.Admin, tasks+"/import/refused"), http.StatusOK)
	text.HasHeader("Content-Disposition", "attachment; filename=Tasks-refused.csv")
	if want := "line,column,uuid,reason\n3,YEAR,,"; !strings.HasPrefix(text.Text, want) {
		t.Errorf("%q, want %q", text.Text, want)
	}
	leads(t, l.post(l.Admin, tasks+"/import/run", "existing=skip&step=import&"+waits.Encode()), tasks+"/import")
	r = is(t, l.get(l.Admin, tasks+"/import"), http.StatusOK)
	if shows(t, r, "<dt>Created</dt><dd>1</dd>"); strings.Contains(r.Text, `value="import"`) ||
		strings.Contains(r.Text, hostile) {
		t.Error(r.Text)
	}
	body := l.read("Tasks", "a").Body
	for name, want := range map[string]string{"title": `"=1+1"`, "year": "1990", "done": "true", "other": ""} {
		if got := string(object.Field(body, name)); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
	shows(t, is(t, l.post(l.Admin, tasks+"/import/run", "existing=skip&step=import"), http.StatusConflict),
		"The file is no longer here")
	if len(v.started) != 2 || !strings.Contains(v.started[0], "dry=true") || strings.Contains(v.started[1], "dry") {
		t.Error(v.started)
	}
	// Another store does not show it.
	r = is(t, l.get(l.Admin, "/console/objects/Others/import"), http.StatusOK)
	if strings.Contains(r.Text, "Created</dt>") {
		t.Error(r.Text)
	}
	is(t, l.get(l.Admin, "/console/objects/Others/import/refused"), http.StatusNotFound)
}

func TestAMappingThatCannotBe(t *testing.T) {
	t.Parallel()
	l, v := startImports(t)
	leads(t, l.choose(l.Admin, "Tasks", "a.csv", "a,b\n1,2\n", ""), tasks+"/import/columns")
	waits := "&" + l.waiting(v, "Tasks").Encode()
	for form, says := range map[string]string{
		"to=title&to=title&kind=&kind=&existing=skip": "another column is imported into title already",
		"to=note&to=&kind=&kind=&existing=skip":       "belfry keeps the field note itself",
		"to=total&to=&kind=&kind=&existing=skip":      "belfry keeps the field total itself",
		"to=_x&to=created&kind=&kind=&existing=skip":  "belfry keeps the field created itself",
		"to=title&to=&kind=none&kind=&existing=skip":  "choose what its cells are",
		"to=&to=&kind=&kind=&existing=skip":           "Choose fields for the columns first",
		"to=title&to=&kind=&kind=&existing=overwrite": "Choose what is to be done with objects that exist",
		"to=title&kind=&existing=skip":                "The form is not about this file",
		"to=title&to=&kind=&existing=skip":            "The form is not about this file",
		"existing=skip&step=import":                   "Choose fields for the columns first",
	} {
		r := is(t, l.post(l.Admin, tasks+"/import/run", form+waits), http.StatusBadRequest)
		shows(t, r, says, `name="to"`)
	}
	v.last = &console.Run{Began: time.Now(), In: bulk.ImportRequest{Store: "Tasks"}}
	shows(t, is(t, l.post(l.Admin, tasks+"/import/run", "to=title&to=year&kind=text&kind=&existing=replace"+waits),
		http.StatusConflict), "already in progress", `value="title"`, `value="text" selected`,
		`value="replace" checked`)
	if len(v.started) > 0 {
		t.Error(v.started)
	}
	leads(t, l.post(l.Admin, tasks+"/import/discard", waits), tasks)
	leads(t, l.get(l.Admin, tasks+"/import/columns"), tasks+"/import/file")
	leads(t, l.post(l.Admin, tasks+"/import/stop", ""), tasks+"/import")
}

func TestFilesThatCannotBeImported(t *testing.T) {
	t.Parallel()
	l, v := startImports(t)
	for _, c := range []struct{ name, content, says string }{
		{"a.csv", "", "The file is empty"},
		{"", "a\n1\n", "Choose a file first"},
		{"a.csv", "a,b\n1,caf\xe9\n", "Line 2 is not UTF-8"},
		{"a.csv", "a,\x00\n", "NUL"},
		{"a.csv", "a\n\"x\ny\n", "Line 2 opens a quote that nothing closes"},
		{"a.csv", "<b>,<b>\n1,2\n", "&lt;b&gt;"},
		{"a.json", "[{\"a\":1}", "cut off"},
	} {
		r := is(t, l.choose(l.Admin, "Tasks", c.name, c.content, ""), http.StatusBadRequest)
		if shows(t, r, c.says, `type="file"`); strings.Contains(r.Text, "<b>") {
			t.Error(r.Text)
		}
	}
	is(t, l.choose(l.Admin, "Tasks", "a.csv", "a\n1\n", "dot"), http.StatusBadRequest)
	is(t, l.choose(l.Admin, "Tasks", "a.csv", strings.TrimSuffix(strings.Repeat("c,", 10_000), ",")+"\n1\n", ""),
		http.StatusRequestEntityTooLarge)
	is(t, l.post(l.Admin, tasks+"/import/file", "file=x"), http.StatusBadRequest)
	// Markup in headers and cells is text.
	markup := quoted(hostile+turned) + ",b\n" + quoted(hostile) + ",2\n"
	leads(t, l.choose(l.Admin, "Tasks", hostile, markup, "comma"), tasks+"/import/columns")
	if r := is(t, l.get(l.Admin, tasks+"/import/columns"), http.StatusOK); strings.Contains(r.Text, hostile) ||
		strings.ContainsAny(r.Text, "\u202e\u2066") {
		t.Error(r.Text)
	}
	ada, err := l.Auth.Admin.FindUser(t.Context(), "ada@example.com")
	l.Must(err)
	if up, _ := v.uploads.Of(ada.UUID, "Tasks"); up == nil {
		t.Fatal("the file is not kept")
	}
	// Others have no part in it.
	for _, c := range []struct {
		token  string
		status int
	}{{"", http.StatusSeeOther}, {l.User, http.StatusForbidden}} {
		is(t, l.choose(c.token, "Tasks", "a.csv", "a\n1\n", ""), c.status)
		for _, path := range []string{"", "/file", "/columns", "/refused"} {
			is(t, l.get(c.token, tasks+"/import"+path), c.status)
		}
		for _, path := range []string{"/run", "/stop", "/discard"} {
			is(t, l.post(c.token, tasks+"/import"+path, "to=title"), c.status)
		}
	}
	is(t, l.post(l.Admin, tasks+"/import/run", "to=title", "Origin", "https://evil.example"), http.StatusForbidden)
	is(t, l.choose(l.Admin, "Idents", "a.csv", "a\n1\n", ""), http.StatusForbidden)
	is(t, l.choose(l.Admin, "none", "a.csv", "a\n1\n", ""), http.StatusNotFound)
}

func quoted(cell string) string { return `"` + strings.ReplaceAll(cell, `"`, `""`) + `"` }

// An export that is imported again makes the same objects, in each format.
func TestExportsAreImportedAgain(t *testing.T) {
	t.Parallel()
	l, v := startImports(t)
	texts := map[string]string{
		"a": `{"title":"=HYPERLINK(\"x\")","year":1990,"done":true,"tags":["red","\"q\", r"],"due":"2026-01-02"}`,
		"b": `{"title":"'@x;\n\ttwo lines","year":12345678901234567890,"done":false,"more":{"a":[1,null]}}`,
		"c": `{"title":"1990","tags":[],"n":-5.50}`,
		"d": `{}`,
		"e": `{"title":"one\r\ntwo\rthree\r","n":" 5","note2":"\r=1"}`,
	}
	for uuid, text := range texts {
		l.save("Tasks", uuid, text)
	}
	all := func() map[string]string {
		found := map[string]string{}
		for o, err := range l.set.Store("Tasks").All(t.Context(), 10) {
			l.Must(err)
			found[o.UUID] = string(object.Without(o.Body, func(name string) bool {
				return name == "created" || name == "updated"
			}))
		}
		return found
	}
	before := all()
	for _, format := range []string{"csv", "json", "ndjson"} {
		for _, existing := range []string{bulk.Replace, bulk.Skip} {
			text := is(t, l.get(l.Admin, tasks+"/export?format="+format), http.StatusOK).Text
			for uuid := range before {
				if existing == bulk.Skip { // they are gone, or else they were changed
					l.Must(l.set.Store("Tasks").Delete(t.Context(), uuid, 0))
					continue
				}
				other := object.Object{"title": []byte(`"x"`), "year": []byte("1"), "due": []byte(`"never"`)}
				_, err := l.set.Store("Tasks").Update(t.Context(), other, store.UpdateOptions{UUID: uuid})
				l.Must(err)
			}
			leads(t, l.choose(l.Admin, "Tasks", "Tasks."+format, text, ""), tasks+"/import/columns")
			page := is(t, l.get(l.Admin, tasks+"/import/columns"), http.StatusOK).Text
			form := l.waiting(v, "Tasks")
			form["existing"], form["step"] = []string{existing}, []string{"import"}
			for _, part := range strings.Split(page, `name="to" value="`)[1:] {
				form.Add("to", strings.SplitN(part, `"`, 2)[0])
			}
			leads(t, l.post(l.Admin, tasks+"/import/run", form.Encode()), tasks+"/import")
			if report, _ := v.last.Out.(*bulk.Report); v.last.Err != nil || report.Refused != 0 {
				t.Fatalf("%s: %v %+v", format, v.last.Err, v.last.Out)
			}
			if after := all(); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("%s, %s: %v, want %v", format, existing, after, before)
			}
		}
	}
}
