package model

import (
	"context"
	"slices"

	"belfry/pkg/errs"
)

// A handler may ask another process to run a part of its work, a round, and wait for the reply (see Ask). The steps of
// the round are then those of a process of its own, and all handlers wait for a round as soon as they have asked for
// it. The request or the reply can be lost, and the process that runs the round can crash: the handler gives up waiting
// at some time, also while the round runs. When the handler itself crashes, the round continues. A round that nobody
// waits for any more and that crashes has its event redelivered, like a handler that crashes: as for two handlers of
// one event, that the bus fences is assumed.

// maxAbandoned is how many rounds run that nobody waits for any more: without an end of them there were no end of
// states.
const maxAbandoned = 1

// Asked is a round that a handler has asked another process for.
type Asked struct {
	c    *Checker
	name string
	err  error
}

// round is a part of a handler's work in another process. It is immutable: states share it.
type round struct {
	name string
	program
	process
	done bool
}

// abandoned is a round that nobody waits for.
type abandoned struct {
	*delivery
	*round
}

type checkerKey struct{}

// Ask has another process run code, which must be deterministic and make its driver calls one after another. Its name
// is unique among the rounds that a handler waits for. ctx is the handler's.
func Ask(ctx context.Context, name string, code func(ctx context.Context) error) *Asked {
	c, _ := ctx.Value(checkerKey{}).(*Checker)
	if c == nil || c.run == nil { // the setup
		return &Asked{err: code(ctx)}
	}
	return &Asked{c, name, c.call(step{"ask", "", name}, func() answer {
		h := c.handler
		identity := mixText(h.delivery.hash, name)
		r := &round{name: name, program: program{identity, true, func() error { return code(ctx) }}}
		h.asked = append(h.asked[:len(h.asked):len(h.asked)], r)
		return answer{}
	}).err}
}

// Sent returns an error unless the request was sent.
func (a *Asked) Sent() error { return a.err }

// Wait returns nil when the round has ended and its reply has arrived, else an error.
func (a *Asked) Wait(context.Context) error {
	if a.c == nil || a.err != nil {
		return a.err
	}
	return a.c.call(step{waitOp, "", a.name}, func() answer {
		h := a.c.handler
		r := h.find(a.name)
		h.asked = slices.DeleteFunc(slices.Clone(h.asked), func(o *round) bool { return o == r })
		switch a.c.taking {
		case giveUp:
			a.c.state.abandon(h.delivery, r)
			fallthrough
		case loseRound:
			return answer{err: errs.New(errs.Unavailable, "no reply")}
		}
		return answer{}
	}).err
}

const waitOp = "wait"

func (h *handler) find(name string) *round {
	return h.asked[slices.IndexFunc(h.asked, func(r *round) bool { return r.name == name })]
}

// abandon leaves a round that has not ended to itself.
func (s *state) abandon(d *delivery, rounds ...*round) {
	for _, r := range rounds {
		if !r.done && len(s.abandoned) < maxAbandoned {
			s.abandoned = append(s.abandoned[:len(s.abandoned):len(s.abandoned)], abandoned{d, r})
		}
	}
}

// askTransitions are those of rounds and of handlers that wait for them.
func (c *Checker) askTransitions(s *state) (all []transition) {
	for i := range s.handlers {
		h := &s.handlers[i]
		if h.next.step.op != waitOp {
			continue
		}
		if r := h.find(h.next.step.uuid); r.done {
			all = append(all, transition{loseRound, i})
		} else {
			all = append(all, transition{roundStep, i}, transition{loseRound, i})
			if len(s.abandoned) < maxAbandoned {
				all = append(all, transition{giveUp, i})
			}
		}
	}
	for i, a := range s.abandoned {
		all = append(all, transition{abandonedStep, i})
		if a.next.do == nil || c.mayCrash(s) {
			all = append(all, transition{loseAbandoned, i})
		}
	}
	return all
}

// waitsForRound reports whether a handler waits for a round that has not ended.
func (h *handler) waitsForRound() bool {
	return h.next.step.op == waitOp && !h.find(h.next.step.uuid).done
}

// takeAsk makes a step of a round.
func (c *Checker) takeAsk(ctx context.Context, t transition) (label, error) {
	s := c.state
	switch t.kind {
	case roundStep:
		h := &s.handlers[t.index]
		before := h.find(h.next.step.uuid)
		r, steps, err := c.stepRound(ctx, h, before)
		h.asked = slices.Clone(h.asked)
		h.asked[slices.Index(h.asked, before)] = r
		return label{"round for worker", t.index, h.delivery, steps, ""}, err
	case abandonedStep:
		a := s.abandoned[t.index]
		r, steps, err := c.stepRound(ctx, &handler{delivery: a.delivery}, a.round)
		s.abandoned = slices.Clone(s.abandoned)
		if s.abandoned[t.index].round = r; r.done {
			s.abandoned = slices.Delete(s.abandoned, t.index, t.index+1)
		}
		return label{"abandoned round", t.index, a.delivery, steps, ""}, err
	default: // loseAbandoned
		a := s.abandoned[t.index]
		s.abandoned = slices.Delete(slices.Clone(s.abandoned), t.index, t.index+1)
		if a.next.do != nil {
			c.countCrash(s)
			s.redeliver(a.delivery)
		}
		return label{"abandoned round", t.index, a.delivery, nil, "is lost"}, nil
	}
}

// stepRound makes the next step of a round, as part of the work of a handler.
func (c *Checker) stepRound(ctx context.Context, h *handler, before *round) (after *round, steps []step, err error) {
	r := *before
	if r.next.do == nil {
		if r.done, err = c.start(&r.process, r.program); r.done || err != nil {
			return &r, nil, err
		}
	}
	steps = []step{r.next.step}
	c.handler = h
	r.done, err = c.step(&r.process, r.program, false)
	c.handler = nil
	c.saveTables()
	if err == nil {
		err = c.checkApplied(ctx)
	}
	return &r, steps, err
}

// sum is a hash of a round. What one that has ended has read does not matter any more.
func (r *round) sum() uint64 {
	if r.done {
		return mix(r.identity, 1)
	}
	return mix(r.identity, r.hash)
}
