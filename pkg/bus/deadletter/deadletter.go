// Package deadletter looks after the dead letters: the events that a listener
// could not handle, each with the reason. They can be looked at, given to
// their listener again, or dropped.
//
// A retry goes to a stream where each listener has a subject of its own, so
// that no other listener sees it. The letter is removed only once the retry is
// stored; a crash in between leaves both, and the listener handles the event
// twice, which it must bear anyway.
package deadletter

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// Letter is an event that a listener could not handle.
type Letter struct {
	ID       uint64    // its place among the dead letters
	Listener string    // who could not handle it
	Reason   string    // the last error
	Attempts int       // how often it was tried
	Retries  int       // how often it was retried before
	Time     time.Time // when it was given up

	Event    event.Name
	Store    string
	UUID     string
	Sequence uint64 // of the event in the log
	Subject  string // and its subject there

	Omitted bool   // the data was too large for a letter; the log may have it
	Data    []byte // the event as it was; nil in lists
}

// Select says which letters are meant; what is empty selects all.
type Select struct {
	Listener string
	Event    string
	Store    string
	UUID     string
	Reason   string // a part of it, whatever the case
	Since    time.Time
}

// Empty reports whether all letters are selected.
func (s Select) Empty() bool { return s == Select{} }

func (s Select) match(l *Letter) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(s.Listener, l.Listener) && is(s.Event, string(l.Event)) && is(s.Store, l.Store) && is(s.UUID, l.UUID) &&
		strings.Contains(strings.ToLower(l.Reason), strings.ToLower(s.Reason)) && !l.Time.Before(s.Since)
}

// Bus is what the letters need of the bus; *bus.Bus and *bus.Client are one.
type Bus interface {
	JetStream() jetstream.JetStream

	// Sync returns once what the bus has accepted would outlive a power cut.
	Sync(ctx context.Context) error
}

// List calls a function with each selected letter, the oldest first, without
// its data.
func List(ctx context.Context, b Bus, s Select, each func(*Letter) error) error {
	subject := bus.DeadPrefix + ">"
	if s.Listener != "" {
		if strings.ContainsAny(s.Listener, ".*> \t") {
			return errs.New(errs.Invalid, "%q is no name of a listener", s.Listener)
		}
		subject = bus.DeadPrefix + s.Listener
	}
	all := eventlog.Range{Stream: bus.StreamDead, Subjects: []string{subject}, HeadersOnly: true}
	return all.Each(ctx, b.JetStream(), func(m jetstream.Msg, meta *jetstream.MsgMetadata) error {
		if l := read(meta.Sequence.Stream, m.Subject(), m.Headers(), meta.Timestamp); s.match(l) {
			return each(l)
		}
		return nil
	})
}

// Get returns a letter with its data, which is the log's when the letter has
// none. What the log has forgotten is nil.
func Get(ctx context.Context, b Bus, id uint64) (*Letter, error) {
	s, err := b.JetStream().Stream(ctx, bus.StreamDead)
	if err != nil {
		return nil, unavailable(err)
	}
	m, err := s.GetMsg(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil, errs.New(errs.NotFound, "there is no dead letter %d", id)
	}
	if err != nil {
		return nil, unavailable(err)
	}
	l := read(m.Sequence, m.Subject, m.Header, m.Time)
	if !l.Omitted {
		l.Data = m.Data
		return l, nil
	}
	e, err := eventlog.Get(ctx, b.JetStream(), l.Sequence)
	switch {
	case errors.Is(err, errs.NotFound):
		return l, nil
	case err != nil:
		return nil, err
	}
	if e.Subject == l.Subject && !e.Time.After(l.Time) { // else the log began anew
		l.Data = e.Data
	}
	return l, nil
}

// Retry gives a letter's event to its listener again, and then removes the
// letter.
func Retry(ctx context.Context, b Bus, id uint64) error {
	l, err := Get(ctx, b, id)
	if err != nil {
		return err
	}
	if l.Data == nil {
		return errs.New(errs.NotFound, "letter %d has no event: it was too large for a letter, and the log has forgotten event %d", id, l.Sequence)
	}
	m := &nats.Msg{Subject: bus.RetryPrefix + l.Listener, Data: l.Data, Header: nats.Header{
		jetstream.MsgIDHeader:   {strconv.FormatUint(id, 10) + "." + strconv.FormatInt(l.Time.UnixNano(), 10)},
		listener.HeaderSubject:  {l.Subject},
		listener.HeaderSequence: {strconv.FormatUint(l.Sequence, 10)},
		listener.HeaderRetries:  {strconv.Itoa(l.Retries + 1)},
	}}
	_, err = b.JetStream().PublishMsg(ctx, m, jetstream.WithExpectStream(bus.StreamRetry))
	switch {
	case errors.Is(err, nats.ErrMaxPayload):
		return errs.Wrap(err, errs.TooLarge, "the event of letter %d is too large to be retried", id)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return errs.Wrap(err, errs.Unavailable, "the bus has no stream %s, which `belfry serve` or `belfry bus setup` makes", bus.StreamRetry)
	case err != nil:
		return errs.Wrap(err, errs.Unavailable, "the retry of letter %d is not stored; the letter stays", id)
	}
	if err := b.Sync(ctx); err != nil {
		return errs.Wrap(err, errs.Unavailable, "letter %d is being retried, and stays all the same", id)
	}
	if err := Drop(ctx, b, id); err != nil && !errors.Is(err, errs.NotFound) {
		return errs.Wrap(err, errs.KindOf(err), "letter %d is being retried, and stays all the same", id)
	}
	return nil
}

// Drop removes a letter for good.
func Drop(ctx context.Context, b Bus, id uint64) error {
	s, err := b.JetStream().Stream(ctx, bus.StreamDead)
	if err != nil {
		return unavailable(err)
	}
	err = s.DeleteMsg(ctx, id)
	if errors.Is(err, jetstream.ErrMsgNotFound) || errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
		return errs.New(errs.NotFound, "there is no dead letter %d", id)
	}
	return unavailable(err)
}

// read takes a letter from its headers.
func read(id uint64, subject string, h nats.Header, stored time.Time) *Letter {
	l := &Letter{
		ID: id, Listener: strings.TrimPrefix(subject, bus.DeadPrefix), Reason: h.Get(listener.HeaderReason),
		Subject: h.Get(listener.HeaderSubject), Omitted: h.Get(listener.HeaderOmitted) == "true",
	}
	l.Attempts, _ = strconv.Atoi(h.Get(listener.HeaderAttempts))
	l.Retries, _ = strconv.Atoi(h.Get(listener.HeaderRetries))
	l.Sequence, _ = strconv.ParseUint(h.Get(listener.HeaderSequence), 10, 64)
	l.Event, l.Store, l.UUID, _ = eventlog.ParseSubject(l.Subject)
	var err error
	if l.Time, err = time.Parse(time.RFC3339Nano, h.Get(listener.HeaderTime)); err != nil {
		l.Time = stored
	}
	return l
}

func unavailable(err error) error {
	return errs.Wrap(err, errs.Unavailable, "the dead letters can't be reached; the bus may be away, or the user may lack the right")
}
