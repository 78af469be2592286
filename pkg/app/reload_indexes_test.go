package app

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/pkg/app/command"
	"belfry/test/kit"
)

// built waits until a list is not refused any more because of an index that is being built, and returns it.
func (p *place) built(a *App, path string) (list string) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		status, text := p.do(a, "GET", path, "")
		switch {
		case status == http.StatusOK:
			list = text
			return nil
		case status != http.StatusServiceUnavailable || !strings.Contains(text, "is being built"):
			p.Errorf("GET %s: %d, %s", path, status, text)
		}
		return fmt.Errorf("%d, %s", status, text)
	})
	return list
}

// uuidsIn returns the uuids of a list, in its order.
func uuidsIn(t testing.TB, list string) (all []string) {
	t.Helper()
	var l struct{ Items []struct{ UUID string } }
	if err := json.Unmarshal([]byte(list), &l); err != nil {
		t.Fatal(err, list)
	}
	for _, o := range l.Items {
		all = append(all, o.UUID)
	}
	return all
}

// An index that a reload adds is built from the objects that there are. While it was not configured, objects were
// written without it: when it is configured again, it has these, too.
func TestAReloadAddsAndRemovesIndexes(t *testing.T) {
	const without = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {list: true}, uuid: client}
`
	with := strings.Replace(without, "uuid:", "indexes: [year], uuid:", 1)
	p := newPlace(t, without)
	a, _ := p.reloadable()
	var want []string
	for n := range 4 {
		want = append([]string{fmt.Sprint("b", n)}, want...) // the last one first
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d","year":%d}`, n, 2000-n), http.StatusCreated)
		p.want(a, "GET", "/books?sort=year", "", http.StatusBadRequest)
		p.reload(a, with)
		if got := uuidsIn(t, p.built(a, "/books?sort=year")); !slices.Equal(got, want) {
			t.Errorf("round %d: listed are %q, want %q", n, got, want)
		}
		if last := a.console().System.Reload(); !slices.Equal(last.Building, []string{"Books.year"}) {
			t.Errorf("the console says %+v", last)
		}
		kit.WaitFor(t, "it is ready", func() bool { return degraded(a, "") == nil })
		p.reload(a, without)
	}
	p.stop(a)
	p.config = p.load(with)
	a = p.start() // which builds it before it serves
	if _, list := p.do(a, "GET", "/books?sort=year", ""); !slices.Equal(uuidsIn(t, list), want) {
		t.Error(list)
	}
}

// Values are unique from a reload on, also those of objects that there were, and that were written while they need not
// be.
func TestAReloadAddsAndRemovesUniqueValues(t *testing.T) {
	const without = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {list: true}, uuid: client}
`
	with := strings.Replace(without, "uuid:", "unique: [slug], uuid:", 1)
	p := newPlace(t, without)
	a, _ := p.reloadable()
	for n := range 4 {
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"a%d","slug":"s%d"}`, n, n), http.StatusCreated)
		p.reload(a, with)
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d","slug":"t%d"}`, n, n), http.StatusCreated)
		p.enforced(a)
		for k := range n + 1 {
			for _, slug := range []string{"s", "t"} {
				p.want(a, "POST", "/books", fmt.Sprintf(`{"slug":"%s%d"}`, slug, k), http.StatusConflict)
			}
		}
		p.reload(a, without)
	}
}

// Another key of a mapping: the arrays are those by the other key, and deletions follow it.
func TestAReloadChangesTheKeyOfAMapping(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	for _, author := range []string{"lem", "dick"} {
		p.want(a, "POST", "/authors", fmt.Sprintf(`{"uuid":%q}`, author), http.StatusCreated)
	}
	p.want(a, "POST", "/books", `{"uuid":"solaris","author":"lem","editor":"dick","title":"Solaris"}`,
		http.StatusCreated)
	p.author(a, "lem", has(`"Solaris"`))
	p.changed(a, "key: author", "key: editor")
	p.author(a, "dick", has(`"Solaris"`))
	p.author(a, "lem", func(text string) bool { return !strings.Contains(text, "Solaris") })
	p.want(a, "POST", "/books", `{"uuid":"ubik","author":"lem","editor":"dick","title":"Ubik"}`, http.StatusCreated)
	p.author(a, "dick", has(`"Ubik"`))
	p.changed(a, "key: author, ", "key: author, cascade: true, ")
	p.author(a, "lem", has(`"Ubik"`))
	p.want(a, "DELETE", "/authors/lem", "", http.StatusNoContent)
	for _, book := range []string{"solaris", "ubik"} {
		kit.WaitFor(t, "the books are deleted", func() bool {
			status, _ := p.do(a, "GET", "/books/"+book, "")
			return status == http.StatusNotFound
		})
	}
	p.stop(a)
	if n := p.differences(); n > 0 {
		t.Errorf("%d differences", n)
	}
}

