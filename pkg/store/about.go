package store

import (
	"context"
	"time"

	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
)

// Name returns the name of the store.
func (s *Store) Name() string { return s.core.name }

// Rules returns who may do what with the objects, and see and set which of their fields.
func (s *Store) Rules() *access.Rules { return s.core.rules }

// Claims returns the claims of unique fields; nil for a store without.
func (s *Store) Claims() *Claims { return s.claims }

// Now returns the time by the clock of the store.
func (s *Store) Now() time.Time { return s.core.now() }

// Driver returns the driver's store, which the outbox reads pending events from.
func (s *Store) Driver() driver.Store { return s.core.driver }

// IndexLag returns how long after a write indexes are sure to have it.
func (s *Store) IndexLag() time.Duration {
	if d, ok := s.core.driver.(driver.IndexLagger); ok {
		return d.IndexLag()
	}
	return 0
}

// Indexes returns the indexes of the store, which may have to be built.
func (s *Store) Indexes() *Indexes { return s.opened.state }

// Building returns the indexes of lists that are being built, by their fields, as "author,year". Others may have built
// them for some seconds.
func (s *Store) Building(ctx context.Context) ([]string, error) {
	known, err := s.opened.state.recent(ctx)
	if err != nil {
		return nil, err
	}
	return s.indexing.ofLists(known.names()), nil
}

// FindsLinked reports whether Linked finds all objects by a key: its index is not being built.
func (s *Store) FindsLinked(ctx context.Context, key string) (bool, error) {
	known, err := s.opened.state.recent(ctx)
	return err == nil && !known.has(mapIndex(key)), err
}

// Count returns roughly how many objects there are, and how many events are
// pending.
func (s *Store) Count(ctx context.Context) (objects, pending int64, err error) {
	return s.core.driver.Count(ctx)
}

// IndexesBinaries reports whether objects are indexed by the binaries they hold.
func (s *Store) IndexesBinaries() bool { return s.opts.IndexBinaries }

// Maps returns the mappings and links whose Source the store is.
func (s *Store) Maps() []Mapping { return s.opts.Maps }

// NamesByNumber reports whether a mapped key of an encoded object has a number that names an object. Releases that did
// not read such keys have written objects without their keys in the index.
func (s *Store) NamesByNumber(body []byte) (found bool) { return s.indexing.namesByNumber(body) }

// ComputedFields returns the names of the fields that each write computes. They must not be modified.
func (s *Store) ComputedFields() []string { return s.opts.Computed.Names() }

// ComputedDefinition identifies all of the configuration on which computed fields depend besides the object.
func (s *Store) ComputedDefinition() any { return s.opts.Computed.Definition() }

// Miscomputed returns the computed fields of an object that are not what its other fields make them: those that
// were written by another configuration.
func (s *Store) Miscomputed(o Stored) (fields []string, err error) { return s.writer.miscomputed(o) }

// Schema returns the schema of the store, nil for none.
func (s *Store) Schema() Validator { return s.opts.Schema }

// SchemaDigest identifies the requirements of the store's schema; "" without a schema, or for one without a digest.
func (s *Store) SchemaDigest() string { return s.checks.digest() }

// SchemaMismatch returns the mismatch of the store's schema with an object as it is stored; nil if it matches, or there
// is no schema. Of fields that never leave the server it says only that they do not fit.
func (s *Store) SchemaMismatch(ctx context.Context, stored Stored) (*FailingObject, error) {
	return s.checks.mismatch(ctx, s.opts.Schema, stored)
}

// CheckSchema reads all objects, and validates them by a schema as their next update would. Nothing is written. Of
// fields that never leave the server the report says only that they do not fit. After each page of objects it calls
// progress, unless that is nil, with the report so far, which must not be modified; an error of it ends the check.
func (s *Store) CheckSchema(
	ctx context.Context, schema Validator, progress func(SchemaReport) error,
) (*SchemaReport, error) {
	return s.checks.report(ctx, s.core.driver, schema, progress)
}
