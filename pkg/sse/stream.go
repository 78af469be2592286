package sse

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
)

const (
	againAfter = time.Second // what is away
	sendMost   = 64 << 10    // bytes that come together before they are sent
)

// catchMost bounds what a client that catches up has in hand.
var catchMost = eventlog.Most{Events: 200, Bytes: 64 << 10}

// Reasons for letting a client go, as metrics name them, and what it is told.
const (
	slow    = "slow"
	ended   = "session"
	stopped = "stop"

	slowText    = "too slow: you are further behind than the server keeps events at hand; connect again with the last id"
	endedText   = "your session has ended: log in again"
	stoppedText = "the server stops"
)

// What a client is told when it may have missed something.
const (
	lostText   = "events behind your last id are gone from the log, which has bounds; look at the objects anew. The stream goes on with the oldest event that is kept"
	beyondText = "your last id is beyond the end of the log, which has been made anew; look at the objects anew. The stream goes on with the log's first event"
)

// drop is why a stream ends.
type drop struct{ name, text string }

func (d *drop) Error() string { return d.text }

// errGone says that the client is not there any more.
var errGone = errors.New("the client is gone")

// stream is one client at work.
type stream struct {
	Client
	selection
	hub    *Hub
	viewer *Viewer

	epoch    uint64 // of the log that cursor is a place in; 0: not begun
	cursor   uint64 // everything up to here has been sent, or is not for the client
	told     uint64 // the last id that the client was sent
	joined   bool   // cursor has been in the window
	version  uint64 // of the window, of which all was sent
	catching bool
	unsure   bool // who the client is has to be looked at before anything is sent
	gone     bool // nothing more can be sent
	entries  []*entry
	changed  <-chan struct{}
}

// next is what a stream does after a step.
type next int

const (
	goOn   next = iota
	await       // something new
	repeat      // what is away may be back in a moment
)

// run sends until the client has to go.
func (s *stream) run(ctx context.Context) {
	tick := time.NewTicker(s.hub.Heartbeat)
	defer tick.Stop()
	defer s.hub.tail.part(s)
	defer s.caught()
	// So that not all come back in one moment when a server ends.
	hello := strconv.AppendInt([]byte("retry: "), 1000+rand.N[int64](2000), 10)
	err := s.send(append(hello, "\n\n"...))
	for err == nil {
		var what next
		if what, err = s.step(ctx); err == nil {
			err = s.wait(ctx, what, tick.C)
		}
	}
	var d *drop
	if errors.As(err, &d) {
		s.hub.metrics.dropped.WithLabelValues(d.name).Inc()
		_ = s.notice("dropped", d.text)
	}
}

// always is ready.
var always = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wait waits for what the next step needs, and gives signs of life meanwhile.
func (s *stream) wait(ctx context.Context, what next, tick <-chan time.Time) error {
	var changed <-chan struct{}
	var again <-chan time.Time
	switch what {
	case await:
		changed = s.changed
	case repeat:
		again = time.After(againAfter)
	case goOn:
		changed = always
	}
	select {
	case <-s.Stop: // even if there is more to send
		return &drop{stopped, stoppedText}
	default:
	}
	select {
	case <-ctx.Done():
		return errGone
	case <-s.Stop:
		return &drop{stopped, stoppedText}
	case <-tick:
		return s.beat(ctx)
	case <-changed:
	case <-again:
	}
	return nil
}

// beat shows that the stream lives, and looks whether it still may.
func (s *stream) beat(ctx context.Context) error {
	sign := []byte(":\n\n")
	if s.epoch > 0 && s.cursor != s.told {
		sign = append(appendID(sign, s.cursor), '\n')
		s.told = s.cursor
	}
	if err := s.send(sign); err != nil {
		return err
	}
	return s.identify(ctx)
}

// identify looks anew who the client is. While that can't be said nothing is
// sent.
func (s *stream) identify(ctx context.Context) error {
	viewer, err := s.Identify(ctx)
	switch {
	case errors.Is(err, errs.Unauthenticated):
		return &drop{ended, endedText}
	case ctx.Err() != nil:
		return errGone
	case err != nil:
		s.unsure = true
		return nil //nolint:nilerr // it will be tried again
	}
	s.viewer, s.unsure = viewer, false
	return nil
}

// step sends what there is.
func (s *stream) step(ctx context.Context) (next, error) {
	if s.unsure {
		if err := s.identify(ctx); err != nil || s.unsure {
			return repeat, err
		}
	}
	v := s.hub.tail.view(s)
	s.entries, s.changed = v.entries, v.changed
	switch {
	case v.epoch == 0:
		return await, nil
	case v.epoch != s.epoch:
		return s.begin(ctx, v)
	case s.cursor < v.base && s.joined:
		return goOn, &drop{slow, slowText}
	case s.cursor < v.base:
		return s.catchUp(ctx)
	}
	s.caught()
	if len(v.entries) == 0 {
		return await, nil
	}
	return s.pass(ctx, v.entries)
}

