package sse

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"belfry/pkg/errs"
)

const (
	retryDelay = time.Second // while the bus or a store is unavailable
	sendSize   = 64 << 10    // bytes that are collected before they are sent
)

// Reasons for disconnecting a client, as metrics name them, and the texts that it is sent.
const (
	slow        = "slow"
	ended       = "session"
	hiddenField = "fields"
	stopped     = "stop"
	retired     = "reload"

	slowText    = "too slow: the next events are no longer in the memory of the server; connect again with the last id"
	endedText   = "your session has ended: log in again"
	stoppedText = "the server stops"
	retiredText = "the configuration of the server has changed: connect again with the last id"

	hiddenFieldText = "you may no longer read a field that the filter names"
)

// Texts that a client is sent when it may have missed events.
const (
	lostText = "events after your last id have been deleted from the log, whose size is limited; read the objects " +
		"again. The stream continues with the oldest event in the log"
	removedText = "events after your last id have been removed from the log; read the objects again. The stream " +
		"continues with the next event"
	beyondText = "your last id is after the end of the log, which has been created again; read the objects again. " +
		"The stream continues with the first event in the log"
	otherText = "your last id is of an event that is not in the log: it has been created again, or has lost its " +
		"newest events; read the objects again. The stream continues with the first event in the log"
	rightsText = "your rights, or the rules, have changed; read the objects again. The stream continues after your " +
		"last id"
	unknownText = "your last id is not known here: it is from an earlier release, or from other data; read the " +
		"objects again. The stream continues with the next event"
)

// drop is the reason why a stream ends.
type drop struct{ name, text string }

func (d *drop) Error() string { return d.text }

var errDisconnected = errors.New("the client has disconnected")

// stream is the state of one client.
type stream struct {
	Client
	filter
	hub    *Hub
	viewer *Viewer

	allowance *allowance    // budget of the rules
	delay     time.Duration // of retryLater; 0: retryDelay

	proof    proof // of a stream that selects objects
	regained bool  // its rights have changed, and it has not been sent a reset

	epoch        uint64 // of the log that cursor refers to; 0: not begun
	cursor       uint64 // all entries up to this have been sent or are not for the client
	log, mark    uint64 // of the log, and of the event at cursor
	joined       bool   // cursor has been in the window
	version      uint64 // of the window that has been sent completely
	catching     bool
	unidentified bool // the client has to be authenticated before anything is sent
	disconnected bool // nothing more can be sent
	entries      []*entry
	changed      <-chan struct{}
}

// next is the next step of a stream.
type next int

const (
	proceed      next = iota
	awaitEntries      // of the log
	retryLater        // after stream.delay
)

