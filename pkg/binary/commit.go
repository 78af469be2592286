package binary

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// commit takes steps 1 to 3 of an upload: it commits the content until the entry
// is the same before and after, and returns the mark of that entry.
func (s *Service) commit(ctx context.Context, in *incoming) (mark uint64, err error) {
	before, err := s.awaitStable(ctx, in.hash)
	for err == nil {
		if err := in.Commit(ctx, in.hash); err != nil {
			return 0, err
		}
		if mark, err = s.awaitStable(ctx, in.hash); err == nil && mark == before {
			return mark, nil
		}
		before = mark
	}
	return 0, err
}

// verifyContent takes step 5 of an upload: it makes sure that the content of a
// record that may have been written exists and is not about to be deleted. mark
// is that of the entry before the record was written. If the content can't be
// kept, the record is reverted.
func (s *Service) verifyContent(ctx context.Context, in *incoming, mark uint64, w written) error {
	err := s.retryUntil(ctx, func() error {
		now, err := s.awaitStable(ctx, in.hash)
		if err == nil && now != mark {
			_, err = s.commit(ctx, in)
		}
		return err
	})
	if err == nil {
		return nil
	}
	if failed := s.retryUntil(ctx, func() error { return s.revert(ctx, w) }); failed != nil {
		return errs.Wrap(errors.Join(failed, err), errs.Internal,
			"the content of %s could not be kept and its record could not be removed: delete the binary", w.place)
	}
	return err
}

// retryUntil calls f until it succeeds or the retry timeout is over.
func (s *Service) retryUntil(ctx context.Context, f func() error) error {
	deadline := s.now().Add(s.retryTimeout)
	for retry := backoff.New(10*time.Millisecond, time.Second); ; {
		err := f()
		if err == nil || s.now().After(deadline) {
			return err
		}
		if err := s.wait(ctx, retry.Next()); err != nil {
			return err
		}
	}
}

// awaitStable returns the mark of the entry of a content once that is stable. A
// mark for deletion is deleted. A deletion is waited for: Unavailable when it
// does not end within the retry timeout.
func (s *Service) awaitStable(ctx context.Context, hash string) (mark uint64, err error) {
	deadline := s.now().Add(s.retryTimeout)
	for retry := backoff.New(time.Millisecond, time.Second); ; {
		e, err := s.entries.get(ctx, hash)
		if err != nil {
			return 0, err
		}
		switch e.State {
		case MarkedForDeletion:
			if err := s.entries.delete(ctx, e); err != nil && !errors.Is(err, errs.Mismatch) {
				return 0, err
			}
			continue
		case Deleting:
		default:
			return e.mark, nil
		}
		if s.now().After(deadline) {
			return 0, &errs.Error{
				Kind: errs.Unavailable, Message: "the same content is being deleted: try again later",
				RetryAfter: 10 * time.Second,
			}
		}
		if err := s.wait(ctx, retry.Next()); err != nil {
			return 0, err
		}
	}
}

// revert makes an object as it was before a record was written. A record that
// was replaced is restored only if its content still exists.
func (s *Service) revert(ctx context.Context, w written) error {
	previous := w.replaced
	err := s.replaceRecord(ctx, w.place, w.record, previous)
	if err != nil || previous == nil {
		return err
	}
	record, err := decodeRecord(previous)
	if err != nil {
		return err
	}
	// A sweeper that marks the content after this finds the record.
	exists := false
	if _, err = s.awaitStable(ctx, record.Hash); err == nil {
		_, exists, err = s.storage.Stat(ctx, record.Hash)
	}
	if err != nil || !exists {
		return s.replaceRecord(ctx, w.place, previous, nil)
	}
	return nil
}

// replaceRecord replaces a record, whose index may have changed, by another one;
// nil removes it. It does nothing when the record does not exist.
func (s *Service) replaceRecord(ctx context.Context, p Place, old, record []byte) error {
	_, err := s.set.Store(p.Store).Mutate(internal(ctx), p.UUID, func(o store.Stored) (store.Mutation, error) {
		list, err := decodeRecords(o, p.Property)
		if err != nil || list.services[p.Property] != s.name {
			return store.Mutation{}, err
		}
		i := slices.IndexFunc(list.records, func(r json.RawMessage) bool { return string(r) == string(old) })
		if i < 0 {
			return store.Mutation{}, nil
		}
		events := []store.ExtraEvent{s.deletedEvent(p, i, old)}
		if record == nil {
			list.records = slices.Delete(list.records, i, i+1)
		} else {
			list.records[i] = record
			events = append(events, s.uploadedEvent(p, i, record, nil))
		}
		return store.Mutation{Fields: list.fields(), ExtraEvents: events}, nil
	})
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	return err
}
