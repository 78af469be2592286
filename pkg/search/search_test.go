package search_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/outbox"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/test/kit"
)

// place is a store with a bus, and a folder of indexes.
type place struct {
	*testing.T
	bus      *bus.Bus
	backend  driver.Backend
	relay    *outbox.Relay
	store    *store.Store
	settings search.Settings
	folder   string
	service  *search.Service
	failures atomic.Int64 // of scans, that are still to come
	scans    atomic.Int64
	onScan   func(n int64) // called before a scan; may be nil
	pause    sync.RWMutex  // locked while no scan is to end
	others   []search.Indexed
}

// failing is a backend whose scans fail some times.
type failing struct {
	driver.Backend
	of *place
}

func (f failing) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := f.Backend.Open(ctx, spec)
	return failingStore{s, f.of}, err
}

type failingStore struct {
	driver.Store
	of *place
}

func (f failingStore) Scan(ctx context.Context, after []byte, limit int) (driver.Page, error) {
	if n := f.of.scans.Add(1); f.of.onScan != nil {
		f.of.onScan(n)
	}
	f.of.pause.RLock()
	defer f.of.pause.RUnlock()
	if after != nil && f.of.failures.Add(-1) >= 0 {
		return driver.Page{}, errs.New(errs.Unavailable, "the backend is away")
	}
	return f.Store.Scan(ctx, after, limit)
}