// The first service of binaries has the objects indexed by those that they hold, and the last one ends that.
func TestAReloadAddsTheFirstBinaries(t *testing.T) {
	p := newPlace(t, live)
	a, _ := p.reloadable()
	service := "binaries: {covers: {expose: {url: /covers}, map: {Books: [covers]}}}\n"
	for n := range 3 {
		p.changed(a, service, "")
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"b%d"}`, n), http.StatusCreated)
		p.want(a, "PUT", fmt.Sprintf("/covers/upload/Books/b%d/covers/add", n), "content", http.StatusNotFound)
		p.changed(a)
		if last := a.console().System.Reload(); last.Building != nil {
			t.Errorf("no list waits for an index of files, and the console names %q", last.Building)
		}
		upload := fmt.Sprintf("/covers/upload/Books/b%d/covers/add", n)
		p.want(a, "PUT", upload, fmt.Sprint("content ", n), http.StatusCreated)
		p.want(a, "GET", fmt.Sprintf("/covers/Books/b%d/covers/0", n), "", http.StatusOK)
	}
	kit.WaitFor(t, "it is ready", func() bool { return degraded(a, "") == nil })
	p.stop(a)
	report, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{})
	if err != nil || !report.Clean() {
		t.Errorf("%+v, %v", report, err)
	}
}

// Indexes, unique values and keys come and go beside requests. None fails but lists that need an index which is not
// complete, which say so, and none is answered by an index that lacks an object.
func TestReloadsOfIndexesUnderLoad(t *testing.T) {
	const reloads = 12
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Authors: {expose: {list: true}, uuid: client}
  Books: {expose: {list: true}, uuid: client, %s map: {Authors: {key: %s, target: books, fields: title, limit: 10000}}}
`
	texts := []string{
		fmt.Sprintf(text, "indexes: [n],", "author"),
		fmt.Sprintf(text, "indexes: [n, title], unique: [slug],", "author"),
		fmt.Sprintf(text, "", "editor"), fmt.Sprintf(text, "indexes: [n], unique: [slug, isbn],", "editor"),
	}
	p := newPlace(t, texts[0])
	a, _ := p.reloadable()
	for _, author := range []string{"a", "e"} {
		p.want(a, "POST", "/authors", fmt.Sprintf(`{"uuid":%q}`, author), http.StatusCreated)
	}
	var load sync.WaitGroup
	var stopped atomic.Bool
	var written, listed, waited atomic.Int64
	load.Go(func() {
		for n := int64(1); !stopped.Load(); {
			body := fmt.Sprintf(
				`{"uuid":"b%06d","n":%d,"title":"t","slug":"s%d","isbn":"i%d","author":"a","editor":"e"}`, n, n, n, n)
			if status, text := p.do(a, "POST", "/books", body); status != http.StatusCreated {
				t.Errorf("POST: %d, %s", status, text)
				return
			}
			written.Store(n)
			n++
		}
	})
	for range 2 {
		load.Go(func() {
			for !stopped.Load() {
				before := written.Load()
				status, text := p.do(a, "GET", "/books?sort=-n&limit=1", "")
				switch {
				case status == http.StatusServiceUnavailable && strings.Contains(text, "is being built"):
					waited.Add(1)
				case status == http.StatusBadRequest && strings.Contains(text, "index"): // there is none now
				case status == http.StatusOK:
					listed.Add(1)
					if got := uuidsIn(t, text); before > 0 && (len(got) != 1 || got[0] < fmt.Sprintf("b%06d", before)) {
						t.Errorf("the last one is %q, but b%06d was written before", got, before)
					}
				default:
					t.Errorf("GET: %d, %s", status, text)
					return
				}
				if status, text := p.do(a, "GET", "/books?limit=1", ""); status != http.StatusOK {
					t.Errorf("a list that needs no index: %d, %s", status, text)
				}
			}
		})
	}
	for n := range reloads {
		before, lists := written.Load(), listed.Load()
		kit.WaitFor(t, "requests follow the reload", func() bool {
			return written.Load() > before+5 && (listed.Load() > lists+5 || n%4 == 2) || t.Failed()
		})
		p.reload(a, texts[(n+1)%4])
	}
	stopped.Store(true)
	load.Wait()
	all := int(written.Load())
	p.author(a, "a", func(text string) bool { return strings.Count(text, `"title"`) == all })
	p.author(a, "e", func(text string) bool { return strings.Count(text, `"title"`) == 0 })
	t.Logf("%d objects, %d lists, %d waited", all, listed.Load(), waited.Load())
	p.stop(a)
	if n := p.differences(); n > 0 {
		t.Errorf("%d differences", n)
	}
	for line := range strings.Lines(p.logged.String()) {
		// Which has a status, checked above.
		if strings.Contains(line, "level=ERROR") && !strings.Contains(line, "msg=request ") {
			t.Error(line)
		}
	}
}
