package verify

import (
	"context"
	"iter"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

const (
	pageSize    = 500
	pagesAtOnce = 4 // that are in use, while another one is read
)

// pages calls use with the pages of all objects of a store, several at once.
func pages(ctx context.Context, s *store.Store, use func(page []store.Stored)) error {
	var g errgroup.Group
	g.SetLimit(pagesAtOnce)
	for after, more := []byte(nil), true; more; {
		page, next, err := s.Scan(ctx, after, pageSize)
		if err != nil {
			_ = g.Wait() // it has no error
			return err
		}
		g.Go(func() error { use(page); return nil })
		after, more = next, next != nil
	}
	return g.Wait()
}

// eachPage calls use with the pages of all objects of a store, one after the other.
func eachPage(ctx context.Context, s *store.Store, use func(page []store.Stored) error) error {
	for after, more := []byte(nil), true; more; {
		page, next, err := s.Scan(ctx, after, pageSize)
		if err == nil {
			err = use(page)
		}
		if err != nil {
			return err
		}
		after, more = next, next != nil
	}
	return nil
}

// eachAtOnce calls do for each of some, atOnce at a time.
func eachAtOnce[T any](ctx context.Context, all []T, do func(ctx context.Context, i int, one T) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(atOnce)
	for i, one := range all {
		g.Go(func() error { return do(ctx, i, one) })
	}
	return g.Wait()
}

// reader reads the objects of a store one after the other, in the order of their uuids.
type reader struct {
	pull func() (store.Stored, error, bool)
	stop func()
	head store.Stored // read, and not returned by next
	has  bool         // it has a head
	err  error
}

func newReader(ctx context.Context, s *store.Store) *reader {
	r := &reader{}
	r.pull, r.stop = iter.Pull2(s.All(ctx, pageSize))
	return r
}

// next returns the next object, unless it is after a span.
func (r *reader) next(in span) (store.Stored, bool) {
	if !r.has {
		var ok bool
		r.head, r.err, ok = r.pull()
		r.has = ok && r.err == nil
	}
	if !r.has || !in.precedesEnd(r.head.UUID) {
		return store.Stored{}, false
	}
	r.has = false
	return r.head, true
}

// eachStore calls use with the pages of all objects of some stores, one store after the other. doing says what failed.
func (v *verification) eachStore(ctx context.Context, doing string, some func(*store.Store) bool,
	use func(ctx context.Context, s *store.Store, page []store.Stored) error) error {
	for _, name := range slices.Sorted(maps.Keys(v.set.Stores())) {
		s := v.set.Store(name)
		if !some(s) {
			continue
		}
		if err := eachPage(ctx, s, func(page []store.Stored) error { return use(ctx, s, page) }); err != nil {
			return errs.Wrap(err, errs.KindOf(err), "%s of %s", doing, name)
		}
	}
	return nil
}
