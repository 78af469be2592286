package model

import (
	"context"

	"belfry/pkg/store/driver"
)

// Shared is a backend that several processes open: each of them gets the same stores.
type Shared struct {
	driver.Backend
	stores map[string]driver.Store
}

// NewShared returns a backend in memory that several processes open.
func NewShared() *Shared { return &Shared{NewMemory(), map[string]driver.Store{}} }

// Open implements driver.Backend.
func (b *Shared) Open(ctx context.Context, spec driver.Spec) (s driver.Store, err error) {
	if b.stores[spec.Name] == nil {
		b.stores[spec.Name], err = b.Backend.Open(ctx, spec)
	}
	return b.stores[spec.Name], err
}
