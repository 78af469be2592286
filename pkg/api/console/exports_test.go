package console_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

func TestListsAreExported(t *testing.T) {
	t.Parallel()
	l := startGrid(t)
	l.save("Tasks", "a", `{"title":"=HYPERLINK(\"x\")","year":1990,"note":"secret","n":-5,"tags":["red","\"q\", r"]}`)
	l.save("Tasks", "b", `{"title":"'@x","year":2000,"n":12345678901234567890,"more":"two\nlines","no":null}`)
	l.save("Tasks", "c", `{"title":"'quoted'","year":2001,"done":true}`)
	export := func(query string) (string, http.Header) {
		t.Helper()
		r := is(t, l.get(l.Admin, tasks+"/export?"+query), http.StatusOK)
		if strings.Contains(r.Text, "secret") || strings.Contains(r.Text, "note") {
			t.Errorf("%s has a private field: %s", query, r.Text)
		}
		return r.Text, r.Header
	}
	text, header := export("format=csv&which=shown&cols=title&cols=year&cols=n&cols=tags&cols=done&cols=note&cols=more")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	l.Must(err)
	if want := [][]string{
		{"uuid", "title", "year", "n", "tags", "done", "more"},
		{"a", `'=HYPERLINK("x")`, "1990", "-5", `["red","\"q\", r"]`, "", ""},
		{"b", "''@x", "2000", "12345678901234567890", "", "", "two\nlines"},
		{"c", "'quoted'", "2001", "", "", "true", ""},
	}; !reflect.DeepEqual(rows, want) {
		t.Errorf("%q, want %q", rows, want)
	}
	if header.Get("Content-Disposition") != "attachment; filename=Tasks.csv" ||
		!strings.HasPrefix(header.Get("Content-Type"), "text/csv") || !strings.Contains(text, "more\r\n") {
		t.Error(header)
	}
	text, _ = export("format=csv")
	for _, want := range []string{"uuid,year,tags,title,done,due,", "total", "created"} {
		if !strings.Contains(strings.SplitN(text, "\r\n", 2)[0], want) {
			t.Errorf("the header lacks %s: %s", want, text)
		}
	}
	text, _ = export("format=json&filter=year+%3E%3D+2000&sort=-year")
	var all []map[string]any
	l.Must(json.Unmarshal([]byte(text), &all))
	if len(all) != 2 || all[0]["uuid"] != "c" || !strings.Contains(text, "12345678901234567890") {
		t.Error(text)
	}
	if text, _ = export("format=ndjson&which=shown&cols=year"); text != "{\"uuid\":\"a\",\"year\":1990}\n"+
		"{\"uuid\":\"b\",\"year\":2000}\n{\"uuid\":\"c\",\"year\":2001}\n" {
		t.Errorf("%q", text)
	}
	if text, _ = export("format=json&filter=year+%3D%3D+1"); strings.TrimSpace(text) != "[\n]" {
		t.Errorf("%q", text)
	}
	shows(t, is(t, l.get(l.Admin, tasks+"/export?format=json&filter=n+%3D%3D+1"), http.StatusBadRequest),
		"<!doctype html>")
	is(t, l.get(l.Admin, tasks+"/export?format=xlsx"), http.StatusBadRequest)
	is(t, l.get(l.User, tasks+"/export?format=json"), http.StatusForbidden)
	is(t, l.get(l.Admin, "/console/objects/none/export?format=json"), http.StatusNotFound)
}

// All pages are sent, and none of them twice.
func TestExportsHaveAllPages(t *testing.T) {
	t.Parallel()
	l := startGrid(t)
	const n = 450
	for i := range n {
		l.save("Tasks", fmt.Sprintf("t%03d", i), `{}`)
	}
	text := is(t, l.get(l.Admin, tasks+"/export?format=ndjson"), http.StatusOK).Text
	if lines := strings.Count(text, "\n"); lines != n || strings.Count(text, `"uuid":"t449"`) != 1 {
		t.Errorf("%d lines", lines)
	}
}

// brokenBackend has stores whose second page can't be read.
type brokenBackend struct{ driver.Backend }

func (b brokenBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return brokenStore{s}, err
}

type brokenStore struct{ driver.Store }

func (s brokenStore) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	if len(after) > 0 {
		return driver.Page{}, errs.New(errs.Unavailable, "the disk is gone")
	}
	return s.Store.Scan(ctx, after, limit)
}

// A file that lacks a part is no complete file for a browser either: the connection is cut.
func TestAnExportThatFailsIsIncomplete(t *testing.T) {
	t.Parallel()
	files, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	st, err := store.Open(t.Context(), brokenBackend{files}, store.Options{Name: "Tasks"})
	if err != nil {
		t.Fatal(err)
	}
	o := &console.Objects{Set: store.NewSet([]*store.Store{st}, nil), Stores: []console.StoreInfo{{Name: "Tasks"}}}
	l := &library{set: o.Set, fixture: start(t, console.Options{Objects: o})}
	for i := range 250 {
		l.save("Tasks", fmt.Sprintf("t%03d", i), `{}`)
	}
	for _, format := range []string{"csv", "json", "ndjson"} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", l.URL+tasks+"/export?format="+format, nil)
		l.Must(err)
		req.AddCookie(&http.Cookie{Name: "belfry", Value: l.Admin})
		reply, err := http.DefaultClient.Do(req)
		if err == nil { // else it was cut before its head was sent
			_, err = io.Copy(io.Discard, reply.Body)
			_ = reply.Body.Close()
		}
		if err == nil {
			t.Errorf("%s: the reply seems complete", format)
		}
	}
}
