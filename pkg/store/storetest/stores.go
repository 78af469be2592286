package storetest

import (
	"context"
	"fmt"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

func storesTests() []test {
	return []test{
		{"stores share nothing, even with names that begin alike", storesApart},
		{"a backend answers", backendAnswers},
	}
}

func storesApart(w *world) {
	names := []string{"Book", "Books", "BooksOld", "Books_", "Books-", "Books.x", "B", "b"}
	shelves := make([]*shelf, len(names))
	for i, name := range names {
		shelves[i] = w.open(name, byTag)
	}
	for i, s := range shelves {
		s.put("a", 0, uint64(10*i+1), keyed("tag", "red").and("tag", s.name))
		s.put("of-"+s.name, 0, uint64(10*i+2), text("mine"))
	}
	for i, s := range shelves {
		s.holds("a", uint64(10*i+1), keyed("tag", "red").and("tag", s.name))
		s.scans("a of-" + s.name)
		s.finds(driver.Query{Index: "tag", Equal: parts(s.name)}, "a")
		s.waits(eventOf("a", uint64(10*i+1)).ID, eventOf("of-"+s.name, uint64(10*i+2)).ID)
	}
	first, second := shelves[0], shelves[1]
	first.put("a", 1, 100, nil)
	first.clearAll(3)
	first.purges(1000, 10, 1)
	first.lacks("a")
	first.finds(driver.Query{Index: "tag"}, "")
	second.holds("a", 11, keyed("tag", "red").and("tag", second.name))
	second.waits("a/11", "of-Books/12")
	second.finds(driver.Query{Index: "tag", Equal: parts("red")}, "a")
}

func backendAnswers(w *world) {
	w.must(w.backend.Ping(w.ctx))
}

func contextTests() []test {
	return []test{
		{"an ended context ends every act", contextEnds},
		{"a passed deadline ends every act", deadlinePasses},
	}
}

func contextEnds(w *world) {
	s := w.open("Books", byColour)
	s.put("a", 0, 1, keyed("colour", "red"))
	s.waits("a/1")
	events := s.pending()
	ctx, cancel := context.WithCancel(w.ctx)
	cancel()
	w.refusesAll(ctx, s, events)
	s.holds("a", 1, keyed("colour", "red"))
	s.waits("a/1")
}

func deadlinePasses(w *world) {
	s := w.open("Books", byColour)
	s.put("a", 0, 1, keyed("colour", "red"))
	ctx, cancel := context.WithDeadline(w.ctx, time.Now().Add(-time.Second))
	defer cancel()
	w.refusesAll(ctx, s, nil)
	s.holds("a", 1, keyed("colour", "red"))
}

// refusesAll asserts that nothing is done under an ended context.
func (w *world) refusesAll(ctx context.Context, s *shelf, events []driver.Pending) {
	w.Helper()
	acts := map[string]func() error{
		"Ping":    func() error { return w.backend.Ping(ctx) },
		"Get":     func() error { _, _, err := s.Get(ctx, "a"); return err },
		"Put":     func() error { return s.Put(ctx, s.write("a", 1, 2, text("two"))) },
		"Query":   func() error { _, err := s.Query(ctx, driver.Query{Index: "colour", Limit: 1}); return err },
		"Scan":    func() error { _, err := s.Scan(ctx, nil, 1); return err },
		"Pending": func() error { _, _, err := s.Pending(ctx, nil, 1); return err },
		"Clear":   func() error { return s.Clear(ctx, append(events, driver.Pending{UUID: "x", Revision: 1})) },
		"Purge":   func() error { _, err := s.Purge(ctx, 1, 1); return err },
		"Count":   func() error { _, _, err := s.Count(ctx); return err },
		"Open": func() error {
			_, err := w.backend.Open(ctx, driver.Spec{Name: "Other", Indexes: s.indexes, Keys: s.keys})
			return err
		},
	}
	for name, act := range acts {
		if err := act(); errs.KindOf(err) != errs.Canceled {
			w.Errorf("%s under an ended context: error %v, want one of kind %q", name, err, errs.Canceled)
		}
	}
}

func reopenTests() []test {
	return []test{
		{"all is there again", reopenKeeps},
		{"indexes may differ", reopenOtherIndexes},
		{"what was cleared and purged stays so", reopenCleared},
		{"store after store is added", reopenMoreStores},
	}
}

// reopened reopens a backend whose data outlives it; the rest opens its stores
// a second time, which must hold as well.
func (w *world) reopened() {
	w.Helper()
	if w.harness.Features.Reopen {
		w.reopen()
	}
}

func reopenKeeps(w *world) {
	s := w.open("Books", byColour, byTag)
	for i := range uint64(200) {
		s.put(fmt.Sprintf("n%03d", i), 0, i+1, keyed("colour", fmt.Sprint(i%5)).and("tag", fmt.Sprint(i)))
	}
	s.put("n007", 8, 300, nil)
	s.put("n008", 9, 301, keyed("colour", "x"))
	w.reopened()
	s = w.open("Books", byColour, byTag)
	s.holds("n006", 7, keyed("colour", "1").and("tag", "6"))
	s.holds("n007", 300, nil)
	s.holds("n008", 301, keyed("colour", "x"))
	s.finds(driver.Query{Index: "colour", Equal: parts("x")}, "n008")
	s.finds(driver.Query{Index: "tag", Equal: parts("7")}, "")
	s.finds(driver.Query{Index: "tag", Equal: parts("9")}, "n009")
	s.waitsInOrder("n007", 2)
	if w.harness.Features.ExactCount {
		s.counts(199, 202)
	}
	s.refuses("n008", 9, 400, text("stale"))
	s.put("n008", 301, 400, text("fresh"))
}

func reopenOtherIndexes(w *world) {
	s := w.open("Books", byColour)
	s.put("a", 0, 1, keyed("colour", "red").and("tag", "x"))
	w.reopened()
	s = w.open("Books", byTag)
	s.finds(driver.Query{Index: "tag"}, "a")
	s.put("a", 1, 2, keyed("colour", "blue").and("tag", "y"))
	w.reopened()
	s = w.open("Books", byColour, byTag)
	s.finds(driver.Query{Index: "colour", Equal: parts("red")}, "")
	s.finds(driver.Query{Index: "colour", Equal: parts("blue")}, "a")
	s.finds(driver.Query{Index: "tag", Equal: parts("y")}, "a")
}

func reopenCleared(w *world) {
	s := w.open("Books")
	s.deleted("a", 2)
	s.clearAll(2)
	s.purges(10, 10, 1)
	s.put("b", 0, 3, text("b"))
	w.reopened()
	s = w.open("Books")
	s.lacks("a")
	s.waits("b/3")
}

func reopenMoreStores(w *world) {
	for i := range 4 {
		for k := range i {
			w.open(fmt.Sprint("S", k), byColour).holds("a", uint64(k+1), keyed("colour", fmt.Sprint(k)))
		}
		w.open(fmt.Sprint("S", i), byColour).put("a", 0, uint64(i+1), keyed("colour", fmt.Sprint(i)))
		w.reopened()
	}
	for i := range 4 {
		w.open(fmt.Sprint("S", i), byColour).finds(driver.Query{Index: "colour"}, "a")
	}
}
