package sse

import (
	"context"
	"sort"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/internal/backoff"
	"belfry/pkg/bus/eventlog"
)

const (
	pollInterval   = 2 * time.Second // of the log, even if no message wakes the reader
	requestTimeout = 2 * time.Second // for one reply of the bus
	retryMin       = 100 * time.Millisecond
	retryMax       = 2 * time.Second
	idleTimeout    = time.Minute // without a client, after which the window is dropped
	maxEntries     = 1 << 16     // of the window, however small they are
	delayPerClient = 50 * time.Microsecond
	maxDelay       = 500 * time.Millisecond
	maxClientWait  = time.Second
	pageEvents     = 500
	pageBytes      = 2 << 20
)

// reader reads the log on behalf of all clients.
type reader struct {
	hub *Hub

	mu      sync.Mutex
	running bool
	err     error         // why the log can't be read now
	changed chan struct{} // closed, and replaced, when any of the following fields changes

	// epoch numbers the logs that have been read, since a log can be deleted and
	// created again; 0 while none is being read. The window has the events after
	// base, up to position.
	epoch          uint64
	logs           uint64
	log            uint64 // its mark
	mark           uint64 // of the event at position; 0: it is not known
	base, position uint64
	end            uint64 // last known sequence of the log
	window         []*entry
	bytes          int64

	// Clients in the window, and those of them that have been sent all of it.
	joined, caughtUp int
	version          uint64 // of the window
	progress         chan struct{}
}

func newReader(h *Hub) *reader {
	return &reader{hub: h, changed: make(chan struct{}), progress: make(chan struct{}, 1), version: 1}
}

// view is a client's reading of the window.
type view struct {
	epoch          uint64
	log, mark      uint64 // of the log, and of the event at position
	base, position uint64
	end            uint64
	entries        []*entry
	changed        <-chan struct{}
}

const maxView = 256 // entries

// view returns the entries after a client's position. A client whose position is in
// the window has joined it.
func (r *reader) view(s *stream) view {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := view{epoch: r.epoch, log: r.log, mark: r.mark, base: r.base, position: r.position, end: r.end,
		entries: s.entries[:0], changed: r.changed}
	if r.epoch != s.epoch || s.cursor < r.base {
		return v
	}
	if !s.joined {
		s.joined = true
		r.joined++
	}
	from := sort.Search(len(r.window), func(i int) bool { return r.window[i].sequence > s.cursor })
	v.entries = append(v.entries, r.window[from:min(len(r.window), from+maxView)]...)
	if len(v.entries) == 0 && s.version != r.version {
		s.version = r.version
		r.caughtUp++
		r.notifyProgress()
	}
	return v
}

// leave removes a client from those that have joined.
func (r *reader) leave(s *stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.joined {
		return
	}
	s.joined = false
	r.joined--
	if s.version == r.version {
		r.caughtUp--
		s.version = 0
	}
	r.notifyProgress()
}

// mostCaughtUp reports whether nearly all clients have been sent the whole window.
func (r *reader) mostCaughtUp() bool { return 10*r.caughtUp >= 9*r.joined }

func (r *reader) notifyProgress() {
	if r.mostCaughtUp() {
		select {
		case r.progress <- struct{}{}:
		default:
		}
	}
}

