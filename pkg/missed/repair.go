package missed

import (
	"context"
	"errors"
	"time"

	"belfry/pkg/store"
)

// lease is that of a repair.
func (s *state) lease() store.Lease {
	return store.Lease{Holder: &s.Repair.Process, Renewed: &s.Repair.Renewed, Lasts: leaseTime}
}

// claim takes the lease if a repair is due and no process makes it.
func (s *state) claim(process string, consumers []string, now time.Time) bool {
	if !s.open(consumers) || s.lease().Held(now) || !s.lease().Claim(process, now) {
		return false
	}
	s.Repair.Began = now
	return true
}

// release ends the lease of a process, and reports whether it had one.
func (s *state) release(process string) bool {
	if !s.lease().Release(process) {
		return false
	}
	s.Repair = repair{}
	return true
}

// outcome is how repairs have ended.
type outcome struct {
	repaired []string // the consumers of those that succeeded
	err      error    // of the others
}

// repaired returns the consumers that this process can repair.
func (w *Watch) repaired() []string { return consumersOf(w.opts.Repairs) }

func consumersOf(repairs []Repair) (all []string) {
	for _, r := range repairs {
		all = append(all, r.Consumers...)
	}
	return all
}

// due returns the repairs of consumers that have missed events.
func (w *Watch) due() (all []Repair) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.opts.Repairs {
		if w.current.open(r.Consumers) {
			all = append(all, r)
		}
	}
	return all
}

// makeRepairs makes repairs. One that fails does not keep those after it from being made.
func makeRepairs(ctx context.Context, due []Repair) (o outcome) {
	for _, r := range due {
		if err := r.Do(ctx); err != nil {
			o.err = errors.Join(o.err, err)
			continue
		}
		o.repaired = append(o.repaired, r.Consumers...)
	}
	return o
}

// startRepair starts the repair if one is due. Two processes may repair at once when one
// stalls for longer than its lease: that does no harm.
func (w *Watch) startRepair(ctx context.Context) {
	now := time.Now().UTC()
	if w.repairing || !w.Repairing() || now.Before(w.nextTry) {
		return
	}
	claimed := false
	err := w.change(ctx, func(s *state) bool {
		claimed = s.claim(w.instance, w.repaired(), now)
		return claimed
	})
	if err != nil || !claimed {
		return // the next poll tries again
	}
	w.repairing, w.began = true, now
	due := w.due()
	w.log.Info("repairing what the events that were missed would have changed", "listeners", consumersOf(due))
	go func() { w.done <- makeRepairs(ctx, due) }()
}

// endRepair records the end of repairs. What has failed is repeated later.
func (w *Watch) endRepair(ctx context.Context, o outcome) {
	w.repairing = false
	if ctx.Err() != nil {
		return
	}
	if o.err == nil {
		w.repairs.Reset()
	} else {
		wait := w.repairs.Next()
		w.nextTry = time.Now().Add(wait)
		w.log.Error("the repair has failed; retrying", "error", o.err, "in", wait)
	}
	w.retry(ctx, func(s *state) bool {
		s.repaired(o.repaired, w.began, time.Now().UTC())
		s.release(w.instance)
		return true
	})
}

// retry changes the state.
func (w *Watch) retry(ctx context.Context, change func(*state) bool) {
	if err := w.change(ctx, change); err != nil && ctx.Err() == nil {
		// The lease ends, and the repair is made again.
		w.log.Warn("the positions of listeners can't be stored", "error", err)
	}
}
