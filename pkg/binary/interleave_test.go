package binary_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
	"belfry/test/model"
)

const shared = "the content that all processes use"

// race is a fixture in which processes use one content. It was stored long ago, no
// record references it, and it is due to be swept.
type race struct {
	*binary.Service
	t            *testing.T
	retryTimeout time.Duration
	clock        *clock
	storage      *memory
	books        *store.Store
	entries      *store.Store
	uploads      map[string]*process // by book
}

const lease = time.Hour

// Retry timeouts: long enough for every running process, and too short for one
// that was killed.
const (
	long  = 30 * time.Minute
	short = time.Second
)

// newRace makes a race. Without touch a commit does not update the modification
// time, so that the grace period protects nothing.
func newRace(t *testing.T, touch bool, retryTimeout time.Duration) *race {
	t.Helper()
	r := &race{t: t, clock: &clock{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}, uploads: map[string]*process{},
		retryTimeout: retryTimeout}
	old := r.clock.Add(-1000 * time.Hour)
	r.storage = newMemory(func() time.Time { return old })
	backend := steppedBackend{model.NewMemory()}
	open := func(o store.Options) *store.Store {
		o.Locker, o.Now = model.NoLock{}, r.clock.now
		s, err := store.Open(t.Context(), backend, o)
		r.must(err)
		return s
	}
	r.books = open(store.Options{Name: "Books", IndexBinaries: true})
	r.entries = open(binary.ContentsOptions("Contents"))
	r.Service = binary.New(binary.Options{
		Name: "files", Set: store.NewSet([]*store.Store{r.books}, nil), Contents: r.entries,
		Storage: steppedStorage{r.storage}, Now: r.clock.now, Lease: lease, RetryTimeout: retryTimeout,
	})
	r.SetWait(func(ctx context.Context, d time.Duration) error {
		r.clock.Time = r.clock.Add(d)
		paused(ctx)
		return ctx.Err()
	})
	staged, err := r.storage.Stage(t.Context())
	r.must(err)
	_, err = staged.Write([]byte(shared))
	r.must(err)
	r.must(staged.Commit(t.Context(), hashOf(shared)))
	r.must(r.MarkCandidate(t.Context(), hashOf(shared)))
	r.clock.Time = r.clock.Add(2 * time.Hour)
	if touch {
		r.storage.now = r.clock.now
	}
	return r
}

func (r *race) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// book creates an object; attached says whether it has the content already.
func (r *race) book(uuid string, attached bool) {
	r.t.Helper()
	_, err := r.books.Save(r.t.Context(), object.Object{}, uuid)
	r.must(err)
	if attached {
		_, err := r.Put(r.t.Context(), upload(photo(uuid, 0), shared))
		r.must(err)
		r.storage.contents[hashOf(shared)] = kept{[]byte(shared), r.clock.Add(-1000 * time.Hour)}
	}
}

// upload is a process that attaches the content to a book.
func (r *race) upload(uuid string) *process {
	r.book(uuid, false)
	p := &process{name: "upload to " + uuid, run: func(ctx context.Context) error {
		_, err := r.Put(ctx, upload(photo(uuid, binary.Append), shared))
		return err
	}}
	r.uploads[uuid] = p
	return p
}

// deletion is a process that deletes the content of a book, and then handles the
// event.
func (r *race) deletion(uuid string) *process {
	r.book(uuid, true)
	return &process{name: "deletion from " + uuid, run: func(ctx context.Context) error {
		if _, err := r.Delete(ctx, photo(uuid, 0), hashOf(shared)); err != nil {
			return err
		}
		if err := r.MarkCandidate(ctx, hashOf(shared)); !errors.Is(err, errs.Conflict) {
			return err
		}
		return nil
	}}
}

// sweeper is a process that sweeps. An impatient one takes over an entry that
// another one has marked for deletion.
func (r *race) sweeper(name string, impatient bool) *process {
	return &process{name: name, blind: true, run: func(ctx context.Context) error {
		at := r.clock.now()
		if impatient {
			at = at.Add(lease)
		}
		return r.sweep(ctx, at, !impatient)
	}}
}

func (r *race) sweep(ctx context.Context, at time.Time, takeOver bool) error {
	due, err := r.DueAt(ctx, at)
	for _, e := range due.Entries {
		if err != nil {
			return err
		}
		if e.State == binary.Deleting && !takeOver {
			continue
		}
		if e, err = r.MarkForDeletion(ctx, e); err == nil {
			_, err = r.DeleteMarked(ctx, e)
		}
		if errors.Is(err, errs.Mismatch) {
			err = nil
		}
	}
	return err
}

