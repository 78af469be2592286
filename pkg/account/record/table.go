package record

import (
	"context"
	"errors"
	"iter"
	"reflect"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Table reads and writes the records of one type in a store.
type Table[T any, P pointer[T]] struct {
	Store *store.Store
	codec *codec
}

func newTable[T any, P pointer[T]](in *store.Store) Table[T, P] {
	return Table[T, P]{Store: in, codec: newCodec(reflect.TypeFor[T]())}
}

// Of decodes a stored record.
func (t Table[T, P]) Of(stored store.Stored) (record T, err error) {
	err = t.codec.decode(reflect.ValueOf(&record).Elem(), P(&record).meta(), stored)
	return record, err
}

// Read returns a record. NotFound.
func (t Table[T, P]) Read(ctx context.Context, uuid string) (record T, err error) {
	stored, err := t.Store.Get(ctx, uuid)
	if err != nil {
		return record, err
	}
	return t.Of(stored)
}

// Create stores a new record. Exists.
func (t Table[T, P]) Create(ctx context.Context, uuid string, record T) (T, error) {
	stored, err := t.Store.Save(ctx, t.codec.all(reflect.ValueOf(&record).Elem()), uuid, P(&record).meta().events...)
	if err != nil {
		var none T
		return none, err
	}
	return t.Of(stored)
}

// ErrUnchanged is returned by a change that leaves the record as it is. Change then returns nil.
var ErrUnchanged = errors.New("record: the record stays as it is")

// Change calls change with a record, and writes the difference. It calls it again when another write came first.
// Errors: NotFound; those of change.
func (t Table[T, P]) Change(ctx context.Context, uuid string, change func(P) error) (T, error) {
	stored, err := t.Store.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
		var record T
		return t.codec.mutation(now, P(&record), func() error { return change(&record) })
	})
	if err != nil {
		var none T
		return none, err
	}
	return t.Of(stored)
}

// entry is a pointer to a record of any type. Code that only needs this is not generic, which keeps the program small.
type entry interface {
	meta() *Meta
	owner() string
}

// mutation reads a stored record, changes it, and returns the write of the difference.
func (c *codec) mutation(now store.Stored, record entry, change func() error) (store.Mutation, error) {
	value, m := reflect.ValueOf(record).Elem(), record.meta()
	if err := c.decode(value, m, now); err != nil {
		return store.Mutation{}, err
	}
	switch err := change(); {
	case errors.Is(err, ErrUnchanged):
		return store.Mutation{}, nil
	case err != nil:
		return store.Mutation{}, err
	}
	return store.Mutation{Fields: c.changes(m, value), ExtraEvents: m.events}, nil
}

// ChangeAt is Change of a record at the revision that was read. Mismatch if another write came first.
func (t Table[T, P]) ChangeAt(ctx context.Context, read Meta, change func(P) error) (T, error) {
	return t.Change(ctx, read.UUID, func(now P) error {
		if now.meta().Revision != read.Revision {
			return errs.New(errs.Mismatch, "the record was changed by another request")
		}
		return change(now)
	})
}

// Attempts is the maximum number of attempts of a write while other requests change the same record.
const Attempts = 10

// ErrContention returns the error after Attempts.
func ErrContention() error {
	return errs.New(errs.Conflict, "others keep changing the same login: try again")
}

// Put is Change, but creates a missing record: change then gets an empty one.
func (t Table[T, P]) Put(ctx context.Context, uuid string, change func(P) error) error {
	return untilWritten(func() error { _, err := t.Change(ctx, uuid, change); return err }, func() (bool, error) {
		var record T
		err := change(&record)
		if err == nil {
			_, err = t.Create(ctx, uuid, record)
		}
		return true, err
	})
}

// Ensure is Change, but first creates a missing record by first.
func (t Table[T, P]) Ensure(ctx context.Context, uuid string, first func(P), change func(P) error) error {
	return untilWritten(func() error { _, err := t.Change(ctx, uuid, change); return err }, func() (bool, error) {
		var record T
		first(&record)
		_, err := t.Create(ctx, uuid, record)
		return false, err
	})
}

// untilWritten changes a record, or creates a missing one, and retries if another write came first. create reports
// whether no change is left after it.
func untilWritten(change func() error, create func() (complete bool, err error)) error {
	for range Attempts {
		if err := change(); !errors.Is(err, errs.NotFound) {
			return err
		}
		switch complete, err := create(); {
		case errors.Is(err, ErrUnchanged):
			return nil
		case errors.Is(err, errs.Exists):
		case err != nil || complete:
			return err
		}
	}
	return ErrContention()
}

// ownedPage is the page size of Owned.
const ownedPage = 200

// Owned iterates over the records of a user, which have the field user. It ends after the first error.
func (t Table[T, P]) Owned(ctx context.Context, user string) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for stored, err := range t.Store.Linked(ctx, fieldUser, user, ownedPage) {
			var record T
			if err == nil {
				record, err = t.Of(stored)
			}
			if err == nil && P(&record).owner() != user {
				continue // the index lags
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}
