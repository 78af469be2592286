package store

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// sharedField has the value, in the object of a Shared.
const sharedField = "state"

// Shared is a value that processes share: JSON in one object. Each change is conditional, so of several processes that
// change it at once, each changes the value that the previous one has stored.
type Shared[T any] struct {
	Store *Store
	UUID  string // of the object
	What  string // the value, in an error: "what is stored about mappings"
}

// Get returns the value and its revision: the zero value and 0 before it is stored first.
func (s Shared[T]) Get(ctx context.Context) (value T, revision uint64, err error) {
	o, err := s.Store.Get(ctx, s.UUID)
	if errors.Is(err, errs.NotFound) {
		return value, 0, nil
	}
	if err != nil {
		return value, 0, err
	}
	if err := json.Unmarshal(object.Field(o.Body, sharedField), &value); err != nil {
		return value, 0, errs.Wrap(err, errs.Internal, "%s can't be read", s.What)
	}
	return value, o.Revision, nil
}

// Put stores a value in place of the one that had a revision, and returns the next revision. The error is errs.Mismatch
// or errs.Exists if another process has stored one since.
func (s Shared[T]) Put(ctx context.Context, value T, revision uint64) (next uint64, err error) {
	data, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	fields := object.Object{sharedField: data}
	var o Stored
	if revision == 0 {
		o, err = s.Store.Save(ctx, fields, s.UUID)
	} else {
		o, err = s.Store.Update(ctx, fields, UpdateOptions{UUID: s.UUID, If: revision})
	}
	return o.Revision, err
}

// The delays between the attempts of a Change: of processes that all change the value, each succeeds in its turn.
const (
	changeRetryMin = time.Millisecond
	changeRetryMax = 250 * time.Millisecond
)

// Change reads the value, changes it, and stores it if change returns true. If another process has stored one since, it
// retries after a delay with jitter. It returns the value as it then is, and its revision. Canceled if ctx ends first.
func (s Shared[T]) Change(ctx context.Context, change func(*T) bool) (T, uint64, error) {
	for retry := backoff.New(changeRetryMin, changeRetryMax); ; {
		value, revision, err := s.Get(ctx)
		if err == nil && change(&value) {
			revision, err = s.Put(ctx, value, revision)
		}
		if !errors.Is(err, errs.Mismatch) && !errors.Is(err, errs.Exists) {
			return value, revision, err
		}
		if err := retry.Wait(ctx); err != nil {
			return value, revision, errs.Wrap(err, errs.Canceled, "%s: other processes keep changing it", s.What)
		}
	}
}
