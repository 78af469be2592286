package sse

import (
	"context"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
)

// checkLog compares the log with its known state. Reading begins a little before
// the end of a log: after a restart all clients reconnect at once, and resume from
// the same few events.
func (r *reader) checkLog(ctx context.Context) error {
	if !r.hub.opts.Bus.Conn().IsConnected() {
		return errs.New(errs.Unavailable, "the bus is unavailable")
	}
	state, err := eventlog.GetState(ctx, r.hub.opts.Bus.JetStream())
	if err != nil {
		return err
	}
	if same, err := r.sameLog(ctx, state); same || err != nil {
		return err
	}
	// Only an attempt shows whether reading is permitted.
	if _, _, err := eventlog.Page(ctx, r.hub.opts.Bus.Conn(), state.Last,
		eventlog.Limit{Events: 1, Bytes: 1}); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.logs++
	r.epoch, r.log = r.logs, state.Mark()
	r.end = state.Last
	r.base = max(state.First-1, state.Last-min(state.Last, pageEvents))
	r.position, r.mark = r.base, 0
	r.window, r.bytes = nil, 0
	r.version++
	r.caughtUp = 0
	r.broadcast()
	return nil
}

// sameLog reports whether a state belongs to the log that is being read, with the events that were read. After a power
// cut, the bus may have lost events that it had stored, and may have other events at their sequences.
func (r *reader) sameLog(ctx context.Context, state eventlog.State) (bool, error) {
	at := r.at()
	if at.log != state.Mark() || state.Last < at.sequence {
		return false, nil
	}
	if has, err := eventlog.Has(ctx, r.hub.opts.Bus.Conn(), at.sequence, at.event); !has || err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.end = state.Last
	return true, nil
}
