package app

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/app/command"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/test/kit"
)

const shelves = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Shelves: {expose: {list: true}, indexes: [name]}
  Books:
    expose: {}
    map:
      Shelves: {key: shelf, target: books, fields: title, cascade: true}
`

// fillShelf creates a shelf with an array above 64 KiB, and waits for its entries.
func (p *place) fillShelf(a *App, shelf string) {
	p.Helper()
	p.want(a, "POST", "/shelves", `{"uuid":"`+shelf+`","name":"N"}`, http.StatusCreated)
	for i := range 600 {
		p.want(a, "POST", "/books", fmt.Sprintf(`{"uuid":"%s-%03d","shelf":%q,"title":%q}`, shelf, i, shelf,
			strings.Repeat("x", 100)), http.StatusCreated)
	}
	p.shelved(a, shelf, 600)
}

// shelved waits until a shelf has so many entries.
func (p *place) shelved(a *App, shelf string, want int) (text string) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		_, text = p.do(a, "GET", "/shelves/"+shelf, "")
		if n := strings.Count(text, `{"uuid":"`+shelf+`-`); n != want {
			return fmt.Errorf("%d of %d entries", n, want)
		}
		return nil
	})
	return text
}

// inChunks reports whether a shelf is kept in chunks.
func (p *place) inChunks(a *App, shelf string) bool {
	p.Helper()
	o, err := a.Set().Store("Shelves").Get(p.Context(), shelf)
	if err != nil {
		p.Fatal(err)
	}
	return o.InChunks
}

// lastUpdate waits for an update of a shelf in the log that has something.
func (p *place) lastUpdate(a *App, shelf string, is func(e *event.Envelope) bool) (e event.Envelope) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		last, err := eventlog.Last(p.Context(), a.Bus().Conn(), event.Subject(event.StoreUpdated, "Shelves", shelf))
		if err == nil {
			e, err = event.Decode(last.Data)
		}
		if err == nil && !is(&e) {
			err = fmt.Errorf("the last event is %s", last.Data)
		}
		return err
	})
	return e
}

// A large array is kept in chunks, and nobody notices: but that the events of its entries are small.
func TestALargeArrayIsKeptInChunks(t *testing.T) {
	p := newPlace(t, shelves)
	a := p.start()
	p.fillShelf(a, "s")
	if !p.inChunks(a, "s") {
		t.Fatal("the shelf is whole")
	}
	has := func(text string) func(e *event.Envelope) bool {
		return func(e *event.Envelope) bool {
			for _, entry := range e.Arrays["books"].Set {
				if strings.Contains(string(entry), text) {
					return true
				}
			}
			return strings.Join(e.Arrays["books"].Removed, " ") == text
		}
	}
	order := regexp.MustCompile(`"s-\d+"`)
	before := order.FindAllString(p.shelved(a, "s", 600), -1)
	p.want(a, "PUT", "/books/s-300", `{"title":"changed"}`, http.StatusOK)
	e := p.lastUpdate(a, "s", has(`{"uuid":"s-300","title":"changed"}`))
	if !e.ObjectOmitted || e.Object != nil || !e.PreviousOmitted || len(e.Previous) > 0 ||
		len(e.Arrays["books"].Set) != 1 || e.Arrays["books"].Removed != nil || e.Origin != event.OriginMapping {
		t.Errorf("got the event %+v", e)
	}
	p.want(a, "DELETE", "/books/s-000", "", http.StatusNoContent)
	if e = p.lastUpdate(a, "s", has("s-000")); e.Arrays["books"].Set != nil {
		t.Errorf("got the event %+v", e)
	}
	text := p.shelved(a, "s", 599)
	left := slices.DeleteFunc(before, func(uuid string) bool { return uuid == `"s-000"` })
	if after := order.FindAllString(text, -1); !slices.Equal(after, left) {
		t.Errorf("the entries are %v, want %v", after, left)
	}
	p.want(a, "PUT", "/shelves/s", `{"name":"M"}`, http.StatusOK)
	if again := p.shelved(a, "s", 599); !strings.Contains(again, `"name":"M"`) || !p.inChunks(a, "s") {
		t.Errorf("after a change of another property: %.300s", again)
	}
	if _, list := p.do(a, "GET", `/shelves?filter=name+%3D%3D+%22M%22`, ""); strings.Count(list, `"s-`) != 599 {
		t.Errorf("the list has %d entries", strings.Count(list, `"s-`))
	}
	p.stop(a)
	if n := p.differences(); n != 0 {
		t.Errorf("%d differences", n)
	}

	saved := p.backup()
	if saved == nil {
		t.Fatal("no backup")
	}
	q := p.fresh(shelves)
	q.restore(p)
	b := q.start()
	if restored := q.shelved(b, "s", 599); !strings.Contains(restored, `"name":"M"`) {
		t.Errorf("restored it is %.300s", restored)
	}
	q.want(b, "PUT", "/books/s-301", `{"title":"after the restore"}`, http.StatusOK)
	q.lastUpdate(b, "s", has("after the restore"))
	q.want(b, "DELETE", "/shelves/s", "", http.StatusNoContent)
	q.gone(b, "/books/s-599")
	q.stop(b)
}

// Arrays become whole again when the configuration says so: by their next write, and all by a repair. Then a release that
// reads no chunks can be started again.
func TestLargeArraysBecomeWholeAgain(t *testing.T) {
	p := newPlace(t, shelves)
	a, _ := p.reloadable()
	p.fillShelf(a, "s")
	p.fillShelf(a, "r")
	p.reload(a, shelves+"largeArrays: whole\n")
	p.want(a, "PUT", "/books/s-300", `{"title":"changed"}`, http.StatusOK)
	kit.WaitFor(t, "the entry", func() bool { return strings.Contains(p.shelved(a, "s", 600), "changed") })
	if p.inChunks(a, "s") || !p.inChunks(a, "r") {
		t.Errorf("in chunks: %v after a write, and %v without one", p.inChunks(a, "s"), p.inChunks(a, "r"))
	}
	p.stop(a)
	p.config = p.load(shelves + "largeArrays: whole\n")
	report, err := command.Verify.Do(t.Context(), p.config, command.VerifyRequest{Repair: true})
	if err != nil || report.InChunks != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	if err := p.withStores(func(set *store.Set) error {
		r, err := set.Store("Shelves").Get(t.Context(), "r")
		if r.InChunks || strings.Count(string(r.Body), `"r-`) != 600 {
			t.Errorf("in chunks: %v, with %d entries", r.InChunks, strings.Count(string(r.Body), `"r-`))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	p.config = p.load(shelves)
	a = p.start()
	p.want(a, "PUT", "/books/r-300", `{"title":"changed"}`, http.StatusOK)
	kit.WaitFor(t, "chunks", func() bool { return p.inChunks(a, "r") })
	p.stop(a)
}
