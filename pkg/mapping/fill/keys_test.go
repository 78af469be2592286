package fill

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"belfry/pkg/mapping"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

// builtIn says whose keys belfry alone writes.
func builtIn(string) bool { return false }

// saveUnread saves a book as a process does that does not read keys which are numbers: the index has none for it.
func (i *installation) saveUnread(uuid, body string) {
	i.Helper()
	save(i, i.process(nil).set.Store("Books"), uuid, body)
}

// numbered is an installation whose books were written before keys that are numbers named anything, as a release before
// left it: the arrays are filled by its rule.
func numbered(t *testing.T) *installation {
	i := newInstallation(t)
	i.seedUnnumbered()
	return i
}

func (i *installation) seedUnnumbered() {
	i.Helper()
	authors := i.process(nil).set.Store("Authors")
	for _, uuid := range []string{"1", "2", "ada"} {
		save(i, authors, uuid, `{}`)
	}
	i.saveUnread("text", `{"author":"ada","title":"T"}`)
	i.process(books("title")).start(withoutKeys).fillAndEnd()
	i.saveUnread("number", `{"author":1,"title":"T"}`)
	i.saveUnread("numbers", `{"author":[1,2,"ada",3],"title":"T"}`)
	set := i.process(books("title")).set // of the texts, that release does have the entries
	i.must(mapping.NewReconciler(set, mapping.Options{}).Reconcile(i.Context(), &set.Mappings()[0], "ada",
		[]string{"numbers"}))
	i.saveUnread("nothing", `{"author":1.0,"title":"T"}`)
}

// withoutKeys is a process of the release before: it does not have the works about numbers.
func withoutKeys(o *Options) {
	for name := range o.Works.byName {
		if strings.HasPrefix(name, "keys of ") || strings.HasPrefix(name, "numbers of ") ||
			strings.HasPrefix(name, "escapes of ") {
			delete(o.Works.byName, name)
		}
	}
}

// entries counts those of an author.
func (p *process) entries(author string) int {
	p.Helper()
	a, err := p.set.Store("Authors").Get(p.Context(), author)
	p.must(err)
	n := 0
	object.Elements(object.Field(a.Body, "books"), func([]byte) bool { n++; return true })
	return n
}

// linked are the books that the index has for an author.
func (p *process) linked(author string) (uuids []string) {
	p.Helper()
	for x, err := range p.set.Store("Books").Linked(p.Context(), "author", author, 100) {
		p.must(err)
		uuids = append(uuids, x.UUID)
	}
	return uuids
}

// forgetNumbers takes the numbers of all books from the index, as a release before writes it. The backend in memory
// fills its indexes at each Open.
func (i *installation) forgetNumbers() {
	i.Helper()
	s := i.store("Books")
	for r, err := range driver.Records(i.Context(), s, 100) {
		i.must(err)
		w := driver.Write{UUID: r.UUID, IfRevision: r.Revision, Revision: r.Revision + 1, Body: r.Body}
		if bytes.Contains(r.Body, []byte(`"ada"`)) {
			w.Keys = []driver.Key{{Index: "map.author", Parts: [][]byte{[]byte("ada")}}}
		}
		i.must(s.Put(i.Context(), w))
	}
}

func (i *installation) revision(uuid string) uint64 {
	i.Helper()
	r, _, err := i.store("Books").Get(i.Context(), uuid)
	i.must(err)
	return r.Revision
}

// wantNumbered checks what the numbers of the books lead to.
func (p *process) wantNumbered() {
	p.Helper()
	for author, want := range map[string]struct {
		entries int
		linked  string
	}{"1": {2, "[number numbers]"}, "2": {1, "[numbers]"}} {
		if n := p.entries(author); n != want.entries {
			p.Errorf("author %s has %d entries, want %d", author, n, want.entries)
		}
		if got := fmt.Sprint(p.linked(author)); got != want.linked {
			p.Errorf("the index has %s for author %s, want %s", got, author, want.linked)
		}
	}
}

// Objects whose keys are numbers get their entries and their place in the index once; others are not written.
func TestNumbersInKeysOfExistingObjectsAreFilled(t *testing.T) {
	i := numbered(t)
	p := i.process(books("title"))
	i.forgetNumbers()
	before := map[string]uint64{}
	for _, uuid := range []string{"number", "numbers", "nothing", "text"} {
		before[uuid] = i.revision(uuid)
	}
	if n := len(p.linked("1")); n != 0 {
		t.Fatalf("the index has %d objects before the fill", n)
	}
	p.start().fillAndEnd()
	p.wantNumbered()
	for uuid, revision := range before {
		if written := i.revision(uuid) != revision; written != strings.HasPrefix(uuid, "number") {
			t.Errorf("%s was written: %v", uuid, written)
		}
	}
	_, pending, err := p.set.Store("Books").Count(t.Context())
	if i.must(err); pending != 4 {
		t.Errorf("%d events of books are pending, want those of the four that were saved", pending)
	}
	filled := i.revision("number")
	again := i.process(books("title")).start()
	again.fillAndEnd()
	if i.revision("number") != filled || strings.Contains(again.logged.String(), "whole numbers") {
		t.Errorf("it was filled again:\n%s", again.logged)
	}
}

