package sse

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/backoff"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
)

const (
	pollEvery   = 2 * time.Second // a look at the log, whoever woke the tail or not
	askWithin   = 2 * time.Second // for one answer of the bus
	retryMin    = 100 * time.Millisecond
	retryMax    = 2 * time.Second
	lingerFor   = time.Minute // without a client; who comes back meanwhile finds the window
	maxEntries  = 1 << 16     // of the window, however small they are
	restClient  = 50 * time.Microsecond
	restLongest = 500 * time.Millisecond
	waitLongest = time.Second
	pageEvents  = 500
	pageBytes   = 2 << 20
)

// tail reads the log on behalf of all clients.
type tail struct {
	hub *Hub

	mu      sync.Mutex
	running bool
	problem error         // why the log can't be read now
	changed chan struct{} // closed, and replaced, when any of what follows changes

	// epoch is the number of the log that is being read, of those that ever
	// were; 0 while none is. What the log holds behind base and up to position
	// is in the window.
	epoch          uint64
	logs           uint64
	created        time.Time
	base, position uint64
	end            uint64 // of the log, as far as it is known
	window         []*entry
	bytes          int64

	// Of the clients that are in the window, how many have been sent all of it.
	joined, arrived int
	version         uint64 // of the window
	arrival         chan struct{}
}

func newTail(h *Hub) *tail {
	return &tail{hub: h, changed: make(chan struct{}), arrival: make(chan struct{}, 1), version: 1}
}

// view is what a client sees of the tail.
type view struct {
	epoch          uint64
	base, position uint64
	end            uint64
	entries        []*entry
	changed        <-chan struct{}
}

const viewMost = 256 // entries

// view returns what comes behind a client's place. Who finds itself in the
// window has joined.
func (t *tail) view(s *stream) view {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := view{epoch: t.epoch, base: t.base, position: t.position, end: t.end, entries: s.entries[:0], changed: t.changed}
	if t.epoch != s.epoch || s.cursor < t.base {
		return v
	}
	if !s.joined {
		s.joined = true
		t.joined++
	}
	from := sort.Search(len(t.window), func(i int) bool { return t.window[i].sequence > s.cursor })
	v.entries = append(v.entries, t.window[from:min(len(t.window), from+viewMost)]...)
	if len(v.entries) == 0 && s.version != t.version {
		s.version = t.version
		t.arrived++
		t.arrive()
	}
	return v
}

// part forgets that a client has joined.
func (t *tail) part(s *stream) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !s.joined {
		return
	}
	s.joined = false
	t.joined--
	if s.version == t.version {
		t.arrived--
		s.version = 0
	}
	t.arrive()
}

// most reports whether nearly all clients have been sent what is in the window.
func (t *tail) most() bool { return 10*t.arrived >= 9*t.joined }

func (t *tail) arrive() {
	if t.most() {
		select {
		case t.arrival <- struct{}{}:
		default:
		}
	}
}

