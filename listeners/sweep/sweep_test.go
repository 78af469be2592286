package sweep_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/listeners/sweep"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
)

func TestContentIsDeletedAfterItsLastRecord(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(f *fixture) error{
		"a deletion": func(f *fixture) error {
			_, err := f.Delete(t.Context(), place("Books", "b", 0), hashOf("a"))
			return err
		},
		"a replacement": func(f *fixture) error {
			return put(t.Context(), f.Service, place("Books", "b", 0), "new")
		},
		"the object's deletion": func(f *fixture) error { return f.set.Store("Books").Delete(t.Context(), "b", 0) },
		"a deletion by a worker": func(f *fixture) error {
			return f.set.Store("Books").Delete(asCascade(t.Context()), "b", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, options{})
			f.save("Books", "b", "a")
			f.save("Shelves", "s", "other")
			f.deliver()
			f.wantEntries(0)
			f.must(act(f))
			f.deliver()
			f.wantEntries(1)
			left := []string{"other"}
			if name == "a replacement" {
				left = append(left, "new")
			}
			f.sweepAfter(59 * time.Minute)
			f.wantContents(append(left, "a")...)
			f.sweepAfter(2 * time.Minute)
			f.wantContents(left...)
			f.wantEntries(0)
			if n := f.worker.Deleted(); n != 1 {
				t.Errorf("%d contents were deleted", n)
			}
		})
	}
}

func asCascade(ctx context.Context) context.Context {
	return store.WithCall(ctx, store.Call{Origin: event.OriginCascade})
}

func TestContentWithAnotherRecordIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.save("Books", "b", "a", "a", "c")
	f.save("Shelves", "s", "c")
	_, err := f.Delete(t.Context(), place("Books", "b", 0), hashOf("a"))
	f.must(err)
	_, err = f.Delete(t.Context(), place("Books", "b", 1), hashOf("c"))
	f.must(err)
	f.deliver()
	f.wantEntries(2)
	f.sweepAfter(2 * time.Hour)
	f.wantContents("a", "c")
	f.wantEntries(0)
	f.must(f.set.Store("Books").Delete(t.Context(), "b", 0))
	f.deliver()
	f.sweepAfter(2 * time.Hour)
	f.wantContents("c")
	f.wantEntries(0)
}

// A content that is uploaded again within its grace period is kept. The grace
// period restarts when its last record is deleted.
func TestGracePeriodStartsWithTheLastRecord(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.save("Books", "b", "a")
	remove := func() {
		_, err := f.Delete(t.Context(), place("Books", "b", 0), hashOf("a"))
		f.must(err)
		f.deliver()
	}
	remove()
	f.sweepAfter(50 * time.Minute)
	f.add("Books", "b", "a")
	f.sweepAfter(50 * time.Minute)
	f.wantContents("a")
	remove()
	f.sweepAfter(50 * time.Minute)
	f.wantContents("a")
	f.sweepAfter(20 * time.Minute)
	f.wantContents()
}

// An upload of an existing content updates its modification time, so that an
// earlier candidate is not deleted.
func TestRecentlyModifiedContentIsKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.save("Books", "b", "a")
	f.must(f.set.Store("Books").Delete(t.Context(), "b", 0))
	f.deliver()
	f.ahead.Add(int64(2 * time.Hour))
	fresh := time.Now().Add(2 * time.Hour)
	staged, err := f.storage.Stage(t.Context())
	f.must(err)
	defer staged.Discard()
	_, err = staged.Write([]byte("a"))
	f.must(err)
	f.must(staged.Commit(t.Context(), hashOf("a")))
	f.touch("a", fresh)
	f.sweepAfter(0)
	f.wantContents("a")
	f.wantEntries(1)
	f.sweepAfter(61 * time.Minute)
	f.wantContents()
}

func TestEventsWithoutRemovedRecordsAreIgnored(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.save("Books", "b", "a")
	for _, e := range []event.Envelope{
		{Event: event.StoreDeleted, Object: []byte(`{"photos":[{"hash":"` + hashOf("a") + `"}]}`)},
		{Event: event.StoreDeleted, Binaries: []byte(`{"photos":"files"}`)},
		{Event: event.StoreDeleted, Binaries: []byte(`{"photos":"files"}`),
			Object: []byte(`{"photos":[{"hash":5},{},7]}`)},
		{Event: event.StoreDeleted, Binaries: []byte(`{"photos":"others"}`),
			Object: []byte(`{"photos":[{"hash":"x"}]}`)},
		{Event: event.BinaryDeleted, Binaries: []byte(`{"photos":"files"}`)},
		{Event: event.BinaryUploaded, Binaries: []byte(`{"photos":"files"}`),
			Record: []byte(`{"hash":"` + hashOf("a") + `"}`)},
		{Event: event.StoreUpdated, Binaries: []byte(`{"photos":"files"}`),
			Object: []byte(`{"photos":[{"hash":"` + hashOf("a") + `"}]}`)},
	} {
		f.must(f.worker.Handle(t.Context(), &e))
	}
	f.wantEntries(0)
}

