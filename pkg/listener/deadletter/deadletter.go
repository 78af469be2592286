// Package deadletter lists, retries and drops dead letters: the events that a
// listener could not handle, each with the reason.
//
// A retry is published to a stream with one subject for each listener, so that
// no other listener receives it. The dead letter is deleted only after the retry
// is stored; after a crash in between, the listener handles the event twice,
// which it must tolerate anyway.
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
	ID       uint64    // sequence in stream DEAD
	Listener string    // that could not handle it
	Reason   string    // the last error
	Attempts int       // number of attempts
	Retries  int       // number of retries as a dead letter before
	Time     time.Time // of the last attempt

	Event    event.Name
	Store    string
	UUID     string
	Sequence uint64 // of the event in the log
	Subject  string // of the event in the log

	Omitted bool   // the data was too large for a dead letter; the log may have it
	Data    []byte // the envelope; nil in lists
}

// Select selects dead letters; an empty field selects all.
type Select struct {
	Listener string
	Event    string
	Store    string
	UUID     string
	Reason   string // a substring, in any case
	Since    time.Time
}

// Empty reports whether all letters are selected.
func (s Select) Empty() bool { return s == Select{} }

func (s Select) match(l *Letter) bool {
	is := func(want, have string) bool { return want == "" || want == have }
	return is(s.Listener, l.Listener) && is(s.Event, string(l.Event)) && is(s.Store, l.Store) && is(s.UUID, l.UUID) &&
		strings.Contains(strings.ToLower(l.Reason), strings.ToLower(s.Reason)) && !l.Time.Before(s.Since)
}

// Bus is the part of a bus that dead letters need; *bus.Bus and *bus.Client
// implement it.
type Bus interface {
	JetStream() jetstream.JetStream

	// Sync returns once everything that the bus has accepted would survive a power
	// failure.
	Sync(ctx context.Context) error
}

// List calls a function with each selected dead letter, the oldest first,
// without its data.
func List(ctx context.Context, b Bus, s Select, each func(*Letter) error) error {
	return list(ctx, b, s, 1, each)
}

// list is List from an id on.
func list(ctx context.Context, b Bus, s Select, first uint64, each func(*Letter) error) error {
	subject := bus.DeadPrefix + ">"
	if s.Listener != "" {
		if strings.ContainsAny(s.Listener, ".*> \t") {
			return errs.New(errs.Invalid, "%q is not the name of a listener", s.Listener)
		}
		subject = bus.DeadPrefix + s.Listener
	}
	all := eventlog.Range{Stream: bus.StreamDead, Subjects: []string{subject}, First: first, HeadersOnly: true}
	return all.Each(ctx, b.JetStream(), func(m jetstream.Msg, meta *jetstream.MsgMetadata) error {
		if l := read(meta.Sequence.Stream, m.Subject(), m.Headers(), meta.Timestamp); s.match(l) {
			return each(l)
		}
		return nil
	})
}

// errPageFull ends the reading of a page.
var errPageFull = errors.New("the page is full")

// Page returns at most limit dead letters after an id, the oldest first and without
// their data, of one listener or, for "", of all; more reports whether others follow.
func Page(ctx context.Context, b Bus, listener string, after uint64, limit int) (page []*Letter, more bool, err error) {
	err = list(ctx, b, Select{Listener: listener}, after+1, func(l *Letter) error {
		if len(page) == limit {
			return errPageFull
		}
		page = append(page, l)
		return nil
	})
	if errors.Is(err, errPageFull) {
		return page, true, nil
	}
	return page, false, err
}

// Get returns a dead letter with its data, which is read from the log when the
// dead letter omits it. It is nil when the log no longer has the event.
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
	if e.Subject == l.Subject && !e.Time.After(l.Time) { // else the log was deleted and created again
		l.Data = e.Data
	}
	return l, nil
}

// Retry publishes the event of a dead letter for its listener, and then deletes
// the dead letter.
func Retry(ctx context.Context, b Bus, id uint64) error {
	l, err := Get(ctx, b, id)
	if err != nil {
		return err
	}
	if l.Data == nil {
		return errs.New(errs.NotFound,
			"dead letter %d has no event: it was too large for a dead letter, and the log no longer has event %d", id,
			l.Sequence)
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
		return errs.Wrap(err, errs.TooLarge, "the event of dead letter %d is too large to be retried", id)
	case errors.Is(err, jetstream.ErrNoStreamResponse):
		return errs.Wrap(err, errs.Unavailable,
			"the bus has no stream %s, which `belfry serve` or `belfry bus setup` creates", bus.StreamRetry)
	case err != nil:
		return errs.Wrap(err, errs.Unavailable, "the retry of dead letter %d is not stored; the dead letter is kept",
			id)
	}
	if err := b.Sync(ctx); err != nil {
		return errs.Wrap(err, errs.Unavailable,
			"dead letter %d may be retried, and is kept: the retry is not synced to disk", id)
	}
	if err := Drop(ctx, b, id); err != nil && !errors.Is(err, errs.NotFound) {
		return errs.Wrap(err, errs.KindOf(err), "dead letter %d is being retried, but could not be deleted", id)
	}
	return nil
}

// Drop deletes a dead letter without a retry.
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

// read returns the dead letter that the headers of a message describe.
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
	return errs.Wrap(err, errs.Unavailable,
		"the dead letters can't be read: the bus is unavailable, or the user lacks the permission")
}
