package mapping_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"belfry/listeners/mapping"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping/verify"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/test/kit"
	"belfry/test/kit/memdisk"
)

// openOn opens the stores of books, each on a disk: a disk is a backend.
func openOn(t *testing.T, limit int, sources, targets *memdisk.Disk) (*store.Set, func() error) {
	t.Helper()
	backends := map[*memdisk.Disk]*filestore.Backend{}
	for _, d := range []*memdisk.Disk{sources, targets} {
		if backends[d] == nil {
			b, err := filestore.Open("/data", filestore.Options{FS: d})
			if err != nil {
				t.Fatal(err)
			}
			backends[d] = b
		}
	}
	maps := books(limit)
	var stores []*store.Store
	for _, c := range []struct {
		disk    *memdisk.Disk
		options store.Options
	}{
		{sources, store.Options{Name: "Books", Maps: maps}},
		{targets, store.Options{Name: "Authors", Arrays: []string{"books"}}},
	} {
		s, err := store.Open(t.Context(), backends[c.disk], c.options)
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	return store.NewSet(stores, maps), func() error {
		var err error
		for _, b := range backends {
			err = errors.Join(err, b.Close())
		}
		return err
	}
}

// world is a worker whose disks lose their power.
type world struct {
	*testing.T
	set    *store.Set
	worker *mapping.Worker
}

func (w *world) save(name, uuid, body string) *event.Envelope {
	w.Helper()
	o, err := encoded.Parse([]byte(body))
	if err != nil {
		w.Fatal(err)
	}
	x, err := w.set.Store(name).Save(context.WithoutCancel(w.Context()), o, uuid)
	if err != nil {
		w.Error(err)
	}
	return &event.Envelope{Event: event.StoreSaved, Store: name, UUID: uuid, Revision: x.Revision, Object: x.Body,
		Origin: event.OriginGo}
}

// handle hands events to the worker until a time that is far too long for it, unless it waits. It
// returns those that are not acknowledged.
func (w *world) handle(events ...*event.Envelope) (unacknowledged []*event.Envelope) {
	w.Helper()
	for _, e := range events {
		short, cancel := context.WithTimeout(w.Context(), 50*time.Millisecond)
		err := w.worker.HandleSerially(short, e)
		cancel()
		switch {
		case errors.Is(err, errs.Canceled):
			unacknowledged = append(unacknowledged, e)
		case err != nil:
			w.Fatal(err)
		}
	}
	return unacknowledged
}

// afterPowerFailure is the world when it starts again after a power failure.
func (w *world) afterPowerFailure(limit int, sources, targets *memdisk.Disk) *world {
	w.Helper()
	restarted := sources.AfterPowerFailure()
	other := restarted
	if targets != sources {
		other = targets.AfterPowerFailure()
	}
	set, stop := openOn(w.T, limit, restarted, other)
	w.Cleanup(func() {
		if err := stop(); err != nil {
			w.Error(err)
		}
	})
	return &world{T: w.T, set: set, worker: mapping.NewWorker(set, mapping.Options{})}
}

// deliver has the worker handle events.
func (w *world) deliver(events ...*event.Envelope) {
	w.Helper()
	for _, e := range events {
		if err := w.worker.HandleSerially(w.Context(), e); err != nil {
			w.Fatal(err)
		}
	}
}

// verify reports arrays that differ from objects.
func (w *world) verify() {
	w.Helper()
	report, err := verify.Run(w.Context(), w.set, verify.Options{})
	if err != nil || !report.Clean() {
		w.Errorf("arrays differ from objects: %+v, %v", report.Differences, err)
	}
}

// remove deletes a book and returns the event.
func (w *world) remove(uuid string) *event.Envelope {
	w.Helper()
	x, err := w.set.Store("Books").Get(w.Context(), uuid)
	if err == nil {
		err = w.set.Store("Books").Delete(w.Context(), uuid, 0)
	}
	if err != nil {
		w.Fatal(err)
	}
	return &event.Envelope{Event: event.StoreDeleted, Store: "Books", UUID: uuid, Revision: x.Revision + 1,
		Object: x.Body, Origin: event.OriginGo}
}

// TestCopyDoesNotOutliveTheChangeThatItCopies has the power of the sources' backend fail between a change and its
// sync, while the worker handles an earlier event of the object.
func TestCopyDoesNotOutliveTheChangeThatItCopies(t *testing.T) {
	t.Parallel()
	sources, targets := memdisk.New(), memdisk.New()
	set, stop := openOn(t, 10, sources, targets)
	w := &world{T: t, set: set, worker: mapping.NewWorker(set, mapping.Options{})}
	w.save("Authors", "a", `{}`)
	first := w.save("Books", "x", `{"author":"a","title":"1"}`)

	sources.HoldSyncs()
	changed := make(chan error, 1)
	go func() {
		_, err := set.Store("Books").Update(context.WithoutCancel(t.Context()), encoded.Object{"title": []byte(`"2"`)},
			store.UpdateOptions{UUID: "x"})
		changed <- err
	}()
	w.awaitUnsynced()
	again := w.handle(first)
	after := w.afterPowerFailure(10, sources, targets)
	after.deliver(again...)
	after.verify()
	sources.ReleaseSyncs()
	if err := errors.Join(<-changed, stop()); err != nil {
		t.Error(err)
	}
}

// TestMarkThatIsNotSyncedAcknowledgesNoEvent has the power fail between the overflow mark of an array and its
// sync, while the event of another object is handled that finds the array full and marked.
func TestMarkThatIsNotSyncedAcknowledgesNoEvent(t *testing.T) {
	t.Parallel()
	disk := memdisk.New()
	set, stop := openOn(t, 1, disk, disk)
	w := &world{T: t, set: set, worker: mapping.NewWorker(set, mapping.Options{})}
	w.save("Authors", "a", `{}`)
	w.deliver(w.save("Books", "x", `{"author":"a"}`))
	y, z := w.save("Books", "y", `{"author":"a"}`), w.save("Books", "z", `{"author":"a"}`)

	disk.HoldSyncs()
	again := w.handle(y, z)
	after := w.afterPowerFailure(1, disk, disk)
	after.deliver(after.remove("x"), y, after.remove("y"))
	after.deliver(again...)
	after.verify()
	disk.ReleaseSyncs()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// awaitUnsynced waits until the change of x can be seen, or a read waits because of it.
func (w *world) awaitUnsynced() {
	w.Helper()
	kit.WaitFor(w, "the change is written", func() bool {
		short, cancel := context.WithTimeout(w.Context(), 20*time.Millisecond)
		defer cancel()
		x, err := w.set.Store("Books").Get(short, "x")
		return errors.Is(err, errs.Canceled) || bytes.Contains(x.Body, []byte(`"2"`))
	})
}
