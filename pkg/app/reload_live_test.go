package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	"belfry/config"
	"belfry/listeners/mapping"
	"belfry/pkg/app/command"
	"belfry/pkg/bus"
	"belfry/test/kit"
	"belfry/test/kit/tlskit"
)

const live = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {list: true}}
  Books: {expose: {list: true}, uuid: client, policy: {default: allow}, map: {Authors: {key: author, target: books, fields: title}}}
binaries: {covers: {expose: {url: /covers}, map: {Books: [covers]}}}
`

// changed reloads the configuration with replacements.
func (p *place) changed(a *App, oldnew ...string) {
	p.Helper()
	text := live
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			p.Fatalf("no %s", oldnew[i])
		}
		text = strings.Replace(text, oldnew[i], oldnew[i+1], 1)
	}
	p.reload(a, text)
}

// author waits until an author is as a test wants it.
func (p *place) author(a *App, uuid string, is func(string) bool) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		if _, text := p.do(a, "GET", "/authors/"+uuid, ""); !is(text) {
			return errors.New(text)
		}
		return nil
	})
}

func has(text string) func(string) bool {
	return func(s string) bool { return strings.Contains(s, text) }
}

// A store that is added is served at once, with its mappings and events. One that is removed is not served; its objects
// are there again when the configuration has it again.
func TestAReloadAddsAndRemovesStores(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.want(a, "POST", "/notes", `{}`, http.StatusNotFound)
	for round := range 3 {
		notes := "  Notes: {expose: {list: true}, uuid: client, policy: {default: allow}, map: {Authors: {key: " +
			"author, target: notes, fields: text}}}\nbinaries:"
		p.changed(a, "binaries:", notes)
		if round > 0 {
			p.want(a, "GET", "/notes/n0", "", http.StatusOK)
		}
		p.want(a, "POST", "/notes", fmt.Sprintf(`{"uuid":"n%d","author":"lem","text":"round %d"}`, round, round),
			http.StatusCreated)
		p.author(a, "lem", has(fmt.Sprintf("round %d", round)))
		if facts := fmt.Sprint(a.wiring.views.System.Facts(a.now())); strings.Contains(facts,
			"Notes in backend default") {
			t.Error(facts)
		}
		p.changed(a)
		p.want(a, "GET", "/notes/n0", "", http.StatusNotFound)
		if facts := fmt.Sprint(a.wiring.views.System.Facts(a.now())); !strings.Contains(facts,
			"Notes in backend default") {
			t.Errorf("the console does not say that the objects stay: %s", facts)
		}
		if f := finding(p.examined(), "backend.unused"); f == nil || !strings.Contains(f.Says, "Notes") {
			t.Errorf("the doctor says %+v", f)
		}
		removed := "copies of Notes in Authors.notes"
		kit.WaitFor(t, "the console lists the copies of the mapping",
			func() bool { return strings.Contains(fmt.Sprint(a.wiring.views.System.Facts(a.now())), removed) })
		if f := finding(p.examined(), "mapping.unused"); f == nil || f.Subject != "Notes in Authors.notes" {
			t.Errorf("the doctor says %+v", f)
		}
	}
	p.changed(a, "binaries:", "  Ratings: {map: {Authors: {key: author, target: notes}}}\nbinaries:")
	kit.WaitFor(t, "an array that another mapping maintains is not listed",
		func() bool { return len(a.wiring.filling.Removed()) == 0 })
	p.stop(a)
	report, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{})
	if err != nil || !report.Clean() || report.Pending != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

// The first change of the workers' consumers after a restart of the bus is a reload, too.
func TestAReloadAfterARestartRemovesAStore(t *testing.T) {
	p := newPlace(t, live)
	p.stop(p.start())
	a, _ := p.reloadable()
	p.changed(a, "  Books:", "  Novels:", "{Books: [covers]}", "{Novels: [covers]}")
	p.want(a, "GET", "/books/solaris", "", http.StatusNotFound)
}

// What a mapping copies, and under which condition, changes for the objects that there are, too.
func TestAReloadChangesMappings(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.want(a, "POST", "/books", `{"uuid":"solaris","author":"lem","title":"Solaris","year":1961}`, http.StatusCreated)
	p.author(a, "lem", has(`"Solaris"`))
	p.changed(a, "fields: title", `fields: "title, year"`)
	p.author(a, "lem", has("1961"))
	p.changed(a, "fields: title", "fields: title, when: source.year > 2000")
	p.author(a, "lem", func(text string) bool { return !strings.Contains(text, "Solaris") })
	p.changed(a, "fields: title", "fields: title, cascade: true")
	p.author(a, "lem", has("Solaris"))
	p.want(a, "DELETE", "/authors/lem", "", http.StatusNoContent)
	p.gone(a, "/books/solaris")
}

func TestAReloadChangesComputedProperties(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.want(a, "POST", "/authors", `{"uuid":"lem","name":"Stanislaw"}`, http.StatusCreated)
	p.changed(a, "Authors: {", `Authors: {computed: {length: size(object.name)}, `)
	p.author(a, "lem", has(`"length":9`))
	p.changed(a, "Authors: {", `Authors: {computed: {length: "size(object.name) + 1"}, `)
	p.author(a, "lem", has(`"length":10`))
}

func TestAReloadChangesSearch(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"solaris","title":"Solaris","text":"an ocean"}`, http.StatusCreated)
	finds := func(word string) {
		t.Helper()
		kit.WaitUntil(p, func() error {
			if status, text := p.do(a, "GET", "/books?q="+word, ""); status != http.StatusOK ||
				!strings.Contains(text, "solaris") {
				return fmt.Errorf("%d, %s", status, text)
			}
			return nil
		})
	}
	p.want(a, "GET", "/books?q=ocean", "", http.StatusBadRequest)
	p.changed(a, "Books: {", "Books: {search: {fields: [title]}, ")
	finds("solaris")
	p.changed(a, "Books: {", "Books: {search: {fields: [title, text]}, ")
	finds("ocean")
	p.changed(a)
	p.want(a, "GET", "/books?q=ocean", "", http.StatusBadRequest)
	p.changed(a, "Books: {", "Books: {search: {fields: [text]}, ")
	finds("ocean")
	p.want(a, "POST", "/authors", `{"uuid":"solaris","name":"a name"}`, http.StatusCreated)
	p.changed(a, "Books: {", "Books: {search: {fields: [text]}, ", "Authors: {", "Authors: {search: {fields: [name]}, ")
	kit.WaitUntil(p, func() error {
		if status, text := p.do(a, "GET", "/authors?q=name", ""); status != http.StatusOK ||
			!strings.Contains(text, "solaris") {
			return fmt.Errorf("%d, %s", status, text)
		}
		return nil
	})
	finds("ocean")
}

