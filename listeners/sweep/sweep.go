// Package sweep is the listener that deletes contents of binaries that no record
// names any more, once their grace is over.
//
// An event only says that a record has gone. Its content becomes a candidate,
// which is written down; the event is done then. When the candidate is due,
// Due looks for objects that hold the content, and deletes it when there are
// none: see package binary for the steps, and for how they get along with an
// upload of the same content. So events may come late, twice or not at all, to
// any number of workers; for what they missed, Pass looks at every content.
package sweep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/backoff"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/object"
)

// Name is the listener's durable name.
const Name = event.OriginSweep

// How often a process that serves is to call Due and Pass.
const (
	DueEvery  = time.Minute
	PassEvery = 6 * time.Hour
)

// stale is how old a stage is at least that its process has left behind.
const stale = 24 * time.Hour

const page = 200

// Worker notes candidates and sweeps them. It is safe for concurrent use.
type Worker struct {
	services map[string]*binary.Service
	order    []*binary.Service
	log      *slog.Logger
	deleted  atomic.Int64

	// Parallel is how many contents are worked on at once: they share the
	// backend's syncs. NewWorker sets 16.
	Parallel int
}

// NewWorker makes a worker for services that share a set of stores and the
// store Contents. It reports errs.Invalid when a store was opened without
// Holding: what its objects hold would not be found, and be deleted.
func NewWorker(services []*binary.Service, log *slog.Logger) (*Worker, error) {
	w := &Worker{services: map[string]*binary.Service{}, order: services, log: log, Parallel: 16}
	for _, s := range services {
		w.services[s.Name] = s
		for _, st := range s.Set.Stores() {
			if !st.Holding && st != s.Contents {
				return nil, errs.New(errs.Invalid, "the store %s must be open with Holding, or binaries of its objects would be swept", st.Name)
			}
		}
	}
	return w, nil
}

// Filters returns the subjects of the events that tell of records that go.
func (w *Worker) Filters() []string {
	if len(w.order) == 0 {
		return nil
	}
	var stores []string
	for name, st := range w.order[0].Set.Stores() {
		if st != w.order[0].Contents {
			stores = append(stores, name)
		}
	}
	return Filters(stores)
}

// Filters returns the subjects of the events that tell of records that go, in
// all stores but that of the contents.
func Filters(stores []string) []string {
	filters := []string{event.Filter(event.BinaryUploaded, "*"), event.Filter(event.BinaryDeleted, "*")}
	for _, name := range stores {
		filters = append(filters, event.Filter(event.StoreDeleted, name))
	}
	slices.Sort(filters)
	return filters
}

// Deleted is how many contents the worker has deleted.
func (w *Worker) Deleted() int64 { return w.deleted.Load() }

// Handle makes the contents of records that an event tells have gone candidates.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(w.Parallel)
	for named := range gone(e) {
		if s := w.services[named.service]; s != nil {
			g.Go(func() error { return s.Note(ctx, named.hash) })
		}
	}
	return g.Wait()
}

// content is what a record names.
type content struct{ service, hash string }

// gone are the contents of records that an event tells have gone.
func gone(e *event.Envelope) map[content]bool {
	found := map[content]bool{}
	_ = object.Each(e.Binaries, func(property string, value []byte) bool {
		service, _ := object.Text(value)
		add := func(record []byte) {
			if hash, ok := object.Text(object.Field(record, "hash")); ok {
				found[content{service, hash}] = true
			}
		}
		switch e.Event {
		case event.BinaryUploaded:
			add(e.Previous["record"])
		case event.BinaryDeleted:
			add(e.Record)
		case event.StoreDeleted:
			object.Elements(object.Field(e.Object, property), func(record []byte) bool {
				add(record)
				return true
			})
		}
		return true
	})
	return found
}

// Due sweeps the candidates that are due, and goes on with what others left
// half done. An error of one content does not keep it from the others.
func (w *Worker) Due(ctx context.Context) error {
	if len(w.order) == 0 {
		return nil
	}
	now := w.order[0].Now()
	var all []error
	for cursor := ""; ; {
		entries, next, err := binary.Due(ctx, w.order[0].Contents, now, cursor, page)
		if err != nil {
			return errors.Join(append(all, err)...)
		}
		if err := w.sweep(ctx, entries); err != nil {
			all = append(all, err)
		}
		if next == "" || ctx.Err() != nil {
			return errors.Join(all...)
		}
		cursor = next
	}
}

// sweep takes the steps of a sweeper with several contents side by side, so
// that the indexes are waited for once.
func (w *Worker) sweep(ctx context.Context, entries []binary.Entry) error {
	entries = slices.DeleteFunc(entries, func(e binary.Entry) bool { return w.services[e.Service] == nil })
	settle := time.Duration(0)
	for _, e := range entries {
		settle = max(settle, w.services[e.Service].Settle())
	}
	condemned := make([]binary.Entry, len(entries))
	failed := w.all(entries, func(i int, s *binary.Service) (err error) {
		condemned[i], err = s.Condemn(ctx, entries[i])
		return err
	})
	condemned = slices.DeleteFunc(condemned, func(e binary.Entry) bool { return e.Hash == "" })
	if len(condemned) == 0 {
		return failed
	}
	if err := backoff.Sleep(ctx, settle); err != nil {
		return err
	}
	return errors.Join(failed, w.all(condemned, func(i int, s *binary.Service) error {
		deleted, err := s.Execute(ctx, condemned[i])
		if deleted {
			w.deleted.Add(1)
			w.log.Debug("a content that no record names was deleted", "service", s.Name, "hash", condemned[i].Hash)
		}
		return err
	}))
}

// all does something for each entry, side by side. That others were faster is
// no error.
func (w *Worker) all(entries []binary.Entry, do func(i int, s *binary.Service) error) error {
	failures := make([]error, len(entries))
	var g errgroup.Group
	g.SetLimit(w.Parallel)
	for i, e := range entries {
		g.Go(func() error {
			if err := do(i, w.services[e.Service]); !errors.Is(err, errs.Mismatch) {
				failures[i] = err
			}
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(failures...)
}
