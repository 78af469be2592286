package binary

import (
	"context"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/policy"
	"belfry/pkg/store"
)

// Note makes a content a candidate that is due when its grace is over: a record
// that named it has gone. It reports Unavailable while the content is being
// deleted: then it is to be noted again.
func (s *Service) Note(ctx context.Context, hash string) error {
	for {
		e, err := s.ledger.get(ctx, hash)
		if err != nil {
			return err
		}
		if e.State == Deleting {
			return errs.New(errs.Unavailable, "the content %s is being deleted", hash)
		}
		if _, err = s.ledger.set(ctx, e, Candidate, s.Now().Add(s.Grace)); !errs.Is(err, errs.Mismatch) {
			return err
		}
	}
}

// forget notes a content that an upload may have left without a record. What it
// can't note, a pass over all contents finds.
func (s *Service) forget(ctx context.Context, hash string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.Note(ctx, hash)
}

// Settle is how long the indexes of the stores may lag.
func (s *Service) Settle() time.Duration {
	var longest time.Duration
	for _, st := range s.Set.Stores() {
		longest = max(longest, st.Settle())
	}
	return longest
}

// Condemn takes the sweeper's step 1 with an entry that is due, whoever began
// with it. Mismatch when somebody else was faster.
func (s *Service) Condemn(ctx context.Context, e Entry) (Entry, error) {
	state := Condemned
	if e.State == Deleting {
		state = Deleting
	}
	return s.ledger.set(ctx, e, state, s.Now().Add(s.Lease))
}

// Execute takes the sweeper's steps 3 to 6 with an entry that Condemn returned,
// and reports whether the content was deleted. Settle has passed since Condemn.
// Mismatch when somebody else has gone on with the entry meanwhile.
func (s *Service) Execute(ctx context.Context, e Entry) (deleted bool, err error) {
	info, found, err := s.Storage.Stat(ctx, e.Hash)
	if err != nil {
		return false, err
	}
	if !found {
		return false, s.ledger.drop(ctx, e)
	}
	if due := info.Modified.Add(s.Grace); due.After(s.Now()) {
		_, err := s.ledger.set(ctx, e, Candidate, due)
		return false, err
	}
	if held, err := s.Held(ctx, e.Hash); err != nil {
		return false, err
	} else if held {
		return false, s.ledger.drop(ctx, e)
	}
	if e, err = s.ledger.set(ctx, e, Deleting, s.Now().Add(s.Lease)); err != nil {
		return false, err
	}
	if err := s.delete(ctx, e.Hash); err != nil {
		return false, err
	}
	return true, s.ledger.drop(ctx, e)
}

// delete takes step 5, long before the lease ends.
func (s *Service) delete(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Lease/5)
	defer cancel()
	return s.Storage.Delete(ctx, hash)
}

// Held reports whether any object holds a content of this service.
func (s *Service) Held(ctx context.Context, hash string) (bool, error) {
	for _, st := range s.Set.Stores() {
		held, err := s.heldIn(ctx, st, hash)
		if err != nil || held {
			return held, errs.Wrap(err, errs.KindOf(err), "looking in %s for who holds a content", st.Name)
		}
	}
	return false, nil
}

// heldIn asks the index of a store, and then the objects that it finds.
func (s *Service) heldIn(ctx context.Context, st *store.Store, hash string) (bool, error) {
	const page = 20
	var after []byte
	for {
		found, next, err := st.Held(ctx, s.Name, hash, after, page)
		if err != nil {
			return false, err
		}
		for _, o := range found {
			now, err := st.Look(ours(ctx), o.UUID, policy.Get, nil)
			if errs.Is(err, errs.NotFound) {
				continue
			}
			if err != nil {
				return false, err
			}
			held := false
			if err := s.each(now, func(_ string, _ int, raw []byte) {
				named, _ := object.Text(object.Field(raw, "hash"))
				held = held || named == hash
			}); err != nil || held {
				return held, err
			}
		}
		if next == nil {
			return false, nil
		}
		after = next
	}
}

// each calls f with every record of this service that an object holds.
func (s *Service) each(o store.Stored, f func(property string, index int, raw []byte)) error {
	decoded, err := o.Object()
	if err != nil {
		return err
	}
	for property, service := range store.Binaries(decoded) {
		if service != s.Name {
			continue
		}
		i := 0
		object.Elements(decoded[property], func(raw []byte) bool {
			f(property, i, raw)
			i++
			return true
		})
	}
	return nil
}
