package sse

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/access"
	"belfry/pkg/store/policy"
)

// Viewer is the user on whose behalf a client reads the stream.
type Viewer struct {
	User    object.Object   // as rules see it; nil for an anonymous client
	Key     string          // differs when User or Rules does; "" for an anonymous client
	UUID    string          // of the user
	Session string          // id of the session
	Rules   *policy.Session // as rules see it; nil for an anonymous client
	Audit   bool            // may receive the events about the security of accounts

	Revision uint64 // of the user: their rights have not changed since, as far as they depend on it
}

// source is a store whose events are streamed.
type source struct {
	store       *store.Store
	ops         []policy.Op // whose rules a viewer has to pass; none: everyone may receive its events
	byObject    bool        // one of them depends on the object
	readsHidden bool        // one of them may read fields that no event has
	follows     bool        // one of them reads linked objects
	fields      fieldRules
	shared      *authorization // of all events, where the rule does not depend on the object
	lastState   lastState
	rules       string // identifies the rules: see Options.Rules
	endOf       endOf  // nil: clients can't choose uuids, so they create no deleted object again

	mu     sync.Mutex
	states []heldState // the oldest first
}

// heldState is a state that an authorization holds.
type heldState struct {
	of    *authorization
	state *state
}

// lastState finds the state in which an object was deleted; nil if it is unknown.
type lastState func(ctx context.Context, s *store.Store, uuid string) (object.Object, error)

func newSource(s *store.Store, getOnly bool, last lastState, end endOf) *source {
	from := &source{store: s, lastState: last}
	if s.Rules().ClientsChooseUUIDs() {
		from.endOf = end
	}
	from.shared = &authorization{source: from}
	from.fields = newFieldRules(from)
	rules := s.Rules().Policy()
	if rules == nil {
		return from
	}
	ops := []policy.Op{policy.Get}
	if !getOnly && rules.ListsApart() {
		ops = append(ops, policy.List)
	}
	for _, op := range ops {
		if rules.Open(op) {
			continue
		}
		from.ops = append(from.ops, op)
		from.byObject = from.byObject || rules.NeedsObject(op)
		from.follows = from.follows || rules.FollowsReferences(op)
		from.readsHidden = from.readsHidden || rules.MayRead(op, from.hides)
	}
	return from
}

// needsObject reports whether a rule depends on the object.
func (s *source) needsObject() bool { return s.byObject || s.fields.byObject }

// hides reports whether a field never leaves the server.
func (s *source) hides(field string) bool {
	return s.store.Rules().Hidden(field)
}

// state is an object as the store has it or, if it is deleted, as it was last. All
// but decisions is set before ready is closed.
type state struct {
	ready     chan struct{}
	err       error         // why the object could not be read
	abandoned bool          // the reading client has disconnected, which caused err
	object    object.Object // nil: unknown
	deleted   bool
	revision  uint64    // of an object that exists
	ended     *ending   // of the event's incarnation; nil: it has not ended, or clients choose no uuids
	at        time.Time // when reading began

	linked store.LinkedObjects // that rules have read

	mu        sync.Mutex
	decisions map[string]decision // by the viewers' keys
}

// decision is the part of an event that a viewer may receive.
type decision struct {
	allowed bool
	hidden  []string // the fields of the object that the viewer may not read
	former  ruling   // about the object as it was before; undecided where no stream has asked
}

// authorization decides who may receive an event of a store with rules. A viewer has to pass the rules with
// each of these states:
//
//	the object in the event, since it is sent
//	the present object, so that an object that has been made private since is not sent from the log
//	a deleted object as it was deleted: a private one stays private
//	the last state of the event's own incarnation, if the object was created again, perhaps by another user
//
// Events lack private fields, so a rule that reads them can't be evaluated for the object in the event. Then
// the store's reply decides: only an event whose revision is the current one is sent, and no event of a
// deletion. The same holds for an event without its object, except that it may have any revision: it has no
// other content.
//
// A field with a read rule is left out unless the rule holds in the same states: see fieldRules.
//
// The object is read by one of the clients that need it, and the others wait for it.
// No mutex is held meanwhile, nor while a rule is evaluated.
type authorization struct {
	source   *source
	uuid     string
	sequence uint64 // of the event in the log
	revision uint64
	object   object.Object // of the event; nil if it was left out
	deletion bool
	always   bool // the present object is read although no rule depends on it

	current atomic.Pointer[state] // nil: not read, or released
}

