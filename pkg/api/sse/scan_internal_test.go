package sse

import (
	"errors"
	"testing"

	"belfry/config"
)

func waiting(s *scan, epoch, after uint64) *pageRequest {
	r := &pageRequest{epoch: epoch, after: after, done: make(chan struct{})}
	s.waiting = append(s.waiting, r)
	return r
}

func (r *pageRequest) isDone() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

func TestAPageIsForAllWhoWaitForAPartOfIt(t *testing.T) {
	s := &scan{hub: &Hub{opts: Options{EventStreams: config.EventStreams{Buffer: 1 << 20}}}}
	of, within, first, last, after, other := waiting(s, 1, 5), waiting(s, 1, 7), waiting(s, 1, 4), waiting(s, 1, 8),
		waiting(s, 1, 20), waiting(s, 2, 6)
	s.deliver(of, []*entry{{sequence: 6}, {sequence: 8}}, nil)
	for r, want := range map[*pageRequest]bool{of: true, within: true, first: false, last: false, after: false,
		other: false} {
		if r.isDone() != want || want != (len(r.entries) == 2) {
			t.Errorf("epoch %d after %d: served %t with %d entries, want %t", r.epoch, r.after, r.isDone(),
				len(r.entries), want)
		}
	}
	// A client that comes later finds the page; one of another log, or before or after it, does not.
	s.running = true
	for _, c := range []struct {
		epoch, after uint64
		held         bool
	}{{1, 5, true}, {1, 7, true}, {1, 4, false}, {1, 8, false}, {2, 6, false}} {
		if r, entries := s.request(c.epoch, c.after); (r == nil) != c.held || c.held != (len(entries) == 2) {
			t.Errorf("epoch %d after %d: %d entries, want them held: %t", c.epoch, c.after, len(entries), c.held)
		}
	}
	s.deliver(other, nil, errors.New("cut off"))
	if len(s.waiting) > 0 || !after.isDone() || after.err == nil {
		t.Errorf("%d wait after an error", len(s.waiting))
	}
}

func TestTheLowestPositionAndTheLongestWaitTakeTurns(t *testing.T) {
	s := &scan{hub: &Hub{opts: Options{EventStreams: config.EventStreams{Buffer: 1 << 20}}}, running: true}
	oldest, lowest := waiting(s, 1, 900), waiting(s, 1, 3)
	waiting(s, 1, 500)
	for i, want := range []*pageRequest{lowest, oldest, lowest, oldest} {
		if got := s.next(); got != want {
			t.Errorf("turn %d is for the events after %d, want %d", i, got.after, want.after)
		}
	}
}

func TestPagesThatAreHeldAreBounded(t *testing.T) {
	s := &scan{hub: &Hub{opts: Options{EventStreams: config.EventStreams{Buffer: 40_000}}}}
	for n := range uint64(100) {
		s.deliver(&pageRequest{epoch: 1, after: n, done: make(chan struct{})},
			[]*entry{{sequence: n + 1, frame: make([]byte, 1000)}}, nil)
		if s.size() > 40_000/scanShare {
			t.Fatalf("%d pages of %d bytes are held", len(s.pages), s.size())
		}
	}
	if len(s.pages) == 0 || s.pages[len(s.pages)-1].after != 99 {
		t.Errorf("%d pages are held, without the last one", len(s.pages))
	}
	s.deliver(&pageRequest{epoch: 2, after: 0, done: make(chan struct{})}, []*entry{{sequence: 1}}, nil)
	if len(s.pages) != 1 || s.size() > 1000 {
		t.Errorf("%d pages are held, also of another log", len(s.pages))
	}
}
