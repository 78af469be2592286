package natsapi

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/natsapi/wire"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

const (
	pollInterval = 25 * time.Millisecond

	// maxEarlier is how many revisions of earlier attempts are stored. A still
	// earlier attempt has had the time of all later ones to arrive.
	maxEarlier = 32

	// maxStoredReply is the largest reply that is stored, and so the largest sent.
	maxStoredReply = 256 << 10

	// maxAttempts is how often a write is attempted with a higher revision.
	maxAttempts = 10
)

// idempotent handles a request with a key.
func (v *service) idempotent(ctx context.Context, r *request) (reply, error) {
	s, id := v.server, keyID(v.store.Name(), r.key)
	unlock, err := s.locks.Lock(ctx, id)
	if err != nil {
		return reply{}, err
	}
	defer unlock()
	for {
		o, err := v.tryOnce(ctx, r, id)
		if !errors.Is(err, errPending) {
			return o, err
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return reply{}, err
		}
	}
}

// errPending reports that another server is executing a request, or was when it
// stopped: check again after pollInterval.
var errPending = errors.New("another server is executing this request")

// tryOnce returns the stored reply of a key, or executes the request.
func (v *service) tryOnce(ctx context.Context, r *request, id string) (reply, error) {
	s := v.server
	stored, err := s.opts.Requests.Get(ctx, id)
	if errors.Is(err, errs.NotFound) {
		e, err := v.reserve(ctx, r, id)
		if errors.Is(err, errs.Exists) {
			return reply{}, errPending
		}
		if err != nil {
			return reply{}, err
		}
		return v.attempt(ctx, r, e, false)
	}
	if err != nil {
		return reply{}, err
	}
	e, err := decodeEntry(stored)
	if err != nil {
		return reply{}, err
	}
	switch {
	case !s.opts.Now().Before(e.expires):
		if err := s.deleteEntry(ctx, stored); err != nil {
			return reply{}, err
		}
		return reply{}, errPending
	case e.fingerprint != r.fingerprint():
		return reply{}, errs.New(errs.Conflict, "%s was already used for another request: use a key for one request and its repetitions only", wire.HeaderKey)
	case e.reply != nil:
		return *e.reply, nil
	case e.owner != s.instance && s.opts.Now().Sub(e.claimedAt).Abs() < s.opts.TakeoverDelay: // later than now: the clock was set back
		return reply{}, errPending
	default:
		return v.attempt(ctx, r, e, true)
	}
}

// reserve stores a key before the write. Exists when another server stored it
// first.
func (v *service) reserve(ctx context.Context, r *request, id string) (*entry, error) {
	s := v.server
	now := s.opts.Now()
	e := &entry{fingerprint: r.fingerprint(), uuid: r.UUID, owner: s.instance, claimedAt: now, expires: now.Add(KeyRetention)}
	if r.UUID == "" {
		e.uuid = object.NewUUID()
	}
	status, err := v.store.WriteStatus(ctx, e.uuid, id)
	if err != nil {
		return nil, err
	}
	e.target(r, status, now)
	if !status.Exists && r.op != wire.Save {
		// Every repetition gets this reply too.
		missing := problemReply(errs.New(errs.NotFound, "%s has no object %q", v.store.Name(), e.uuid), r.id)
		e.reply = &missing
	}
	e.stored, err = s.opts.Requests.Save(ctx, e.fields(), id)
	return e, err
}

// target sets the incarnation and the revision that the next attempt applies to.
func (e *entry) target(r *request, status store.WriteStatus, now time.Time) {
	if e.revision != 0 {
		e.earlier = append(slices.Clone(e.earlier), e.revision)
		e.earlier = e.earlier[max(0, len(e.earlier)-maxEarlier):]
	}
	e.incarnation = string(status.Incarnation)
	if r.op == wire.Save {
		e.incarnation = ""
	}
	e.revision = max(store.RevisionAt(now), status.Revision+1, e.revision+1)
	if r.op == wire.Delete && e.revision > store.RevisionAt(now) {
		e.revision += 1 + rand.Uint64N(revisionSpread) //nolint:gosec // it is no secret
	}
}

// revisionSpread is the range, in microseconds, from which the revision of a deletion is chosen while the clock is
// behind the object. The next write without a key then has the revision that follows the object's, and another
// deletion with a key hardly ever the same: a tombstone of the revision of this request is that of its deletion.
// However often a uuid is created and deleted, revisions do not run away from the clock.
const revisionSpread = 1 << 12

// attempt executes a request whose key is stored. repeated says that it may have
// been executed before.
func (v *service) attempt(ctx context.Context, r *request, e *entry, repeated bool) (reply, error) {
	if e.reply != nil {
		return *e.reply, nil
	}
	for range maxAttempts {
		if repeated {
			done, err := v.recheck(ctx, r, e)
			switch {
			case errors.Is(err, errs.Mismatch):
				return reply{}, errPending
			case err != nil && !errors.Is(err, store.ErrSuperseded):
				return reply{}, err
			case err != nil:
				return v.recordReply(ctx, r, e, problemReply(err, r.id))
			case done != nil:
				return v.recordReply(ctx, r, e, reply{body: done})
			}
		}
		body, err := v.perform(ctx, v.withUUID(r, e), v.idempotencyOf(r, e), min(maxStoredReply, v.maxReply()))
		switch {
		case err == nil:
			return v.recordReply(ctx, r, e, reply{body: body})
		case errors.Is(err, store.ErrStaleRevision):
			repeated = true
		case !isFinal(err):
			return reply{}, err
		default:
			if repeated {
				// An earlier attempt may have arrived since the recheck.
				body, failed := v.findReply(ctx, r, e)
				if failed != nil {
					return reply{}, failed
				}
				if body != nil {
					return v.recordReply(ctx, r, e, reply{body: body})
				}
			}
			return v.recordReply(ctx, r, e, problemReply(err, r.id))
		}
	}
	return reply{}, errs.New(errs.Unavailable, "concurrent writes keep changing %s %q: try again", v.store.Name(), e.uuid)
}