// begin finds the client's place in a log.
func (s *stream) begin(ctx context.Context, v view) (next, error) {
	switch {
	case s.epoch > 0: // there was another log
		s.hub.tail.part(s)
		s.cursor, s.epoch = 0, v.epoch
		return goOn, s.notice("reset", beyondText)
	case s.after == nil:
		s.cursor = v.end
	default:
		s.cursor = *s.after
	}
	if s.cursor > v.end {
		state, err := eventlog.Look(ctx, s.hub.Bus.JetStream())
		if err != nil {
			return repeat, nil //nolint:nilerr // the bus is away
		}
		if s.cursor > state.Last {
			s.cursor, s.epoch = 0, v.epoch
			return goOn, s.notice("reset", beyondText)
		}
	}
	s.epoch, s.told = v.epoch, s.cursor
	return goOn, s.send(append(appendID(nil, s.cursor), "event: ready\ndata: {}\n\n"...))
}

// notice tells the client about the stream itself, and where it is.
func (s *stream) notice(name, text string) error {
	var out []byte
	if s.epoch > 0 {
		out = appendID(out, s.cursor)
		s.told = s.cursor
	}
	return s.send(appendNotice(out, name, text))
}

// catchUp sends a page of the log.
func (s *stream) catchUp(ctx context.Context) (next, error) {
	if !s.catching {
		s.catching = true
		s.hub.metrics.catching.Inc()
	}
	entries, err := s.page(ctx)
	if ctx.Err() != nil {
		return goOn, errGone
	}
	if err != nil || len(entries) == 0 {
		return repeat, nil //nolint:nilerr // the bus is away, or who answers for it is behind
	}
	return s.pass(ctx, entries)
}

// caught notes that a client reads the log by itself no more.
func (s *stream) caught() {
	if s.catching {
		s.catching = false
		s.hub.metrics.catching.Dec()
	}
}

// page reads what comes behind the cursor from the log. A number of clients do
// at once; what they have read they send without keeping others waiting.
func (s *stream) page(ctx context.Context) ([]*entry, error) {
	select {
	case s.hub.reading <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.Stop:
		return nil, nil
	}
	defer func() { <-s.hub.reading }()
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	page, _, err := eventlog.Page(ctx, s.hub.Bus.Conn(), s.cursor+1, catchMost)
	if err != nil {
		return nil, err
	}
	entries := s.entries[:0]
	if len(page) == 0 || page[0].Sequence > s.cursor+1 {
		lost, err := s.hub.lost(ctx, s.cursor)
		if err != nil {
			return nil, err
		}
		if lost != nil {
			entries = append(entries, lost)
		}
	}
	for _, e := range page {
		entries = append(entries, s.hub.entry(e))
	}
	s.entries = entries
	return entries, nil
}

// frames are buffers in which frames come together.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// pass sends those of some entries that are for the client, and moves the
// cursor behind the last one that it is done with.
func (s *stream) pass(ctx context.Context, entries []*entry) (next, error) {
	buffer := frames.Get().(*[]byte)
	defer frames.Put(buffer)
	defer clear(entries) // or a client that hears nothing for long would keep them
	out, count := (*buffer)[:0], 0
	flush := func() error {
		if len(out) == 0 {
			return nil
		}
		err := s.send(out)
		s.hub.metrics.sent.Add(float64(count))
		*buffer, out, count = out[:0], out[:0], 0
		return err
	}
	for _, e := range entries {
		if e.sequence <= s.cursor {
			continue
		}
		if e.identity != "" && (e.identity == s.viewer.Session || e.identity == s.viewer.UUID) {
			if err := errors.Join(flush(), s.identify(ctx)); err != nil {
				return goOn, err
			}
			if s.unsure {
				return repeat, nil
			}
		}
		hears, err := s.hears(ctx, e)
		if err != nil {
			return repeat, flush()
		}
		s.cursor = e.sequence
		if e.lost {
			out = appendNotice(appendID(out, s.cursor), "reset", lostText)
			s.told = s.cursor
		}
		if hears {
			out = append(out, e.frame...)
			s.told = s.cursor
			count++
		}
		if len(out) >= sendMost {
			if err := flush(); err != nil {
				return goOn, err
			}
		}
	}
	return goOn, flush()
}

// hears reports whether an entry is for the client. An error is one of a store
// that is away; what fails for another reason is not told.
func (s *stream) hears(ctx context.Context, e *entry) (bool, error) {
	if !s.takes(e) {
		return false, nil
	}
	if e.judge == nil {
		return true, nil
	}
	ok, err := e.judge.allows(ctx, s.viewer)
	if err == nil {
		return ok, nil
	}
	if ctx.Err() != nil || errors.Is(err, errs.Unavailable) || errs.KindOf(err) == errs.Canceled {
		return false, err
	}
	s.hub.Logger.Error("an event is not told: whether it may be can't be judged", "sequence", e.sequence, "error", err)
	return false, nil
}

// send sends, unless the client is not there or takes nothing.
func (s *stream) send(data []byte) error {
	if s.gone {
		return errGone
	}
	err := s.Send(data)
	s.gone = err != nil
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &drop{slow, slowText}
	case err != nil:
		return errGone
	}
	return nil
}