func TestFiltersNameTheStoresWithBinaries(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	want := []string{"events.*.Binary.Deleted.*.*", "events.*.Binary.Uploaded.*.*", "events.*.Store.Deleted.Books.*",
		"events.*.Store.Deleted.Shelves.*"}
	if got := f.worker.Filters(); !slices.Equal(got, want) {
		t.Errorf("the filters are %q", got)
	}
	idle, err := sweep.NewWorker(nil, slog.New(slog.DiscardHandler))
	f.must(err)
	f.must(idle.SweepAll(t.Context()))
	if got := idle.Filters(); len(got) > 0 {
		t.Errorf("without services the filters are %q", got)
	}
}

func TestStoreWithoutBinaryIndexIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	books := f.set.Store("Books").WithOptions(func(o *store.Options) { o.IndexBinaries = false })
	service := binary.New(binary.Options{Name: "files", Set: store.NewSet([]*store.Store{books}, nil),
		Contents: f.entries, Storage: f.storage})
	if _, err := sweep.NewWorker([]*binary.Service{service}, slog.New(slog.DiscardHandler)); !errors.Is(err,
		errs.Invalid) {
		t.Errorf("the error is %v", err)
	}
}

func TestSweepHandlesSeveralPages(t *testing.T) {
	t.Parallel()
	const n = 250 // more than a page
	f := newFixture(t, options{})
	f.save("Books", "b", "a")
	for i := range n {
		f.must(f.MarkCandidate(t.Context(), hashOf(fmt.Sprint(i))))
	}
	f.must(f.MarkCandidate(t.Context(), hashOf("a")))
	f.wantEntries(n + 1)
	f.sweepAfter(2 * time.Hour)
	f.wantEntries(0)
	f.wantContents("a")
}

// A content that can't be deleted is tried again after its lease, and does not
// stop the others.
func TestFailedDeletionIsRetriedAfterTheLease(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.save("Books", "b", "a", "c")
	f.must(f.set.Store("Books").Delete(t.Context(), "b", 0))
	f.deliver()
	f.storage.refuse("a", errs.New(errs.Unavailable, "away"))
	f.ahead.Add(int64(2 * time.Hour))
	if err := f.worker.SweepDue(t.Context()); !errors.Is(err, errs.Unavailable) {
		t.Errorf("the error is %v", err)
	}
	f.wantContents("a")
	f.wantEntries(1)
	f.storage.refuse("", nil)
	f.sweepAfter(0)
	f.wantContents("a")
	f.sweepAfter(6 * time.Minute)
	f.wantContents()
	f.wantEntries(0)
}

// Deletions that other processes began and did not finish are finished.
func TestUnfinishedDeletionsAreFinished(t *testing.T) {
	t.Parallel()
	for _, state := range []binary.State{binary.MarkedForDeletion, binary.Deleting} {
		f := newFixture(t, options{})
		f.save("Books", "b", "kept", "gone")
		f.must(f.set.Store("Books").Delete(t.Context(), "b", 0))
		f.save("Books", "c", "kept")
		for _, text := range []string{"kept", "gone"} {
			o := object.Object{}
			o.Set("service", "files")
			o.Set("hash", hashOf(text))
			o.Set("state", state)
			o.Set("due", "2020-01-01T00:00:00.000000Z")
			_, err := f.entries.Save(t.Context(), o, "files."+hashOf(text))
			f.must(err)
		}
		f.sweepAfter(2 * time.Hour)
		f.wantContents("kept")
		f.wantEntries(0)
	}
}

func TestSweepAllFindsContentsWhoseEventWasLost(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.save("Books", "b", "a", "c", "d")
	f.must(f.set.Store("Books").Delete(t.Context(), "b", 0))
	f.save("Books", "e", "d")
	f.outbox.take() // dropped
	f.must(f.worker.SweepAll(t.Context()))
	f.wantEntries(0)
	f.wantContents("a", "c", "d")
	f.age()
	f.must(f.worker.SweepAll(t.Context()))
	f.wantEntries(2)
	f.sweepAfter(2 * time.Hour)
	f.wantContents("d")
	f.wantEntries(0)
}

