package idempotent

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/wire"
)

const (
	pollInterval = 25 * time.Millisecond

	// maxEarlier is how many revisions of earlier attempts are stored. A still
	// earlier attempt has had the time of all later ones to arrive.
	maxEarlier = 32

	// maxAttempts is how often a write is attempted with a higher revision.
	maxAttempts = 10
)

// errPending reports that another executor is executing a request, or was when it
// stopped: check again after pollInterval.
var errPending = errors.New("another server is executing this request")

// tryOnce returns the stored reply of a key, or executes the request.
func (x *Executor) tryOnce(ctx context.Context, r *Request) (Reply, error) {
	stored, err := x.opts.Requests.Get(ctx, r.ID)
	if errors.Is(err, errs.NotFound) {
		return x.begin(ctx, r)
	}
	if err != nil {
		return Reply{}, err
	}
	e, err := decodeEntry(stored)
	if err != nil {
		return Reply{}, err
	}
	switch {
	case !x.opts.Now().Before(e.expires):
		if err := x.deleteEntry(ctx, stored); err != nil {
			return Reply{}, err
		}
		return Reply{}, errPending
	case e.fingerprint != r.Fingerprint:
		return Reply{}, errs.New(errs.Conflict,
			"%s was already used for another request: use a key for one request and its repetitions only",
			wire.HeaderKey)
	case e.reply != nil:
		return e.replay(), nil
	case e.owner != x.instance && x.lease(e).Held(x.opts.Now()):
		return Reply{}, errPending
	default:
		return x.attempt(ctx, r, e, true)
	}
}

// lease is the lease of the process that executes a request. It is not renewed: a slow execution does no harm, as the
// write takes effect once.
func (x *Executor) lease(e *entry) store.Lease {
	return store.Lease{Holder: &e.owner, Renewed: &e.claimedAt, Lasts: x.opts.TakeoverDelay}
}

// begin executes a request whose key is new.
func (x *Executor) begin(ctx context.Context, r *Request) (Reply, error) {
	if err := x.opts.Kept.check(r.Client); err != nil {
		return Reply{}, err
	}
	if r.Check != nil {
		if err := r.Check(ctx); err != nil {
			return Reply{}, err
		}
	}
	e, err := x.reserve(ctx, r)
	if errors.Is(err, errs.Exists) {
		return Reply{}, errPending
	}
	if err != nil {
		return Reply{}, err
	}
	return x.attempt(ctx, r, e, false)
}

// reserve stores a key before the write. Exists when another executor stored it
// first.
func (x *Executor) reserve(ctx context.Context, r *Request) (*entry, error) {
	now := x.opts.Now()
	e := &entry{fingerprint: r.Fingerprint, uuid: r.UUID, owner: x.instance, claimedAt: now,
		expires: now.Add(KeyRetention)}
	if r.UUID == "" {
		e.uuid = object.NewUUID()
	}
	status, err := r.Store.WriteStatus(ctx, e.uuid, r.ID)
	if err != nil {
		return nil, err
	}
	e.target(r, status, now)
	if !status.Exists && r.Op != Save {
		// Every repetition gets this reply too.
		missing := r.Failed(errs.New(errs.NotFound, "%s has no object %q", r.Store.Name(), e.uuid))
		missing.UUID = e.uuid
		e.reply = &missing
	}
	e.stored, err = x.opts.Requests.Save(ctx, e.fields(), r.ID)
	return e, err
}

// target sets the incarnation and the revision that the next attempt applies to.
func (e *entry) target(r *Request, status store.WriteStatus, now time.Time) {
	if e.revision != 0 {
		e.earlier = append(slices.Clone(e.earlier), e.revision)
		e.earlier = e.earlier[max(0, len(e.earlier)-maxEarlier):]
	}
	e.incarnation = string(status.Incarnation)
	if r.Op == Save {
		e.incarnation = ""
	}
	e.revision = max(store.RevisionAt(now), status.Revision+1, e.revision+1)
	if r.Op == Delete && e.revision > store.RevisionAt(now) {
		e.revision += 1 + rand.Uint64N(revisionSpread) //nolint:gosec // it is not secret
	}
}

// revisionSpread is the range, in microseconds, from which the revision of a deletion is chosen while the clock is
// behind the object. The next write without a key then has the revision that follows the object's, and another
// deletion with a key hardly ever the same: a tombstone of the revision of this request is that of its deletion.
// However often a uuid is created and deleted, revisions do not run away from the clock.
const revisionSpread = 1 << 12

// attempt executes a request whose key is stored. repeated says that it may have
// been executed before.
func (x *Executor) attempt(ctx context.Context, r *Request, e *entry, repeated bool) (Reply, error) {
	if e.reply != nil {
		return *e.reply, nil
	}
	for range maxAttempts {
		if repeated {
			done, err := x.recheck(ctx, r, e)
			switch {
			case errors.Is(err, errs.Mismatch):
				return Reply{}, errPending
			case err != nil && !errors.Is(err, store.ErrSuperseded):
				return Reply{}, err
			case err != nil:
				return x.recordReply(ctx, r, e, r.Failed(err))
			case done != nil:
				return x.recordReply(ctx, r, e, *done)
			}
		}
		o, err := r.Perform(ctx, e.uuid, x.idempotencyOf(r, e))
		switch {
		case err == nil:
			return x.recordReply(ctx, r, e, o)
		case errors.Is(err, store.ErrStaleRevision):
			repeated = true
		case !IsFinal(err):
			return Reply{}, err
		default:
			if repeated {
				// An earlier attempt may have arrived since the recheck.
				done, failed := x.findReply(ctx, r, e)
				if failed != nil {
					return Reply{}, failed
				}
				if done != nil {
					return x.recordReply(ctx, r, e, *done)
				}
			}
			return x.recordReply(ctx, r, e, r.Failed(err))
		}
	}
	return Reply{}, errs.New(errs.Unavailable, "concurrent writes keep changing %s %q: try again", r.Store.Name(),
		e.uuid)
}

