package eventlog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Object is an object of which Newest reads events.
type Object struct{ Store, UUID string }

// Changes returns the names of the events that say how an object has changed. Register is not among them, which the log
// has beside a Store.Saved, nor are those about the security of the account that a user is.
func Changes() []event.Name {
	return slices.DeleteFunc(event.Unrestricted(), func(n event.Name) bool { return n == event.Register })
}

// Newest reads the newest events of some names, all of two tokens, of an object, the newest first: at most n of those
// before a sequence, 0 for all. More reports whether the log has older ones. However many events there are, it makes a
// few requests, without a consumer: the log says how many events of a subject follow a sequence, so a search finds
// where to begin.
func Newest(ctx context.Context, conn *nats.Conn, js jetstream.JetStream, of Object, names []event.Name, before uint64,
	n int) (page []*Entry, more bool, err error) {
	state, err := GetState(ctx, js)
	if err != nil {
		return nil, false, err
	}
	ctx, release := whileConnected(ctx, conn)
	defer release()
	end := state.Last + 1
	if before > 0 {
		end = min(end, before)
	}
	page, total, err := newest(ctx, conn, of, names, state, end, n)
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(page, func(a, b *Entry) int { return cmp.Compare(b.Sequence, a.Sequence) })
	page = page[:min(n, len(page))]
	return page, total > len(page), nil
}

// newest reads at least the newest n events of some names before a sequence, in any order, and returns how many there
// are. Most objects have few, which one request finds for all subjects. Where there are many, each subject is searched:
// a server finds those of one subject by its index, but reads all events after a sequence to count those of a wildcard.
func newest(ctx context.Context, conn *nats.Conn, of Object, names []event.Name, log State, end uint64,
	n int) (page []*Entry, total int, err error) {
	all := search{ctx: ctx, conn: conn, subject: event.Subject(pattern(names), of.Store, of.UUID)}
	first, total := all.from(log.First)
	if total <= 2*n {
		for e := range all.read(first, total, end) {
			if name, _, _, ok := ParseSubject(e.Subject); ok && slices.Contains(names, name) {
				page = append(page, e)
			}
		}
		return page, len(page), all.err
	}
	total = 0
	var found sync.Mutex
	var searches errgroup.Group
	for _, name := range names {
		searches.Go(func() error {
			one := search{ctx: ctx, conn: conn, subject: event.Subject(name, of.Store, of.UUID)}
			some, of := one.newest(log.First, end, n)
			found.Lock()
			defer found.Unlock()
			page, total = append(page, some...), total+of
			return one.err
		})
	}
	err = searches.Wait()
	return page, total, err
}

// pattern is the narrowest pattern that matches some names.
func pattern(names []event.Name) event.Name {
	if !slices.ContainsFunc(names, func(n event.Name) bool { return !n.IsAuth() }) {
		return event.AuthPattern
	}
	return "*.*"
}

// search makes direct gets of the events of a subject. Its first error is kept.
type search struct {
	ctx     context.Context
	conn    *nats.Conn
	subject string
	err     error
}

// newest reads the newest n events from one sequence on and before another, or a few more, and returns how many there
// are.
func (s *search) newest(first, end uint64, n int) (page []*Entry, total int) {
	// Those that are not wanted. There may be some after the last event too: it was the last when the state was read.
	_, after := s.from(end)
	low, total := s.from(first)
	if total -= after; total <= 0 {
		return nil, 0
	}
	// From low on there are at least n, from high on fewer.
	have, high, beyond := total, end, 0
	if have > 2*n && after == 0 {
		high = min(high, s.last()+1)
	}
	for step := 0; have > 2*n && high-low > 1 && s.err == nil; step++ {
		middle := low + (high-low)/2
		if step%2 == 0 { // events often come evenly: then this is where to begin
			share := (float64(have) - 1.5*float64(n)) / float64(have-beyond)
			middle = min(max(low+uint64(share*float64(high-low)), low+1), high-1)
		}
		found, rest := s.from(middle)
		if rest -= after; rest >= n {
			low, have = max(found, middle), rest
		} else {
			high, beyond = middle, rest
		}
	}
	for e := range s.read(low, min(2*n, have), end) {
		page = append(page, e)
	}
	slices.Reverse(page)
	return page[:min(n, len(page))], total
}

// from returns the sequence of the first event from a sequence on, and how many there are from there.
func (s *search) from(sequence uint64) (first uint64, count int) {
	s.request(sequence, 1, func(e *Entry, following int) { first, count = e.Sequence, following+1 })
	return first, count
}

// last returns the sequence of the newest event, 0 for none.
func (s *search) last() uint64 {
	if s.err != nil {
		return 0
	}
	e, err := Last(s.ctx, s.conn, s.subject)
	if errors.Is(err, errs.NotFound) {
		return 0
	}
	if s.err = err; err != nil {
		return 0
	}
	return e.Sequence
}

// read iterates over up to count events from a sequence on, before another.
func (s *search) read(first uint64, count int, end uint64) func(func(*Entry) bool) {
	return func(yield func(*Entry) bool) {
		more := true
		for count > 0 && more && s.err == nil {
			got := 0
			s.request(first, count, func(e *Entry, following int) {
				got++
				if more = more && following > 0 && e.Sequence < end; e.Sequence < end {
					first = e.Sequence + 1
					more = yield(e) && more
				}
			})
			count -= got
			more = more && got > 0
		}
	}
}

// request sends one direct get. each is called with an event and how many follow it.
func (s *search) request(first uint64, batch int, each func(e *Entry, following int)) {
	if s.err != nil {
		return
	}
	request, err := json.Marshal(map[string]any{"seq": max(first, 1), "next_by_subj": s.subject, "batch": batch})
	if err != nil {
		s.err = err
		return
	}
	replies, err := repliesTo(s.conn, batch)
	if err != nil {
		s.err = unavailable(err)
		return
	}
	defer func() { _ = replies.Unsubscribe() }()
	if err := s.conn.PublishRequest(DirectGet, replies.Subject, request); err != nil {
		s.err = unavailable(err)
		return
	}
	for {
		m, err := replies.NextMsgWithContext(s.ctx)
		if err != nil {
			s.err = orDenied(s.conn, DirectGet, noReply(s.ctx, err))
			return
		}
		if status := m.Header.Get("Status"); status != "" {
			_, s.err = end(status, m)
			return
		}
		entry, err := direct(m)
		if err != nil {
			s.err = err
			return
		}
		pending := m.Header.Get("Nats-Num-Pending")
		following, _ := strconv.Atoi(pending)
		each(entry, following)
		if pending == "" {
			return // a server without batched direct gets, which does not announce further events
		}
	}
}