// stateTTL is how long a state that was read is used.
const stateTTL = time.Second

// authorization returns nil if everyone may receive an event.
func (s *source) authorization(sequence uint64, e *event.Envelope) *authorization {
	switch {
	case len(s.ops) == 0 && len(s.fields.names) == 0:
		return nil
	case !s.needsObject():
		return s.shared
	}
	a := &authorization{source: s, sequence: sequence, uuid: e.UUID, revision: e.Revision,
		deletion: e.Event == event.StoreDeleted}
	if s.needsEventObject() && len(e.Object) > 0 {
		a.object, _ = object.Decode(e.Object) // an object that can't be decoded counts as left out
	}
	return a
}

// needsEventObject reports whether a rule is evaluated for the object in an event.
func (s *source) needsEventObject() bool {
	return s.byObject && !s.readsHidden || s.fields.byObject && !s.fields.readsHidden
}

// decisionFor returns the part of the event that a viewer may receive, errs.Unavailable when the
// store is unavailable, and exhausted when the rules for the viewer have cost too much. With former, which is the entry
// of the event, it also decides about the object as it was before.
func (a *authorization) decisionFor(
	ctx context.Context, v *Viewer, allowed *allowance, former *entry,
) (decision, error) {
	now, err := a.state(ctx)
	if err != nil {
		return decision{}, err
	}
	now.mu.Lock()
	d, known := now.decisions[v.Key]
	now.mu.Unlock()
	if known && (former == nil || d.former != undecided) {
		return d, nil
	}
	if err := allowed.check(); err != nil {
		return decision{}, err
	}
	cost := policy.NewMeter()
	ctx = now.linked.In(ctx)
	if !known {
		if d.allowed, err = a.decide(ctx, v, now, cost); err == nil && d.allowed {
			d.hidden, err = a.hiddenFields(ctx, v, now, cost)
		}
	}
	if err == nil && former != nil {
		d.former, err = a.decideFormer(ctx, v, former, d.allowed, cost)
		allowed.charge(uint64(len(former.frame) / decodedBytes))
	}
	allowed.charge(cost.Spent())
	if err != nil {
		return decision{}, err
	}
	now.mu.Lock()
	defer now.mu.Unlock()
	now.decisions[v.Key] = d
	return d, nil
}

// state returns the current state of the object: one that was read less than stateTTL
// ago, by this client or another, or is being read.
func (a *authorization) state(ctx context.Context) (*state, error) {
	for {
		held := a.current.Load()
		if held == nil || time.Since(held.at) > stateTTL {
			next := &state{ready: make(chan struct{}), at: time.Now(), decisions: make(map[string]decision, 1)}
			if !a.current.CompareAndSwap(held, next) {
				continue
			}
			a.source.hold(a, next)
			a.fill(ctx, next)
			return next, next.err
		}
		select {
		case <-held.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if !held.abandoned {
			return held, held.err
		}
	}
}

// fill reads a state for all clients that wait for it. After an error the next client
// reads again.
func (a *authorization) fill(ctx context.Context, next *state) {
	next.err = errs.New(errs.Internal, "reading the object panicked")
	defer func() {
		if next.err != nil {
			next.abandoned = ctx.Err() != nil
			a.current.CompareAndSwap(next, nil)
		}
		close(next.ready)
	}()
	next.err = a.read(ctx, next)
}

// hold remembers a state, and releases those that are older than stateTTL: the window
// has many events, and each may have decisions for many users.
func (s *source) hold(of *authorization, next *state) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states = append(s.states, heldState{of, next})
	for len(s.states) > 0 && time.Since(s.states[0].state.at) > stateTTL {
		s.states[0].of.current.CompareAndSwap(s.states[0].state, nil)
		s.states[0] = heldState{}
		s.states = s.states[1:]
	}
}

