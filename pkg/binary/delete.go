package binary

import (
	"context"
	"errors"
	"iter"
	"time"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// MarkCandidate makes a content a candidate for deletion once the grace period is
// over, since a record that referenced it was deleted. It reports Conflict while
// the content is being deleted: the caller tries again later.
func (s *Service) MarkCandidate(ctx context.Context, hash string) error {
	for {
		e, err := s.entries.get(ctx, hash)
		if err != nil {
			return err
		}
		if e.State == Deleting {
			return errs.New(errs.Conflict, "the content %s is being deleted: try again later", hash)
		}
		if _, err = s.entries.set(ctx, e, Candidate, s.now().Add(s.grace)); !errors.Is(err, errs.Mismatch) {
			return err
		}
	}
}

// markUnused makes a content a candidate after an upload has failed, which may
// have left it without a record. If this fails, a full sweep finds the content.
func (s *Service) markUnused(ctx context.Context, hash string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_ = s.MarkCandidate(ctx, hash)
}

// IndexLag is how long the indexes of the stores may lag behind their records.
func (s *Service) IndexLag() time.Duration {
	var longest time.Duration
	for st := range s.Stores() {
		longest = max(longest, st.IndexLag())
	}
	return longest
}

// MarkForDeletion takes step 1 of a sweeper with an entry that is due, in any state.
// Mismatch if another sweeper was faster.
func (s *Service) MarkForDeletion(ctx context.Context, e Entry) (Entry, error) {
	return s.entries.set(ctx, e, MarkedForDeletion, s.now().Add(s.lease))
}

// DeleteMarked takes steps 3 to 6 of a sweeper with an entry that MarkForDeletion
// returned, and reports whether the content was deleted. IndexLag has passed
// since MarkForDeletion. Mismatch when the entry has been changed since.
func (s *Service) DeleteMarked(ctx context.Context, e Entry) (deleted bool, err error) {
	info, found, err := s.storage.Stat(ctx, e.Hash)
	if err != nil {
		return false, err
	}
	if !found {
		return false, s.entries.delete(ctx, e)
	}
	if due := info.Modified.Add(s.grace); due.After(s.now()) {
		_, err := s.entries.set(ctx, e, Candidate, due)
		return false, err
	}
	if _, referenced, err := s.FindReference(ctx, e.Hash); err != nil {
		return false, err
	} else if referenced {
		return false, s.entries.delete(ctx, e)
	}
	if e, err = s.entries.set(ctx, e, Deleting, s.now().Add(s.lease)); err != nil {
		return false, err
	}
	if err := s.deleteContent(ctx, e.Hash); err != nil {
		return false, err
	}
	err = s.entries.delete(ctx, e)
	if errors.Is(err, errs.Mismatch) {
		err = s.checkExpiredLease(ctx, e.Hash)
	}
	return true, err
}

// deleteContent takes step 5, well within the lease.
func (s *Service) deleteContent(ctx context.Context, hash string) error {
	ctx, cancel := context.WithTimeout(ctx, s.lease/5)
	defer cancel()
	if err := s.storage.Delete(ctx, hash); err != nil {
		return err
	}
	return s.deleteVariants(ctx, hash)
}

// checkExpiredLease reports a content that was deleted after the lease had ended
// although a record references it.
func (s *Service) checkExpiredLease(ctx context.Context, hash string) error {
	p, referenced, err := s.FindReference(ctx, hash)
	if err != nil || !referenced {
		return err
	}
	if _, found, err := s.storage.Stat(ctx, hash); err != nil || found {
		return err
	}
	return errs.New(errs.Internal,
		"the content of %s was deleted by a sweeper that was suspended for longer than its lease of %s: "+
			"upload it again", p, s.lease)
}

// IsOrphan reports whether a content is garbage that no entry announces: its
// grace period is over, it has no entry, and no object references it.
func (s *Service) IsOrphan(ctx context.Context, c driver.Info) (bool, error) {
	if c.Modified.Add(s.grace).After(s.now()) {
		return false, nil
	}
	if e, err := s.entries.get(ctx, c.Hash); err != nil || e.State != "" {
		return false, err
	}
	_, referenced, err := s.FindReference(ctx, c.Hash)
	return err == nil && !referenced, err
}

// Contents iterates over the contents of the service in the order of their
// hashes, and ends with the first error.
func (s *Service) Contents(ctx context.Context) iter.Seq2[driver.Info, error] {
	const page = 500
	return func(yield func(driver.Info, error) bool) {
		for after := ""; ; {
			contents, next, err := s.storage.List(ctx, after, page)
			if err != nil {
				yield(driver.Info{}, err)
				return
			}
			for _, c := range contents {
				if !yield(c, nil) {
					return
				}
			}
			if next == "" {
				return
			}
			after = next
		}
	}
}

// RemoveAbandoned removes stages from the storage whose process has ended and
// that are at least as old as age, and returns their number.
func (s *Service) RemoveAbandoned(ctx context.Context, age time.Duration) (int, error) {
	return s.storage.RemoveAbandoned(ctx, s.now().Add(-age))
}