// awaitClients waits until most clients have caught up, so that a reader with much to
// read does not push them out of the window. A few slow clients do not delay it,
// many for at most maxClientWait.
func (r *reader) awaitClients(ctx context.Context) {
	timeout := time.NewTimer(maxClientWait)
	defer timeout.Stop()
	for {
		r.mu.Lock()
		most := r.mostCaughtUp()
		r.mu.Unlock()
		if most {
			return
		}
		select {
		case <-r.progress:
		case <-timeout.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// start starts the reader unless it runs.
func (r *reader) start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running || r.hub.ctx.Err() != nil {
		return
	}
	r.running = true
	r.hub.active.Go(r.run)
}

// ready waits until the log is being read or can't be, and returns the error then. It
// waits for at most the timeout.
func (r *reader) ready(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		r.mu.Lock()
		epoch, err, changed := r.epoch, r.err, r.changed
		r.mu.Unlock()
		if epoch > 0 || err != nil {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// run reads until there has been no client for idleTimeout.
func (r *reader) run() {
	ctx := r.hub.ctx
	wake := make(chan struct{}, 1)
	defer r.subscribe(wake)()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	var idleSince, checkedAt time.Time // since when there is no client; when the log was checked
	for retry := backoff.New(retryMin, retryMax); ctx.Err() == nil && !r.stopIdle(&idleSince); {
		check := time.Since(checkedAt) >= pollInterval
		read, more, err := r.advance(ctx, check)
		r.setError(err)
		switch {
		case err != nil:
			_ = retry.Wait(ctx)
			checkedAt = time.Time{}
			continue
		case check:
			checkedAt = time.Now()
		}
		retry.Reset()
		if read > 0 {
			_ = backoff.Sleep(ctx, r.delay())
			if more {
				r.awaitClients(ctx)
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

// delay is how long the reader waits after a read, so that the clients, which are woken
// by each read, are sent several events at once.
func (r *reader) delay() time.Duration {
	return min(time.Duration(r.hub.clientCount())*delayPerClient, maxDelay)
}

// stopIdle stops the reader when there has been no client for idleTimeout.
func (r *reader) stopIdle(idleSince *time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.hub.clientCount() > 0:
		*idleSince = time.Time{}
	case idleSince.IsZero():
		*idleSince = time.Now()
	}
	if idleSince.IsZero() || time.Since(*idleSince) < idleTimeout {
		return false
	}
	r.running, r.log, r.epoch = false, 0, 0
	r.window, r.bytes = nil, 0
	r.hub.scan.release()
	return true
}

// subscribe lets messages on the live subjects wake the reader. Without the permission
// to subscribe, the poll does.
func (r *reader) subscribe(wake chan<- struct{}) (stop func()) {
	var all []*nats.Subscription
	for _, name := range EventNames() {
		s, err := r.hub.opts.Bus.Conn().Subscribe(string(name), func(*nats.Msg) {
			select {
			case wake <- struct{}{}:
			default:
			}
		})
		if err != nil {
			r.hub.opts.Logger.Debug("no permission for live subjects; new events are found by polling", "subject", name,
				"error", err)
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

// setError keeps the reason why the log can't be read, and logs changes of it.
func (r *reader) setError(err error) {
	if r.hub.ctx.Err() != nil {
		return
	}
	r.mu.Lock()
	before := r.err
	r.err = err
	if err != nil && before == nil {
		r.broadcast()
	}
	r.mu.Unlock()
	switch {
	case err != nil && before == nil:
		r.hub.opts.Logger.Warn("the event log can't be read; streams of /events wait", "error", err)
	case err == nil && before != nil:
		r.hub.opts.Logger.Info("the event log is read again")
	}
}

func (r *reader) broadcast() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// advance reads new events, and reports how many and whether there are more. With check
// it first checks that the log is still the same.
func (r *reader) advance(ctx context.Context, check bool) (read int, more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if check {
		if err := r.checkLog(ctx); err != nil {
			return 0, false, err
		}
	}
	at := r.at()
	page, more, err := eventlog.Page(ctx, r.hub.opts.Bus.Conn(), at.sequence+1,
		eventlog.Limit{Events: pageEvents, Bytes: int(min(pageBytes, max(r.hub.opts.Buffer/8, 1)))})
	if err != nil {
		return 0, false, err
	}
	if len(page) > 0 {
		// Between two checks the log may have lost its last events, and received others, which follow the event that is
		// now at the position.
		switch has, err := eventlog.Has(ctx, r.hub.opts.Bus.Conn(), at.sequence, at.event); {
		case err != nil:
			return 0, false, err
		case !has:
			return r.advance(ctx, true)
		}
	}
	var gap *entry
	if len(page) == 0 && check || len(page) > 0 && page[0].Sequence > at.sequence+1 {
		if gap, err = r.hub.gap(ctx, at.sequence); err != nil {
			return 0, false, err
		}
	}
	r.add(gap, page)
	return len(page), more, nil
}

// at returns the position at which the log was last read.
func (r *reader) at() place {
	r.mu.Lock()
	defer r.mu.Unlock()
	return place{sequence: r.position, log: r.log, event: r.mark}
}

// add appends a page to the window and drops the oldest entries.
func (r *reader) add(gap *entry, page []*eventlog.Entry) {
	at := r.at()
	entries := r.hub.entries(at.log, at.sequence, gap, page)
	if len(entries) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range entries {
		r.bytes += e.size()
	}
	r.window = append(r.window, entries...)
	r.position, r.mark = entries[len(entries)-1].sequence, entries[len(entries)-1].mark
	r.version++
	r.caughtUp = 0
	r.end = max(r.end, r.position)
	for len(r.window) > 1 && (r.bytes > r.hub.opts.Buffer || len(r.window) > maxEntries) {
		oldest := r.window[0]
		r.bytes -= oldest.size()
		r.base = oldest.sequence
		r.window[0] = nil
		r.window = r.window[1:]
	}
	r.broadcast()
}