func TestAReloadAddsAndRemovesBinaries(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"solaris"}`, http.StatusCreated)
	p.want(a, "PUT", "/covers/upload/Books/solaris/covers/add", "a cover", http.StatusCreated)
	p.want(a, "PUT", "/other/upload/Books/solaris/pages/add", "a page", http.StatusNotFound)
	p.changed(a, "binaries: {", "binaries: {other: {expose: {url: /other}, map: {Books: [pages]}}, ")
	p.want(a, "PUT", "/other/upload/Books/solaris/pages/add", "a page", http.StatusCreated)
	p.changed(a)
	p.want(a, "GET", "/other/Books/solaris/pages/0", "", http.StatusNotFound)
	p.want(a, "GET", "/covers/Books/solaris/covers/0", "", http.StatusOK)
	p.changed(a, "binaries: {", "binaries: {other: {expose: {url: /other}, map: {Books: [pages]}}, ")
	p.want(a, "GET", "/other/Books/solaris/pages/0", "", http.StatusOK)
}

func TestAReloadMovesTheMetrics(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	if at := a.now().MetricsAddress; at != "" {
		t.Fatal(at)
	}
	p.reload(a, live+"metrics: {listen: '127.0.0.1:0'}\n")
	first := p.metrics(a)
	at := a.now().MetricsAddress
	p.reload(a, live)
	if res, err := http.Get("http://" + at + "/metrics"); err == nil {
		_ = res.Body.Close()
		kit.WaitUntil(t, func() error {
			res, err := http.Get("http://" + at + "/metrics")
			if err == nil {
				_ = res.Body.Close()
				return errors.New("the port is open")
			}
			return nil
		})
	}
	taken := occupy(t)
	p.write("belfry.yaml", live+"metrics: {listen: '"+taken.Addr().String()+"'}\n")
	if _, err := a.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "free the port") {
		t.Errorf("the port is taken: %v", err)
	}
	p.want(a, "POST", "/authors", `{}`, http.StatusCreated)
	p.reload(a, live+"metrics: {listen: '127.0.0.1:0'}\n")
	_, port, _ := net.SplitHostPort(a.now().MetricsAddress)
	p.write("belfry.yaml", live+"metrics: {listen: ':"+port+"'}\n")
	if _, err := a.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "which overlaps with :"+port) {
		t.Errorf("the port overlaps with the present one: %v", err)
	}
	if second := p.metrics(a); !strings.Contains(first, "belfry_ready") || !strings.Contains(second, "belfry_ready") {
		t.Error(second)
	}
}

// A port of a configuration before is free although a request of it is still in flight.
func TestAReloadMovesAPortBackWhileARequestLasts(t *testing.T) {
	for name, text := range map[string]string{
		"metrics":   live + "metrics: {listen: '%s'}\n",
		"redirects": strings.Replace(overTLS, "redirect: \"127.0.0.1:0\"", "redirect: '%s'", 1),
	} {
		t.Run(name, func(t *testing.T) {
			p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
			tlskit.WriteValid(t, p.path("cert.pem"), p.path("key.pem"), "app.example.com")
			at := func() string { return fmt.Sprintf(text, fmt.Sprintf("127.0.0.1:%d", kit.FreePort(t))) }
			first := at()
			p.config = p.load(first)
			a, _ := p.reloadable()
			_, done := a.served.Use()
			defer done()
			p.reload(a, at())
			p.reload(a, first)
		})
	}
}

func TestAReloadChangesTheLogAndBackups(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.reload(a, strings.Replace(live, `bus: {listen: ""}`, `bus: {listen: "", events: {maxMessages: 1000}}`, 1)+
		"backup: {folder: saved}\n")
	info, err := a.Bus().JetStream().Stream(t.Context(), "EVENTS")
	if err != nil || info.CachedInfo().Config.MaxMsgs != 1000 {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := command.Backup.Do(t.Context(), a.now().Config, command.BackupRequest{}); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(p.path("saved")); err != nil || len(entries) == 0 {
		t.Errorf("there is no backup: %v", err)
	}
}

func TestAReloadBeginsAndEndsTraces(t *testing.T) {
	r := receiveTraces(t)
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.reload(a, live+"tracing: {endpoint: '"+r.URL+"'}\n")
	p.want(a, "POST", "/authors", `{"uuid":"lem"}`, http.StatusCreated)
	p.reload(a, live) // sends what it has
	kit.WaitUntil(t, func() error {
		if len(r.named("POST /authors")) == 0 {
			return errors.New("the span of the request is missing")
		}
		return nil
	})
	if a.now().Tracer != nil {
		t.Error("there is a tracer")
	}
}

// A part that can't be prepared leaves all others as they were, and what was opened is closed.
func TestAReloadThatFailsInTheMiddleChangesNothing(t *testing.T) {
	p := newPlace(t, live)
	a, applied := p.reloadable()
	served := a.now()
	p.write("file", "")
	for text, says := range map[string]string{
		strings.Replace(live, "stores:", "backends: {other: {folder: file}}\nstores:\n  Notes: {backend: other}",
			1): "other",
		strings.Replace(live, "binaries: {", "binaries: {other: {folder: file, expose: {url: /o}}, ",
			1): "file",
		strings.Replace(live, "stores:", "stores:\n  Notes: {expose: {}}", 1) + "metrics: {listen: '" +
			occupy(t).Addr().String() + "'}\n": "free the port",
	} {
		p.write("belfry.yaml", text)
		if _, err := a.Reload(context.Background()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
		if _, err := command.Reload.Do(t.Context(), p.config, struct{}{}); err == nil ||
			!strings.Contains(err.Error(), "serves with the previous one") || !strings.Contains(err.Error(), says) {
			t.Errorf("the command says %v, without %q", err, says)
		}
		if a.now() != served || len(*applied) > 0 {
			t.Errorf("%s: something has changed", says)
		}
		p.want(a, "POST", "/authors", `{}`, http.StatusCreated)
		p.want(a, "POST", "/notes", `{}`, http.StatusNotFound)
	}
	p.changed(a, "stores:", "stores:\n  Notes: {expose: {}}")
	p.want(a, "POST", "/notes", `{}`, http.StatusCreated)
}

// A backend stays open after a reload has removed it. Its name then shows no other data than a restart would, and the
// folder is not taken for that of another process.
func TestABackendThatComesBackIsTheSame(t *testing.T) {
	with := func(name, folder string) string {
		return strings.Replace(live, "stores:",
			"backends: {"+name+": {folder: "+folder+"}}\nstores:\n  Notes: {backend: "+name+", expose: {list: true}}",
			1)
	}
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.reload(a, with("two", "first"))
	p.want(a, "POST", "/notes", `{"text":"first"}`, http.StatusCreated)
	p.reload(a, live)
	for text, says := range map[string]string{
		with("two", "second"):  "backends.two: is still open with the settings from before",
		with("three", "first"): "backends.three: has the folder that is still open as backend two",
	} {
		p.write("belfry.yaml", text)
		var problems config.Problems
		if _, err := a.Reload(context.Background()); !errors.As(err, &problems) ||
			!strings.Contains(problems.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
		p.want(a, "GET", "/notes", "", http.StatusNotFound)
	}
	p.reload(a, with("two", "first"))
	if _, list := p.do(a, "GET", "/notes", ""); !strings.Contains(list, "first") {
		t.Error(list)
	}
}

// The bus has what it had before a reload that fails after the workers have prepared for other mappings.
func TestAReloadThatFailsLeavesTheConsumers(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	filters := func() string {
		c, err := a.Bus().JetStream().Consumer(t.Context(), bus.StreamEvents, mapping.Name)
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(c.CachedInfo().Config.FilterSubjects)
	}
	kit.WaitUntil(t, func() error {
		if _, err := a.Bus().JetStream().Consumer(t.Context(), bus.StreamEvents, mapping.Name); err != nil {
			return err
		}
		return nil
	})
	before := filters()
	p.write("data/search", "") // in place of the folder of the indexes
	p.write("belfry.yaml", strings.Replace(live, "stores:",
		"stores:\n  Notes: {search: {fields: [text]}, map: {Authors: {key: author, target: notes}}}", 1))
	if _, err := a.Reload(context.Background()); err == nil || !strings.Contains(err.Error(), "search") {
		t.Fatal(err)
	}
	if after := filters(); after != before {
		t.Errorf("it receives\n%s, before\n%s", after, before)
	}
}

// What a reload removes and adds again leaves nothing behind each time.
func TestStoresThatComeAndGoLeaveNothing(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	round := func() {
		p.changed(a, "binaries:",
			"  Notes: {expose: {list: true}, indexes: [text], map: {Authors: {key: author, target: notes}}}\nbinaries:")
		p.want(a, "POST", "/notes", `{"text":"t"}`, http.StatusCreated)
		p.changed(a)
	}
	running := func() (all, publishers int) {
		_ = a.served.Retired(context.Background())
		for _, stack := range goroutines() {
			if strings.Contains(stack, "outbox.(*source).run(") {
				publishers++
			}
			all++
		}
		return all, publishers
	}
	round()
	before, publishers := running()
	const rounds, spare = 20, 10 // connections and timers of others
	for range rounds {
		round()
	}
	kit.WaitUntil(t, func() error {
		if now, publish := running(); now > before+spare || publish != publishers {
			return fmt.Errorf("%d goroutines, of which %d publish events, then %d and %d", before, publishers, now,
				publish)
		}
		return nil
	})
}

// A download takes as long as its client likes. The index that a reload adds, and the arrays, are complete meanwhile.
func TestAReloadBuildsBesideADownload(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"b1","title":"t"}`, http.StatusCreated)
	p.want(a, "PUT", "/covers/upload/Books/b1/covers/add", strings.Repeat("x", 9<<20), http.StatusCreated)
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+a.HTTPAddress()+"/covers/Books/b1/covers/0",
		nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req) // and reads nothing
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatal(res, err)
	}
	p.changed(a, "Books: {", "Books: {indexes: [title], ", "fields: title", `fields: "title, uuid"`)
	kit.WaitUntil(t, func() error {
		if status, text := p.do(a, "GET", "/books?sort=title", ""); status != http.StatusOK {
			return errors.New(text)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.served.Retired(ctx); err == nil {
		t.Error("the download has ended")
	}
	// The service is gone, and the download ends as it began.
	p.changed(a, "binaries: {covers: {expose: {url: /covers}, map: {Books: [covers]}}}", "")
	if n, err := io.Copy(io.Discard, res.Body); err != nil || n != 9<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	_ = res.Body.Close()
}

// A command that runs while the configuration changes writes by the one with which it began: what the next one builds
// follows it.
func TestACommandEndsBeforeTheNextConfigurationBuilds(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"b1","title":"t"}`, http.StatusCreated)
	sorted := func() error {
		if status, text := p.do(a, "GET", "/books?sort=title", ""); status != http.StatusOK {
			return errors.New(text)
		}
		return nil
	}
	for field, reads := range map[string]bool{"title": false, "title, uuid": true} {
		p.changed(a)
		if err := a.served.Retired(t.Context()); err != nil {
			t.Fatal(err)
		}
		at, done := a.wiring.views.System.Serving(reads)
		if at.Set != a.now().Set {
			t.Error("it has another configuration")
		}
		p.changed(a, "Books: {", fmt.Sprintf("Books: {indexes: [%q], ", field))
		for range 50 {
			if !reads && sorted() == nil {
				done()
				t.Fatal("an index is built beside a command that writes without it")
			}
		}
		if reads {
			kit.WaitUntil(t, sorted)
		}
		done()
		kit.WaitUntil(t, sorted)
	}
}