// awaitMost keeps the tail, when it has much to read, from pushing everybody
// out of the window. A few slow clients do not hold it up, and many not for long.
func (t *tail) awaitMost(ctx context.Context) {
	timeout := time.NewTimer(waitLongest)
	defer timeout.Stop()
	for {
		t.mu.Lock()
		most := t.most()
		t.mu.Unlock()
		if most {
			return
		}
		select {
		case <-t.arrival:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ensure has the tail run while there are clients.
func (t *tail) ensure() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running || t.hub.life.Err() != nil {
		return
	}
	t.running = true
	t.hub.active.Go(t.run)
}

// ready waits until the log is being read, or for at most a time until it is
// known why it is not.
func (t *tail) ready(ctx context.Context, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		t.mu.Lock()
		epoch, problem, changed := t.epoch, t.problem, t.changed
		t.mu.Unlock()
		if epoch > 0 || problem != nil {
			return problem
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// run reads until nobody has listened for a while.
func (t *tail) run() {
	ctx := t.hub.life
	wake := make(chan struct{}, 1)
	defer t.listen(wake)()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	var alone, looked time.Time // since when nobody listens; when the log was looked at
	for wait := retryMin; ctx.Err() == nil && !t.leave(&alone); {
		looking := time.Since(looked) >= pollEvery
		read, more, err := t.advance(ctx, looking)
		t.note(err)
		switch {
		case err != nil:
			_ = backoff.Sleep(ctx, wait)
			wait, looked = min(2*wait, retryMax), time.Time{}
			continue
		case looking:
			looked = time.Now()
		}
		wait = retryMin
		if read > 0 {
			_ = backoff.Sleep(ctx, t.rest())
			if more {
				t.awaitMost(ctx)
			}
			continue
		}
		select {
		case <-wake:
		case <-poll.C:
		case <-ctx.Done():
		}
	}
}

// rest is how long the tail lets events come together, so that the waking of
// many clients serves more than one.
func (t *tail) rest() time.Duration {
	return min(time.Duration(t.hub.listening())*restClient, restLongest)
}

// leave ends the tail when nobody has listened for a while; alone is since when.
func (t *tail) leave(alone *time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.hub.listening() > 0:
		*alone = time.Time{}
	case alone.IsZero():
		*alone = time.Now()
	}
	if alone.IsZero() || time.Since(*alone) < lingerFor {
		return false
	}
	t.running, t.created, t.epoch = false, time.Time{}, 0
	t.window, t.bytes = nil, 0
	return true
}

// listen has the live subjects wake the tail up. Where the user may not hear
// them, the poll still does.
func (t *tail) listen(wake chan<- struct{}) (stop func()) {
	var all []*nats.Subscription
	for _, name := range Heard() {
		s, err := t.hub.Bus.Conn().Subscribe(string(name), func(*nats.Msg) {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		if err != nil {
			t.hub.Logger.Debug("live events do not wake the reading of the log", "subject", name, "error", err)
			continue
		}
		all = append(all, s)
	}
	return func() {
		for _, s := range all {
			_ = s.Unsubscribe()
		}
	}
}

// note keeps why the log can't be read, and tells when that begins and ends.
func (t *tail) note(err error) {
	if t.hub.life.Err() != nil {
		return
	}
	t.mu.Lock()
	before := t.problem
	t.problem = err
	if err != nil && before == nil {
		t.announce()
	}
	t.mu.Unlock()
	switch {
	case err != nil && before == nil:
		t.hub.Logger.Warn("the log of events can't be read; who listens at /events waits", "error", err)
	case err == nil && before != nil:
		t.hub.Logger.Info("the log of events is read again")
	}
}

func (t *tail) announce() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// advance reads what is new, and reports how many events and whether there are
// more. looking asks first whether the log is still the same.
func (t *tail) advance(ctx context.Context, looking bool) (read int, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	if looking {
		if err := t.look(ctx); err != nil {
			return 0, false, err
		}
	}
	position := t.at()
	page, more, err := eventlog.Page(ctx, t.hub.Bus.Conn(), position+1,
		eventlog.Most{Events: pageEvents, Bytes: int(min(pageBytes, max(t.hub.Buffer/8, 1)))})
	if err != nil {
		return 0, false, err
	}
	var lost *entry
	if len(page) == 0 && looking || len(page) > 0 && page[0].Sequence > position+1 {
		if lost, err = t.hub.lost(ctx, position); err != nil {
			return 0, false, err
		}
	}
	t.add(lost, page)
	return len(page), more, nil
}

func (t *tail) at() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.position
}

// look compares the log with what is known of it. The tail begins a little before
// the end of a log: when belfry has been away, everybody comes back at once and
// wants the same few events.
func (t *tail) look(ctx context.Context) error {
	if !t.hub.Bus.Conn().IsConnected() {
		return errs.New(errs.Unavailable, "the bus is away")
	}
	state, err := eventlog.Look(ctx, t.hub.Bus.JetStream())
	if err != nil || t.same(state) {
		return err
	}
	// Whether it may be read is known only when it has been tried.
	if _, _, err := eventlog.Page(ctx, t.hub.Bus.Conn(), state.Last, eventlog.Most{Events: 1, Bytes: 1}); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.logs++
	t.epoch, t.created = t.logs, state.Created
	t.end = state.Last
	t.base = max(state.First-1, state.Last-min(state.Last, pageEvents))
	t.position = t.base
	t.window, t.bytes = nil, 0
	t.version++
	t.arrived = 0
	t.announce()
	return nil
}

// same reports whether a state is one of the log that is being read.
func (t *tail) same(state eventlog.State) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.epoch == 0 || !state.Created.Equal(t.created) || state.Last < t.position {
		return false
	}
	t.end = state.Last
	return true
}

// add puts a page into the window and lets the oldest entries go.
func (t *tail) add(lost *entry, page []*eventlog.Entry) {
	entries := make([]*entry, 0, len(page)+1)
	if lost != nil {
		entries = append(entries, lost)
	}
	for _, e := range page {
		entries = append(entries, t.hub.entry(e))
	}
	if len(entries) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range entries {
		t.bytes += e.size()
	}
	t.window = append(t.window, entries...)
	t.position = entries[len(entries)-1].sequence
	t.version++
	t.arrived = 0
	t.end = max(t.end, t.position)
	for len(t.window) > 1 && (t.bytes > t.hub.Buffer || len(t.window) > maxEntries) {
		gone := t.window[0]
		t.bytes -= gone.size()
		t.base = gone.sequence
		t.window[0] = nil
		t.window = t.window[1:]
	}
	t.announce()
}

// lost returns the mark of events that the log does not hold any more: those
// behind a place, up to its beginning. It is nil where nothing is lost.
func (h *Hub) lost(ctx context.Context, after uint64) (*entry, error) {
	state, err := eventlog.Look(ctx, h.Bus.JetStream())
	if err != nil || state.First <= after+1 {
		return nil, err
	}
	return &entry{sequence: state.First - 1, lost: true}, nil
}
