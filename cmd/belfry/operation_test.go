package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/app"
	"belfry/pkg/app/command"
	"belfry/test/kit"
)

type countRequest struct {
	Store string `arg:"" json:"store" help:"Name of the store."`
	Least int    `json:"least,omitempty" help:"How many there have to be." placeholder:"N"`
}

type counted struct {
	Objects int  `json:"objects"`
	Served  bool `json:"served"`
	Few     bool `json:"few"`
}

// Clean reports whether there are enough.
func (c *counted) Clean() bool { return !c.Few }

// countObjects is an operation that only this test has.
var countObjects = command.Operation[countRequest, counted, int]{
	Name: "count objects", Help: "Count the objects of a store.",
	Run: func(ctx context.Context, at *command.Place, q countRequest, report func(int)) (*counted, error) {
		r := &counted{Served: at.Served}
		for _, err := range at.Set.Store(q.Store).All(ctx, 10) {
			if err != nil {
				return nil, err
			}
			r.Objects++
			report(r.Objects)
		}
		r.Few = r.Objects < q.Least
		return r, nil
	},
	Text: func(w io.Writer, q countRequest, r *counted) error {
		_, err := fmt.Fprintf(w, "%s: %d\n", q.Store, r.Objects)
		return err
	},
	Show: func(s command.Streams, _ countRequest) (func(int), func(error)) {
		return func(n int) { fmt.Fprintln(s.Err, "counted", n) }, func(error) { fmt.Fprintln(s.Err, "done") }
	},
	Console: &command.Console[countRequest, counted]{Title: "Count objects"},
}

// browser is a browser of an admin.
type browser struct {
	*testing.T
	app    *app.App
	cookie string
}

func (b *browser) send(method, path, form string, status int) (text string) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), method, "http://"+b.app.HTTPAddress()+path,
		strings.NewReader(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", b.cookie)
	w := httptest.NewRecorder()
	b.app.ServeHTTP(w, r)
	for _, c := range w.Result().Cookies() {
		if c.Name == "belfry" {
			b.cookie = c.Name + "=" + c.Value
		}
	}
	if w.Code != status {
		b.Fatalf("%s %s: %d instead of %d: %s", method, path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// shows waits until a page shows all texts.
func (b *browser) shows(path string, texts ...string) {
	b.Helper()
	page := ""
	kit.WaitFor(b.T, path+" with "+strings.Join(texts, ", "), func() bool {
		page = b.send("GET", path, "", http.StatusOK)
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(page, text) })
	})
}

// An operation that is added is a command with help, flags, output and exit code, a control request of the process
// that serves, and a run of the console, without another line.
func TestAnAddedOperationIsACommandAControlRequestAndARunOfTheConsole(t *testing.T) {
	before := command.Operations
	command.Operations = slices.Concat(before, []*command.Untyped{countObjects.Untyped()})
	t.Cleanup(func() { command.Operations = before })

	belfry(t, 0, "count objects         Count the objects of a store.", "--help")
	help, _ := say(t, 0, "", "count", "objects", "--help")
	for _, want := range []string{"Usage: belfry count objects <store> [flags]", "<store>    Name of the store.",
		"--least=N", "How many there have to be.", "--json", "Report as JSON."} {
		if !strings.Contains(help, want) {
			t.Errorf("the help has no %q:\n%s", want, help)
		}
	}
	file := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(file,
		[]byte("listen: 127.0.0.1:0\nbus: {listen: \"\"}\nlog: {level: error}\nstores: {Books: {expose: {}}}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"count", "objects", "Books", "-c", file}
	belfry(t, 2, "the data folder has no data yet", args...)
	belfry(t, 2, "<store>", "count", "objects", "-c", file)
	a := serve(t, file)
	for range 2 {
		if _, err := a.Set().Store("Books").Save(t.Context(), nil, ""); err != nil {
			t.Fatal(err)
		}
	}
	const page = "/console/count-objects"
	b := &browser{T: t, app: a}
	b.send("GET", page, "", http.StatusSeeOther) // to the login
	say(t, 0, "a fine password\n", "user", "create", "root@example.com", "--admin", "-c", file)
	b.send("POST", "/console/login", "login=root%40example.com&password=a+fine+password", http.StatusSeeOther)
	b.shows(page, `href="`+page+`" aria-current="page">Count objects</a>`, "<p>Count the objects of a store.</p>",
		`<input type="text" id="store" name="store" required`, "Name of the store.",
		`<input type="number" id="least" name="least" placeholder="N"`, "How many there have to be.", "Run now")
	b.send("POST", page, "least=3", http.StatusBadRequest)
	b.send("POST", page, "store=Books&least=three", http.StatusBadRequest)
	b.send("POST", page, "store=Books&least=3", http.StatusSeeOther)
	b.shows(page, "Books: 2\n</pre>", ", store Books, least 3, by root@example.com.", `<span class="tag good">done`)
	started, release := make(chan struct{}), countObjects.Run
	countObjects.Run = func(ctx context.Context, _ *command.Place, _ countRequest, report func(int)) (*counted, error) {
		report(12345)
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	b.send("POST", page, "store=Books", http.StatusSeeOther)
	<-started
	b.shows(page, "12,345", `action="`+page+`/stop"`)
	b.send("POST", page, "store=Books", http.StatusConflict)
	b.send("POST", page+"/stop", "", http.StatusSeeOther)
	b.shows(page, "the run was stopped.", `<span class="tag bad">failed`, "12,345")
	countObjects.Run = release

	for _, served := range []bool{true, false} {
		if out, errOut := say(t, 0, "", args...); out != "Books: 2\n" || errOut != "counted 1\ncounted 2\ndone\n" {
			t.Errorf("served %t: %q, %q", served, out, errOut)
		}
		var r counted
		out, _ := say(t, 1, "", append(args, "--least", "3", "--json")...)
		if err := json.Unmarshal([]byte(out), &r); err != nil || r != (counted{2, served, true}) {
			t.Errorf("served %t: %s, %v", served, out, err)
		}
		if served {
			if err := a.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
