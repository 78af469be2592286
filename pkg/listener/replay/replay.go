// Package replay lists the listeners of a bus and resets their position in the
// event log, to replay events or to skip them.
package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Listener is the state of a listener.
type Listener struct {
	Name        string    `json:"name"`
	Ordered     bool      `json:"ordered"`
	Lag         uint64    `json:"lag"`         // events that are not delivered yet
	Unacked     int       `json:"unacked"`     // delivered and not acknowledged
	Redelivered int       `json:"redelivered"` // of those, delivered more than once
	Retries     uint64    `json:"retries"`     // its dead letters that are being retried
	Letters     uint64    `json:"letters"`     // its dead letters
	Last        time.Time `json:"last,omitzero"`
	// events were delivered to it, perhaps before the server started, which forgets when
	Used        bool      `json:"-"`
	PausedUntil time.Time `json:"pausedUntil,omitzero"` // somebody has paused it, or one of its consumers

	Consumers []string `json:"-"` // its durable consumers
	Delivered uint64   `json:"-"` // the sequence up to which the first of them has received the events
}

// List returns the listeners, by name.
func List(ctx context.Context, js jetstream.JetStream) ([]*Listener, error) {
	all, err := consumers(ctx, js)
	if err != nil {
		return nil, err
	}
	letters, err := Letters(ctx, js)
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
		name, ordered := ListenerOf(consumer, func(name string) bool { return all[name] != nil })
		l := known[name]
		if l == nil {
			l = &Listener{Name: name, Ordered: ordered, Letters: letters[name], Retries: retries[name]}
			known[name] = l
			list = append(list, l)
		}
		l.add(info)
		l.Consumers = append(l.Consumers, consumer)
	}
	slices.SortFunc(list, func(a, b *Listener) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

func (l *Listener) add(info *jetstream.ConsumerInfo) {
	l.Lag += info.NumPending
	l.Unacked += info.NumAckPending
	l.Redelivered += info.NumRedelivered
	if until := time.Now().Add(info.PauseRemaining); bus.Paused(info, l.Ordered) && until.After(l.PausedUntil) {
		l.PausedUntil = until.UTC().Truncate(time.Second)
	}
	if l.Delivered == 0 {
		l.Delivered = info.Delivered.Stream
	}
	l.Used = l.Used || info.Delivered.Consumer > 0
	for _, at := range []*time.Time{info.Delivered.Last, info.AckFloor.Last} {
		if at != nil && at.After(l.Last) {
			l.Last = *at
		}
	}
}

// Reset sets the position of a listener, whether it runs or not, and returns the
// sequence that is delivered next. Events in flight are still handled. The
// partitions of an ordered listener are reset one after the other: after an
// error, another call completes the reset.
func Reset(ctx context.Context, js jetstream.JetStream, name string, from eventlog.From) (uint64, error) {
	all, err := consumers(ctx, js)
	if err != nil {
		return 0, err
	}
	var names []string
	for consumer := range all {
		if n, _ := ListenerOf(consumer, func(name string) bool { return all[name] != nil }); n == name {
			names = append(names, consumer)
		}
	}
	if len(names) == 0 {
		return 0, errs.New(errs.NotFound, "there is no listener %s: `belfry listener list` shows the existing ones",
			name)
	}
	sequence, err := from.Sequence(ctx, js)
	if err != nil {
		return 0, err
	}
	for _, consumer := range names {
		if err := move(ctx, js, consumer, sequence); err != nil {
			return 0, errs.Wrap(err, errs.Unavailable, "listener %s is not reset, or only in part: repeat the command",
				name)
		}
	}
	return sequence, nil
}

// move sets a consumer to a sequence. The server resets it atomically unless the
// consumer started with new events or after the sequence: such a consumer is
// created again.
func move(ctx context.Context, js jetstream.JetStream, consumer string, sequence uint64) error {
	_, err := js.ResetConsumerToSequence(ctx, bus.StreamEvents, consumer, sequence)
	if errors.Is(err, jetstream.ErrConsumerInvalidReset) || errors.Is(err, nats.ErrNoResponders) {
		return replace(context.WithoutCancel(ctx), js, consumer, sequence)
	}
	return err
}

const (
	replaceTimeout  = 10 * time.Second
	replaceRetryMin = 10 * time.Millisecond
	replaceRetryMax = time.Second
)

// replace deletes a consumer and creates it with the same settings. A running
// listener may create its consumer in between, at its own start: then it is
// replaced again. It does not give up at once when the server fails to create it, which
// happens while it still removes the files of the deleted one: without its
// consumer, a listener would begin at its configured start.
func replace(ctx context.Context, js jetstream.JetStream, name string, sequence uint64) error {
	ctx, cancel := context.WithTimeout(ctx, replaceTimeout)
	defer cancel()
	c, err := js.Consumer(ctx, bus.StreamEvents, name)
	if err != nil {
		return err
	}
	config := c.CachedInfo().Config
	config.DeliverPolicy, config.OptStartSeq, config.OptStartTime = jetstream.DeliverByStartSequencePolicy, sequence,
		nil
	for delays := backoff.New(replaceRetryMin, replaceRetryMax); ; {
		if err = js.DeleteConsumer(ctx, bus.StreamEvents, name); err != nil &&
			!errors.Is(err, jetstream.ErrConsumerNotFound) {
			return err
		}
		_, err = js.CreateConsumer(ctx, bus.StreamEvents, config)
		switch {
		case errors.Is(err, jetstream.ErrConsumerExists):
		case !serverFailed(err), delays.Wait(ctx) != nil:
			return err
		}
	}
}

// serverFailed reports whether an error is of the server, and not of the request.
func serverFailed(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code >= http.StatusInternalServerError
}

// consumers returns the durable consumers of the log, by name.
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

// ListenerOf returns the listener of a consumer. An ordered listener has one consumer
// for each partition, <name>-<partition>.
func ListenerOf(consumer string, exists func(consumer string) bool) (name string, ordered bool) {
	i := strings.LastIndexByte(consumer, '-')
	if i < 0 {
		return consumer, false
	}
	if p, err := strconv.Atoi(consumer[i+1:]); err != nil || p >= event.Partitions {
		return consumer, false
	}
	for p := range event.Partitions {
		if !exists(fmt.Sprintf("%s-%d", consumer[:i], p)) {
			return consumer, false
		}
	}
	return consumer[:i], true
}

// Letters returns how many dead letters each listener has that has some.
func Letters(ctx context.Context, js jetstream.JetStream) (map[string]uint64, error) {
	return subjects(ctx, js, bus.StreamDead, bus.DeadPrefix)
}

// subjects counts the messages of a stream by the text after a prefix.
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
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return errs.Wrap(err, errs.Unavailable, "the bus lacks a stream of belfry: check that it is belfry's bus; "+
			"`belfry serve` creates the streams when it starts, and so does `belfry bus setup`")
	}
	return errs.Wrap(err, errs.Unavailable,
		"the listeners can't be read: the bus is unavailable, or the user lacks the permission")
}