// A process of a release that does not read numbers may have written objects since: after it they are due again.
func TestNumbersInKeysAreFilledAgainAfterTheReleaseBefore(t *testing.T) {
	i := numbered(t)
	i.process(books("title")).start().fillAndEnd()
	i.process(books("title")).start(withoutKeys).fillAndEnd()
	i.saveUnread("later", `{"author":2}`)
	p := i.process(books("title"))
	i.forgetNumbers()
	p.start().fillAndEnd()
	if n := p.entries("2"); n != 2 {
		t.Errorf("author 2 has %d entries", n)
	}
}

// What names a deleted object by a number stays, although the mapping cascades: nobody has deleted it. A verification
// reports it, and what names an object that was never there is nothing to report.
func TestAFillOfNumbersDeletesNothing(t *testing.T) {
	i := numbered(t)
	cascading := books("title")
	cascading[0].Cascade = true
	p := i.process(cascading)
	i.must(p.set.Store("Authors").Delete(t.Context(), "1", 0))
	i.forgetNumbers()
	p.start().fillAndEnd()
	if _, err := p.set.Store("Books").Get(t.Context(), "number"); err != nil {
		t.Fatal(err)
	}
	r, err := verify.Run(t.Context(), p.set, verify.Options{})
	if i.must(err); len(r.Differences) != 2 || r.Differences[0].Kind != verify.Undeleted {
		t.Errorf("%+v", r.Differences)
	}
}

// A process that ends between the write of an object's keys and that of its entries leaves the rest to the next.
func TestAnInterruptedFillOfNumbersIsContinued(t *testing.T) {
	for _, at := range []string{"Books", "Authors"} {
		i := numbered(t)
		p := i.process(books("title"))
		i.forgetNumbers()
		p.hooks.after = func(h *hooks, store string) {
			if store == at {
				h.ended.Store(true)
			}
		}
		p.start()
		kit.WaitFor(t, "the process ends", p.hooks.ended.Load)
		p.filler.Close()
		next := i.process(books("title"))
		if at == "Books" {
			i.forgetNumbers()
		}
		next.start().fillAndEnd()
		next.wantNumbered()
		next.right()
	}
}

// An object that somebody writes meanwhile has its keys and its event by that write.
func TestAFillOfNumbersLeavesAnObjectThatIsWritten(t *testing.T) {
	i := numbered(t)
	p := i.process(books("title"))
	i.forgetNumbers()
	p.hooks.before = func(_ *hooks, name, uuid string) {
		if name != "Books" || uuid != "number" {
			return
		}
		p.hooks.before = nil
		r, _, err := i.store(name).Get(context.Background(), uuid)
		i.must(err)
		i.must(i.store(name).Put(context.Background(), driver.Write{
			UUID: uuid, IfRevision: r.Revision, Revision: r.Revision + 1, Body: []byte(`{"uuid":"number","author":2}`),
			Keys: []driver.Key{{Index: "map.author", Parts: [][]byte{[]byte("2")}}},
		}))
	}
	p.start().fillAndEnd()
	if got := fmt.Sprint(p.linked("1"), p.linked("2")); got != "[numbers] [number numbers]" {
		t.Errorf("the index has %s", got)
	}
	if st := p.filler.Status(); st[len(st)-1].Failed != 0 {
		t.Errorf("%+v", st)
	}
}

// The keys of stores that only belfry writes are not looked at.
func TestOwnKeysAreNotFilled(t *testing.T) {
	i := newInstallation(t)
	set := i.process(books("title")).set
	if w := Derived(set, func(name string) bool { return name == "Books" }).byName["keys of Books"]; w != nil {
		t.Error("they are")
	}
	if w := Derived(set, builtIn).byName["keys of Books"]; w == nil || w.store.Name() != "Books" {
		t.Error("others are not")
	}
}

// Arrays of what numbers name wait for the index, whatever is due first.
func TestNumbersWaitForTheIndex(t *testing.T) {
	i := numbered(t)
	p := i.process(books("title"))
	f := newFiller(Options{Works: Derived(p.set, builtIn), Store: p.state, Logger: p.logger(), Alone: true,
		Fills: true})
	i.must(f.begin(t.Context()))
	may := func() string {
		var all []string
		for _, name := range []string{"Books in Authors.books", "keys of Books", "numbers of Books in Authors.books"} {
			may, err := f.mayBegin(t.Context(), name)
			i.must(err)
			all = append(all, fmt.Sprint(may))
		}
		return strings.Join(all, " ")
	}
	if got := may(); got != "true true false" {
		t.Errorf("before: %s", got)
	}
	i.must(f.fillDue(t.Context()))
	if got := may(); got != "true true true" {
		t.Errorf("after: %s", got)
	}
}