// withUUID returns the request with the uuid of its entry.
func (v *service) withUUID(r *request, e *entry) *request {
	chosen := *r
	chosen.UUID = e.uuid
	return &chosen
}

func (v *service) idempotencyOf(r *request, e *entry) *store.Idempotency {
	i := &store.Idempotency{ID: e.stored.UUID, Revision: e.revision, Earlier: e.earlier, Incarnation: []byte(e.incarnation), Completed: v.server.isCompleted}
	if r.op == wire.Update {
		i.Revision = 0
	}
	return i
}

// isCompleted reports whether a request has its stored reply, or has expired.
func (s *Server) isCompleted(ctx context.Context, id string) (bool, error) {
	stored, err := s.opts.Requests.Get(ctx, id)
	if errors.Is(err, errs.NotFound) {
		return true, nil
	}
	return err == nil && object.Field(stored.Body, "body") != nil, err
}

// findReply returns the reply of a write that was applied, nil when the record
// does not show it.
func (v *service) findReply(ctx context.Context, r *request, e *entry) ([]byte, error) {
	status, err := v.store.WriteStatus(ctx, e.uuid, e.stored.UUID)
	if err != nil {
		return nil, err
	}
	return v.replyIfApplied(ctx, r, e, status), nil
}

func (v *service) replyIfApplied(ctx context.Context, r *request, e *entry, status store.WriteStatus) []byte {
	switch {
	case status.Applied:
		return encodeObject(v.store.Reply(r.call(ctx, nil), status), min(maxStoredReply, v.maxReply()))
	case r.op == wire.Delete && !status.Exists && v.idempotencyOf(r, e).IsTombstone(status.Revision):
		return []byte("{}")
	default:
		return nil
	}
}

// recheck returns the reply of an earlier attempt that was applied, or nil when none
// was; then it has claimed the key for the next attempt. A Conflict with
// ErrSuperseded when the record does not show either; Mismatch when another server
// has claimed the key.
func (v *service) recheck(ctx context.Context, r *request, e *entry) (body []byte, err error) {
	status, err := v.store.WriteStatus(ctx, e.uuid, e.stored.UUID)
	if err != nil {
		return nil, err
	}
	if body := v.replyIfApplied(ctx, r, e, status); body != nil {
		return body, nil
	}
	if v.ambiguous(r, e, status) {
		return nil, store.Superseded(v.store.Name(), e.uuid)
	}
	next := *e
	next.owner, next.claimedAt = v.server.instance, v.server.opts.Now()
	next.target(r, status, v.server.opts.Now())
	if next.stored, err = store.NewWorker(v.server.opts.Requests).CompareAndSet(ctx, e.stored, next.fields()); err != nil {
		return nil, err
	}
	*e = next
	return nil, nil
}

// ambiguous reports whether a record does not show if the write was applied: the
// object may have been written and deleted.
func (v *service) ambiguous(r *request, e *entry, status store.WriteStatus) bool {
	if r.op == wire.Save {
		lost := v.server.opts.TombstoneRetention > 0 && v.server.opts.Now().Sub(e.claimedAt) >= v.server.opts.TombstoneRetention
		return !status.Exists && (status.Revision >= e.revision || status.Revision == 0 && lost)
	}
	return !status.Exists || string(status.Incarnation) != e.incarnation
}

// recordReply stores the reply and returns it. When another server has stored one
// first, it returns that one.
func (v *service) recordReply(ctx context.Context, r *request, e *entry, o reply) (reply, error) {
	for {
		next := *e
		next.reply = &o
		_, err := store.NewWorker(v.server.opts.Requests).CompareAndSet(ctx, e.stored, next.fields())
		if err == nil {
			return o, nil
		}
		if !errors.Is(err, errs.Mismatch) {
			return reply{}, err
		}
		now, err := v.server.opts.Requests.Get(ctx, e.stored.UUID)
		if err != nil {
			return reply{}, keyExpired(err)
		}
		if e, err = decodeEntry(now); err != nil {
			return reply{}, err
		}
		switch {
		case e.fingerprint != r.fingerprint():
			return reply{}, keyExpired(nil)
		case e.reply != nil:
			return *e.reply, nil
		case o.status != 0:
			// The server that claimed the key may succeed.
			return reply{}, errPending
		}
	}
}

func keyExpired(err error) error {
	if err != nil && !errors.Is(err, errs.NotFound) {
		return err
	}
	return errs.New(errs.Conflict, "the %s expired while the request was executed: read the object to see whether it was applied", wire.HeaderKey)
}