func newPlace(t *testing.T, s search.Settings, change ...func(*store.Options)) *place {
	t.Helper()
	p := &place{T: t, settings: s, folder: t.TempDir()}
	var err error
	if p.backend, err = filestore.Open(t.TempDir(), filestore.Options{}); err != nil {
		t.Fatal(err)
	}
	if p.bus, err = bus.Open(t.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir()})}); err != nil {
		t.Fatal(err)
	}
	p.relay = outbox.NewRelay(outbox.Options{Publisher: p.bus})
	o := store.Options{Name: "Books", Outbox: p.relay, Search: s.Fields, Searcher: search.NewClient(p.bus.Conn())}
	for _, f := range change {
		f(&o)
	}
	p.store, err = store.Open(t.Context(), failing{p.backend, p}, o)
	if err != nil {
		t.Fatal(err)
	}
	p.settings.Rule = p.store.SearchRule()
	p.relay.Add("Books", p.store.Driver())
	t.Cleanup(func() {
		p.stop()
		for _, err := range []error{p.relay.Close(context.Background()), p.bus.Close(context.Background()),
			p.backend.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return p
}

func (p *place) start() {
	p.Helper()
	s, err := search.Start(search.Options{
		Conn: p.bus.Conn(), JetStream: p.bus.JetStream(), Folder: p.folder,
		Stores: append([]search.Indexed{{Store: p.store, Settings: p.settings}}, p.others...),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		p.Fatal(err)
	}
	p.service = s
}

func (p *place) stop() {
	if p.service != nil {
		p.service.Close()
		p.service = nil
	}
}

func (p *place) save(uuid, body string) {
	p.Helper()
	o, err := object.Parse([]byte(body))
	if err == nil {
		_, err = p.store.Save(p.Context(), o, uuid)
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) update(uuid, body string) {
	p.Helper()
	o, err := object.Parse([]byte(body))
	if err == nil {
		_, err = p.store.Update(p.Context(), o, store.UpdateOptions{UUID: uuid})
	}
	if err != nil {
		p.Fatal(err)
	}
}

func (p *place) remove(uuid string) {
	p.Helper()
	if err := p.store.Delete(p.Context(), uuid, 0); err != nil {
		p.Fatal(err)
	}
}

// caughtUp waits until the index is the one of the settings, and has followed all that was written.
func (p *place) caughtUp() {
	p.Helper()
	kit.WaitFor(p.T, "the index to follow the log", func() bool {
		if stats := p.relay.Stats(); stats.Events > 0 {
			return false
		}
		info, err := p.bus.JetStream().Stream(p.Context(), bus.StreamEvents)
		if err != nil {
			return false
		}
		for _, s := range p.service.Status() {
			if !s.Ready || s.Former || s.Followed < info.CachedInfo().State.LastSeq {
				return false
			}
		}
		return true
	})
}

// find returns the uuids of what words find.
func (p *place) find(words string) string {
	p.Helper()
	l, err := p.store.List(p.Context(), store.ListOptions{Words: words})
	if err != nil {
		p.Fatalf("%s: %v", words, err)
	}
	return uuids(l)
}

func uuids(l store.List) string {
	var all []string
	for _, o := range l.Objects {
		all = append(all, o.UUID)
	}
	return strings.Join(all, " ")
}

func TestWordsFindObjects(t *testing.T) { bothWays(t, wordsFindObjects) }

func wordsFindObjects(t *testing.T, change ...func(*store.Options)) {
	p := newPlace(t, search.Settings{Fields: []string{"title", "tags", "author.name", "copies.note"}, Language: "en"},
		change...)
	p.save("moby", `{"title":"Moby-Dick; or, The Whale","author":{"name":"Herman Melville"},"tags":["sea","hunting"]}`)
	p.save("emma",
		`{"title":"Emma","author":{"name":"Jane Austen"},"copies":[{"note":"the first edition"},{"note":"worn"}]}`)
	p.save("both", `{"title":"Whales and whaling of the seas, whale by whale","tags":"sea"}`)
	p.save("these", `{"title":"A thesis, noted"}`)
	p.save("none", `{"title":7,"author":"Herman","tags":[["sea"],{"sea":"sea"}],"copies":{"note":null}}`)
	p.start()
	p.caughtUp()
	for words, found := range map[string]string{
		"whale": "both moby", "WHALES": "both moby", "whale hunt": "moby", "sea -hunting": "both", "herman": "moby",
		"melville whale": "moby",
		`"jane austen"`:  "emma", `"austen jane"`: "", "austen jane": "emma", `"first edition"`: "emma", "worn": "emma",
		"aust*": "emma", "AUST*": "emma", "(aust*": "emma",
		"the*": "these", "emma the*": "", "whale -the*": "both moby", "-the* note": "",
		"moby-dick": "moby", "dick-moby": "", "the whale": "both moby", "absent": "", "sea": "both moby",
		`-"whales and whaling" whale`: "moby", "7": "", "emma\twhale": "", `whale"sea"`: "both moby",
	} {
		if got := p.find(words); got != found {
			t.Errorf("%s finds %q, expected %q", words, got, found)
		}
	}
}

func TestWordsAsTheyAreWithoutALanguage(t *testing.T) { bothWays(t, wordsAsTheyAreWithoutALanguage) }

func wordsAsTheyAreWithoutALanguage(t *testing.T, change ...func(*store.Options)) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}}, change...)
	p.save("a", `{"title":"The Whales of Ägir"}`)
	p.start()
	p.caughtUp()
	for words, found := range map[string]string{"whales": "a", "whale": "", "THE": "a", "ägir": "a", "whale*": "a"} {
		if got := p.find(words); got != found {
			t.Errorf("%s finds %q, expected %q", words, got, found)
		}
	}
}

