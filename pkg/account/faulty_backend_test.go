package account_test

import (
	"context"
	"sync"
	"sync/atomic"

	"belfry/pkg/store/driver"
)

// faultyBackend is a backend that several services share and whose reads and
// writes a test can intercept.
type faultyBackend struct {
	driver.Backend
	mu   sync.Mutex
	open map[string]driver.Store
	step func(ctx context.Context, s step) error
	lag  map[string][]driver.Record // by store: what its indexes find although it is gone
}

// step is a read or a write, before or after it happens.
type step struct {
	store string
	write *driver.Write // nil for a read
	uuid  string
	after bool
}

// onStep sets a function that is called at each step and whose error is
// returned instead; nil removes it.
func (d *faultyBackend) onStep(f func(ctx context.Context, s step) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step = f
}

// lagIndex makes the indexes of a store find a deleted record.
func (d *faultyBackend) lagIndex(store string, r driver.Record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lag = map[string][]driver.Record{store: {r}}
}

func (d *faultyBackend) call(ctx context.Context, s step) error {
	d.mu.Lock()
	f := d.step
	d.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(ctx, s)
}

// Open opens a store once for all services.
func (d *faultyBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open[spec.Name] == nil {
		s, err := d.Backend.Open(ctx, spec)
		if err != nil {
			return nil, err
		}
		d.open[spec.Name] = faultyStore{s, d, spec.Name}
	}
	return d.open[spec.Name], nil
}

type faultyStore struct {
	driver.Store
	disk *faultyBackend
	name string
}

func (s faultyStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if err := s.disk.call(ctx, step{store: s.name, uuid: uuid}); err != nil {
		return driver.Record{}, false, err
	}
	return s.Store.Get(ctx, uuid)
}

// Query also finds the records of lagIndex.
func (s faultyStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	page, err := s.Store.Query(ctx, q)
	s.disk.mu.Lock()
	defer s.disk.mu.Unlock()
	page.Records = append(page.Records, s.disk.lag[s.name]...)
	return page, err
}

func (s faultyStore) Put(ctx context.Context, w driver.Write) error {
	err := s.disk.call(ctx, step{store: s.name, uuid: w.UUID, write: &w})
	if err == nil {
		err = s.Store.Put(ctx, w)
	}
	if err == nil {
		err = s.disk.call(ctx, step{store: s.name, uuid: w.UUID, write: &w, after: true})
	}
	return err
}

// onceAt calls do at the first step that matches.
func onceAt(right func(step) bool, do func()) func(context.Context, step) error {
	var done atomic.Bool
	return func(_ context.Context, s step) error {
		if right(s) && done.CompareAndSwap(false, true) {
			do()
		}
		return nil
	}
}

// failWrites fails every write to a store.
func failWrites(store string, with error) func(context.Context, step) error {
	return func(_ context.Context, s step) error {
		if s.store == store && s.write != nil && !s.after {
			return with
		}
		return nil
	}
}
