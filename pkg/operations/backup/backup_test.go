package backup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

func TestWhatIsRestoredEqualsWhatWasBackedUp(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 20)
	m := f.make()
	r, err := f.restore(m)
	f.must(err)
	if got, want := r.model(), f.model(); !slices.Equal(got, want) {
		t.Errorf("restored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	f.must(Verify(t.Context(), f.destination(), m, nil))
}

func TestABackupStoresOnlyWhatIsNew(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 20)
	first := f.make()
	if first.Added == 0 || first.Added > first.Size {
		t.Errorf("the first backup has %d bytes, %d of them new", first.Size, first.Added)
	}
	f.must(f.content(strings.Repeat("another", 1000)))
	second := f.make()
	// The log of writes of the folder is another one, since the backup read a counter of it.
	if second.Added > 3*7000 || second.Added < 7000 {
		t.Errorf("the second backup has %d new bytes", second.Added)
	}
	for _, m := range []*Manifest{first, second} {
		if _, err := f.restore(m); err != nil {
			t.Errorf("%s: %v", m.ID, err)
		}
	}
}

// Wherever a backup is interrupted, it does not exist; and the next one has everything and leaves nothing else.
func TestABackupThatIsInterruptedAnywhereDoesNotExist(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 3)
	crash := &crashing{Storage: f.dest}
	for steps := int64(0); ; steps++ {
		crash.left.Store(steps)
		_, err := Make(t.Context(), NewDestination(crash, "the folder"), f.options())
		ids, listed := f.destination().IDs(t.Context())
		f.must(listed)
		if err == nil {
			if len(ids) != 1 || steps < 4 {
				t.Errorf("after %d steps: %v", steps, ids)
			}
			break
		}
		if !errors.Is(err, errCrash) || len(ids) > 0 {
			t.Fatalf("interrupted after %d steps: %v, %v", steps, ids, err)
		}
	}
	f.fill(3, 3)
	m := f.make()
	_, err := Prune(t.Context(), f.destination(), Keep{Last: 1}, nil)
	f.must(err)
	f.holdsOnly(m)
	r, err := f.restore(m)
	f.must(err)
	if got, want := r.model(), f.model(); !slices.Equal(got, want) {
		t.Errorf("restored:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// holdsOnly checks that the destination has the parts of these backups, and nothing else.
func (f *fixture) holdsOnly(all ...*Manifest) {
	f.Helper()
	used, lists := map[string]bool{}, map[Part]bool{}
	var z codec
	defer z.close()
	for _, m := range all {
		f.must(f.destination().use(f.Context(), &z, m, used, lists))
	}
	page, _, err := f.dest.List(f.Context(), "", 10_000)
	f.must(err)
	for _, info := range page {
		if !used[info.Hash] {
			f.Errorf("%s is in no backup", info.Hash)
		}
		delete(used, info.Hash)
	}
	if len(used) > 0 {
		f.Errorf("missing: %v", used)
	}
	staged, err := os.ReadDir(filepath.Join(f.folder, "backups", "tmp"))
	f.must(err)
	if len(staged) > 0 {
		f.Errorf("%d stages are left", len(staged))
	}
}

func TestRetentionThatIsInterruptedAnywhereLosesNoBackupThatItKeeps(t *testing.T) {
	f := newFixture(t)
	var all []*Manifest
	for i := range 3 {
		f.fill(2*i, 2)
		all = append(all, f.make())
	}
	crash := &crashing{Storage: f.dest}
	for steps := int64(1); ; steps++ {
		crash.left.Store(steps)
		_, err := Prune(t.Context(), NewDestination(crash, "the folder"), Keep{Last: 1}, nil)
		f.must(Verify(t.Context(), f.destination(), all[2], nil))
		if err == nil {
			break
		}
	}
	f.holdsOnly(all[2])
}

func TestDamageOfAnyPartIsNoticed(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 3)
	m := f.make()
	parts := 0
	f.must(filepath.WalkDir(filepath.Join(f.folder, "backups"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() == markerName { // which is for the next backup
			return err
		}
		text, err := os.ReadFile(path)
		f.must(err)
		parts++
		for name, changed := range map[string][]byte{
			"changed": flip(text), "shortened": text[:len(text)/2], "longer": append(bytes.Clone(text), 'x'),
			"missing": nil,
		} {
			if bytes.Equal(changed, text) && name != "missing" {
				continue // of an empty file
			}
			if name == "missing" {
				f.must(os.Remove(path))
			} else {
				f.must(os.WriteFile(path, changed, 0o600))
			}
			again, err := f.destination().Manifest(t.Context(), m.ID)
			if err == nil {
				err = Verify(t.Context(), f.destination(), again, nil)
			}
			if err == nil {
				t.Errorf("%s is %s, and verify does not notice", path, name)
			}
			if name == "changed" && again != nil {
				if _, err := f.restore(again); err == nil || !strings.Contains(err.Error(), "damaged") {
					t.Errorf("%s is %s, and a restore returns %v", path, name, err)
				}
			}
			f.must(os.WriteFile(path, text, 0o600))
		}
		return nil
	}))
	name := manifestPrefix + m.ID + manifestSuffix
	text, err := f.dest.Document(t.Context(), name)
	f.must(err)
	for old, changed := range map[string]string{`"version": "test"`: `"version": "best"`,
		`"before": 3`: `"before": 9`} {
		if !bytes.Contains(text, []byte(old)) {
			t.Fatalf("the manifest lacks %s", old)
		}
		f.must(f.dest.PutDocument(t.Context(), name, bytes.Replace(text, []byte(old), []byte(changed), 1)))
		if _, err := f.destination().Manifest(t.Context(), m.ID); !errors.Is(err, errs.Internal) {
			t.Errorf("%s instead of %s: %v", changed, old, err)
		}
	}
	f.must(f.dest.PutDocument(t.Context(), name, text))
	if parts < 12 {
		t.Errorf("only %d parts", parts)
	}
	f.must(Verify(t.Context(), f.destination(), m, nil))
}

func flip(text []byte) []byte {
	text = bytes.Clone(text)
	if len(text) > 0 {
		text[len(text)/2] ^= 1
	}
	return text
}

func TestABackupOfAnotherFormatIsRefused(t *testing.T) {
	f := newFixture(t)
	m := f.make()
	name := manifestPrefix + m.ID + manifestSuffix
	text, err := f.dest.Document(t.Context(), name)
	f.must(err)
	f.must(f.dest.PutDocument(t.Context(), name,
		bytes.Replace(text, []byte(`"belfry-backup":1`), []byte(`"belfry-backup":2`), 1)))
	_, err = f.destination().Manifest(t.Context(), m.ID)
	if !errors.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "format 2, and this version of belfry reads format 1") {
		t.Errorf("another format: %v", err)
	}
	if _, err := Prune(t.Context(), f.destination(), Keep{Last: 9}, nil); err == nil {
		t.Error("a backup that can't be read may lose its parts")
	}
}

