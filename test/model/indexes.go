package model

import (
	"context"
	"slices"

	"belfry/pkg/store/driver"
)

// A row has the keys of the handle that wrote it. So the name of an index is enough to tell what a row has of it: of an
// index that is released nothing is to be removed.

func (s *memoryStore) owns(id uint32) bool {
	return slices.ContainsFunc(s.own, func(i driver.CatalogIndex) bool { return i.ID == id })
}

// beforeWrite makes the indexes incomplete that the handle does not list.
func (s *memoryStore) beforeWrite() {
	if !s.writes {
		s.indexes, _ = s.indexes.Unlist(s.owns)
		s.writes = true
	}
}

// Building implements driver.Indexes.
func (s *memoryStore) Building(ctx context.Context) (builds []driver.Build, err error) {
	if err := canceled(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	builds, s.indexes, _ = s.indexes.Building(s.own)
	return builds, nil
}

// Complete implements driver.Indexes.
func (s *memoryStore) Complete(ctx context.Context, builds []driver.Build) error {
	if err := canceled(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	next, _, err := s.indexes.Complete(s.own, builds)
	if err == nil {
		s.indexes = next
	}
	return err
}

// Release implements driver.Indexes.
func (s *memoryStore) Release(ctx context.Context) error {
	if err := canceled(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.indexes, _ = s.indexes.Release(s.owns)
	return nil
}

// Reindex implements driver.Indexes.
func (s *memoryStore) Reindex(ctx context.Context, uuids []string) error {
	if err := canceled(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.beforeWrite()
	for _, uuid := range uuids {
		if r := s.rows[uuid]; r != nil && !r.Deleted {
			next := *r
			next.keys = nil
			if s.spec.Keys != nil {
				next.keys = cloneKeys(s.spec.Keys(r.Body))
			}
			s.rows[uuid] = &next
		}
	}
	return nil
}
