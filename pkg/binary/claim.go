package binary

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// keep commits a content, again and again until no sweeper is after it.
func (s *Service) keep(ctx context.Context, in *incoming) error {
	for {
		if err := in.Commit(ctx, in.hash); err != nil {
			return err
		}
		if threatened, err := s.claim(ctx, in.hash); err != nil || !threatened {
			return err
		}
	}
}

// assure sees to it that the content of a record which may be there is there
// and stays. Where that can't be had the record is taken back.
func (s *Service) assure(ctx context.Context, in *incoming, w written) error {
	err := s.insist(ctx, func() error {
		threatened, err := s.claim(ctx, in.hash)
		if err == nil && threatened {
			err = s.keep(ctx, in)
		}
		return err
	})
	if err == nil {
		return nil
	}
	if failed := s.insist(ctx, func() error { return s.takeBack(ctx, w) }); failed != nil {
		return errs.Wrap(errors.Join(failed, err), errs.Internal, "the content of %s can't be kept, and its record can't be taken back: delete the binary", w.place)
	}
	return err
}

// insist tries something as long as patience lasts.
func (s *Service) insist(ctx context.Context, act func() error) error {
	deadline := time.Now().Add(s.Patience)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := act()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		if err := pause(ctx, wait); err != nil {
			return err
		}
	}
}

// claim takes away what threatens a content, as step 2 of an upload does. It
// reports whether anything did: then the content may be gone. Unavailable when
// it is still being deleted after a while.
func (s *Service) claim(ctx context.Context, hash string) (threatened bool, err error) {
	deadline := time.Now().Add(s.Patience)
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		e, err := s.ledger.get(ctx, hash)
		if err != nil {
			return true, err
		}
		switch e.State {
		case Condemned:
			threatened = true
			if err := s.ledger.drop(ctx, e); !errs.Is(err, errs.Mismatch) {
				return true, err
			}
			continue // somebody was faster
		case Deleting:
			threatened = true
		default:
			return threatened, nil
		}
		if time.Now().After(deadline) {
			return true, &errs.Error{
				Kind: errs.Unavailable, Message: "the same content is just being deleted: try again", RetryAfter: 10 * time.Second,
			}
		}
		if err := pause(ctx, wait); err != nil {
			return true, err
		}
	}
}

// pause waits, unless the context ends before.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// takeBack makes an object as it was before a record was written: for an upload
// that could not keep its content. What had been replaced comes back only if
// its content is safe.
func (s *Service) takeBack(ctx context.Context, w written) error {
	back := w.replaced
	err := s.exchange(ctx, w.place, w.record, back)
	if err != nil || back == nil {
		return err
	}
	former, err := decodeRecord(back)
	if err != nil {
		return err
	}
	threatened, err := s.claim(ctx, former.Hash)
	if err == nil && threatened {
		var found bool
		if _, found, err = s.Storage.Stat(ctx, former.Hash); err == nil && !found {
			err = errs.New(errs.NotFound, "its content is gone")
		}
	}
	if err != nil {
		return s.exchange(ctx, w.place, back, nil)
	}
	return nil
}

// exchange puts a record in the place of another one, which may have moved; nil
// leaves none. That the other one is not there, or not any more, is no error.
func (s *Service) exchange(ctx context.Context, p Place, old, record []byte) error {
	_, err := s.Set.Store(p.Store).Revise(ours(ctx), p.UUID, func(o store.Stored) (store.Revision, error) {
		held, err := decodeHolding(o, p.Property)
		if err != nil || held.services[p.Property] != s.Name {
			return store.Revision{}, err
		}
		i := slices.IndexFunc(held.records, func(r json.RawMessage) bool { return string(r) == string(old) })
		if i < 0 {
			return store.Revision{}, nil
		}
		also := []store.Also{s.deleted(p, i, old)}
		if record == nil {
			held.records = slices.Delete(held.records, i, i+1)
		} else {
			held.records[i] = record
			also = append(also, s.uploaded(p, i, record, nil))
		}
		return store.Revision{Fields: held.fields(), Also: also}, nil
	})
	if errs.Is(err, errs.NotFound) {
		return nil
	}
	return err
}
