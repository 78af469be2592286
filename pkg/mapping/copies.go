package mapping

import (
	"cmp"
	"context"
	"errors"
	"math"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Copier makes the copies of referenced objects match their sources. As a Reconciler it computes them from the current
// records, so it can run at any time and any number of times. It is safe for concurrent use.
type Copier struct {
	set  *store.Set
	opts CopierOptions
}

// CopierOptions configure a Copier.
type CopierOptions struct {
	// Pace is called before some objects get their copies at once, and waits while other work has to come first. took
	// is the time that it took for those before. nil: no other work has to.
	Pace func(ctx context.Context, took time.Duration) error

	// Most is how many objects one call of Spread handles, about; nil: any number.
	Most func(ctx context.Context) int

	// Concurrency is how many objects get their copies at once, so that they share the syncs of the backend. With
	// more, the events of other writes wait longer behind theirs. 0: 20.
	Concurrency int

	Page int // objects that are read at once; 0: 500
}

// NewCopier returns a copier for the stores of a set.
func NewCopier(set *store.Set, o CopierOptions) *Copier {
	if o.Pace == nil {
		o.Pace = func(context.Context, time.Duration) error { return nil }
	}
	if o.Most == nil {
		o.Most = func(context.Context) int { return math.MaxInt }
	}
	o.Concurrency, o.Page = cmp.Or(o.Concurrency, 20), cmp.Or(o.Page, pageSize)
	return &Copier{set: set, opts: o}
}

// Correct makes the copies of an object match their sources. It does nothing to an object that does not exist.
//
// Convergence depends on the order of the steps: the object is read before the sources, it is written only if it is
// unchanged, and all are read again after the write. A source that has changed in between may have found, by its event,
// the object with the right copy before this write.
func (c *Copier) Correct(ctx context.Context, s *store.Store, uuid string) error {
	ctx = withOrigin(ctx, event.OriginCopy)
	for delay := backoff.New(time.Millisecond, maxPause); ; {
		o, err := s.Get(ctx, uuid)
		if errors.Is(err, errs.NotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		wrote, err := store.NewWorker(s).Recopy(ctx, o)
		switch {
		case err == nil && !wrote:
			return nil
		case err == nil: // read again
		case !errors.Is(err, errs.Mismatch):
			return err
		default:
			if err := delay.Wait(ctx); err != nil {
				return err
			}
		}
	}
}

func (c *Copier) spreadPage(ctx context.Context, k *store.Copies, source string, page []store.Stored) error {
	holders := c.set.Store(k.Store)
	before, err := c.read(ctx, k, source)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var written []string
	err = each(ctx, c, page, func(ctx context.Context, o store.Stored) error {
		wrote, err := store.NewWorker(holders).CopyFrom(ctx, o, k, source, before)
		if errors.Is(err, errs.Mismatch) {
			return c.Correct(ctx, holders, o.UUID)
		}
		if wrote {
			mu.Lock()
			written = append(written, o.UUID)
			mu.Unlock()
		}
		return err
	})
	if err != nil || len(written) == 0 {
		return err
	}
	// One read confirms all writes of the page.
	after, err := c.read(ctx, k, source)
	if err != nil || k.Same(before, after) {
		return err
	}
	return each(ctx, c, written, func(ctx context.Context, uuid string) error { return c.Correct(ctx, holders, uuid) })
}

// read returns the body of a source; nil if it does not exist.
func (c *Copier) read(ctx context.Context, k *store.Copies, source string) ([]byte, error) {
	o, err := c.set.Store(k.Source).Get(ctx, source)
	if errors.Is(err, errs.NotFound) {
		return nil, nil
	}
	return o.Body, err
}

// each does something for all of a page, several at once.
func each[T any](ctx context.Context, c *Copier, all []T, do func(ctx context.Context, one T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(c.opts.Concurrency)
	for _, one := range all {
		g.Go(func() error { return do(ctx, one) })
	}
	return g.Wait()
}