func TestAManifestCanNotNameFilesElsewhere(t *testing.T) {
	part := Part{Hash: strings.Repeat("a", 64)}
	for name, ok := range map[string]bool{
		"000001.sst": true, "a/b": true, "../x": false, "/etc/x": false, "a/../../x": false, "": false, ".": false,
		"..": false, `a\b`: false, "a//b": false,
	} {
		m := &Manifest{ID: newID(time.Now()),
			Backends: []Backend{{Name: "files", Files: []File{{Name: name, Part: part}}}}}
		data, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(m.ID, data); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestTheDestinationOfAnotherInstallationIsRefused(t *testing.T) {
	f := newFixture(t)
	f.make()
	other := f.options()
	other.Installation = "there"
	for range 2 {
		if _, err := Make(t.Context(), f.destination(), other); !errors.Is(err, errs.Invalid) {
			t.Errorf("the backup of another installation: %v", err)
		}
		f.must(f.dest.DeleteDocument(t.Context(), markerName)) // as if somebody had copied the backups alone
	}
	f.make()
}

// After the stores are read, objects are changed and deleted, and one is created. Their events must not be delivered
// after a restore; those of writes that are in the backup must, whether they were handled or not.
func TestEventsOfWritesThatARestoreUndoesAreNotRestored(t *testing.T) {
	f := newFixture(t)
	books := f.stores["Books"]
	saved := func(uuid string) uint64 {
		o, err := books.Save(t.Context(), object.Object{}, uuid)
		f.must(err)
		return o.Revision
	}
	kept, deleted := saved("kept"), saved("deleted")
	f.publish("before", event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: "kept", Revision: kept})
	for _, name := range []string{"handled", "waiting"} {
		_, err := f.bus.JetStream().CreateConsumer(t.Context(), bus.StreamEvents,
			jetstream.ConsumerConfig{Durable: name, AckPolicy: jetstream.AckExplicitPolicy})
		f.must(err)
	}
	c, err := f.bus.JetStream().Consumer(t.Context(), bus.StreamEvents, "handled")
	f.must(err)
	m, err := c.Next()
	f.must(err)
	f.must(m.DoubleAck(t.Context()))
	o := f.options()
	during := false
	o.Progress = func(p Progress) {
		if p.What != "records" && p.What != "Pens" && p.What != "files" || during {
			return
		}
		during = true
		f.publish("late", event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: "kept", Revision: kept})
		f.publish("undone deletion",
			event.Envelope{Event: event.StoreDeleted, Store: "Books", UUID: "deleted", Revision: deleted + 1})
		f.publish("undone update",
			event.Envelope{Event: event.StoreUpdated, Store: "Books", UUID: "kept", Revision: kept + 1})
		f.publish("undone creation",
			event.Envelope{Event: event.StoreSaved, Store: "Books", UUID: "new", Revision: kept + 2})
		f.publish("deletion of nothing",
			event.Envelope{Event: event.StoreDeleted, Store: "Books", UUID: "gone", Revision: kept + 3})
	}
	made, err := Make(t.Context(), f.destination(), o)
	f.must(err)
	if !during {
		t.Fatal("nothing was published during the backup")
	}
	r, err := f.restore(made)
	f.must(err)
	if got, want := r.log(), []string{"before", "late", "deletion of nothing"}; !slices.Equal(got, want) {
		t.Errorf("the log has %q, want %q", got, want)
	}
	if r.Next["waiting"] != 1 || r.Next["handled"] != 2 {
		t.Errorf("consumers continue at %v", r.Next)
	}
}

