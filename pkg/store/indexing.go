package store

import (
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

// indexing computes the keys by which objects are indexed.
type indexing struct {
	mapped   []string   // the distinct keys of mappings
	binaries bool       // objects are indexed by the binaries they hold
	own      []KeyIndex // of belfry's services

	// Those that Open made, also those that this configuration does not use: another one, of now or of later, uses
	// them, and relies on them to have every object.
	lists []query.Index
}

func newIndexing(o *Options, lists []query.Index) *indexing {
	x := &indexing{binaries: o.IndexBinaries, own: o.KeyIndexes, lists: lists}
	for _, m := range o.Maps {
		if !slices.Contains(x.mapped, m.Key) {
			x.mapped = append(x.mapped, m.Key)
		}
	}
	for i := range o.References {
		if r := &o.References[i]; r.Indexed && !slices.Contains(x.mapped, r.Field) {
			x.mapped = append(x.mapped, r.Field)
		}
	}
	return x
}

// mapIndex is the name of the driver's index over a mapped key.
func mapIndex(key string) string { return "map." + key }

// BinariesField is the internal field that says which properties of an object hold records of binaries: see Binaries.
const BinariesField = access.BinariesField

// Binaries returns the properties of an object that hold records of binaries,
// each with the service whose binaries they are.
func Binaries(o object.Object) map[string]string { return access.Binaries(o) }

// binaryIndex is the index of objects by service and hash of the binaries they hold.
const binaryIndex = "binary"

// fields returns the fields of all indexes of lists.
func (x *indexing) fields() (fields []string) {
	for _, i := range x.lists {
		fields = append(fields, i.Fields...)
	}
	return fields
}

// spec describes the indexes, and the arrays of a store with these options, to a driver.
func (x *indexing) spec(o *Options) driver.Spec {
	spec := driver.Spec{Name: o.Name, Keys: x.keys}
	if !o.WholeArrays {
		spec.Arrays, spec.MoreChunks = slices.Clone(o.Arrays), o.MoreChunks
	}
	for _, key := range x.mapped {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: mapIndex(key), Parts: 1, Multi: true})
	}
	if x.binaries {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: binaryIndex, Parts: 2, Multi: true})
	}
	for _, i := range x.own {
		spec.Indexes = append(spec.Indexes, i.spec())
	}
	for _, i := range x.lists {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: i.Name, Parts: len(i.Fields), Multi: i.HasElements()})
	}
	return spec
}

// ofLists returns the fields of those indexes that lists use.
func (x *indexing) ofLists(indexes []string) (fields []string) {
	for _, i := range x.lists {
		if slices.Contains(indexes, i.Name) {
			fields = append(fields, strings.Join(i.Fields, ","))
		}
	}
	return fields
}

// keys computes every index key of an encoded object.
func (x *indexing) keys(body []byte) []driver.Key {
	var keys []driver.Key
	if len(x.mapped) > 0 {
		_ = object.Each(body, func(name string, value []byte) bool {
			if name == ReleasedField {
				keys = append(keys, x.releasedKeys(value)...)
			}
			for _, key := range x.mapped {
				if key != name {
					continue
				}
				for _, uuid := range KeyTargets(value) {
					keys = append(keys, driver.Key{Index: mapIndex(key), Parts: [][]byte{[]byte(uuid)}})
				}
			}
			return true
		})
	}
	if x.binaries {
		keys = append(keys, binaryKeys(body)...)
	}
	for _, i := range x.own {
		keys = append(keys, i.keys(body)...)
	}
	return append(keys, query.Keys(x.lists, body)...)
}

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

// check rejects a key with more targets, or an array with more elements, than a caller may have one write index. Of
// those that were there before an index or a mapping was configured, all are indexed.
func (x *indexing) check(stored, o object.Object) error {
	for _, key := range x.mapped {
		if n := len(KeyTargets(o[key])); n > MaxKeyTargets && !isUnchanged(stored, o, key) {
			message := fmt.Sprintf("names %d objects; at most %d are allowed", n, MaxKeyTargets)
			return &errs.Error{
				Kind:    errs.Invalid,
				Message: "the object refers to too many targets",
				Fields:  []errs.Field{{Pointer: object.Pointer(key), Message: message}},
			}
		}
	}
	return query.CheckElements(x.lists, stored, o)
}

// keepNames leaves a mapped key as it is stored where a client gives it the same value, written in a way that names
// fewer objects: 1.0 for 1. A rule such as input.author == object.author holds for both, and only one of them has
// entries.
func (x *indexing) keepNames(stored, next object.Object) {
	for _, key := range x.mapped {
		before, after := stored[key], next[key]
		if before != nil && after != nil && len(KeyTargets(after)) < len(KeyTargets(before)) &&
			object.SameValue(before, after) {
			next[key] = before
		}
	}
}

// namesByNumber reports whether a mapped key of an encoded object has a number that names an object.
func (x *indexing) namesByNumber(body []byte) (found bool) {
	look := func(value []byte) bool {
		found = found || object.IsNumberNamed(value)
		return !found
	}
	for _, key := range x.mapped {
		value := object.Field(body, key)
		look(value)
		object.Elements(value, look)
	}
	return found
}
