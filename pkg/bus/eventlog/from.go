package eventlog

import (
	"context"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// From is a position in the log. The zero From is its beginning.
type From struct {
	sequence uint64
	at       time.Time
	end      bool
}

// ParseFrom parses a position: all, new, a sequence, a time in RFC 3339, or a
// duration before now such as 90m or 36h.
func ParseFrom(text string) (From, error) {
	switch text {
	case "", "all":
		return From{}, nil
	case "new":
		return From{end: true}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return From{sequence: n}, nil
	}
	if at, err := ParseTime(text); err == nil {
		return From{at: at}, nil
	}
	return From{}, errs.New(errs.Invalid,
		"%q is not a position in the log: use a sequence, a time such as 2026-11-21T04:05:06Z or 36h (ago), "+
			"all, or new", text)
}

// ParseTime parses a time in RFC 3339, or a duration before now.
func ParseTime(text string) (time.Time, error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return time.Now().Add(-ago), nil
	}
	return time.Time{}, errs.New(errs.Invalid, "%q is not a time: use one such as 2026-11-21T04:05:06Z, or 36h (ago)",
		text)
}

// Sequence returns the sequence of the first event at or after the position,
// which may not be published yet.
func (f From) Sequence(ctx context.Context, js jetstream.JetStream) (uint64, error) {
	s, err := stream(ctx, js, bus.StreamEvents)
	if err != nil {
		return 0, err
	}
	end := s.CachedInfo().State.LastSeq + 1
	switch {
	case f.end:
		return end, nil
	case !f.at.IsZero():
		return atTime(ctx, js, f.at)
	case f.sequence > end:
		return 0, errs.New(errs.Invalid, "the log ends with sequence %d; %d is beyond it", end-1, f.sequence)
	}
	return max(f.sequence, 1), nil
}

// atTime returns the sequence at which a temporary consumer would start.
func atTime(ctx context.Context, js jetstream.JetStream, at time.Time) (uint64, error) {
	c, err := js.CreateConsumer(ctx, bus.StreamEvents, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &at, AckPolicy: jetstream.AckNonePolicy,
		MemoryStorage: true, InactiveThreshold: time.Second,
	})
	if err != nil {
		return 0, unavailable(err)
	}
	info := c.CachedInfo()
	_ = js.DeleteConsumer(ctx, bus.StreamEvents, info.Name) // else InactiveThreshold removes it
	return info.Delivered.Stream + 1, nil
}
