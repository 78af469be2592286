package store

import (
	"context"
	"iter"

	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
)

// BinariesField is the internal field that says which properties of an object hold records of binaries: see Binaries.
const BinariesField = access.BinariesField

// binaryIndex is the index of objects by service and hash of the binaries they hold.
const binaryIndex = "binary"

// Binaries returns the properties of an object that hold records of binaries,
// each with the service whose binaries they are.
func Binaries(o object.Object) map[string]string { return access.Binaries(o) }

// binaryKeys computes the keys of an encoded object in the index of binaries.
func binaryKeys(body []byte) []driver.Key {
	services := access.BinariesIn(object.Field(body, BinariesField))
	if len(services) == 0 {
		return nil
	}
	var keys []driver.Key
	_ = object.Each(body, func(name string, records []byte) bool {
		service, ok := services[name]
		if !ok {
			return true
		}
		object.Elements(records, func(record []byte) bool {
			if hash, ok := object.Text(object.Field(record, "hash")); ok {
				keys = append(keys, driver.Key{Index: binaryIndex, Parts: [][]byte{[]byte(service), []byte(hash)}})
			}
			return true
		})
		return true
	})
	return keys
}

// WithBinary iterates over the objects that hold a binary of a service, reading
// pages of pageSize objects. The index may lag: read the object again where it
// matters. It needs Options.IndexBinaries, and ends after the first error.
func (s *Store) WithBinary(ctx context.Context, service, hash string, pageSize int) iter.Seq2[Stored, error] {
	return toStoredSeq(driver.Matches(ctx, s.driver, driver.Query{
		Index: binaryIndex, Equal: [][]byte{[]byte(service), []byte(hash)}, Limit: pageSize,
	}))
}
