package binary

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// Note makes a content a candidate that is due when its grace is over: a record
// that named it has gone. It reports Conflict while the content is being
// deleted: then it is to be noted again.
func (s *Service) Note(ctx context.Context, hash string) error {
	for {
		e, err := s.ledger.get(ctx, hash)
		if err != nil {
			return err
		}
		if e.State == Deleting {
			return errs.New(errs.Conflict, "the content %s is being deleted: note it again", hash)
		}
		if _, err = s.ledger.set(ctx, e, Candidate, s.Now().Add(s.Grace)); !errors.Is(err, errs.Mismatch) {
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
	for st := range s.stores() {
		longest = max(longest, st.Settle())
	}
	return longest
}

// Condemn takes the sweeper's step 1 with an entry that is due, whoever began
// with it. Mismatch when somebody else was faster.
func (s *Service) Condemn(ctx context.Context, e Entry) (Entry, error) {
	return s.ledger.set(ctx, e, Condemned, s.Now().Add(s.Lease))
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
	if _, held, err := s.Holder(ctx, e.Hash); err != nil {
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
	err = s.ledger.drop(ctx, e)
	if errors.Is(err, errs.Mismatch) {
		err = s.overtaken(ctx, e.Hash)
	}
	return true, err
}

// delete takes step 5, long before the lease ends.
func (s *Service) delete(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, s.Lease/5)
	defer cancel()
	return s.Storage.Delete(ctx, hash)
}

// overtaken looks at what became of a content that was deleted after somebody
// else had gone on with its entry.
func (s *Service) overtaken(ctx context.Context, hash string) error {
	p, held, err := s.Holder(ctx, hash)
	if err != nil || !held {
		return err
	}
	if _, found, err := s.Storage.Stat(ctx, hash); err != nil || found {
		return err
	}
	return errs.New(errs.Internal, "the content of %s was deleted by a sweeper that had stood still for longer than %s: upload it again", p, s.Lease)
}

// Stray reports whether a content should have gone: its grace is over, nothing
// is about to happen to it, and no object holds it.
func (s *Service) Stray(ctx context.Context, c driver.Info) (bool, error) {
	if c.Modified.Add(s.Grace).After(s.Now()) {
		return false, nil
	}
	if e, err := s.ledger.get(ctx, c.Hash); err != nil || e.State != "" {
		return false, err
	}
	_, held, err := s.Holder(ctx, c.Hash)
	return err == nil && !held, err
}
