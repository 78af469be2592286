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
	lookStep = 25 * time.Millisecond

	// mostEarlier is how many revisions of earlier attempts are known. One from
	// before them has had all the time of the later ones to arrive.
	mostEarlier = 32

	// maxKept is the largest answer that is kept, and so the largest that is sent.
	maxKept = 256 << 10

	// maxAttempts is how often a deletion takes a higher revision.
	maxAttempts = 10
)

// once answers a request that has a key.
func (v *service) once(ctx context.Context, r *request) (outcome, error) {
	s, id := v.server, recordOf(v.store.Name, r.key)
	unlock, err := s.locks.Lock(ctx, id)
	if err != nil {
		return outcome{}, err
	}
	defer unlock()
	for {
		o, err := v.lookUp(ctx, r, id)
		if !errors.Is(err, errElsewhere) {
			return o, err
		}
		if err := backoff.Sleep(ctx, lookStep); err != nil {
			return outcome{}, err
		}
	}
}

// errElsewhere says that another server is at work on a request, or was when it
// ended: look again a little later.
var errElsewhere = errors.New("another belfry is at work on this request")

// lookUp answers with what is known of a key, or makes the request.
func (v *service) lookUp(ctx context.Context, r *request, id string) (outcome, error) {
	s := v.server
	stored, err := s.Requests.Get(ctx, id)
	if errors.Is(err, errs.NotFound) {
		e, err := v.reserve(ctx, r, id)
		if errors.Is(err, errs.Exists) {
			return outcome{}, errElsewhere
		}
		if err != nil {
			return outcome{}, err
		}
		return v.attempt(ctx, r, e, false)
	}
	if err != nil {
		return outcome{}, err
	}
	e, err := decodeEntry(stored)
	if err != nil {
		return outcome{}, err
	}
	switch {
	case !s.Now().Before(e.expires):
		if err := s.forget(ctx, stored); err != nil {
			return outcome{}, err
		}
		return outcome{}, errElsewhere
	case e.print != r.print():
		return outcome{}, errs.New(errs.Conflict, "%s was used for another request already: a key is for one request and its repetitions", wire.HeaderKey)
	case e.answer != nil:
		return *e.answer, nil
	case e.owner != s.instance && s.Now().Sub(e.noted) < s.Patience:
		return outcome{}, errElsewhere
	default:
		return v.attempt(ctx, r, e, true)
	}
}

// reserve notes a key before anything is done. Exists when somebody else was
// quicker.
func (v *service) reserve(ctx context.Context, r *request, id string) (*entry, error) {
	s := v.server
	now := s.Now()
	e := &entry{print: r.print(), uuid: r.UUID, owner: s.instance, noted: now, expires: now.Add(Kept)}
	if r.UUID == "" {
		e.uuid = object.NewUUID()
	}
	seen, err := v.store.Trace(ctx, e.uuid, id)
	if err != nil {
		return nil, err
	}
	e.aim(r, seen, now)
	if !seen.Live && r.op != wire.Save {
		// There is nothing to do, ever: that is the answer.
		missing := faultOf(errs.New(errs.NotFound, "%s has no object %q", v.store.Name, e.uuid), r.id)
		e.answer = &missing
	}
	e.stored, err = s.Requests.Save(ctx, e.fields(), id)
	return e, err
}

// aim takes what a look has found as what the write is about.
func (e *entry) aim(r *request, seen store.Trace, now time.Time) {
	if e.revision != 0 {
		e.earlier = append(slices.Clone(e.earlier), e.revision)
		e.earlier = e.earlier[max(0, len(e.earlier)-mostEarlier):]
	}
	e.life = string(seen.Life)
	if r.op == wire.Save {
		e.life = ""
	}
	e.revision = max(store.RevisionAt(now), seen.Revision+1, e.revision+1)
}

// attempt makes a request whose key is noted. again says that it may have been
// made before.
func (v *service) attempt(ctx context.Context, r *request, e *entry, again bool) (outcome, error) {
	if e.answer != nil {
		return *e.answer, nil
	}
	for range maxAttempts {
		if again {
			done, err := v.lookAgain(ctx, r, e)
			switch {
			case errors.Is(err, errs.Mismatch):
				return outcome{}, errElsewhere
			case err != nil && !errors.Is(err, store.ErrOvertaken):
				return outcome{}, err
			case err != nil:
				return v.settle(ctx, r, e, faultOf(err, r.id))
			case done != nil:
				return v.settle(ctx, r, e, outcome{body: done})
			}
		}
		body, err := v.perform(ctx, v.about(r, e), v.onceOf(r, e), min(maxKept, v.mostBytes()))
		switch {
		case err == nil:
			return v.settle(ctx, r, e, outcome{body: body})
		case errors.Is(err, store.ErrBehind):
			again = true
		case !final(err):
			return outcome{}, err
		default:
			if again {
				// What was thought lost may have arrived meanwhile.
				body, looked := v.done(ctx, r, e)
				if looked != nil {
					return outcome{}, looked
				}
				if body != nil {
					return v.settle(ctx, r, e, outcome{body: body})
				}
			}
			return v.settle(ctx, r, e, faultOf(err, r.id))
		}
	}
	return outcome{}, errs.New(errs.Unavailable, "others keep changing %s %q: try again", v.store.Name, e.uuid)
}

