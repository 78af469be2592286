package binary_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
	"belfry/test/model"
)

// noLock lets writers in one process meet as writers in several do.
type noLock struct{}

func (noLock) Lock(context.Context, string) (func(), error) { return func() {}, nil }

const shared = "the content that all are after"

// race is a fixture in which processes are after one content. It was kept long
// ago, no record names it, and it is due to be swept.
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

// An upload waits as long as it takes for who is alive, and not for the dead.
const (
	long  = 30 * time.Minute
	short = time.Second
)

// newRace makes a race. Without touch a commit does not count as a modification:
// then time helps nobody.
func newRace(t *testing.T, touch bool, retryTimeout time.Duration) *race {
	t.Helper()
	r := &race{t: t, clock: &clock{time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)}, uploads: map[string]*process{}, retryTimeout: retryTimeout}
	old := r.clock.Add(-1000 * time.Hour)
	r.storage = newMemory(func() time.Time { return old })
	backend := steppedBackend{model.NewMemory()}
	open := func(o store.Options) *store.Store {
		o.Locker, o.Now = noLock{}, r.clock.now
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

// book makes an object, with the content already attached if held says so.
func (r *race) book(uuid string, held bool) {
	r.t.Helper()
	_, err := r.books.Save(r.t.Context(), object.Object{}, uuid)
	r.must(err)
	if held {
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

// deletion is a process that takes the content from a book, and hears of it.
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

// sweeper is a process that sweeps. One that is impatient does not leave alone
// what another one has condemned.
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

// judge demands that every record has its content; that uploads which succeeded
// are there; and that nothing is left over after further sweeps.
func (r *race) judge(s *schedule) {
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
	r.whole(s)
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
	}
	r.whole(s)
	_, held, err := r.FindReference(ctx, hashOf(shared))
	r.must(err)
	if left := len(r.storage.contents) > 0; left != held {
		r.t.Fatalf("the content is there: %v, held: %v\n%s", left, held, s)
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

func (r *race) whole(s *schedule) {
	r.t.Helper()
	report, err := binary.Verify(r.t.Context(), []*binary.Service{r.Service}, binary.VerifyOptions{Deep: true})
	r.must(err)
	for _, d := range report.Differences {
		if d.Kind != binary.Unreferenced {
			r.t.Fatalf("%+v\n%s", d, s)
		}
	}
}

// run plays one order.
func (r *race) run(choose chooser, mayKill func(*process) bool, processes ...*process) {
	s := &schedule{choose: choose, mayKill: mayKill, processes: processes}
	s.play(r.t.Context())
	r.judge(s)
}

func never(*process) bool  { return false }
func always(*process) bool { return true }

func only(one *process) func(*process) bool { return func(p *process) bool { return p == one } }

// Whatever the order of an upload's steps and a sweeper's, and though the
// storage's times help nobody.
func TestEveryOrderOfAnUploadAndASweeper(t *testing.T) {
	n := everyOrder(func(choose chooser) {
		r := newRace(t, false, long)
		r.run(choose, never, r.upload("a"), r.sweeper("sweeper", false))
	})
	t.Logf("%d orders", n)
	if n < 300 {
		t.Errorf("only %d orders were tried", n)
	}
}

// A sweeper that is killed at any point leaves an upload the content, or an
// error and no record.
func TestEveryOrderWithASweeperKilled(t *testing.T) {
	n := everyOrder(func(choose chooser) {
		r := newRace(t, false, short)
		sweeper := r.sweeper("sweeper", false)
		r.run(choose, only(sweeper), r.upload("a"), sweeper)
	})
	t.Logf("%d orders", n)
}

// An upload that is killed at any point leaves no record without content: what
// was modified lately stays.
func TestEveryOrderWithAnUploadKilled(t *testing.T) {
	n := everyOrder(func(choose chooser) {
		r := newRace(t, true, long)
		up := r.upload("a")
		r.run(choose, only(up), up, r.sweeper("sweeper", false))
	})
	t.Logf("%d orders", n)
}

func TestSomeOrdersOfMany(t *testing.T) {
	const orders = 400
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
			return []*process{r.upload("a"), r.upload("b"), r.deletion("c"), r.sweeper("first", false), r.sweeper("second", true)}
		},
	} {
		for _, touch := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, touch %v", name, touch), func(t *testing.T) {
				someOrders(orders, 7, func(choose chooser) {
					kill, patience := never, long
					if touch {
						kill, patience = always, short
					}
					r := newRace(t, touch, patience)
					processes := scene(r)
					r.run(choose, kill, processes...)
				})
			})
		}
	}
}

var _ driver.Backend = steppedBackend{}