func TestWhatCanNotBeSearched(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}})
	list := func(o store.ListOptions) string {
		_, err := p.store.List(t.Context(), o)
		if err == nil {
			return ""
		}
		return err.Error()
	}
	if got := list(store.ListOptions{Words: "x"}); got != "q: no process answers searches: start one with the "+
		"role search" {
		t.Errorf("without the role: %q", got)
	}
	var many strings.Builder
	for i := range 2050 {
		fmt.Fprintf(&many, "w0%04d ", i)
	}
	p.save("many", `{"title":"`+many.String()+`"}`)
	p.start()
	p.caughtUp()
	if got := p.find("w000*"); got != "many" {
		t.Errorf("a hundred words: %q", got)
	}
	for _, c := range []struct {
		options store.ListOptions
		says    string
	}{
		{store.ListOptions{Words: "-x"}, "q: has no word to find"},
		{store.ListOptions{Words: `x "y`}, `q: the quotation mark at "y" has no other that ends it`},
		{store.ListOptions{Words: "x*"}, `q: "x"* is the beginning of too many words; give at least 2 characters`},
		{store.ListOptions{Words: "w*"}, `q: "w"* is the beginning of too many words; give at least 2 characters`},
		{store.ListOptions{Words: "w0*"}, "q: more than 1024 words"},
		{store.ListOptions{Words: strings.Repeat("x ", 33)}, "q: has more than 32 words"},
		{store.ListOptions{Words: strings.Repeat("x", 1025)}, "q: longer than 1024 bytes"},
		{store.ListOptions{Words: "\xff"}, "q: not valid UTF-8"},
		{store.ListOptions{Words: "x", Sort: "title"},
			"sort: what q finds is in the order of how well it matches; leave out one of both"},
		{store.ListOptions{Words: "x", Cursor: "x"}, "cursor: invalid; start again without it"},
		{store.ListOptions{Words: "x", Filter: "title"}, "filter: "},
	} {
		if got := list(c.options); !strings.HasPrefix(got, c.says) {
			t.Errorf("%v: %q, expected %q", c.options, got, c.says)
		}
	}
}

// An event that somebody has removed from the middle of the log before the index has followed it: the index is built
// again.
func TestAnIndexThatCanNotFollowIsBuiltAgain(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}})
	p.save("one", `{"title":"before"}`)
	p.start()
	p.caughtUp()
	p.stop()
	p.save("two", `{"title":"removed"}`)
	p.save("three", `{"title":"after"}`)
	kit.WaitFor(t, "the events", func() bool { return p.relay.Stats().Events == 0 })
	log, err := p.bus.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err == nil {
		err = log.DeleteMsg(t.Context(), log.CachedInfo().State.LastSeq-1)
	}
	if err != nil {
		t.Fatal(err)
	}
	p.start()
	kit.WaitFor(t, "all objects", func() bool {
		l, err := p.store.List(t.Context(), store.ListOptions{Words: "after"})
		return err == nil && uuids(l) == "three"
	})
	if got := p.find("removed"); got != "two" {
		t.Errorf("the object whose event was removed: %q", got)
	}
}

// The index has what the store has after writes while it is followed, while it is not, and while it is built.
func TestTheIndexFollowsTheStore(t *testing.T) { bothWays(t, theIndexFollowsTheStore) }

func theIndexFollowsTheStore(t *testing.T, change ...func(*store.Options)) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}}, change...)
	p.save("a", `{"title":"one"}`)
	p.save("b", `{"title":"one"}`)
	p.start()
	p.caughtUp()
	p.update("a", `{"title":"two"}`)
	p.remove("b")
	p.save("c", `{"title":"two"}`)
	p.caughtUp()
	if one, two := p.find("one"), p.find("two"); one != "" || two != "a c" {
		t.Errorf("followed: %q, %q", one, two)
	}
	p.stop()
	p.update("c", `{"title":"three"}`)
	p.remove("a")
	p.save("b", `{"title":"three"}`)
	p.start()
	p.caughtUp()
	if two, three := p.find("two"), p.find("three"); two != "" || three != "b c" {
		t.Errorf("after a stop: %q, %q", two, three)
	}
	p.stop()
	p.settings.Language = "en"
	p.start()
	for i := range 50 {
		p.save(fmt.Sprintf("n%02d", i), `{"title":"builds"}`)
	}
	p.remove("n07")
	p.caughtUp()
	if n := len(strings.Fields(p.find("build"))); n != 49 || p.find("three") != "b c" {
		t.Errorf("%d objects that were written during a build are found, expected 49", n)
	}
}

