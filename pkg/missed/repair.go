package missed

import (
	"context"
	"slices"
	"strings"
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

// outcome is how a repair has ended.
type outcome struct {
	repair int // its index
	err    error
}

// repaired returns the consumers that this process can repair.
func (w *Watch) repaired() []string { return consumersOf(w.opts.Repairs) }

func consumersOf(repairs []Repair) (all []string) {
	for _, r := range repairs {
		all = append(all, r.Consumers...)
	}
	return all
}

// due returns the repairs of consumers that have missed events, but for those that this process makes.
func (w *Watch) due() (all []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, r := range w.opts.Repairs {
		if w.making[i].IsZero() && w.current.open(r.Consumers) {
			all = append(all, i)
		}
	}
	return all
}

// startRepairs starts the repairs that are due, each beside the others. Two processes may repair at once when one
// stalls for longer than its lease: that does no harm.
func (w *Watch) startRepairs(ctx context.Context) {
	now, due := time.Now().UTC(), w.due()
	if len(due) == 0 || now.Before(w.nextTry) {
		return
	}
	if len(w.making) == 0 {
		claimed := false
		err := w.change(ctx, func(s *state) bool {
			claimed = s.claim(w.instance, w.repaired(), now)
			return claimed
		})
		if err != nil || !claimed {
			return // the next poll tries again
		}
	}
	for _, i := range due {
		r := w.opts.Repairs[i]
		w.making[i] = now
		w.log.Info("repairing what the events that were missed would have changed", "listeners", r.Consumers)
		loss := w.loss(r.Consumers)
		go func() { w.done <- outcome{i, r.Do(ctx, loss)} }()
	}
}

// loss identifies the missed events of consumers that are still to be repaired.
func (w *Watch) loss(consumers []string) string {
	var all []string
	for _, s := range w.Missed() {
		if s.Open() && slices.Contains(consumers, s.Consumer) {
			all = append(all, s.Consumer+" until "+s.Until.UTC().Format(time.RFC3339Nano))
		}
	}
	return strings.Join(all, ", ")
}

// endRepair records the end of a repair. One that has failed is repeated later, and keeps no other from being made.
func (w *Watch) endRepair(ctx context.Context, o outcome) {
	began := w.making[o.repair]
	delete(w.making, o.repair)
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
		if o.err == nil {
			s.repaired(w.opts.Repairs[o.repair].Consumers, began, time.Now().UTC())
		}
		released := len(w.making) == 0 && s.release(w.instance)
		return released || o.err == nil
	})
}

// retry changes the state.
func (w *Watch) retry(ctx context.Context, change func(*state) bool) {
	if err := w.change(ctx, change); err != nil && ctx.Err() == nil {
		// The lease ends, and the repair is made again.
		w.log.Warn("the positions of listeners can't be stored", "error", err)
	}
}
