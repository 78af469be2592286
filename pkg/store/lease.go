package store

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Lease is a right that one holder has at a time. It is kept in fields of a record that is written conditionally, so
// only one of several concurrent claims succeeds. A Lease is a view of these fields.
//
//	none ── Claim ──► held ──┬─ Renew, before it ends ──► held
//	                         ├─ Release ──► none
//	                         └─ not renewed for as long as it lasts ──► claimed by another: lost
//
// A holder that has stalled continues until it notices. So its work must be idempotent or fenced. A fenced write
// changes the record of the lease in the change in which Renew reports true, or follows such a change and can be
// reverted.
//
// Each holder has its own clock. A lease must last longer than the interval of renewals plus the difference of two
// clocks. A time that is ahead by more than the lease lasts is from a clock that was set back: nobody waits for it.
type Lease struct {
	Holder *string // unique, of a process or of what it does; "": nobody has the lease

	// One of these says how long the lease lasts: since when it was Renewed, Until when, or by a Beat that each renewal
	// increments. With a Beat, no clocks are compared: a waiting process observes it, and Ended reports the result.
	Renewed, Until *time.Time
	Beat           *uint64
	Lasts          time.Duration // since it was renewed

	// Ended reports that the holder has ended, if the times alone do not show it; nil: they do.
	Ended func() bool
}

// begin has the lease last from now on.
func (l Lease) begin(now time.Time) {
	switch {
	case l.Beat != nil:
		*l.Beat++
	case l.Until != nil:
		*l.Until = now.Add(l.Lasts)
	default:
		*l.Renewed = now
	}
}

// end empties the fields of the lease.
func (l Lease) end() {
	*l.Holder = ""
	switch {
	case l.Beat != nil:
		*l.Beat = 0
	case l.Until != nil:
		*l.Until = time.Time{}
	default:
		*l.Renewed = time.Time{}
	}
}

// Left is how long it takes until the lease ends unless it is renewed; 0 if nobody has it.
func (l Lease) Left(now time.Time) time.Duration {
	if *l.Holder == "" || l.Ended != nil && l.Ended() {
		return 0
	}
	since := time.Duration(0)
	switch {
	case l.Until != nil:
		since = now.Sub(l.Until.Add(-l.Lasts))
	case l.Renewed != nil:
		since = now.Sub(*l.Renewed)
	}
	if since.Abs() >= l.Lasts {
		return 0
	}
	return l.Lasts - since
}

// Held reports whether somebody has the lease.
func (l Lease) Held(now time.Time) bool { return l.Left(now) > 0 }

// Claim takes the lease unless another holder has it, and reports whether it did.
func (l Lease) Claim(holder string, now time.Time) bool {
	if *l.Holder != holder && l.Held(now) {
		return false
	}
	*l.Holder = holder
	l.begin(now)
	return true
}

// Renew extends the lease of a holder, and reports whether it has it: also one that has ended, if nobody has claimed it
// since.
func (l Lease) Renew(holder string, now time.Time) bool {
	if *l.Holder != holder {
		return false
	}
	l.begin(now)
	return true
}

// Release ends the lease of a holder, and reports whether it had it.
func (l Lease) Release(holder string) bool {
	if *l.Holder != holder {
		return false
	}
	l.end()
	return true
}

// ErrLeaseLost is the cause of what ends because another holder has the lease.
var ErrLeaseLost = errors.New("store: another holder has the lease")

// KeepLease calls renew every so often until stop is called, which waits for the last call. The context that it returns
// ends with the first error of renew that is ErrLeaseLost; renew is called on, since it may also say that its process
// runs. After other errors the next call tries again: what is done is fenced.
func KeepLease(ctx context.Context, every time.Duration,
	renew func(ctx context.Context) error) (kept context.Context, stop func()) {
	kept, end := context.WithCancelCause(ctx)
	renewing, stopRenewing := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-renewing.Done():
				return
			case <-tick.C:
			}
			if err := renew(renewing); errors.Is(err, ErrLeaseLost) {
				end(err)
			}
		}
	})
	return kept, func() {
		stopRenewing()
		running.Wait()
		end(nil)
	}
}
