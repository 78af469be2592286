package eventlog

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

// EraseAfter is the minimum age of an event that is erased. By then every record of the events that listeners have
// handled includes it: an event that is removed earlier counts as missed.
const EraseAfter = time.Minute

// Erasure is the result of an erasure.
type Erasure struct {
	Erased    int    `json:"erased"`
	Young     int    `json:"young,omitempty"`     // events that are too young
	Unhandled int    `json:"unhandled,omitempty"` // events that a listener has not handled yet
	Listener  string `json:"listener,omitempty"`  // one that has not
}

// Erase removes the selected events of before a time from the log, and overwrites them there, if every listener has
// handled them: others stay, to be erased later. With dry nothing is removed. An erasure that is interrupted is
// continued by the next one.
func Erase(ctx context.Context, js jetstream.JetStream, which Select, before time.Time, dry bool) (Erasure, error) {
	var e Erasure
	log, err := stream(ctx, js, bus.StreamEvents)
	if err != nil {
		return e, err
	}
	handled, slowest, err := handledBy(ctx, log)
	if err != nil {
		return e, err
	}
	var found []uint64
	reader := Reader{Select: which}
	err = reader.Each(ctx, js, func(entry *Entry) error {
		switch {
		case entry.Time.After(before):
			e.Young++
		case entry.Sequence > handled:
			e.Unhandled++
			e.Listener = slowest
		default:
			found = append(found, entry.Sequence)
		}
		return nil
	})
	if err != nil {
		return e, err
	}
	for _, sequence := range found {
		if !dry {
			if err := log.SecureDeleteMsg(ctx, sequence); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
				return e, orDenied(js.Conn(), "$JS.API.STREAM.MSG.DELETE."+bus.StreamEvents,
					errs.Wrap(err, errs.Unavailable, "the event %d can't be removed from the log", sequence))
			}
		}
		e.Erased++
	}
	return e, nil
}

// handledBy returns the sequence up to which every listener has handled the log, and the slowest one.
func handledBy(ctx context.Context, log jetstream.Stream) (sequence uint64, slowest string, err error) {
	sequence = log.CachedInfo().State.LastSeq
	list := log.ListConsumers(ctx)
	for c := range list.Info() {
		if c.NumPending > 0 || c.NumAckPending > 0 {
			if c.AckFloor.Stream < sequence && c.Config.Durable != "" {
				sequence, slowest = c.AckFloor.Stream, c.Name
			}
		}
	}
	if list.Err() != nil {
		return 0, "", errs.Wrap(list.Err(), errs.Unavailable, "the listeners can't be read")
	}
	return sequence, slowest, nil
}
