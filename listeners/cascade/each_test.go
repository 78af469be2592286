package cascade_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/listeners/cascade"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// gated is a fixture whose deletions of pets wait until the test lets each pass.
type gated struct {
	*fixture
	pass chan struct{}

	inFlight, most, passed atomic.Int64
	reads                  atomic.Int64 // of people
}

// gatedFixture returns a fixture within a bubble of synctest.
func gatedFixture(t *testing.T, o cascade.Options) *gated {
	t.Helper()
	f := &gated{fixture: &fixture{T: t}, pass: make(chan struct{})}
	f.remaining.Store(-1)
	backend := &model.Hooked{
		Backend: model.NewMemory(),
		BeforePut: func(ctx context.Context, name string, w driver.Write) error {
			if w.Body != nil || name != "Pets" {
				return f.put(ctx, name, w)
			}
			n := f.inFlight.Add(1)
			defer f.inFlight.Add(-1)
			for most := f.most.Load(); n > most && !f.most.CompareAndSwap(most, n); most = f.most.Load() {
			}
			select {
			case <-f.pass:
				f.passed.Add(1)
				return f.put(ctx, name, w)
			case <-ctx.Done():
				return ctx.Err()
			}
		},
		BeforeGet: func(_ context.Context, name, _ string) error {
			if name == "People" {
				f.reads.Add(1)
			}
			return nil
		},
	}
	set, err := model.OpenSet(t.Context(), backend, mappings(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.set, f.worker = set, cascade.NewWorker(set, o)
	return f
}

// owner creates a person with pets, and deletes the person. It returns a function that handles the deletion.
func (f *gated) owner(name string, pets int) func(ctx context.Context) error {
	f.Helper()
	f.save("People", name, "name", name)
	for i := range pets {
		f.save("Pets", fmt.Sprintf("%s-pet%d", name, i), "owner", name)
	}
	e := f.delete("People", name)
	return func(ctx context.Context) error { return f.worker.Handle(ctx, e) }
}

// start handles something in the background, and returns when nothing but what waits is left. The result is in done.
func start(ctx context.Context, handle func(context.Context) error) (done <-chan error) {
	result := make(chan error, 1)
	go func() { result <- handle(ctx) }()
	synctest.Wait()
	return result
}

// let lets one deletion pass, and returns when nothing but what waits is left.
func (f *gated) let() {
	f.pass <- struct{}{}
	synctest.Wait()
}

const atOnce = 16 // of the cascade's worker

func TestACascadeDeletesSomeObjectsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pets = 250
		f := gatedFixture(t, cascade.Options{})
		handle := f.owner("p", pets)
		f.reads.Store(0)
		done := start(t.Context(), handle)
		if n := f.inFlight.Load(); n != atOnce {
			t.Errorf("%d deletions are in flight, want %d", n, atOnce)
		}
		for range pets {
			f.let()
		}
		if err := <-done; err != nil || f.count("Pets") != 0 {
			t.Errorf("%d pets are left, error %v", f.count("Pets"), err)
		}
		if most := f.most.Load(); most != atOnce {
			t.Errorf("%d deletions were in flight at once, want %d", most, atOnce)
		}
		if n := f.reads.Load(); n > 3 {
			t.Errorf("the owner was read %d times for %d pets, want once for a hundred", n, pets)
		}
	})
}

// The bound is that of the worker, and events take turns.
func TestASmallCascadeDoesNotWaitForLargeOnes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const many, large, few = 300, 3, 4
		f := gatedFixture(t, cascade.Options{})
		var handles []func(context.Context) error
		for i := range large {
			handles = append(handles, f.owner(fmt.Sprint("large", i), many))
		}
		small := f.owner("small", few)
		var left []<-chan error
		for _, handle := range handles {
			left = append(left, start(t.Context(), handle))
		}
		done := start(t.Context(), small)
		for len(done) == 0 && f.passed.Load() < large*many {
			f.let()
		}
		if n := f.passed.Load(); n > atOnce+few*(large+1) {
			t.Errorf("the small cascade ended after %d deletions, want at most %d", n, atOnce+few*(large+1))
		}
		for f.passed.Load() < large*many+few {
			f.let()
		}
		for _, done := range append(left, done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most, n := f.most.Load(), f.count("Pets"); most != atOnce || n != 0 {
			t.Errorf("%d deletions were in flight at once, want %d; %d pets are left", most, atOnce, n)
		}
	})
}

