package store

import (
	"context"
	"slices"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

// Part is an object of which some entries of an array were read.
type Part struct {
	Stored // without Entries, the whole object; else its large arrays are empty

	Entries *driver.Entries // nil: the object was read whole
}

// apart returns the arrays whose entries workers may read and write without the rest of the object: nothing depends on
// all entries. read are the fields that indexes have.
func (o *Options) apart(read []string) []string {
	if o.WholeArrays {
		return nil
	}
	for _, name := range o.Computed.Names() {
		read = append(read, o.Computed.Reads(name)...)
	}
	return slices.DeleteFunc(slices.Clone(o.Arrays), func(array string) bool {
		of := func(field string) bool { return query.TopLevel(field) == array }
		return slices.ContainsFunc(read, of) || slices.ContainsFunc(o.CopiedFrom, of) ||
			slices.ContainsFunc(slices.Concat(o.Unique...), of)
	})
}

// GetEntries returns an object with those entries of an array that have some uuids, if the array is large and they can
// be changed by ChangeEntries; else the whole object.
func (w Worker) GetEntries(ctx context.Context, uuid, array string, uuids []string) (Part, error) {
	s := w.writer
	var record driver.Record
	var entries *driver.Entries
	var found bool
	var err error
	if chunks, ok := s.driver.(driver.EntryStore); ok && slices.Contains(s.apart, array) {
		record, entries, found, err = chunks.GetEntries(ctx, uuid, array, uuids)
	} else {
		record, found, err = s.driver.Get(ctx, uuid)
	}
	return Part{Stored: toStored(record), Entries: entries}, s.present(uuid, record, found, err)
}

// ChangeEntries is CompareAndSet for some entries of an array and for internal fields, of an object that GetEntries has
// returned with entries. Its event has the entries instead of the object.
//
// Errors: Mismatch when the object has another revision; Unavailable.
func (w Worker) ChangeEntries(
	ctx context.Context, base Part, array string, changes []driver.Entry, fields object.Object,
) error {
	if base.Entries == nil {
		return errs.New(errs.Internal, "entries of %s are to be changed, which was read whole", base.UUID)
	}
	stored, err := base.Object()
	if err != nil {
		return err
	}
	_, err = w.replace(ctx, base.Stored,
		&write{stored: stored, next: withFields(stored, fields), array: array, entries: changes})
	return err
}

// WholeArrays reports whether no large array of the store is to be kept in chunks.
func (s *Store) WholeArrays() bool { return s.opts.WholeArrays }

// changedEntries is what an event says of the entries that a write has changed.
func changedEntries(w *write) map[string]event.Entries {
	if len(w.entries) == 0 {
		return nil
	}
	var changed event.Entries
	for _, e := range w.entries {
		if e.Value == nil {
			changed.Removed = append(changed.Removed, e.UUID)
		} else {
			changed.Set = append(changed.Set, e.Value)
		}
	}
	return map[string]event.Entries{w.array: changed}
}
