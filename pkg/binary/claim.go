package binary

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// keep commits a content, again and again until no sweeper is after it.
func (s *Service) keep(ctx context.Context, in *incoming) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
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
	waiting, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	threatened, err := s.claim(waiting, in.hash)
	if err == nil && threatened {
		err = s.keep(waiting, in)
	}
	if err == nil {
		return nil
	}
	taking, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	if failed := s.takeBack(taking, w); failed != nil {
		return errs.Wrap(failed, errs.Internal, "the content of %s can't be kept, and its record can't be taken back: delete the binary", w.place)
	}
	return err
}

// claim takes away what threatens a content, as step 2 of an upload does. It
// reports whether anything did: then the content may be gone. When time is over
// it reports Unavailable.
func (s *Service) claim(ctx context.Context, hash string) (threatened bool, err error) {
	var last error
	for wait := time.Millisecond; ; wait = min(2*wait, time.Second) {
		e, err := s.ledger.get(ctx, hash)
		if err == nil {
			switch e.State {
			case Condemned:
				threatened = true
				if err = s.ledger.drop(ctx, e); err == nil {
					return true, nil
				}
			case Deleting:
				threatened = true
				err = errs.New(errs.Unavailable, "the content is being deleted")
			default:
				return threatened, nil
			}
		}
		last = err
		if pause(ctx, wait) != nil {
			return true, &errs.Error{
				Kind: errs.Unavailable, Message: "the same content is being deleted elsewhere: try again", RetryAfter: 10 * time.Second, Err: last,
			}
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
