package store

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// A claim reserves a unique value for an object. It is a record beside those of the objects, named by a hash of the
// value, with the uuid of the owner. A driver writes one record atomically, so a claim can be wrong: its owner may not
// have the value yet, or may no longer have it. docs/unique.md shows that the value still belongs to one object at
// most. The proof uses these rules:
//
//   - A write that gives an object a value first writes the claim, with a new version of it, and the revision that the
//     object will have. An object that has the value already claims nothing.
//   - A claim is taken from its owner only after the owner was read without the value, at the revision of the claim or
//     a later one. Then the write that the claim was made for has failed or will fail: a driver only writes revisions
//     above that of the record. An owner at a lower revision is fenced: written unchanged, at the claim's revision.
//   - The new owner writes the claim only if the claim still has the version that was read before the old owner was.
//   - A claim is released after its value was removed from its owner. The claim must still have the version that was
//     read before, and the owner must be at the revision of the claim or a later one.

// Claims keep the values of unique fields unique. Every write of an object that changes such a value passes through
// them.
type Claims struct {
	*core
	records     *claimRecords
	unique      []constraint
	indexing    *indexing
	locker      Locker
	fenceAfter  time.Duration
	collectWait time.Duration
	refuses     bool // a write that gives an object a value, until the claims are complete
}

// newClaims returns the claims of a store, nil without unique fields.
func newClaims(o *Options, c *core, records *claimRecords, x *indexing) *Claims {
	if records == nil || len(o.Unique) == 0 {
		return nil
	}
	return &Claims{
		core: c, records: records, unique: constraintsOf(o.Unique), indexing: x, locker: o.Locker,
		fenceAfter: cmp.Or(o.FenceAfter, fenceAfter), collectWait: cmp.Or(o.CollectWait, collectWait),
		refuses: o.CompleteClaims,
	}
}

// reservation is the claims that a write has made, and those that it replaces.
type reservation struct {
	reserved []claim // by this write: nobody, or another object, had them before
	replaced []claim // as they were before the write
	unlocks  []func()
}

// reserve makes the claims of a write. The error is Taken, with all fields that have a value of another object.
func (c *Claims) reserve(ctx context.Context, base driver.Record, out *driver.Write) (*reservation, error) {
	if c == nil {
		return nil, nil
	}
	r := &reservation{}
	var gained []*constraint
	ids := map[*constraint]string{}
	for i := range c.unique {
		on := &c.unique[i]
		before, after := on.id(base.Body), on.id(out.Body)
		if before == after {
			continue
		}
		if before != "" {
			held, err := c.records.get(ctx, before)
			if err != nil {
				return nil, err
			}
			if held.content.Owner == out.UUID {
				r.replaced = append(r.replaced, held)
			}
		}
		if after != "" {
			ids[on] = after
			gained = append(gained, on)
		}
	}
	if len(gained) == 0 {
		return r, nil
	}
	if err := c.awaitComplete(ctx); err != nil {
		return nil, err
	}
	if err := r.lock(ctx, c.locker, ids); err != nil {
		return nil, err
	}
	var taken []*constraint
	for _, on := range gained {
		made, fresh, err := c.acquire(ctx, on, ids[on], out.UUID, out.Revision)
		switch {
		case errors.Is(err, errHeld):
			taken = append(taken, on)
		case err != nil:
			c.cancel(ctx, r)
			return nil, err
		case fresh:
			r.reserved = append(r.reserved, made)
		}
	}
	if len(taken) > 0 {
		c.cancel(ctx, r)
		return nil, c.errTaken(taken)
	}
	return r, nil
}

// lock has the writers of this process claim a value one after another. It is taken after the lock of the object, and
// in the order of ids.
func (r *reservation) lock(ctx context.Context, locker Locker, ids map[*constraint]string) error {
	var all []string
	for _, id := range ids {
		all = append(all, id)
	}
	slices.Sort(all)
	for _, id := range all {
		unlock, err := locker.Lock(ctx, "claim "+id)
		if err != nil {
			r.unlock()
			return err
		}
		r.unlocks = append(r.unlocks, unlock)
	}
	return nil
}

func (r *reservation) unlock() {
	for _, unlock := range r.unlocks {
		unlock()
	}
	r.unlocks = nil
}

// errHeld says that the owner of a claim has its value.
var errHeld = errors.New("held")