// Dead letters are deleted one by one, when somebody retries or dismisses them. A restore brings back those alone that
// there were at the backup, also when an earlier backup had others.
func TestDeadLettersThatWereHandledAreNotRestored(t *testing.T) {
	f := newFixture(t)
	dead, err := f.bus.JetStream().Stream(t.Context(), bus.StreamDead)
	f.must(err)
	for i := range 8 { // more than one chunk
		_, err := f.bus.JetStream().PublishMsg(t.Context(),
			&nats.Msg{Subject: "dead.audit", Data: bytes.Repeat([]byte{'a' + byte(i)}, 900<<10)})
		f.must(err)
	}
	if first := f.make(); !first.Streams[1].Chunks[0].Complete {
		t.Fatalf("no chunk is complete: %+v", first.Streams[1])
	}
	f.must(dead.DeleteMsg(t.Context(), 2))
	r, err := f.restore(f.make())
	f.must(err)
	left := ""
	f.must(eventlog.Stored{Stream: bus.StreamDead}.Each(t.Context(), r.bus, func(m *eventlog.Message) error {
		left += string(m.Data[:1])
		return nil
	}))
	if left != "acdefgh" {
		t.Errorf("the restored dead letters are %q", left)
	}
}

// A value moves from one object to another while the records are read one after the other, so both have it in the
// backup. The restore gives it to one, and a verification names them.
func TestAValueThatMovesDuringABackupIsThatOfTwoObjects(t *testing.T) {
	f := newFixture(t)
	unique := func(f *fixture) *store.Store {
		s, err := store.Open(t.Context(), f.pens, store.Options{Name: "Pens", Unique: [][]string{{"slug"}}})
		f.must(err)
		s.Claims().Trust(true)
		return s
	}
	pens := unique(f)
	f.stores["Pens"] = pens
	slug := func(text string) object.Object { return object.Object{"slug": object.AppendString(nil, text)} }
	for _, uuid := range []string{"a", "z"} {
		_, err := pens.Save(t.Context(), slug(uuid), uuid)
		f.must(err)
	}
	for i := range recordPage { // between them, so that they are on different pages
		_, err := pens.Save(t.Context(), object.Object{}, fmt.Sprint("m", i))
		f.must(err)
	}
	o := f.options()
	moved := false
	o.Progress = func(p Progress) {
		if p.What != "Pens" || moved {
			return
		}
		moved = true
		_, err := pens.Update(t.Context(), slug("c"), store.UpdateOptions{UUID: "a"})
		f.must(err)
		_, err = pens.Update(t.Context(), slug("a"), store.UpdateOptions{UUID: "z"})
		f.must(err)
	}
	m, err := Make(t.Context(), f.destination(), o)
	f.must(err)
	r, err := f.restore(m)
	f.must(err)
	var found []store.UniqueFinding
	restored := unique(r.fixture)
	for _, uuid := range []string{"a", "z"} {
		_, one, err := restored.Claims().Make(t.Context(), uuid)
		f.must(err)
		found = append(found, one...)
	}
	if len(found) != 1 || found[0].UUID != "z" || found[0].Other != "a" {
		t.Errorf("%+v", found)
	}
}

