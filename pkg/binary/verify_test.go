package binary_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/binary/driver"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// differs asserts what a verification reports, each as "kind service place".
func (w *world) differs(deep bool, want ...string) *binary.Report {
	w.Helper()
	report, err := binary.Verify(w.Context(), []*binary.Service{w.Service}, binary.VerifyOptions{Deep: deep})
	w.must(err)
	got := []string{}
	for _, d := range report.Differences {
		got = append(got, fmt.Sprint(d.Kind, " ", d.Service, " ", d.Place.Property, " ", d.Place.Index))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || report.Clean() != (len(want) == 0) {
		w.Errorf("reported are %q, want %q", got, want)
	}
	return report
}

// path is where the storage has a content.
func (w *world) path(hash string) string {
	return filepath.Join(w.folder, hash[:2], hash[2:4], hash)
}

// age makes a content look as if it had been kept long ago.
func (w *world) age(hash string) {
	w.Helper()
	long := time.Now().Add(-1000 * time.Hour)
	w.must(os.Chtimes(w.path(hash), long, long))
}

// amend changes an object behind everybody's back.
func (w *world) amend(uuid string, fields object.Object) {
	w.Helper()
	_, err := w.set.Store("Books").Amend(w.Context(), w.object("Books", uuid), fields)
	w.must(err)
}

func TestVerifyComparesRecordsAndContents(t *testing.T) {
	w := newWorld(t, options{})
	book, other := w.save("Books", `{}`), w.save("Books", `{}`)
	for i := range 5 {
		w.add(book, fmt.Sprint("content ", i))
	}
	w.add(other, "content 0")
	for _, deep := range []bool{false, true} {
		if r := w.differs(deep); r.Records != 6 || r.Contents != 5 || deep != (r.Bytes == 5*int64(len("content 0"))) {
			t.Errorf("the report is %+v", r)
		}
	}

	w.must(os.Remove(w.path(hashOf("content 1"))))
	w.must(os.Truncate(w.path(hashOf("content 2")), 3))
	w.must(os.WriteFile(w.path(hashOf("content 3")), []byte("conTent 3"), 0o600))
	w.differs(false, "lost files photos 1", "size files photos 2")
	w.differs(true, "lost files photos 1", "size files photos 2", "hash files photos 2", "hash files photos 3")

	w.amend(book, object.Object{
		"photos": []byte(`[{"hash":5},"x",{"hash":"` + hashOf("content 4") + `","size":9}]`), "scans": []byte(`[{}]`),
		store.BinariesField: []byte(`{"photos":"files","scans":"gone"}`),
	})
	w.differs(false, "malformed files photos 0", "malformed files photos 1", "unserved gone scans 0")
}

func TestVerifyFindsWhatNoRecordNames(t *testing.T) {
	w := newWorld(t, options{})
	book := w.save("Books", `{}`)
	for _, text := range []string{"young", "old", "noted"} {
		w.add(book, text)
	}
	w.must(w.set.Store("Books").Delete(t.Context(), book, 0))
	w.differs(true)
	w.age(hashOf("old"))
	w.age(hashOf("noted"))
	w.must(w.Note(t.Context(), hashOf("noted")))
	report := w.differs(true, "unreferenced files  0")
	if d := report.Differences[0]; d.Hash != hashOf("old") || !strings.Contains(d.Detail, "3 bytes") {
		t.Errorf("%+v", d)
	}
}

// blinking is a storage that has nothing at first.
type blinking struct {
	driver.Storage
	looks int
}

func (b *blinking) Stat(ctx context.Context, hash string) (driver.Info, bool, error) {
	info, found, err := b.Storage.Stat(ctx, hash)
	b.looks++
	return info, found && b.looks > 3, err
}

func TestVerifyIsPatient(t *testing.T) {
	w := newWorld(t, options{})
	w.add(w.save("Books", `{}`), "a")
	for patience, differences := range map[time.Duration]int{0: 1, time.Minute: 0} {
		s := binary.New(binary.Options{Name: "files", Set: w.set, Contents: w.Contents, Storage: &blinking{Storage: w.Storage}})
		report, err := binary.Verify(t.Context(), []*binary.Service{s}, binary.VerifyOptions{Patience: patience})
		w.must(err)
		if len(report.Differences) != differences {
			t.Errorf("with a patience of %s: %+v", patience, report.Differences)
		}
	}
}

func TestVerifyListsSoMany(t *testing.T) {
	const lost = binary.MaxDifferences + 20
	w := newWorld(t, options{})
	book := w.save("Books", `{}`)
	records := []byte{'['}
	for i := range lost {
		if i > 0 {
			records = append(records, ',')
		}
		records = fmt.Appendf(records, `{"hash":%q}`, hashOf(fmt.Sprint(i)))
	}
	w.amend(book, object.Object{"photos": append(records, ']'), store.BinariesField: []byte(`{"photos":"files"}`)})
	report, err := binary.Verify(t.Context(), []*binary.Service{w.Service}, binary.VerifyOptions{})
	w.must(err)
	if len(report.Differences) != binary.MaxDifferences || report.More != lost-binary.MaxDifferences {
		t.Errorf("%d are listed, %d more told", len(report.Differences), report.More)
	}
}