// acquire makes a claim for the write of an object at a revision. fresh says that the object did not have it before.
func (c *Claims) acquire(
	ctx context.Context, on *constraint, id, uuid string, revision uint64,
) (made claim, fresh bool, err error) {
	current := claim{id: id} // mostly nobody has the value, so nothing is read first
	for attempt := range maxAttempts {
		if attempt > 0 {
			if current, err = c.records.get(ctx, id); err != nil {
				return claim{}, false, err
			}
		}
		content := claimContent{Unique: on.name, Owner: uuid, Revision: revision}
		switch owner := current.content.Owner; owner {
		case "":
		case uuid: // of another write, perhaps one in progress, which the claim still is for
			content.Revision = max(revision, current.content.Revision)
		default:
			if err := c.awaitRelease(ctx, on, current); err != nil {
				return claim{}, false, err
			}
		}
		made, err = c.records.put(ctx, c.now(), current, content)
		if !errors.Is(err, errs.Mismatch) {
			return made, current.content.Owner != uuid, err
		}
	}
	return claim{}, false, c.contended(uuid)
}

// checkFree returns the error that a write would have because of values that other objects have.
func (c *Claims) checkFree(ctx context.Context, body []byte, uuid string) error {
	if c == nil {
		return nil
	}
	var taken []*constraint
	for i := range c.unique {
		on := &c.unique[i]
		id := on.id(body)
		if id == "" {
			continue
		}
		held, err := c.records.get(ctx, id)
		if err != nil {
			return err
		}
		if held.content.Owner == "" || held.content.Owner == uuid {
			continue
		}
		record, _, err := c.driver.Get(ctx, held.content.Owner)
		if err != nil {
			return err
		}
		if on.id(record.Body) == id {
			taken = append(taken, on)
		}
	}
	if len(taken) > 0 {
		return c.errTaken(taken)
	}
	return nil
}

// fenceAfter is FenceAfter by default, and fencePoll how often the owner of a claim is read in this time.
const (
	fenceAfter = time.Second
	fencePoll  = 20 * time.Millisecond
)

// awaitRelease returns once no write that a claim was made for can give its owner the value. errTakenBy when the owner
// has it.
func (c *Claims) awaitRelease(ctx context.Context, on *constraint, held claim) error {
	owner := held.content.Owner
	for polls := c.fencePolls(held); ; polls-- {
		record, _, err := c.driver.Get(ctx, owner)
		if err != nil {
			return err
		}
		switch {
		case on.id(record.Body) == held.id:
			return errHeld
		case record.Revision >= held.content.Revision:
			return nil
		case polls > 0:
			if err := backoff.Sleep(ctx, fencePoll); err != nil {
				return err
			}
			continue
		}
		record.UUID = owner
		if err := c.fence(ctx, record, held.content.Revision); err == nil || !errors.Is(err, errs.Mismatch) {
			return err
		}
		if polls < -maxAttempts {
			return c.contended(owner)
		}
	}
}

// fencePolls is how often the owner of a claim is read before it is fenced: the write may be in progress.
func (c *Claims) fencePolls(held claim) int {
	wait := c.fenceAfter
	if age := c.now().UnixMicro() - int64(held.version); age < 0 || age > wait.Microseconds() { //nolint:gosec // a time
		return 0
	}
	return int(wait / fencePoll)
}

// fence has every write fail that was to give an object, as it was read, a revision up to this one. The object does not
// change, and there is no event; of an object that does not exist a tombstone is written.
func (c *Claims) fence(ctx context.Context, current driver.Record, revision uint64) error {
	w := driver.Write{UUID: current.UUID, Revision: max(nextRevision(c.now(), current.Revision), revision)}
	if current.Body != nil {
		w.IfRevision, w.Body, w.Keys = current.Revision, current.Body, c.indexing.keys(current.Body)
	} else {
		w.Owner = fencedOwner(current)
	}
	return c.put(ctx, w)
}

// finish ends the reservation of a write that returned an error or nil, and releases the claims that it no longer
// needs.
func (c *Claims) finish(ctx context.Context, r *reservation, revision uint64, err error) {
	if r == nil {
		return
	}
	switch {
	case err == nil:
		replaced := r.replaced
		r.replaced = nil
		for _, held := range replaced {
			if revision >= held.content.Revision { // otherwise another write that it was made for may still succeed
				c.releaseClaim(ctx, held)
			}
		}
		r.unlock()
	case errors.Is(err, errs.Mismatch):
		c.cancel(ctx, r)
	default: // the write may have been made, or be made later
		r.unlock()
	}
}

// cancel releases the claims of a write that was not made.
func (c *Claims) cancel(ctx context.Context, r *reservation) {
	for _, made := range r.reserved {
		c.releaseClaim(ctx, made)
	}
	r.unlock()
}

// releaseClaim releases a claim if it is as it was read. One that stays is taken over by the next object that has the
// value, and reported by a verification.
func (c *Claims) releaseClaim(ctx context.Context, held claim) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeGrace)
	defer cancel()
	_, err := c.records.put(ctx, c.now(), held, claimContent{})
	if err != nil && !errors.Is(err, errs.Mismatch) {
		c.log.DebugContext(ctx, "a claim of a unique value is not released", "store", c.name, "error", err)
	}
}
