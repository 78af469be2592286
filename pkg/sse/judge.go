package sse

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

// Viewer is on whose behalf a client listens.
type Viewer struct {
	User    object.Object // as rules see it; nil for nobody
	Key     string        // differs when User does; "" for nobody
	UUID    string        // of the user
	Session string        // id of the session
}

// source is a store whose events can be heard.
type source struct {
	store  *store.Store
	open   bool       // everyone may get
	object bool       // the rule is about the object
	secret bool       // the rule may look at fields that no event has
	shared *judgement // of all events, where the rule is about no object
	last   lastState

	mu    sync.Mutex
	looks []look // the oldest first
}

// look is what a judgement has of the present.
type look struct {
	of  *judgement
	now *present
}

// lastState finds what a deleted object was in the end; nil when nobody knows.
type lastState func(ctx context.Context, s *store.Store, uuid string) (object.Object, error)

func newSource(s *store.Store, last lastState) *source {
	from := &source{store: s, open: s.Policy() == nil || s.Policy().Open(policy.Get), last: last}
	from.shared = &judgement{source: from}
	if !from.open {
		from.object = s.Policy().NeedsObject(policy.Get)
		from.secret = s.Policy().MayRead(policy.Get, from.hides)
	}
	return from
}

// hides reports whether a field never leaves the server.
func (s *source) hides(field string) bool {
	return s.store.Hidden(field)
}

// present is an object as the store has it, or, when it is gone, as it was in
// the end.
type present struct {
	object   object.Object // nil: not known
	gone     bool
	revision uint64          // of one that is there
	at       time.Time       // of looking
	verdicts map[string]bool // by the viewers' keys
}

// judgement decides who may hear an event of a store that not everyone may get
// from. A viewer has to pass the rule of get twice: with the object as the event
// has it, since that is what is sent; and with the object as it is now, so that
// what was made private since is not told from the log. Of an object that is
// gone it is the state in which it was deleted: what was private then does not
// become public by that.
//
// Where the rule looks at private fields, which no event has, the event can't be
// judged. What is sent then is what the store would tell: an event whose
// revision is the present one, and none of a deletion. The same goes for an
// event whose object was left out, but for the revision: it tells nothing else.
type judgement struct {
	source   *source
	uuid     string
	revision uint64
	object   object.Object // as the event has it; nil when it was left out
	deletion bool

	mu  sync.Mutex
	now atomic.Pointer[present] // nil: no look, or one that has been let go
}

// fresh is how long a look at the present serves.
const fresh = time.Second

// judgement returns nil where everyone may hear an event.
func (s *source) judgement(e *event.Envelope) *judgement {
	switch {
	case s.open:
		return nil
	case !s.object:
		return s.shared
	}
	j := &judgement{source: s, uuid: e.UUID, revision: e.Revision, deletion: e.Event == event.StoreDeleted}
	if !s.secret && len(e.Object) > 0 {
		j.object, _ = object.Decode(e.Object) // what can't be read is left out
	}
	return j
}

// allows judges, or reports errs.Unavailable when the store is away.
func (j *judgement) allows(ctx context.Context, v *Viewer) (bool, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := j.now.Load()
	if now == nil || time.Since(now.at) > fresh {
		var err error
		if now, err = j.look(ctx); err != nil {
			return false, err
		}
		j.now.Store(now)
		j.source.remember(j, now)
	}
	verdict, known := now.verdicts[v.Key]
	if !known {
		var err error
		if verdict, err = j.judge(ctx, v, now); err != nil {
			return false, err
		}
		now.verdicts[v.Key] = verdict
	}
	return verdict, nil
}

// remember takes down a look, and lets go those that are no longer fresh: the
// window has many events, and each may have been judged for many users.
func (s *source) remember(of *judgement, now *present) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks = append(s.looks, look{of, now})
	for len(s.looks) > 0 && time.Since(s.looks[0].now.at) > fresh {
		s.looks[0].of.now.CompareAndSwap(s.looks[0].now, nil)
		s.looks[0] = look{}
		s.looks = s.looks[1:]
	}
}

// look gets the object as it is now. A rule that is about no object needs none.
func (j *judgement) look(ctx context.Context) (*present, error) {
	now := &present{at: time.Now(), verdicts: make(map[string]bool, 1)}
	if !j.source.object {
		return now, nil
	}
	// The call has an origin of its own: nobody is told of a get.
	stored, err := j.source.store.Get(store.WithCall(ctx, store.Call{Origin: "live"}), j.uuid)
	if errors.Is(err, errs.NotFound) {
		now.gone = true
		if j.object != nil {
			now.object, err = j.source.last(ctx, j.source.store, j.uuid)
			return now, err
		}
		return now, nil
	}
	if err != nil {
		return nil, err
	}
	now.revision = stored.Revision
	now.object, err = stored.Object()
	return now, err
}

func (j *judgement) judge(ctx context.Context, v *Viewer, now *present) (bool, error) {
	switch {
	case !j.source.object:
		return j.allowed(ctx, v, nil)
	case !now.gone && now.revision == j.revision:
		return j.allowed(ctx, v, now.object) // it is the same, and all of it
	case j.source.secret, now.gone && j.object == nil:
		return false, nil
	case now.object == nil && !j.deletion:
		return false, nil // a deletion tells itself what the last state was
	}
	for _, o := range []object.Object{j.object, now.object} {
		if o == nil {
			continue
		}
		if ok, err := j.allowed(ctx, v, o); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (j *judgement) allowed(ctx context.Context, v *Viewer, o object.Object) (bool, error) {
	s := j.source.store
	err := s.Policy().Allow(ctx, policy.Get, policy.Input{User: v.User, Object: o, Now: s.Now()})
	if errors.Is(err, errs.Denied) || errors.Is(err, errs.Unauthenticated) {
		return false, nil
	}
	return err == nil, err
}

// published is how long after a deletion its event may be on its way to the log.
const published = 10 * time.Second

// lastState reads it from the event of the deletion, which the log has for as
// long as it has older ones. It reports errs.Unavailable while that event may
// be on its way.
func (h *Hub) lastState(ctx context.Context, s *store.Store, uuid string) (object.Object, error) {
	revision, marked, err := s.Deleted(ctx, uuid)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	var e event.Envelope
	switch entry, err := eventlog.Last(ctx, h.Bus.Conn(), event.Subject(event.StoreDeleted, s.Name(), uuid)); {
	case errors.Is(err, errs.NotFound):
	case err != nil:
		return nil, err
	default:
		if e, err = event.Decode(entry.Data); err != nil || e.Event != event.StoreDeleted || e.Store != s.Name() || e.UUID != uuid {
			return nil, nil
		}
	}
	if marked && e.Revision < revision {
		if time.Since(time.UnixMicro(int64(revision))) < published {
			return nil, errs.New(errs.Unavailable, "the log does not have the deletion of %s %q yet", s.Name(), uuid)
		}
		return nil, nil
	}
	if len(e.Object) == 0 {
		return nil, nil
	}
	return object.Decode(e.Object)
}
