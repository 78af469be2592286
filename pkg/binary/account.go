package binary

import (
	"context"
	"errors"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// account is this process's reservation in the record of a caller.
//
// Writing the record for each small upload would cost more than the upload, and uploads of
// one caller would wait for each other. So an account reserves in advance as many bytes as
// its uploads have taken so far, at most a share of the quota. Later uploads take these bytes
// without a write.
//
// held and left are in the record, in the slot at. An upload in a later slot moves held there
// and gives left back. So bytes of an upload in flight count however long it takes, and for a
// whole grace period afterwards. Bytes that were not moved before their slot expired are
// reserved again like new ones.
//
// After a failed write, the state of the record is unknown. The next write then reserves held
// again: it may count twice until the slot ends, but never less than once. The same applies
// to the reservations of a killed process.
type account struct {
	quotas  *quotas
	uuid    string // of the record
	by      string
	limit   int64
	uploads int // in flight; guarded by quotas.mu

	turn  chan struct{} // holds a token while the fields below are not in use
	known bool          // record is the last version, written by this process
	// record is zero if the caller has no record yet.
	record store.Stored
	at     time.Time // zero: nothing is known to be in the record
	since  time.Time // the last slot that held was surely moved to
	held   int64     // by uploads in flight
	left   int64     // reserved in advance
	taken  int64     // by uploads, since the account exists
	tried  time.Time // the last slot that held could not be moved to
}

// advance is the part of a quota that an account reserves in advance at most.
const advance = 64

// quotaTimeout is how long writing a record may take.
const quotaTimeout = 5 * time.Second

func newAccount(q *quotas, uuid, by string, limit int64) *account {
	a := &account{quotas: q, uuid: uuid, by: by, limit: limit, turn: make(chan struct{}, 1)}
	a.turn <- struct{}{}
	return a
}

// begin waits until no other upload uses the account.
func (a *account) begin(ctx context.Context) error {
	select {
	case <-a.turn:
		return nil
	case <-ctx.Done():
		return errs.Wrap(ctx.Err(), errs.Canceled, "the upload ended before it was complete")
	}
}

func (a *account) end() { a.turn <- struct{}{} }

// take reserves bytes for an upload in flight. In a later slot it moves held there.
func (a *account) take(ctx context.Context, bytes int64) error {
	if err := a.begin(ctx); err != nil {
		return err
	}
	defer a.end()
	now := slotAt(a.quotas.now(), slotLength(a.quotas.grace))
	current := a.at.Equal(now)
	switch {
	case current && bytes <= a.left:
		a.left -= bytes
		a.held += bytes
		a.taken += bytes
		return nil
	case bytes > 0:
		return a.write(ctx, now, bytes)
	case a.held == 0 || a.tried.Equal(now):
		return nil
	}
	// held still counts in its old slot for a while: an upload does not fail because the
	// store is briefly unavailable.
	a.tried = now
	if err := a.write(ctx, now, 0); err != nil && errs.KindOf(err) != errs.Unavailable {
		return err
	}
	return nil
}

// renew moves held to the current slot.
func (a *account) renew(ctx context.Context) error {
	if err := a.begin(ctx); err != nil {
		return err
	}
	defer a.end()
	if now := slotAt(a.quotas.now(), slotLength(a.quotas.grace)); !a.at.Equal(now) {
		return a.write(ctx, now, 0)
	}
	return nil
}

// settle ends an upload that has taken bytes. Unless they are kept, it gives them back: to
// this process if they are few, otherwise to all processes.
func (a *account) settle(ctx context.Context, bytes int64, kept bool) {
	<-a.turn
	defer a.end()
	a.held -= bytes
	if kept {
		return
	}
	a.taken -= bytes
	if a.at.IsZero() {
		return
	}
	a.left += bytes
	if a.left > a.limit/advance {
		// If the write fails, the bytes count until their slot ends.
		_ = a.write(context.WithoutCancel(ctx), slotAt(a.quotas.now(), slotLength(a.quotas.grace)), 0)
	}
}

// write writes the record with bytes more for uploads in flight, in the slot of now.
// Limited if they would exceed the quota.
func (a *account) write(ctx context.Context, now time.Time, bytes int64) error {
	// The state of the record must be known even if the client disconnects.
	ctx, cancel := context.WithTimeout(internal(context.WithoutCancel(ctx)), quotaTimeout)
	defer cancel()
	for retry := backoff.New(time.Millisecond, 50*time.Millisecond); ; {
		err := a.writeOnce(ctx, now, bytes)
		if !errors.Is(err, errs.Mismatch) {
			return err
		}
		a.known = false
		if retry.Wait(ctx) != nil {
			return errs.Wrap(err, errs.Unavailable, "other processes keep changing the record of your quota: try again")
		}
	}
}

func (a *account) writeOnce(ctx context.Context, now time.Time, bytes int64) error {
	length := slotLength(a.quotas.grace)
	if err := a.read(ctx); err != nil {
		return err
	}
	all, err := decodeSlots(a.record, now, length)
	if err != nil {
		return err
	}
	if !a.at.IsZero() {
		all = all.add(a.at, -a.held-a.left)
	}
	held := a.held + bytes
	left := a.limit - all.sum() - held
	// Other uploads may have reserved the bytes since held expired.
	expired := a.held > 0 && a.since.Before(oldestSlot(now, length))
	if (bytes > 0 || expired) && left < 0 {
		return a.quotas.errQuota(a.by, a.limit, all.wait(a.limit-held, a.quotas.now(), length))
	}
	if bytes == 0 {
		left = 0
	}
	left = max(0, min(left, a.taken, a.limit/advance))
	record, err := a.save(ctx, all.add(now, held+left).fields(now, length))
	if errors.Is(err, errs.Mismatch) {
		return err
	}
	if err != nil {
		a.known, a.at, a.left = false, time.Time{}, 0
		return err
	}
	a.known, a.record = true, record
	a.at, a.since, a.held, a.left = now, now, held, left
	a.taken += bytes
	return nil
}

// read reads the record unless it is known.
func (a *account) read(ctx context.Context) error {
	if a.known {
		return nil
	}
	record, err := a.quotas.store.Get(ctx, a.uuid)
	if errors.Is(err, errs.NotFound) {
		record, err = store.Stored{}, nil
	}
	if err != nil {
		return err
	}
	a.known, a.record = true, record
	return nil
}

// save writes the record if it is still the one that was read, else Mismatch.
func (a *account) save(ctx context.Context, fields object.Object) (store.Stored, error) {
	if a.record.UUID == "" {
		record, err := a.quotas.store.Save(ctx, fields, a.uuid)
		return record, superseded(err)
	}
	record, err := a.quotas.store.Update(ctx, fields, store.UpdateOptions{UUID: a.uuid, If: a.record.Revision})
	return record, superseded(err)
}
