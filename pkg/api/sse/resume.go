package sse

import (
	"context"

	"belfry/pkg/bus/eventlog"
)

// begin finds the client's position in a log.
func (s *stream) begin(ctx context.Context, v view) (next, error) {
	if (s.unknown || s.after == nil) && v.position < v.end && s.epoch == 0 {
		return awaitEntries, nil // the end is read in a moment, and with it the present events
	}
	if err := s.proveFromNow(ctx); err != nil {
		return retryLater, nil //nolint:nilerr // the bus is unavailable
	}
	switch {
	case s.epoch > 0: // there was another log
		s.hub.reader.leave(s)
		s.restart(v, place{})
		return proceed, s.notice("reset", beyondText)
	case s.unknown:
		s.unknown = false
		s.restart(v, place{sequence: v.position, event: v.mark})
		return proceed, s.notice("reset", unknownText)
	case s.after == nil:
		s.restart(v, place{sequence: v.position, event: v.mark})
		s.proof.since = v.position
	default:
		lacks, err := s.lacks(ctx, v, *s.after)
		if err != nil {
			return retryLater, nil //nolint:nilerr // the bus is unavailable
		}
		if lacks != "" {
			s.restart(v, place{})
			return proceed, s.notice("reset", lacks)
		}
		s.restart(v, *s.after)
		switch {
		case !s.selects || *s.after == (place{}):
		case s.after.proof.rights != s.proof.rights:
			return proceed, s.notice("reset", rightsText)
		default:
			s.proof.since = s.after.proof.since
		}
	}
	return proceed, s.send(append(s.hub.appendID(nil, s.place()), "event: ready\ndata: {}\n\n"...))
}

// place is the position from which the client would resume.
func (s *stream) place() place { return place{s.cursor, s.log, s.mark, s.proof} }

// restart sets the position at which the stream continues in a log.
func (s *stream) restart(v view, at place) {
	s.epoch, s.log, s.cursor, s.mark = v.epoch, v.log, at.sequence, at.event
}

// lacks returns the reason to send to a client whose position is not in the log; "" if the event at the position is in
// the log, and with it everything before.
func (s *stream) lacks(ctx context.Context, v view, at place) (text string, err error) {
	if at.proof = (proof{}); at == (place{}) {
		return "", nil // the oldest event
	}
	if at.sequence > v.end {
		state, err := eventlog.GetState(ctx, s.hub.opts.Bus.JetStream())
		if err != nil {
			return "", err
		}
		if at.sequence > state.Last {
			return beyondText, nil
		}
	}
	if at.log != v.log {
		return otherText, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if has, err := eventlog.Has(ctx, s.hub.opts.Bus.Conn(), at.sequence, at.event); has || err != nil {
		return "", err
	}
	return otherText, nil
}
