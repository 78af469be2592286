package sse

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"belfry/pkg/bus/eventlog"
)

// scanLimits bounds a page of the log that is read for clients which catch up.
var scanLimits = eventlog.Limit{Events: 200, Bytes: 64 << 10}

// scanShare is the part of the buffer that the scan's pages may take as well.
const scanShare = 4

// scan reads the log for all clients that are before the window. It reads one page at a
// time for any number of clients, and every client that waits for a part of the page gets
// it. A client that needs it a little later finds it in memory. So clients that begin
// with the oldest event cost one scan of the log together.
//
// The scan alternates between two waiting clients. The client with the lowest position
// comes first, so that later clients catch up with earlier ones and continue with them.
// The longest waiting client comes next, so that clients that keep restarting do not
// delay others for long.
type scan struct {
	hub *Hub

	mu      sync.Mutex
	running bool
	lowest  bool // the next page is for the lowest position
	waiting []*pageRequest
	pages   []*logPage // the oldest read first
	bytes   int64
}

// pageRequest is a client that waits for the events after a sequence.
type pageRequest struct {
	epoch, after uint64
	done         chan struct{}
	entries      []*entry // set before done is closed, and shared: must not be modified
	err          error
}

// logPage has all events of a log after a sequence, up to last.
type logPage struct {
	epoch, after, last uint64
	entries            []*entry
	bytes              int64
}

// has reports whether a client can continue with the page.
func (p *logPage) has(epoch, after uint64) bool {
	return p.epoch == epoch && p.after <= after && after < p.last
}

// read returns a page with the events after a sequence, and perhaps some before. It is
// empty at the end of the log, and when stop is closed. It must not be modified.
func (s *scan) read(ctx context.Context, epoch, after uint64, stop <-chan struct{}) ([]*entry, error) {
	r, held := s.request(epoch, after)
	if r == nil {
		return held, nil
	}
	select {
	case <-r.done:
		return r.entries, r.err
	case <-ctx.Done():
		s.withdraw(r)
		return nil, ctx.Err()
	case <-stop:
		s.withdraw(r)
		return nil, nil
	}
}

// request returns the entries of a page that is in memory, or adds a request.
func (s *scan) request(epoch, after uint64) (*pageRequest, []*entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pages {
		if p.has(epoch, after) {
			return nil, p.entries
		}
	}
	r := &pageRequest{epoch: epoch, after: after, done: make(chan struct{})}
	s.waiting = append(s.waiting, r)
	if !s.running {
		s.running = true
		s.hub.active.Go(s.run)
	}
	return r, nil
}

func (s *scan) withdraw(r *pageRequest) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w *pageRequest) bool { return w == r })
}

// run reads pages until nobody waits.
func (s *scan) run() {
	for r := s.next(); r != nil; r = s.next() {
		entries, err := s.hub.readPage(r.after)
		s.deliver(r, entries, err)
	}
}

// next returns the request whose page is read next; nil when nobody waits.
func (s *scan) next() *pageRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		s.running = false
		return nil
	}
	s.lowest = !s.lowest
	if !s.lowest {
		return s.waiting[0]
	}
	return slices.MinFunc(s.waiting, func(a, b *pageRequest) int { return cmp.Compare(a.after, b.after) })
}

// deliver replies to all clients that wait for a part of a page. An error is for everyone.
func (s *scan) deliver(of *pageRequest, entries []*entry, err error) {
	p := &logPage{epoch: of.epoch, after: of.after, last: of.after, entries: entries}
	for _, e := range entries {
		p.last = e.sequence
		p.bytes += e.size()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(w *pageRequest) bool {
		if err == nil && w != of && !p.has(w.epoch, w.after) {
			return false
		}
		w.entries, w.err = entries, err
		close(w.done)
		return true
	})
	if len(entries) > 0 {
		s.hold(p)
	}
}

// hold keeps a page in memory, and drops those that were read first, or from another
// log.
func (s *scan) hold(p *logPage) {
	s.pages, s.bytes = append(s.pages, p), s.bytes+p.bytes
	for len(s.pages) > 0 && (s.bytes > s.hub.opts.Buffer/scanShare || s.pages[0].epoch != p.epoch) {
		s.bytes -= s.pages[0].bytes
		s.pages[0] = nil
		s.pages = s.pages[1:]
	}
}

// release drops all pages.
func (s *scan) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages, s.bytes = nil, 0
}

// size is the approximate memory of the pages, in bytes.
func (s *scan) size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// readPage reads the entries after a sequence from the log.
func (h *Hub) readPage(after uint64) ([]*entry, error) {
	ctx, cancel := context.WithTimeout(h.ctx, requestTimeout)
	defer cancel()
	h.metrics.pages.Inc()
	log := h.reader.at().log
	page, _, err := eventlog.Page(ctx, h.opts.Bus.Conn(), after+1, scanLimits)
	if err != nil {
		return nil, err
	}
	var gap *entry
	if len(page) == 0 || page[0].Sequence > after+1 {
		if gap, err = h.gap(ctx, after); err != nil {
			return nil, err
		}
	}
	return h.entries(log, after, gap, page), nil
}