// A build that fails half way is repeated, and leaves one index.
func TestABuildThatFails(t *testing.T) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}})
	for i := range 40 { // more than a page
		p.save(fmt.Sprintf("o%02d", i), `{"title":"one"}`)
	}
	p.failures.Store(1)
	p.start()
	if _, err := p.store.List(t.Context(), store.ListOptions{Words: "one"}); !errors.Is(err, errs.Unavailable) {
		t.Errorf("while the index is built: %v", err)
	}
	p.caughtUp()
	if n := len(strings.Fields(p.find("one"))); n != 40 {
		t.Errorf("%d of 40 objects are found", n)
	}
	folders, err := os.ReadDir(filepath.Join(p.folder, "Books"))
	if err != nil || len(folders) != 1 {
		t.Errorf("folders: %v, %v", folders, err)
	}
}

// An index whose position is not in the log is built again.
func TestALogThatWasReplaced(t *testing.T) {
	for name, replace := range map[string]func(p *place) error{
		"replaced": func(p *place) error {
			if err := p.bus.JetStream().DeleteStream(p.Context(), bus.StreamEvents); err != nil {
				return err
			}
			_, err := bus.SetupStreams(p.Context(), p.bus, bus.Limits{}, 1, false)
			return err
		},
		"expired": func(p *place) error {
			s, err := p.bus.JetStream().Stream(p.Context(), bus.StreamEvents)
			if err != nil {
				return err
			}
			return s.Purge(p.Context())
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t, search.Settings{Fields: []string{"title"}})
			p.save("a", `{"title":"one"}`)
			p.start()
			p.caughtUp()
			p.stop()
			p.save("b", `{"title":"one"}`)
			p.remove("a")
			kit.WaitFor(t, "the events to be published", func() bool { return p.relay.Stats().Events == 0 })
			if err := replace(p); err != nil {
				t.Fatal(err)
			}
			p.save("c", `{"title":"one"}`)
			kit.WaitFor(t, "the event to be published", func() bool { return p.relay.Stats().Events == 0 })
			p.start()
			kit.WaitFor(t, "the index to be built again", func() bool { return p.find("one") == "b c" })
		})
	}
}

// Pages continue where they ended, in both directions.
func TestPagesOfWhatIsFound(t *testing.T) { bothWays(t, pagesOfWhatIsFound) }

func pagesOfWhatIsFound(t *testing.T, change ...func(*store.Options)) {
	p := newPlace(t, search.Settings{Fields: []string{"title"}}, change...)
	for i := range 25 {
		p.save(fmt.Sprintf("o%02d", i), fmt.Sprintf(`{"title":"whale %s","n":%d}`, strings.Repeat("filler ", i/5), i))
	}
	p.start()
	p.caughtUp()
	var pages []string
	var last store.List
	for cursor := ""; ; {
		l, err := p.store.List(t.Context(),
			store.ListOptions{Words: "whale", Filter: "n != 3", Limit: 10, Cursor: cursor, Count: store.CountExact})
		if err != nil {
			t.Fatal(err)
		}
		if pages = append(pages, uuids(l)); l.Count.Value != 24 || l.Count.Accuracy != store.Exact {
			t.Errorf("count: %v", *l.Count)
		}
		if last = l; l.Next == "" {
			break
		}
		cursor = l.Next
	}
	all := strings.Fields(strings.Join(pages, " "))
	if len(pages) != 3 || len(all) != 24 || !slices.IsSorted(all) {
		t.Errorf("pages: %q", pages)
	}
	back, err := p.store.List(t.Context(),
		store.ListOptions{Words: "whale", Filter: "n != 3", Limit: 10, Before: last.Back})
	if err != nil || uuids(back) != pages[1] || back.Next == "" || back.Back == "" {
		t.Errorf("the page before the last: %q, %v, expected %q", uuids(back), err, pages[1])
	}
	if back, err = p.store.List(t.Context(),
		store.ListOptions{Words: "whale", Filter: "n != 3", Limit: 10, Before: back.Back}); err != nil ||
		uuids(back) != pages[0] || back.Back != "" {
		t.Errorf("the first page: %q, %v, expected %q", uuids(back), err, pages[0])
	}
}
