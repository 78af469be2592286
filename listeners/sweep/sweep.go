// Package sweep is the listener that deletes contents of binaries that are no longer
// referenced, once their grace period is over.
//
// An event only says that a record was removed. Its content becomes a candidate in the
// store Contents, and the event is acknowledged. When the candidate is due, SweepDue
// searches for objects that reference the content, and deletes an unreferenced content.
// Package binary describes the steps, and why they are safe while the same content is
// uploaded. Events may be late, duplicated or lost, and any number of workers may handle
// them: SweepAll checks every content.
package sweep

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/internal/backoff"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// Name is the listener's durable name.
const Name = event.OriginSweep

// How often a serving process calls SweepDue and SweepAll.
const (
	DueInterval  = time.Minute
	FullInterval = 6 * time.Hour
)

// stale is the age at which the stage of another process counts as abandoned.
const stale = 24 * time.Hour

// page is how many contents are read at once.
const page = 200

// concurrency is how many contents are worked on at the same time, so that they
// share the syncs of the backend.
const concurrency = 16

// Worker records candidates and sweeps them. It is safe for concurrent use.
type Worker struct {
	services map[string]*binary.Service
	order    []*binary.Service
	log      *slog.Logger
	deleted  atomic.Int64

	wait func(ctx context.Context, d time.Duration) error
}

// NewWorker returns a worker for services that share a set of stores and the
// store Contents. It returns errs.Invalid when a store was opened without
// IndexBinaries: the references of its objects would not be found, and their contents
// be deleted.
func NewWorker(services []*binary.Service, log *slog.Logger) (*Worker, error) {
	w := &Worker{services: map[string]*binary.Service{}, order: services, log: log, wait: backoff.Sleep}
	for _, s := range services {
		w.services[s.Name()] = s
		for st := range s.Stores() {
			if !st.IndexesBinaries() {
				return nil, errs.New(errs.Invalid, "the store %s must be opened with IndexBinaries: without it the "+
					"binaries of its objects would be deleted", st.Name())
			}
		}
	}
	return w, nil
}

// Filters returns the subjects of the events about removed records.
func (w *Worker) Filters() []string {
	if len(w.order) == 0 {
		return nil
	}
	var stores []string
	for st := range w.order[0].Stores() {
		stores = append(stores, st.Name())
	}
	return Filters(stores)
}

// Filters returns the subjects of the events about removed records of these
// stores.
func Filters(stores []string) []string {
	filters := []string{event.Filter(event.BinaryUploaded, "*"), event.Filter(event.BinaryDeleted, "*")}
	for _, name := range stores {
		filters = append(filters, event.Filter(event.StoreDeleted, name))
	}
	slices.Sort(filters)
	return filters
}

// Deleted returns the number of contents that the worker has deleted.
func (w *Worker) Deleted() int64 { return w.deleted.Load() }

// Handle makes the contents of the records that an event says were removed
// candidates.
func (w *Worker) Handle(ctx context.Context, e *event.Envelope) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(concurrency)
	for c := range removed(e) {
		if s := w.services[c.service]; s != nil {
			g.Go(func() error { return s.MarkCandidate(ctx, c.hash) })
		}
	}
	return g.Wait()
}

// content identifies the content of a record.
type content struct{ service, hash string }

// removed returns the contents of the records that an event says were removed.
func removed(e *event.Envelope) map[content]bool {
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

// SweepDue sweeps the candidates that are due, and continues deletions that other
// workers did not finish. It returns the errors of all contents: one content does
// not stop the others.
func (w *Worker) SweepDue(ctx context.Context) error {
	if len(w.order) == 0 {
		return nil
	}
	var all []error
	for due, err := range w.order[0].Due(ctx, page) {
		if err != nil {
			all = append(all, err)
			break
		}
		all = append(all, due.Malformed...)
		if err := w.sweep(ctx, due.Entries); err != nil {
			all = append(all, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(all...)
}

// sweep takes the steps of a sweeper with several contents concurrently, so that
// it waits for the indexes once.
func (w *Worker) sweep(ctx context.Context, entries []binary.Entry) error {
	entries = slices.DeleteFunc(entries, func(e binary.Entry) bool { return w.services[e.Service] == nil })
	lag := time.Duration(0)
	for _, e := range entries {
		lag = max(lag, w.services[e.Service].IndexLag())
	}
	marked := make([]binary.Entry, len(entries))
	failed := w.each(entries, func(i int, s *binary.Service) (err error) {
		marked[i], err = s.MarkForDeletion(ctx, entries[i])
		return err
	})
	marked = slices.DeleteFunc(marked, func(e binary.Entry) bool { return e.Hash == "" })
	if len(marked) == 0 {
		return failed
	}
	if err := w.wait(ctx, lag); err != nil {
		return err
	}
	return errors.Join(failed, w.each(marked, func(i int, s *binary.Service) error {
		deleted, err := s.DeleteMarked(ctx, marked[i])
		if deleted {
			w.deleted.Add(1)
			w.log.Debug("a content without references was deleted", "service", s.Name(), "hash", marked[i].Hash)
		}
		return err
	}))
}

// each calls do for every entry concurrently. It is not an error that another worker
// was faster.
func (w *Worker) each(entries []binary.Entry, do func(i int, s *binary.Service) error) error {
	failures := make([]error, len(entries))
	var g errgroup.Group
	g.SetLimit(concurrency)
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
