package backup

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"belfry/pkg/binary/filestorage"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/driver"
)

// Somebody else has written the manifest, and its hash is right.
func TestAManifestThatNamesWhatNoBackupHasIsRefused(t *testing.T) {
	part := Part{Hash: strings.Repeat("a", 64), Size: 1}
	for name, m := range map[string]Manifest{
		"names a file outside": {
			Backends: []Backend{{Name: "x", Files: []File{{Name: "a\x00b", Part: part}}}}},
		`has the file "a" twice`: {
			Backends: []Backend{{Name: "x", Files: []File{{Name: "a", Part: part}, {Name: "a", Part: part}}}}},
		`has the backend "x" twice`: {Backends: []Backend{{Name: "x"}, {Name: "x"}}},
		`records of the store "Users"`: {
			Backends: []Backend{{Name: "x", Stores: []string{"Books"}, Records: []Records{{Store: "Users"}}}}},
		`records of the store "Books"`: {Backends: []Backend{{Name: "x", Stores: []string{"Books"},
			Records: []Records{{Store: "Books"}, {Store: "Books"}}}}},
		`records of the store "Pens"`: {Backends: []Backend{{Name: "x", Stores: []string{"Pens"},
			Files: []File{{Name: "a", Part: part}}, Records: []Records{{Store: "Pens"}}}}},
		`has the stream "OTHER"`:         {Streams: []Stream{{Name: "OTHER"}}},
		`has the stream "EVENTS"`:        {Streams: []Stream{{Name: "EVENTS"}, {Name: "EVENTS"}}},
		`has the binary service "a" twi`: {Binaries: []Binaries{{Name: "a"}, {Name: "a"}}},
		"no valid hash for file a": {
			Backends: []Backend{{Name: "x", Files: []File{{Name: "a", Part: Part{Hash: "../../etc/passwd"}}}}}},
		"no valid hash for file b": {
			Backends: []Backend{{Name: "x", Files: []File{{Name: "b", Part: Part{Hash: part.Hash, Size: -1}}}}}},
	} {
		m.ID = newID(time.Now())
		data, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(m.ID, data); !errors.Is(err, errs.Internal) ||
			!strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Somebody else has written a part, and the manifest has its hash. No message of it is published: the bus would execute
// it with the rights of the restore.
func TestAPartWithWhatNoBackupHasIsRefused(t *testing.T) {
	f := newFixture(t)
	m := f.make()
	put := func(kind string, fill func(*chunk)) Part {
		c := newChunk(kind)
		fill(c)
		var z codec
		defer z.close()
		p, _, err := f.destination().putChunk(t.Context(), &z, c)
		f.must(err)
		return p
	}
	send := func(subject string) func(*Manifest) {
		p := put(kindMessages, func(c *chunk) {
			c.message(&message{sequence: 1, subject: subject,
				data: []byte("{}")})
		})
		return func(m *Manifest) { m.Streams[0].Chunks = []LogChunk{{First: 1, Last: 1, Messages: 1, Part: p}} }
	}
	records := func(fill func(*chunk)) func(*Manifest) {
		p := put(kindRecords, fill)
		return func(m *Manifest) { m.Backends[1].Records = []Records{{Store: "Pens", Chunks: []Part{p}}} }
	}
	pending := func(subject string) func(*Manifest) {
		p := put(kindPending, func(c *chunk) {
			c.text("a")
			c.number(1)
			c.text("id")
			c.text(subject)
			c.bytes([]byte("{}"))
			c.record(driver.Record{})
		})
		return func(m *Manifest) { m.Backends[1].Records = []Records{{Store: "Pens", Pending: []Part{p}}} }
	}
	for name, c := range map[string]struct {
		change func(*Manifest)
		want   string
	}{
		"a request to the server": {send("$JS.API.STREAM.DELETE.EVENTS"), "has a message of the subject"},
		"another stream":          {send("dead.x"), "has a message of the subject"},
		"a protocol line": {send("events.1.x\r\nPUB $JS.API.STREAM.DELETE.EVENTS 0\r\n\r\n"),
			"has a message of the subject"},
		"a wildcard":                  {send("events.>"), "has a message of the subject"},
		"an empty token":              {send("events."), "has a message of the subject"},
		"an event of another subject": {pending("$JS.API.STREAM.DELETE.EVENTS"), "has an event that no store has"},
		"no uuid": {
			records(func(c *chunk) { c.record(driver.Record{UUID: "../x", Revision: 1, Body: []byte("{}")}) }),
			"has a record that no store has"},
		"no revision": {records(func(c *chunk) { c.record(driver.Record{UUID: "x", Body: []byte("{}")}) }),
			"has a record that no store has"},
		"no object": {
			records(func(c *chunk) { c.record(driver.Record{UUID: "x", Revision: 1, Body: []byte("[1")}) }),
			"has a record that no store has"},
		"a huge length": {records(func(c *chunk) { c.number(math.MaxInt64) }), "ends within an item"},
		"a number without an end": {records(func(c *chunk) { c.data = append(c.data, 0xff, 0xff, 0xff) }),
			"ends within an item"},
		"another kind": {records(func(c *chunk) { c.data = append(c.data[:0], kindHashes...) }),
			"has another kind of data"},
	} {
		hostile := *m
		hostile.Backends, hostile.Streams = slices.Clone(m.Backends), slices.Clone(m.Streams)
		c.change(&hostile)
		if _, err := f.restore(&hostile); !errors.Is(err, errs.Internal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	for subject, want := range map[string]bool{event.Subject(event.StoreSaved, "Books", "a.b@c"): true, "dead.x": false,
		"events": false} {
		if got := belongs(subject, bus.StreamEvents); got != want {
			t.Errorf("%s: %v", subject, got)
		}
	}
}

// A part of a kilobyte that has a gigabyte of zeros, and one that says it has more bytes than a part can have.
func TestAPartThatIsHugeIsRefusedBeforeItIsInMemory(t *testing.T) {
	f := newFixture(t)
	m := f.make()
	var z codec
	defer z.close()
	f.must(z.open())
	bomb := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58} // a frame of zstd, and the log of its window
	for range 1 << 13 {
		bomb = append(bomb, 0x02, 0x00, 0x10, 0x00) // a block: 128 KiB of a zero
	}
	p, _, err := f.destination().put(t.Context(), bomb)
	f.must(err)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for want, part := range map[string]Part{"can't be decompressed": p,
		"more than such a part can have": {Hash: p.Hash, Size: 1 << 50}} {
		hostile := *m
		hostile.Binaries = []Binaries{{Name: "files", Lists: []Part{part}}}
		if _, err := f.restore(&hostile); !errors.Is(err, errs.Internal) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 8*maxPart {
		t.Errorf("%d MiB were allocated", (after.TotalAlloc-before.TotalAlloc)>>20)
	}
}

// A link in the place of a part leads nowhere, and what would block a reader is not opened.
func TestWhatIsNoFileIsMissing(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 1)
	m := f.make()
	part := m.Backends[0].Files[0].Part
	path := filepath.Join(f.folder, "backups", part.Hash[:2], part.Hash[2:4], part.Hash)
	elsewhere := filepath.Join(t.TempDir(), "part")
	f.must(os.Rename(path, elsewhere))
	for name, place := range map[string]func(path string) error{
		"a link":  func(path string) error { return os.Symlink(elsewhere, path) },
		"a pipe":  func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a place": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		f.must(place(path))
		if err := Verify(t.Context(), f.destination(), m, nil); !errors.Is(err, errs.Internal) ||
			!strings.Contains(err.Error(), "is missing") {
			t.Errorf("%s: %v", name, err)
		}
		f.must(os.Remove(path))
		document := filepath.Join(f.folder, "backups", "documents",
			manifestPrefix+"20260101T000000.000Z-00000000"+manifestSuffix)
		f.must(place(document))
		if _, err := f.destination().Manifest(t.Context(), "20260101T000000.000Z-00000000"); !errors.Is(err,
			errs.NotFound) {
			t.Errorf("%s as a manifest: %v", name, err)
		}
		f.must(os.Remove(document))
	}
}

// The retention would remove the files.
func TestAPlaceWithOtherContentsIsRefused(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 1)
	if _, err := Make(t.Context(), NewDestination(f.contents, "the folder"), f.options()); !errors.Is(err,
		errs.Invalid) || !strings.Contains(err.Error(), "may be the place of the files of a binary service") {
		t.Errorf("a backup into the place of files: %v", err)
	}
	page, _, err := f.contents.List(t.Context(), "", 10)
	if err != nil || len(page) != 1 {
		t.Errorf("there are %v, %v", page, err)
	}
}

// An interrupted backup leaves no manifest; the place is taken nevertheless.
func TestAPlaceBelongsToAnInstallationFromTheFirstBackupThatIsBegun(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 1)
	crash := &crashing{Storage: f.dest}
	crash.left.Store(2)
	if _, err := Make(t.Context(), NewDestination(crash, "the folder"), f.options()); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	other := f.options()
	other.Installation = "there"
	if _, err := Make(t.Context(), f.destination(), other); !errors.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "another installation") {
		t.Errorf("another installation: %v", err)
	}
	f.make()
}

// A disk of backups is read-only while somebody restores from it.
func TestABackupIsReadWithoutWriting(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 1)
	m := f.make()
	folder := filepath.Join(f.folder, "backups")
	f.must(os.RemoveAll(filepath.Join(folder, "tmp")))
	s, err := filestorage.OpenExisting(folder)
	f.must(err)
	defer func() { _ = s.Close() }()
	f.must(Verify(t.Context(), NewDestination(s, "the folder"), m, nil))
	if _, err := os.Stat(filepath.Join(folder, "tmp")); err == nil {
		t.Error("a folder was created")
	}
}

// Each content of a service is read twice, and asked for once.
func TestTheDestinationIsAskedOnceForEachContent(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 5)
	f.make()
	asked := &asking{Storage: f.dest, stats: map[string]int{}}
	m, err := Make(t.Context(), NewDestination(asked, "the folder"), f.options())
	f.must(err)
	if m.Binaries[0].Contents != 5 {
		t.Fatalf("%+v", m.Binaries)
	}
	page, _, err := f.contents.List(t.Context(), "", 10)
	f.must(err)
	for _, c := range page {
		if n := asked.stats[c.Hash]; n != 1 {
			t.Errorf("%s was asked for %d times", c.Hash, n)
		}
	}
}
