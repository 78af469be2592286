package natsapi

import (
	"context"
	"errors"
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

	// mostEarlier is how many revisions of earlier attempts are known. One from
	// before them has had all the time of the later ones to arrive.
	maxEarlier = 32

	// maxKept is the largest answer that is kept, and so the largest that is sent.
	maxStoredReply = 256 << 10

	// maxAttempts is how often a deletion takes a higher revision.
	maxAttempts = 10
)

// once answers a request that has a key.
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

// errElsewhere says that another server is at work on a request, or was when it
// ended: look again a little later.
var errPending = errors.New("another belfry is at work on this request")

// lookUp answers with what is known of a key, or makes the request.
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
		return reply{}, errs.New(errs.Conflict, "%s was used for another request already: a key is for one request and its repetitions", wire.HeaderKey)
	case e.reply != nil:
		return *e.reply, nil
	case e.owner != s.instance && s.opts.Now().Sub(e.claimedAt) < s.opts.TakeoverDelay:
		return reply{}, errPending
	default:
		return v.attempt(ctx, r, e, true)
	}
}

// reserve notes a key before anything is done. Exists when somebody else was
// quicker.
func (v *service) reserve(ctx context.Context, r *request, id string) (*entry, error) {
	s := v.server
	now := s.opts.Now()
	e := &entry{fingerprint: r.fingerprint(), uuid: r.UUID, owner: s.instance, claimedAt: now, expires: now.Add(KeyRetention)}
	if r.UUID == "" {
		e.uuid = object.NewUUID()
	}
	seen, err := v.store.WriteStatus(ctx, e.uuid, id)
	if err != nil {
		return nil, err
	}
	e.target(r, seen, now)
	if !seen.Exists && r.op != wire.Save {
		// There is nothing to do, ever: that is the answer.
		missing := problemReply(errs.New(errs.NotFound, "%s has no object %q", v.store.Name(), e.uuid), r.id)
		e.reply = &missing
	}
	e.stored, err = s.opts.Requests.Save(ctx, e.fields(), id)
	return e, err
}

// aim takes what a look has found as what the write is about.
func (e *entry) target(r *request, seen store.WriteStatus, now time.Time) {
	if e.revision != 0 {
		e.earlier = append(slices.Clone(e.earlier), e.revision)
		e.earlier = e.earlier[max(0, len(e.earlier)-maxEarlier):]
	}
	e.incarnation = string(seen.Incarnation)
	if r.op == wire.Save {
		e.incarnation = ""
	}
	e.revision = max(store.RevisionAt(now), seen.Revision+1, e.revision+1)
}

// attempt makes a request whose key is noted. again says that it may have been
// made before.
func (v *service) attempt(ctx context.Context, r *request, e *entry, again bool) (reply, error) {
	if e.reply != nil {
		return *e.reply, nil
	}
	for range maxAttempts {
		if again {
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
			again = true
		case !isFinal(err):
			return reply{}, err
		default:
			if again {
				// What was thought lost may have arrived meanwhile.
				body, looked := v.findReply(ctx, r, e)
				if looked != nil {
					return reply{}, looked
				}
				if body != nil {
					return v.recordReply(ctx, r, e, reply{body: body})
				}
			}
			return v.recordReply(ctx, r, e, problemReply(err, r.id))
		}
	}
	return reply{}, errs.New(errs.Unavailable, "others keep changing %s %q: try again", v.store.Name(), e.uuid)
}

// about is the request with the uuid that was chosen for it.
func (v *service) withUUID(r *request, e *entry) *request {
	chosen := *r
	chosen.UUID = e.uuid
	return &chosen
}

func (v *service) idempotencyOf(r *request, e *entry) *store.Idempotency {
	once := &store.Idempotency{ID: e.stored.UUID, Revision: e.revision, Earlier: e.earlier, Incarnation: []byte(e.incarnation), Completed: v.server.isCompleted}
	if r.op == wire.Update {
		once.Revision = 0
	}
	return once
}

// answered reports whether a request has its answer, or nobody knows it any more.
func (s *Server) isCompleted(ctx context.Context, id string) (bool, error) {
	stored, err := s.opts.Requests.Get(ctx, id)
	if errors.Is(err, errs.NotFound) {
		return true, nil
	}
	return err == nil && object.Field(stored.Body, "body") != nil, err
}

// done looks for what the write would have left, and returns the answer, or nil
// when it is not there.
func (v *service) findReply(ctx context.Context, r *request, e *entry) ([]byte, error) {
	seen, err := v.store.WriteStatus(ctx, e.uuid, e.stored.UUID)
	if err != nil {
		return nil, err
	}
	return v.replyIfApplied(r, e, seen), nil
}

func (v *service) replyIfApplied(r *request, e *entry, seen store.WriteStatus) []byte {
	switch {
	case seen.Applied:
		return encodeObject(seen.Stored, min(maxStoredReply, v.maxReply()))
	case r.op == wire.Delete && !seen.Exists && v.idempotencyOf(r, e).IsTombstone(seen.Revision):
		return []byte("{}")
	default:
		return nil
	}
}

// lookAgain says what became of earlier attempts: the answer of one that took
// place, or nil when none did, and then the key is noted anew for the next one.
// A Conflict with ErrOvertaken when that can't be told; Mismatch when somebody else
// has taken the key over.
func (v *service) recheck(ctx context.Context, r *request, e *entry) (body []byte, err error) {
	seen, err := v.store.WriteStatus(ctx, e.uuid, e.stored.UUID)
	if err != nil {
		return nil, err
	}
	if body := v.replyIfApplied(r, e, seen); body != nil {
		return body, nil
	}
	if v.ambiguous(r, e, seen) {
		return nil, store.Superseded(v.store.Name(), e.uuid)
	}
	next := *e
	next.owner, next.claimedAt = v.server.instance, v.server.opts.Now()
	next.target(r, seen, v.server.opts.Now())
	if next.stored, err = store.NewWorker(v.server.opts.Requests).CompareAndSet(ctx, e.stored, next.fields()); err != nil {
		return nil, err
	}
	*e = next
	return nil, nil
}

// untold reports whether a record leaves open whether the write took place: the
// object may have been there, and gone again.
func (v *service) ambiguous(r *request, e *entry, seen store.WriteStatus) bool {
	if r.op == wire.Save {
		lost := v.server.opts.TombstoneRetention > 0 && v.server.opts.Now().Sub(e.claimedAt) >= v.server.opts.TombstoneRetention
		return !seen.Exists && (seen.Revision >= e.revision || seen.Revision == 0 && lost)
	}
	return !seen.Exists || string(seen.Incarnation) != e.incarnation
}

// settle notes the answer, and returns it; where somebody else was quicker, theirs.
func (v *service) recordReply(ctx context.Context, r *request, e *entry, o reply) (reply, error) {
	for {
		answer := *e
		answer.reply = &o
		_, err := store.NewWorker(v.server.opts.Requests).CompareAndSet(ctx, e.stored, answer.fields())
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
			// Who took the request over may succeed.
			return reply{}, errPending
		}
	}
}

func keyExpired(err error) error {
	if err != nil && !errors.Is(err, errs.NotFound) {
		return err
	}
	return errs.New(errs.Conflict, "the %s has expired while the request was made: whether it took place has to be looked for", wire.HeaderKey)
}