func TestSweepAllRemovesAbandonedStages(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	staged, err := f.storage.Stage(t.Context())
	f.must(err)
	defer staged.Discard()
	f.abandonStage()
	f.must(f.worker.SweepAll(t.Context()))
	if n := f.stages(); n != 2 {
		t.Errorf("%d stages exist, want the one in use and the recent one", n)
	}
	f.ahead.Add(int64(48 * time.Hour))
	f.must(f.worker.SweepAll(t.Context()))
	if n := f.stages(); n != 1 {
		t.Errorf("%d stages exist, want the one in use", n)
	}
}

// A process that was killed while it made a thumbnail can leave it without its content.
func TestSweepAllRemovesThumbnailsWithoutContents(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.save("Books", "b", "a")
	f.must(f.storage.PutVariant(t.Context(), hashOf("a"), "1-90x90", nil))
	f.must(f.storage.PutVariant(t.Context(), hashOf("gone"), "1-90x90", nil))
	f.must(f.worker.SweepAll(t.Context()))
	if left, _, err := f.storage.ListVariants(t.Context(), "", 10); err != nil || !slices.Equal(left, []string{hashOf("a")}) {
		t.Errorf("%q are left, %v", left, err)
	}
}

// laggingBackend is a backend whose indexes of binaries are empty until they have
// been waited for.
type laggingBackend struct {
	driver.Backend
	indexed *atomic.Bool
}

const lag = 42 * time.Second

func (b laggingBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return laggingStore{s, b.indexed}, err
}

type laggingStore struct {
	driver.Store
	indexed *atomic.Bool
}

var _ driver.IndexLagger = laggingStore{}

func (laggingStore) IndexLag() time.Duration { return lag }

func (s laggingStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	if q.Index == "binary" && !s.indexed.Load() {
		return driver.Page{}, nil
	}
	return s.Store.Query(ctx, q)
}

func TestSweeperWaitsForTheIndexes(t *testing.T) {
	t.Parallel()
	var indexed atomic.Bool
	f := newFixture(t, options{backend: func(b driver.Backend) driver.Backend { return laggingBackend{b, &indexed} }})
	f.worker.SetWait(func(_ context.Context, d time.Duration) error {
		indexed.Store(d >= lag)
		return nil
	})
	f.must(f.MarkCandidate(t.Context(), hashOf("a")))
	f.ahead.Add(int64(2 * time.Hour))
	f.save("Books", "b", "a")
	f.age()
	f.sweepAfter(0)
	f.wantContents("a")
	f.wantEntries(0)
}

// An entry that can't be decoded is reported, and the other contents are swept.
func TestMalformedEntriesAreReported(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		field string
		value any
		due   bool // found by SweepDue; otherwise by SweepAll alone
	}{
		"unknown state":  {"state", "doomed", true},
		"no state":       {"state", nil, true},
		"malformed time": {"due", "2020", true},
		"no time":        {"due", nil, false},
		"another hash":   {"hash", hashOf("c"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, options{})
			f.save("Books", "b", "a", "c")
			f.must(f.set.Store("Books").Delete(t.Context(), "b", 0))
			f.deliver()
			broken := object.Object{}
			broken.Set(test.field, test.value)
			_, err := f.entries.Update(t.Context(), broken, store.UpdateOptions{UUID: "files." + hashOf("a")})
			f.must(err)
			f.ahead.Add(int64(2 * time.Hour))
			f.age()
			for name, sweep := range map[string]func(context.Context) error{"SweepDue": f.worker.SweepDue,
				"SweepAll": f.worker.SweepAll} {
				err := sweep(t.Context())
				switch {
				case name == "SweepDue" && !test.due:
					f.must(err)
				case !errors.Is(err, binary.ErrMalformedEntry) || !strings.Contains(err.Error(), "files."+hashOf("a")):
					t.Errorf("%s returned %v, want an error about the entry", name, err)
				}
			}
			f.wantContents("a")
			report, err := binary.Verify(t.Context(), []*binary.Service{f.Service}, binary.VerifyOptions{})
			f.must(err)
			if d := report.Differences; len(d) != 1 || d[0].Kind != binary.Malformed || d[0].Service != "files" ||
				d[0].Hash != hashOf("a") {
				t.Errorf("verify reports %+v, want the malformed entry", d)
			}
			// What the error says to do makes it right.
			f.must(f.entries.Delete(t.Context(), "files."+hashOf("a"), 0))
			f.must(f.worker.SweepAll(t.Context()))
			f.sweepAfter(2 * time.Hour)
			f.wantContents()
		})
	}
}

func TestSweepEndsWithItsContext(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	f.must(f.MarkCandidate(t.Context(), hashOf("a")))
	f.ahead.Add(int64(2 * time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, act := range []func(context.Context) error{f.worker.SweepDue, f.worker.SweepAll} {
		if err := act(ctx); errs.KindOf(err) != errs.Canceled && !errors.Is(err, context.Canceled) {
			t.Errorf("the error is %v", err)
		}
	}
}