// read reads the object as it is now, if the rule needs it.
func (a *authorization) read(ctx context.Context, now *state) error {
	if !a.source.needsObject() && !a.always {
		return nil
	}
	// The call has an origin of its own, so that this get is not announced.
	stored, err := a.source.store.Get(store.WithCall(ctx, store.Call{Origin: "live"}), a.uuid)
	if errors.Is(err, errs.NotFound) {
		now.deleted = true
		if a.object == nil {
			return nil
		}
		if now.object, err = a.source.lastState(ctx, a.source.store, a.uuid); err != nil {
			return err
		}
		return a.readEnd(ctx, now)
	}
	if err != nil {
		return err
	}
	now.revision = stored.Revision
	if now.object, err = stored.Object(); err != nil || now.revision == a.revision {
		return err
	}
	return a.readEnd(ctx, now)
}

// readEnd determines whether the incarnation of the event has ended.
func (a *authorization) readEnd(ctx context.Context, now *state) (err error) {
	if a.source.endOf != nil {
		now.ended, err = a.source.endOf(ctx, a, now.object)
	}
	return err
}

// states returns the states in which a rule that depends on the object has to hold, and false if they are not known. An
// event about a binary has only its record, so its states are those of the object in the store.
func (a *authorization) states(now *state, readsHidden bool) (states []object.Object, known bool) {
	switch {
	case !now.deleted && now.revision == a.revision && now.object != nil:
		return []object.Object{now.object}, true // the object of the event, with its hidden fields
	case readsHidden, now.deleted && a.object == nil:
		return nil, false
	case now.object == nil && !a.deletion, now.ended != nil && now.ended.object == nil && !a.deletion:
		return nil, false // the event of a deletion has the last state itself
	}
	states = []object.Object{a.object, now.object}
	if now.ended != nil {
		states = append(states, now.ended.object)
	}
	states = slices.DeleteFunc(states, func(o object.Object) bool { return o == nil })
	return states, len(states) > 0
}

func (a *authorization) decide(ctx context.Context, v *Viewer, now *state, cost *policy.Budget) (bool, error) {
	if !a.source.byObject {
		return a.evaluate(ctx, v, nil, a.source.store.Now(), cost)
	}
	states, known := a.states(now, a.source.readsHidden)
	if !known {
		return false, nil
	}
	for _, o := range states {
		if ok, err := a.evaluate(ctx, v, o, a.source.store.Now(), cost); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// evaluate evaluates the rules as at a time.
func (a *authorization) evaluate(
	ctx context.Context, v *Viewer, o object.Object, at time.Time, cost *policy.Budget,
) (bool, error) {
	s := a.source.store
	for _, op := range a.source.ops {
		caller := access.Caller{Client: true, User: v.User, Session: v.Rules, Budget: cost}
		in := s.Rules().Input(caller, o, nil)
		in.Now = at
		err := s.Rules().Policy().Allow(ctx, op, in)
		if errors.Is(err, errs.Denied) || errors.Is(err, errs.Unauthenticated) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// publishTimeout is how long after a deletion its event may be missing in the log.
const publishTimeout = 10 * time.Second

// lastState reads the state of a deleted object from the event of its deletion, which
// the log has as long as it has older ones. It reports errs.Unavailable while that
// event may not have been published yet.
func (h *Hub) lastState(ctx context.Context, s *store.Store, uuid string) (object.Object, error) {
	t, marked, err := s.Deleted(ctx, uuid)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var e event.Envelope
	switch entry, err := eventlog.Last(ctx, h.opts.Bus.Conn(), event.Subject(event.StoreDeleted, s.Name(), uuid)); {
	case errors.Is(err, errs.NotFound):
	case err != nil:
		return nil, err
	default:
		if e, err = event.Decode(entry.Data); err != nil || e.Event != event.StoreDeleted || e.Store != s.Name() ||
			e.UUID != uuid {
			return nil, nil
		}
	}
	if marked && e.Revision < t.Revision {
		// Later than now: the clock was set back.
		if time.Since(time.UnixMicro(int64(t.Revision))).Abs() < publishTimeout {
			return nil, errs.New(errs.Unavailable, "the log does not have the deletion of %s %q yet", s.Name(), uuid)
		}
		return nil, nil
	}
	if len(e.Object) == 0 {
		return nil, nil
	}
	return object.Decode(e.Object)
}
