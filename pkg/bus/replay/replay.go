// Package replay looks at listeners from outside and moves them: to hear again
// what they have heard, or to pass over what waits.
package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Listener is how a listener stands.
type Listener struct {
	Name        string    `json:"name"`
	Ordered     bool      `json:"ordered"`
	Lag         uint64    `json:"lag"`         // events it has yet to be given
	Unacked     int       `json:"unacked"`     // it has been given and not acknowledged
	Redelivered int       `json:"redelivered"` // of those, given more than once
	Retries     uint64    `json:"retries"`     // dead letters on their way back to it
	Letters     uint64    `json:"letters"`     // its dead letters
	Last        time.Time `json:"last,omitzero"`
}

// List returns the listeners, by name.
func List(ctx context.Context, js jetstream.JetStream) ([]*Listener, error) {
	all, err := consumers(ctx, js)
	if err != nil {
		return nil, err
	}
	letters, err := subjects(ctx, js, bus.StreamDead, bus.DeadPrefix)
	if err != nil {
		return nil, err
	}
	retries, err := subjects(ctx, js, bus.StreamRetry, bus.RetryPrefix)
	if err != nil {
		return nil, err
	}
	known := map[string]*Listener{}
	var list []*Listener
	for consumer, info := range all {
		name, ordered := nameOf(consumer, all)
		l := known[name]
		if l == nil {
			l = &Listener{Name: name, Ordered: ordered, Letters: letters[name], Retries: retries[name]}
			known[name] = l
			list = append(list, l)
		}
		l.add(info)
	}
	slices.SortFunc(list, func(a, b *Listener) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (l *Listener) add(info *jetstream.ConsumerInfo) {
	l.Lag += info.NumPending
	l.Unacked += info.NumAckPending
	l.Redelivered += info.NumRedelivered
	for _, at := range []*time.Time{info.Delivered.Last, info.AckFloor.Last} {
		if at != nil && at.After(l.Last) {
			l.Last = *at
		}
	}
}

// Reset moves a listener, whether it runs or not, and returns the sequence that
// it hears next. What it is handling at that moment is finished all the same.
// An ordered listener is moved partition by partition: where that fails, doing
// it again completes it.
func Reset(ctx context.Context, js jetstream.JetStream, name string, from eventlog.From) (uint64, error) {
	all, err := consumers(ctx, js)
	if err != nil {
		return 0, err
	}
	var moved []string
	for consumer := range all {
		if n, _ := nameOf(consumer, all); n == name {
			moved = append(moved, consumer)
		}
	}
	if len(moved) == 0 {
		return 0, errs.New(errs.NotFound, "there is no listener %s; `belfry listener list` tells those that there are", name)
	}
	sequence, err := from.Sequence(ctx, js)
	if err != nil {
		return 0, err
	}
	for _, consumer := range moved {
		if err := move(ctx, js, consumer, sequence); err != nil {
			return 0, errs.Wrap(err, errs.Unavailable, "listener %s is not moved, or not whole; do it again", name)
		}
	}
	return sequence, nil
}

// move sets a consumer to a place of the log. The server does it in one act
// where the consumer may go there: those that began with new events, or behind
// the place, may not.
func move(ctx context.Context, js jetstream.JetStream, consumer string, sequence uint64) error {
	_, err := js.ResetConsumerToSequence(ctx, bus.StreamEvents, consumer, sequence)
	if errors.Is(err, jetstream.ErrConsumerInvalidReset) || errors.Is(err, nats.ErrNoResponders) {
		return replace(context.WithoutCancel(ctx), js, consumer, sequence)
	}
	return err
}

const replaceTimeout = 10 * time.Second

// replace makes a consumer anew with the same settings. A listener that runs
// and finds none meanwhile makes it from what it knows: then it is done again.
func replace(ctx context.Context, js jetstream.JetStream, name string, sequence uint64) error {
	ctx, cancel := context.WithTimeout(ctx, replaceTimeout)
	defer cancel()
	c, err := js.Consumer(ctx, bus.StreamEvents, name)
	if err != nil {
		return err
	}
	config := c.CachedInfo().Config
	config.DeliverPolicy, config.OptStartSeq, config.OptStartTime = jetstream.DeliverByStartSequencePolicy, sequence, nil
	for {
		if err = js.DeleteConsumer(ctx, bus.StreamEvents, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
		if _, err = js.CreateConsumer(ctx, bus.StreamEvents, config); !errors.Is(err, jetstream.ErrConsumerExists) {
			return err
		}
	}
}

// consumers are the durable consumers of the log.
func consumers(ctx context.Context, js jetstream.JetStream) (map[string]*jetstream.ConsumerInfo, error) {
	s, err := js.Stream(ctx, bus.StreamEvents)
	if err != nil {
		return nil, unavailable(err)
	}
	all := map[string]*jetstream.ConsumerInfo{}
	list := s.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Config.Durable != "" {
			all[info.Name] = info
		}
	}
	return all, unavailable(list.Err())
}

// nameOf is the listener of a consumer: an ordered one has a consumer a
// partition, <name>-<partition>.
func nameOf(consumer string, all map[string]*jetstream.ConsumerInfo) (name string, ordered bool) {
	i := strings.LastIndexByte(consumer, '-')
	if i < 0 {
		return consumer, false
	}
	if p, err := strconv.Atoi(consumer[i+1:]); err != nil || p >= event.Partitions {
		return consumer, false
	}
	for p := range event.Partitions {
		if all[fmt.Sprintf("%s-%d", consumer[:i], p)] == nil {
			return consumer, false
		}
	}
	return consumer[:i], true
}

// subjects counts the messages of a stream by what follows a prefix.
func subjects(ctx context.Context, js jetstream.JetStream, stream, prefix string) (map[string]uint64, error) {
	s, err := js.Stream(ctx, stream)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, unavailable(err)
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(prefix+">"))
	if err != nil {
		return nil, unavailable(err)
	}
	count := map[string]uint64{}
	for subject, n := range info.State.Subjects {
		count[strings.TrimPrefix(subject, prefix)] = n
	}
	return count, nil
}

func unavailable(err error) error {
	return errs.Wrap(err, errs.Unavailable, "the listeners can't be looked at; the bus may be away, or the user may lack the right")
}
