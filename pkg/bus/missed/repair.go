package missed

import (
	"context"
	"time"
)

// renew extends the lease of a process that repairs, and reports whether it has one.
func (s *state) renew(process string, now time.Time) bool {
	if s.Repair == nil || s.Repair.Process != process {
		return false
	}
	s.Repair.Renewed = now
	return true
}

// claim takes the lease if a repair is due and no process makes it.
func (s *state) claim(process string, consumers []string, now time.Time) bool {
	if !s.open(consumers) || s.Repair != nil && now.Sub(s.Repair.Renewed).Abs() < leaseTime {
		return false
	}
	s.Repair = &lease{Process: process, Began: now, Renewed: now}
	return true
}

// release ends the lease of a process, and reports whether it had one.
func (s *state) release(process string) bool {
	if s.Repair == nil || s.Repair.Process != process {
		return false
	}
	s.Repair = nil
	return true
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
		claimed = s.claim(w.instance, w.opts.Repaired, now)
		return claimed
	})
	if err != nil || !claimed {
		return // the next poll tries again
	}
	w.repairing, w.began = true, now
	w.log.Info("repairing what the events that were missed would have changed", "listeners", w.opts.Repaired)
	go func() { w.done <- w.opts.Repair(ctx) }()
}

// endRepair records the end of a repair. One that failed is repeated later.
func (w *Watch) endRepair(ctx context.Context, failed error) {
	w.repairing = false
	if ctx.Err() != nil {
		return
	}
	if failed == nil {
		w.repairs.Reset()
	} else {
		wait := w.repairs.Next()
		w.nextTry = time.Now().Add(wait)
		w.log.Error("the repair has failed; retrying", "error", failed, "in", wait)
	}
	w.retry(ctx, func(s *state) bool {
		if failed == nil {
			s.repaired(w.opts.Repaired, w.began, time.Now().UTC())
		}
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