// A deletion that ends with an error, or by a cancellation, frees its slot, and the next attempt finds what is left.
func TestACascadeThatFailsOrIsCanceledLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const pets, first, second = 120, 30, 20
		f := gatedFixture(t, cascade.Options{})
		handle := f.owner("p", pets)
		f.remaining.Store(first)
		done := start(t.Context(), handle)
		for range first + 1 { // the last one fails
			f.let()
		}
		if err := <-done; !errors.Is(err, errs.Unavailable) {
			t.Errorf("error %v, want that the store is unavailable", err)
		}
		f.remaining.Store(-1)

		ctx, cancel := context.WithCancel(t.Context())
		done = start(ctx, handle)
		for range second {
			f.let()
		}
		cancel()
		synctest.Wait()
		if err := <-done; !errors.Is(err, context.Canceled) && errs.KindOf(err) != errs.Canceled {
			t.Errorf("error %v after a cancellation", err)
		}
		left := pets - first - second
		if n := f.count("Pets"); n != int64(left) || f.inFlight.Load() != 0 {
			t.Errorf("%d pets are left and %d deletions in flight, want %d and none", n, f.inFlight.Load(), left)
		}

		done = start(t.Context(), handle)
		if n := f.inFlight.Load(); n != atOnce {
			t.Errorf("%d deletions are in flight in the last attempt, want %d", n, atOnce)
		}
		for range left {
			f.let()
		}
		if err := <-done; err != nil || f.count("Pets") != 0 {
			t.Errorf("%d pets are left, error %v", f.count("Pets"), err)
		}
		if d := f.deletions.Load(); d != pets+1 {
			t.Errorf("%d deletions, want %d", d, pets+1)
		}
	})
}

// No deletion waits for what it causes, so cascades below cascades need no slots of those above.
func TestNestedCascadesShareASlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const staff, pets = 12, 5
		f := gatedFixture(t, cascade.Options{Concurrency: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var passing sync.WaitGroup
		passing.Go(func() {
			for {
				select {
				case f.pass <- struct{}{}:
				case <-ctx.Done():
					return
				}
			}
		})
		f.save("People", "staff0", "name", "the boss")
		for i := range staff {
			name := fmt.Sprint("staff", i)
			if i > 0 {
				f.save("People", name, "boss", fmt.Sprint("staff", i/2))
			}
			for j := range pets {
				f.save("Pets", fmt.Sprintf("%s-pet%d", name, j), "owner", name)
			}
		}
		f.delete("People", "staff0")
		for all := f.pending(); len(all) > 0; all = f.pending() {
			g, gctx := errgroup.WithContext(ctx)
			for _, e := range append(all, all...) { // each one is redelivered
				g.Go(func() error { return f.worker.Handle(gctx, e) })
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
		}
		cancel()
		passing.Wait()
		if f.count("People") != 0 || f.count("Pets") != 0 || f.most.Load() > 1 {
			t.Errorf("%d people and %d pets are left; %d deletions were in flight at once, want 1", f.count("People"),
				f.count("Pets"), f.most.Load())
		}
	})
}

// What is known of a target is not used for an object that has changed since: it may belong to a new incarnation.
func TestAnObjectThatChangesDuringACascadeIsReadWithItsTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := gatedFixture(t, cascade.Options{Concurrency: 1})
		done := start(t.Context(), f.owner("p", 3))
		time.Sleep(time.Second) // of the bubble: the clock is later than the deletion
		f.save("People", "p", "name", "again")
		if _, err := f.set.Store("Pets").Update(t.Context(), object.Object{"name": []byte(`"x"`)},
			store.UpdateOptions{UUID: "p-pet2"}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			f.let()
		}
		if n := f.inFlight.Load(); n > 0 {
			t.Error("an object of the new incarnation is being deleted")
			f.let()
		}
		if err := <-done; err != nil || !f.exists("Pets", "p-pet2") || f.count("Pets") != 1 {
			t.Errorf("the changed pet exists: %v; %d pets are left; error %v", f.exists("Pets", "p-pet2"),
				f.count("Pets"), err)
		}
	})
}
