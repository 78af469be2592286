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

// keep commits a content, again and again until its entry was the same before
// and after: then no sweeper was at it. It returns that entry's mark.
func (s *Service) keep(ctx context.Context, in *incoming) (mark uint64, err error) {
	before, err := s.calm(ctx, in.hash)
	for err == nil {
		if err := in.Commit(ctx, in.hash); err != nil {
			return 0, err
		}
		if mark, err = s.calm(ctx, in.hash); err == nil && mark == before {
			return mark, nil
		}
		before = mark
	}
	return 0, err
}

// assure sees to it that the content of a record which may be there is there
// and stays. mark is that of the entry before the record was written. Where the
// content can't be had the record is taken back.
func (s *Service) assure(ctx context.Context, in *incoming, mark uint64, w written) error {
	err := s.insist(ctx, func() error {
		now, err := s.calm(ctx, in.hash)
		if err == nil && now != mark {
			_, err = s.keep(ctx, in)
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
	deadline := s.Now().Add(s.Patience)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := act()
		if err == nil || s.Now().After(deadline) {
			return err
		}
		if err := s.pause(ctx, wait); err != nil {
			return err
		}
	}
}

// calm returns the mark of a content's entry when that is no threat. A
// condemnation is taken away, a deletion is waited for: Unavailable when it
// lasts.
func (s *Service) calm(ctx context.Context, hash string) (mark uint64, err error) {
	deadline := s.Now().Add(s.Patience)
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		e, err := s.ledger.get(ctx, hash)
		if err != nil {
			return 0, err
		}
		switch e.State {
		case Condemned:
			if err := s.ledger.drop(ctx, e); err != nil && !errors.Is(err, errs.Mismatch) {
				return 0, err
			}
			continue
		case Deleting:
		default:
			return e.mark, nil
		}
		if s.Now().After(deadline) {
			return 0, &errs.Error{
				Kind: errs.Unavailable, Message: "the same content is just being deleted: try again", RetryAfter: 10 * time.Second,
			}
		}
		if err := s.pause(ctx, wait); err != nil {
			return 0, err
		}
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
	// Whoever condemns the content from here on finds the record.
	found := false
	if _, err = s.calm(ctx, former.Hash); err == nil {
		_, found, err = s.Storage.Stat(ctx, former.Hash)
	}
	if err != nil || !found {
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
	if errors.Is(err, errs.NotFound) {
		return nil
	}
	return err
}