// The log has lost its beginning, so its sequences are others after a restore. A dead letter names that of its event.
func TestADeadLetterNamesItsEventAfterARestore(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 5)
	s, err := f.bus.JetStream().Stream(t.Context(), bus.StreamEvents)
	f.must(err)
	f.must(s.Purge(t.Context(), jetstream.WithPurgeSequence(3)))
	for _, sequence := range []string{"4", "2"} { // the event of the second has left the log
		_, err := f.bus.JetStream().PublishMsg(t.Context(), &nats.Msg{Subject: "dead.audit", Data: []byte("{}"),
			Header: nats.Header{listener.HeaderSequence: {sequence}}})
		f.must(err)
	}
	r, err := f.restore(f.make())
	f.must(err)
	want := r.log()[1] // the fourth of then
	var named []string
	f.must(eventlog.Stored{Stream: bus.StreamDead}.Each(t.Context(), r.bus, func(m *eventlog.Message) error {
		named = append(named, m.Header.Get(listener.HeaderSequence))
		return nil
	}))
	if want != "e3" || !slices.Equal(named, []string{"2", "0"}) {
		t.Errorf("the dead letters name %q, and the log has %v", named, r.log())
	}
}

func TestRetentionKeepsTheLatestOfEachPeriod(t *testing.T) {
	at := func(texts ...string) []string {
		var ids []string
		for _, text := range texts {
			ids = append(ids, text+"-00000000")
		}
		return ids
	}
	all := at("20251231T230000.000Z", "20260101T010000.000Z", "20260101T020000.000Z", "20260131T030000.000Z",
		"20260202T030000.000Z", "20260203T030000.000Z", "20260203T040000.000Z", "20260203T043000.000Z")
	for name, c := range map[string]struct {
		keep Keep
		want []string
	}{
		"nothing set keeps all": {Keep{}, all},
		"last":                  {Keep{Last: 2}, all[6:]},
		"hourly":                {Keep{Hourly: 2}, []string{all[5], all[7]}},
		"daily":                 {Keep{Daily: 3}, []string{all[3], all[4], all[7]}},
		"weekly":                {Keep{Weekly: 3}, []string{all[2], all[3], all[7]}},
		"monthly":               {Keep{Monthly: 2}, []string{all[3], all[7]}},
		"yearly":                {Keep{Yearly: 5}, []string{all[0], all[7]}},
		"together":              {Keep{Last: 1, Daily: 2, Yearly: 2}, []string{all[0], all[4], all[7]}},
	} {
		stays := c.keep.kept(all)
		var got []string
		for _, id := range all {
			if stays[id] {
				got = append(got, id)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestABackupIsReadableForItsOwnerAlone(t *testing.T) {
	f := newFixture(t)
	f.fill(0, 1)
	r, err := f.restore(f.make())
	f.must(err)
	for _, folder := range []string{filepath.Join(f.folder, "backups"), filepath.Join(r.folder, "stores")} {
		info, err := os.Stat(folder)
		f.must(err)
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", folder, info.Mode())
		}
	}
	f.must(filepath.WalkDir(filepath.Join(f.folder, "backups"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	}))
}
