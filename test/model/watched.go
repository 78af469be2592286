package model

import (
	"context"

	"belfry/pkg/store/driver"
)

// Watched is a backend that lets a test see or stop the writes on their way to
// another.
type Watched struct {
	driver.Backend

	// Put is called before each write; an error keeps it from being made.
	Put func(ctx context.Context, store string, w driver.Write) error
}

var _ driver.Backend = (*Watched)(nil)

// Open implements driver.Backend.
func (b *Watched) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return &watchedStore{s, spec.Name, b}, err
}

type watchedStore struct {
	driver.Store
	name string
	b    *Watched
}

// Put implements driver.Store.
func (s *watchedStore) Put(ctx context.Context, w driver.Write) error {
	if s.b.Put != nil {
		if err := s.b.Put(ctx, s.name, w); err != nil {
			return err
		}
	}
	return s.Store.Put(ctx, w)
}
