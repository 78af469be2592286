package model

import (
	"context"

	"belfry/pkg/store/driver"
)

// Hooked is a backend whose driver calls a test can observe, delay or fail.
type Hooked struct {
	driver.Backend

	// BeforeGet and BeforePut are called before each read of a record and each
	// write; an error is returned instead of the call. nil does nothing.
	BeforeGet func(ctx context.Context, store, uuid string) error
	BeforePut func(ctx context.Context, store string, w driver.Write) error
}

var _ driver.Backend = (*Hooked)(nil)

// Open implements driver.Backend.
func (b *Hooked) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return &hookedStore{s, spec.Name, b}, err
}

type hookedStore struct {
	driver.Store
	name string
	b    *Hooked
}

// Get implements driver.Store.
func (s *hookedStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	if s.b.BeforeGet != nil {
		if err := s.b.BeforeGet(ctx, s.name, uuid); err != nil {
			return driver.Record{}, false, err
		}
	}
	return s.Store.Get(ctx, uuid)
}

// Put implements driver.Store.
func (s *hookedStore) Put(ctx context.Context, w driver.Write) error {
	if s.b.BeforePut != nil {
		if err := s.b.BeforePut(ctx, s.name, w); err != nil {
			return err
		}
	}
	return s.Store.Put(ctx, w)
}
