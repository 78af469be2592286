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
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// differs asserts the reported differences, each as "kind service place".
func (f *fixture) differs(deep bool, want ...string) *binary.Report {
	f.Helper()
	report, err := binary.Verify(f.Context(), []*binary.Service{f.Service}, binary.VerifyOptions{Deep: deep})
	f.must(err)
	got := []string{}
	for _, d := range report.Differences {
		got = append(got, fmt.Sprint(d.Kind, " ", d.Service, " ", d.Place.Property, " ", d.Place.Index))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || report.Clean() != (len(want) == 0) {
		f.Errorf("reported are %q, want %q", got, want)
	}
	return report
}

// path is the path of a content in the storage.
func (f *fixture) path(hash string) string {
	return filepath.Join(f.folder, hash[:2], hash[2:4], hash)
}

// age sets the modification time of a content to long ago.
func (f *fixture) age(hash string) {
	f.Helper()
	long := time.Now().Add(-1000 * time.Hour)
	f.must(os.Chtimes(f.path(hash), long, long))
}

// amend writes an object without policy and schema.
func (f *fixture) amend(uuid string, fields object.Object) {
	f.Helper()
	_, err := store.NewWorker(f.set.Store("Books")).CompareAndSet(f.Context(), f.object("Books", uuid), fields)
	f.must(err)
}

func TestVerifyComparesRecordsAndContents(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book, other := f.save("Books", `{}`), f.save("Books", `{}`)
	for i := range 5 {
		f.add(book, fmt.Sprint("content ", i))
	}
	f.add(other, "content 0")
	for _, deep := range []bool{false, true} {
		if r := f.differs(deep); r.Records != 6 || r.Contents != 5 || deep != (r.Bytes == 5*int64(len("content 0"))) {
			t.Errorf("the report is %+v", r)
		}
	}

	f.must(os.Remove(f.path(hashOf("content 1"))))
	f.must(os.Truncate(f.path(hashOf("content 2")), 3))
	f.must(os.WriteFile(f.path(hashOf("content 3")), []byte("conTent 3"), 0o600))
	f.differs(false, "lost files photos 1", "size files photos 2")
	f.differs(true, "lost files photos 1", "size files photos 2", "hash files photos 2", "hash files photos 3")

	f.amend(book, object.Object{
		"photos": []byte(`[{"hash":5},"x",{"hash":"` + hashOf("content 4") + `","size":9}]`), "scans": []byte(`[{}]`),
		store.BinariesField: []byte(`{"photos":"files","scans":"gone"}`),
	})
	f.differs(false, "malformed files photos 0", "malformed files photos 1", "unserved gone scans 0")
}

func TestVerifyFindsUnreferencedContents(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{}`)
	for _, text := range []string{"young", "old", "noted"} {
		f.add(book, text)
	}
	f.must(f.set.Store("Books").Delete(t.Context(), book, 0))
	f.differs(true)
	f.age(hashOf("old"))
	f.age(hashOf("noted"))
	f.must(f.MarkCandidate(t.Context(), hashOf("noted")))
	report := f.differs(true, "unreferenced files  0")
	if d := report.Differences[0]; d.Hash != hashOf("old") || !strings.Contains(d.Detail, "3 bytes") {
		t.Errorf("%+v", d)
	}
}

// lagging is a storage that finds a content only after some calls.
type lagging struct {
	driver.Storage
	calls int
}

func (b *lagging) Stat(ctx context.Context, hash string) (driver.Info, bool, error) {
	info, found, err := b.Storage.Stat(ctx, hash)
	b.calls++
	return info, found && b.calls > 3, err
}

func TestVerifyRechecksDifferences(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.add(f.save("Books", `{}`), "a")
	for patience, differences := range map[time.Duration]int{0: 1, kit.Limit: 0} {
		s := binary.New(binary.Options{Name: "files", Set: f.set, Contents: f.entries,
			Storage: &lagging{Storage: f.storage}})
		report, err := binary.Verify(t.Context(), []*binary.Service{s}, binary.VerifyOptions{RecheckFor: patience})
		f.must(err)
		if len(report.Differences) != differences {
			t.Errorf("with a patience of %s: %+v", patience, report.Differences)
		}
	}
}

func TestVerifyLimitsTheListedDifferences(t *testing.T) {
	t.Parallel()
	const lost = binary.MaxDifferences + 20
	f := newFixture(t, options{})
	var records []string
	for i := range lost {
		records = append(records, fmt.Sprintf(`{"hash":%q}`, hashOf(fmt.Sprint(i))))
	}
	for photos := range slices.Chunk(records, 20) {
		f.amend(f.save("Books", `{}`), object.Object{
			"photos": []byte("[" + strings.Join(photos, ",") + "]"), store.BinariesField: []byte(`{"photos":"files"}`),
		})
	}
	report, err := binary.Verify(t.Context(), []*binary.Service{f.Service}, binary.VerifyOptions{})
	f.must(err)
	if len(report.Differences) != binary.MaxDifferences || report.More != lost-binary.MaxDifferences {
		t.Errorf("%d are listed, %d more counted", len(report.Differences), report.More)
	}
}