// about is the request with the uuid that was chosen for it.
func (v *service) about(r *request, e *entry) *request {
	chosen := *r
	chosen.UUID = e.uuid
	return &chosen
}

func (v *service) onceOf(r *request, e *entry) *store.Once {
	once := &store.Once{ID: e.stored.UUID, Revision: e.revision, Earlier: e.earlier, Life: []byte(e.life), Answered: v.server.answered}
	if r.op == wire.Update {
		once.Revision = 0
	}
	return once
}

// answered reports whether a request has its answer, or nobody knows it any more.
func (s *Server) answered(ctx context.Context, id string) (bool, error) {
	stored, err := s.Requests.Get(ctx, id)
	if errors.Is(err, errs.NotFound) {
		return true, nil
	}
	return err == nil && object.Field(stored.Body, "body") != nil, err
}

// done looks for what the write would have left, and returns the answer, or nil
// when it is not there.
func (v *service) done(ctx context.Context, r *request, e *entry) ([]byte, error) {
	seen, err := v.store.Trace(ctx, e.uuid, e.stored.UUID)
	if err != nil {
		return nil, err
	}
	return v.doneAt(r, e, seen), nil
}

func (v *service) doneAt(r *request, e *entry, seen store.Trace) []byte {
	switch {
	case seen.Holds:
		return encodeObject(seen.Stored, min(maxKept, v.mostBytes()))
	case r.op == wire.Delete && !seen.Live && v.onceOf(r, e).Deleted(seen.Revision):
		return []byte("{}")
	default:
		return nil
	}
}

// lookAgain says what became of earlier attempts: the answer of one that took
// place, or nil when none did, and then the key is noted anew for the next one.
// A Conflict with ErrOvertaken when that can't be told; Mismatch when somebody else
// has taken the key over.
func (v *service) lookAgain(ctx context.Context, r *request, e *entry) (body []byte, err error) {
	seen, err := v.store.Trace(ctx, e.uuid, e.stored.UUID)
	if err != nil {
		return nil, err
	}
	if body := v.doneAt(r, e, seen); body != nil {
		return body, nil
	}
	if v.untold(r, e, seen) {
		return nil, store.Overtaken(v.store.Name, e.uuid)
	}
	next := *e
	next.owner, next.noted = v.server.instance, v.server.Now()
	next.aim(r, seen, v.server.Now())
	if next.stored, err = v.server.Requests.Amend(ctx, e.stored, next.fields()); err != nil {
		return nil, err
	}
	*e = next
	return nil, nil
}

// untold reports whether a record leaves open whether the write took place: the
// object may have been there, and gone again.
func (v *service) untold(r *request, e *entry, seen store.Trace) bool {
	if r.op == wire.Save {
		lost := v.server.Tombstones > 0 && v.server.Now().Sub(e.noted) >= v.server.Tombstones
		return !seen.Live && (seen.Revision >= e.revision || seen.Revision == 0 && lost)
	}
	return !seen.Live || string(seen.Life) != e.life
}

// settle notes the answer, and returns it; where somebody else was quicker, theirs.
func (v *service) settle(ctx context.Context, r *request, e *entry, o outcome) (outcome, error) {
	for {
		answer := *e
		answer.answer = &o
		_, err := v.server.Requests.Amend(ctx, e.stored, answer.fields())
		if err == nil {
			return o, nil
		}
		if !errors.Is(err, errs.Mismatch) {
			return outcome{}, err
		}
		now, err := v.server.Requests.Get(ctx, e.stored.UUID)
		if err != nil {
			return outcome{}, gone(err)
		}
		if e, err = decodeEntry(now); err != nil {
			return outcome{}, err
		}
		switch {
		case e.print != r.print():
			return outcome{}, gone(nil)
		case e.answer != nil:
			return *e.answer, nil
		case o.status != 0:
			// Who took the request over may succeed.
			return outcome{}, errElsewhere
		}
	}
}

func gone(err error) error {
	if err != nil && !errors.Is(err, errs.NotFound) {
		return err
	}
	return errs.New(errs.Conflict, "the %s has expired while the request was made: whether it took place has to be looked for", wire.HeaderKey)
}