func (x *Executor) idempotencyOf(r *Request, e *entry) *store.Idempotency {
	i := &store.Idempotency{ID: e.stored.UUID, Revision: e.revision, Earlier: e.earlier,
		Incarnation: []byte(e.incarnation), NewUUID: r.UUID == "", Completed: x.isCompleted}
	if r.Op == Update {
		i.Revision = 0
	}
	return i
}

// isCompleted reports whether a request has its stored reply, or has expired.
func (x *Executor) isCompleted(ctx context.Context, id string) (bool, error) {
	stored, err := x.opts.Requests.Get(ctx, id)
	if errors.Is(err, errs.NotFound) {
		return true, nil
	}
	return err == nil && object.Field(stored.Body, "body") != nil, err
}

// findReply returns the reply of a write that was applied, nil when the record
// does not show it.
func (x *Executor) findReply(ctx context.Context, r *Request, e *entry) (*Reply, error) {
	status, err := r.Store.WriteStatus(ctx, e.uuid, e.stored.UUID)
	if err != nil {
		return nil, err
	}
	return x.replyIfApplied(ctx, r, e, status), nil
}

func (x *Executor) replyIfApplied(ctx context.Context, r *Request, e *entry, status store.WriteStatus) *Reply {
	deleted := r.Op == Delete && !status.Exists && x.idempotencyOf(r, e).IsTombstone(status.Deleted)
	if !status.Applied && !deleted {
		return nil
	}
	o := r.Applied(ctx, status)
	o.Replayed = true
	return &o
}

// recheck returns the reply of an earlier attempt that was applied, or nil when none
// was; then it has claimed the key for the next attempt. A Conflict with
// ErrSuperseded when the record does not show either; Mismatch when another executor
// has claimed the key.
func (x *Executor) recheck(ctx context.Context, r *Request, e *entry) (*Reply, error) {
	status, err := r.Store.WriteStatus(ctx, e.uuid, e.stored.UUID)
	if err != nil {
		return nil, err
	}
	if done := x.replyIfApplied(ctx, r, e, status); done != nil {
		return done, nil
	}
	if x.ambiguous(r, e, status) {
		return nil, store.Superseded(r.Store.Name(), e.uuid)
	}
	next := *e
	x.lease(&next).Claim(x.instance, x.opts.Now())
	next.target(r, status, x.opts.Now())
	if next.stored, err = store.NewWorker(x.opts.Requests).CompareAndSet(ctx, e.stored, next.fields()); err != nil {
		return nil, err
	}
	*e = next
	return nil, nil
}

// ambiguous reports whether a record does not show if the write was applied: the
// object may have been written and deleted.
func (x *Executor) ambiguous(r *Request, e *entry, status store.WriteStatus) bool {
	if r.Op == Save {
		lost := x.opts.TombstoneRetention > 0 && x.opts.Now().Sub(e.claimedAt) >= x.opts.TombstoneRetention
		return !status.Exists && (status.Deleted >= e.revision || status.Deleted == 0 && lost)
	}
	return !status.Exists || string(status.Incarnation) != e.incarnation
}

// recordReply stores the reply and returns it. When another executor has stored one
// first, it returns that one.
func (x *Executor) recordReply(ctx context.Context, r *Request, e *entry, o Reply) (Reply, error) {
	o.UUID = e.uuid
	for {
		next := *e
		next.reply = &o
		_, err := store.NewWorker(x.opts.Requests).CompareAndSet(ctx, e.stored, next.fields())
		if err == nil {
			x.opts.Kept.add(r.Client, len(o.Body))
			return o, nil
		}
		if !errors.Is(err, errs.Mismatch) {
			return Reply{}, err
		}
		now, err := x.opts.Requests.Get(ctx, e.stored.UUID)
		if err != nil {
			return Reply{}, keyExpired(err)
		}
		if e, err = decodeEntry(now); err != nil {
			return Reply{}, err
		}
		switch {
		case e.fingerprint != r.Fingerprint:
			return Reply{}, keyExpired(nil)
		case e.reply != nil:
			return e.replay(), nil
		case o.failed():
			// The executor that claimed the key may succeed.
			return Reply{}, errPending
		}
	}
}

// failed reports whether a reply is a problem.
func (o Reply) failed() bool { return o.Status >= 400 }

func keyExpired(err error) error {
	if err != nil && !errors.Is(err, errs.NotFound) {
		return err
	}
	return errs.New(errs.Conflict,
		"the %s expired while the request was executed: read the object to see whether it was applied", wire.HeaderKey)
}