// run sends until the client disconnects or is disconnected.
func (s *stream) run(ctx context.Context) {
	tick := time.NewTicker(s.hub.opts.Heartbeat)
	defer tick.Stop()
	defer s.hub.reader.leave(s)
	defer s.endCatchUp()
	defer func() { s.allowance.settle() }()
	// A random delay, so that not all clients of a server that stops reconnect at once.
	retry := strconv.AppendInt([]byte("retry: "), 1000+rand.N[int64](2000), 10)
	err := s.send(append(retry, "\n\n"...))
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

// closed is a closed channel.
var closed = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// wait waits for the condition of the next step, and sends heartbeats meanwhile.
func (s *stream) wait(ctx context.Context, what next, tick <-chan time.Time) error {
	var changed <-chan struct{}
	var again <-chan time.Time
	switch what {
	case awaitEntries:
		changed = s.changed
	case retryLater:
		again = time.After(cmp.Or(s.delay, retryDelay))
		s.delay = 0
	case proceed:
		changed = closed
	}
	select {
	case <-s.Stop: // even if there is more to send
		return &drop{stopped, stoppedText}
	case <-s.hub.retired: // other rules apply to later events
		return &drop{retired, retiredText}
	default:
	}
	select {
	case <-ctx.Done():
		return errDisconnected
	case <-s.Stop:
		return &drop{stopped, stoppedText}
	case <-s.hub.retired:
		return &drop{retired, retiredText}
	case <-tick:
		return s.heartbeat(ctx)
	case <-changed:
	case <-again:
	}
	return nil
}

// heartbeat sends a heartbeat and authenticates the client again.
func (s *stream) heartbeat(ctx context.Context) error {
	beat := []byte(":\n\n")
	if s.epoch > 0 {
		// Always, also at the same position: otherwise ids would show that there was an event.
		beat = append(s.hub.appendID(beat, s.place()), '\n')
	}
	if err := s.send(beat); err != nil {
		return err
	}
	return s.identify(ctx)
}

// identify authenticates the client again. While that is not possible nothing is
// sent.
func (s *stream) identify(ctx context.Context) error {
	viewer, err := s.Identify(ctx)
	switch {
	case errors.Is(err, errs.Unauthenticated):
		return &drop{ended, endedText}
	case ctx.Err() != nil:
		return errDisconnected
	case err != nil:
		s.unidentified = true
		return nil //nolint:nilerr // step tries again
	}
	s.viewer, s.unidentified = viewer, false
	s.checkRights()
	s.allowance.settle()
	s.allowance = s.hub.costs.of(viewer, s.Address, time.Now())
	return nil
}

// step sends the next entries.
func (s *stream) step(ctx context.Context) (next, error) {
	if s.unidentified {
		if err := s.identify(ctx); err != nil || s.unidentified {
			return retryLater, err
		}
	}
	v := s.hub.reader.view(s)
	s.entries, s.changed = v.entries, v.changed
	switch {
	case v.epoch == 0:
		return awaitEntries, nil
	case v.epoch != s.epoch:
		return s.begin(ctx, v)
	case s.regained:
		return s.resetRights(ctx)
	case s.cursor < v.base && s.joined:
		return proceed, &drop{slow, slowText}
	case s.cursor < v.base:
		return s.catchUp(ctx)
	}
	s.endCatchUp()
	if len(v.entries) == 0 {
		return awaitEntries, nil
	}
	return s.sendEntries(ctx, v.entries)
}

// notice sends an event about the stream itself, and the client's position.
func (s *stream) notice(name, text string) error {
	var out []byte
	if s.epoch > 0 {
		out = s.hub.appendID(out, s.place())
	}
	return s.send(appendNotice(out, name, text))
}

// catchUp sends a page of the log.
func (s *stream) catchUp(ctx context.Context) (next, error) {
	if !s.catching {
		s.catching = true
		s.hub.metrics.catching.Inc()
	}
	entries, err := s.readPage(ctx)
	if ctx.Err() != nil {
		return proceed, errDisconnected
	}
	if err != nil || len(entries) == 0 {
		return retryLater, nil //nolint:nilerr // the bus is unavailable, or the server that replied lags
	}
	return s.sendEntries(ctx, entries)
}

// endCatchUp notes that a client no longer reads pages of the log.
func (s *stream) endCatchUp() {
	if s.catching {
		s.catching = false
		s.hub.metrics.catching.Dec()
	}
}

// readPage reads a page with the entries after the cursor from the log.
func (s *stream) readPage(ctx context.Context) ([]*entry, error) {
	page, err := s.hub.scan.read(ctx, s.epoch, s.cursor, s.Stop)
	s.entries = append(s.entries[:0], page...)
	return s.entries, err
}

// frames are buffers for frames that are sent together.
var frames = sync.Pool{New: func() any { return new([]byte) }}

// sendEntries sends the entries that are for the client, and advances the cursor past
// the last one that has been handled.
func (s *stream) sendEntries(ctx context.Context, entries []*entry) (next, error) {
	buffer := frames.Get().(*[]byte)
	defer frames.Put(buffer)
	defer clear(entries) // or an idle client would keep them in memory
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
		if s.hub.isRetired() {
			break
		}
		if e.identity != "" && (e.identity == s.viewer.Session || e.identity == s.viewer.UUID) {
			if err := errors.Join(flush(), s.identify(ctx)); err != nil {
				return proceed, err
			}
			if s.unidentified {
				return retryLater, nil
			}
			if s.regained {
				return proceed, nil
			}
		}
		what, hidden, err := s.authorized(ctx, e)
		if err != nil {
			if end := (*drop)(nil); errors.As(err, &end) {
				return proceed, errors.Join(flush(), err)
			}
			if late := (exhausted{}); errors.As(err, &late) {
				s.delay = late.wait
				s.hub.metrics.ruleWaits.Inc()
			}
			return retryLater, flush()
		}
		s.cursor, s.mark = e.sequence, e.mark
		if e.gap != "" {
			out = appendNotice(s.hub.appendID(out, s.place()), "reset", e.gap)
		}
		switch what {
		case whole:
			out = s.appendEntry(out, e, hidden)
			count++
		case left:
			out = s.appendLeft(out, e)
			count++
		}
		if len(out) >= sendSize {
			if err := flush(); err != nil {
				return proceed, err
			}
		}
	}
	return proceed, flush()
}

// authorized decides what of an entry the client is sent: what it subscribes to and may receive, and without which
// fields. An error is that of an unavailable store, exhausted, or the drop that ends the stream; an entry whose rule
// fails for another reason is not sent.
func (s *stream) authorized(ctx context.Context, e *entry) (what outcome, hidden []string, err error) {
	if !s.match(e) {
		return nothing, nil, nil
	}
	if e.name.IsAuth() {
		if s.viewer.Audit {
			what = whole
		}
		return what, nil, nil
	}
	d := decision{allowed: true, former: allowed}
	if e.auth != nil {
		d, err = e.auth.decisionFor(ctx, s.viewer, s.allowance, nil)
	}
	switch {
	case err != nil:
	case s.selects:
		if what, err = s.selected(ctx, e, d); what == byFormer {
			if d, err = e.auth.decisionFor(ctx, s.viewer, s.allowance, e); err == nil {
				what, err = s.selected(ctx, e, d)
			}
		}
	case d.allowed && !slices.Contains(d.hidden, e.property) && (!e.isFile() || s.fields.Has(e.property)):
		what = whole
	}
	if err == nil {
		return what, d.hidden, nil
	}
	if ctx.Err() != nil || errors.As(err, new(exhausted)) || errors.As(err, new(*drop)) ||
		errors.Is(err, errs.Unavailable) || errs.KindOf(err) == errs.Canceled {
		return nothing, nil, err
	}
	s.hub.opts.Logger.Error("an event is not sent: the rule for it can't be evaluated", "sequence", e.sequence,
		"error", err)
	return nothing, nil, nil
}

// send sends, unless the client has disconnected or does not read.
func (s *stream) send(data []byte) error {
	if s.disconnected {
		return errDisconnected
	}
	err := s.Send(data)
	s.disconnected = err != nil
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &drop{slow, slowText}
	case err != nil:
		return errDisconnected
	}
	return nil
}