// verify checks the invariants: every record has its content, every acknowledged
// upload has its record, and further sweeps leave no garbage.
func (r *race) verify(s *schedule) {
	r.t.Helper()
	ctx := r.t.Context()
	for uuid, p := range r.uploads {
		if err := p.err; err != nil && (!errors.Is(err, errs.Unavailable) || r.retryTimeout == long) {
			r.t.Fatalf("%s failed: %v\n%s", p.name, err, s)
		}
		if p.err == nil && !p.killed && r.records(uuid) != 1 {
			r.t.Fatalf("%s has %d records after a good upload\n%s", uuid, r.records(uuid), s)
		}
		if p.err != nil && r.records(uuid) != 0 {
			r.t.Fatalf("%s has %d records after an upload that failed\n%s", uuid, r.records(uuid), s)
		}
	}
	r.verifyContents(s)
	for range 4 {
		r.clock.Time = r.clock.Add(2*lease + 2*time.Hour)
		r.must(r.sweep(ctx, r.clock.now(), true))
		for hash := range r.storage.contents {
			info, _, _ := r.storage.Stat(ctx, hash)
			if stray, err := r.IsOrphan(ctx, info); err != nil {
				r.t.Fatal(err)
			} else if stray {
				r.must(r.MarkCandidate(ctx, hash))
			}
		}
		if left, _, err := r.entries.Scan(ctx, nil, 1); err == nil && len(left) == 0 {
			break // nothing to sweep is left
		}
	}
	r.verifyContents(s)
	_, held, err := r.FindReference(ctx, hashOf(shared))
	r.must(err)
	if left := len(r.storage.contents) > 0; left != held {
		r.t.Fatalf("the content exists: %v, referenced: %v\n%s", left, held, s)
	}
	if left, _, err := r.entries.Scan(ctx, nil, 10); err != nil || len(left) > 0 {
		r.t.Fatalf("%d entries are left, the first %s\n%s", len(left), left[0].Body, s)
	}
}

func (r *race) records(uuid string) int {
	o, err := r.books.Get(r.t.Context(), uuid)
	r.must(err)
	n := 0
	object.Elements(object.Field(o.Body, "photos"), func([]byte) bool { n++; return true })
	return n
}

func (r *race) verifyContents(s *schedule) {
	r.t.Helper()
	report, err := binary.Verify(r.t.Context(), []*binary.Service{r.Service}, binary.VerifyOptions{Deep: true})
	r.must(err)
	for _, d := range report.Differences {
		if d.Kind != binary.Unreferenced {
			r.t.Fatalf("%+v\n%s", d, s)
		}
	}
}

// run runs the processes in one order.
func (r *race) run(choose chooser, mayKill func(*process) bool, processes ...*process) {
	s := &schedule{choose: choose, mayKill: mayKill, processes: processes}
	s.play(r.t.Context())
	r.verify(s)
}

func never(*process) bool  { return false }
func always(*process) bool { return true }

func only(one *process) func(*process) bool { return func(p *process) bool { return p == one } }

// No order of the steps of an upload and a sweeper loses a content, even without
// a grace period.
func TestEveryInterleavingOfUploadAndSweeper(t *testing.T) {
	t.Parallel()
	n := everyOrder(func(choose chooser) {
		r := newRace(t, false, long)
		r.run(choose, never, r.upload("a"), r.sweeper("sweeper", false))
	})
	t.Logf("%d orders", n)
	if n < 300 {
		t.Errorf("only %d orders were tried", n)
	}
}

// With a sweeper that is killed at any step an upload succeeds, or returns an
// error and leaves no record.
func TestEveryInterleavingWithKilledSweeper(t *testing.T) {
	t.Parallel()
	n := everyOrder(func(choose chooser) {
		r := newRace(t, false, short)
		sweeper := r.sweeper("sweeper", false)
		r.run(choose, only(sweeper), r.upload("a"), sweeper)
	})
	t.Logf("%d orders", n)
}

// An upload that is killed at any step leaves no record without content: the
// grace period keeps the content.
func TestEveryInterleavingWithKilledUpload(t *testing.T) {
	t.Parallel()
	n := everyOrder(func(choose chooser) {
		r := newRace(t, true, long)
		up := r.upload("a")
		r.run(choose, only(up), up, r.sweeper("sweeper", false))
	})
	t.Logf("%d orders", n)
}

func TestSoakRandomInterleavings(t *testing.T) {
	t.Parallel()
	const orders = 50
	for name, scene := range map[string]func(r *race) []*process{
		"two uploads": func(r *race) []*process {
			return []*process{r.upload("a"), r.upload("b"), r.sweeper("sweeper", false)}
		},
		"two sweepers": func(r *race) []*process {
			return []*process{r.upload("a"), r.sweeper("first", false), r.sweeper("second", true)}
		},
		"a deletion": func(r *race) []*process {
			return []*process{r.upload("a"), r.deletion("b"), r.sweeper("sweeper", false)}
		},
		"all": func(r *race) []*process {
			return []*process{r.upload("a"), r.upload("b"), r.deletion("c"), r.sweeper("first", false),
				r.sweeper("second", true)}
		},
	} {
		for _, touch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, touch %v", name, touch), func(t *testing.T) {
				t.Parallel()
				for run := kit.Soak(t, 1); run.More(); {
					someOrders(orders, run.Seed(), func(choose chooser) {
						kill, retryTimeout := never, long
						if touch {
							kill, retryTimeout = always, short
						}
						r := newRace(t, touch, retryTimeout)
						r.run(choose, kill, scene(r)...)
					})
				}
			})
		}
	}
}

var _ driver.Backend = steppedBackend{}
