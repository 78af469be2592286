package eventlog

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/event"
)

// ObjectSubject selects the events of one object, other than Register, which the log has beside a Store.Saved.
func ObjectSubject(store, uuid string) string {
	return event.LogPrefix + strconv.Itoa(event.Partition(uuid)) + ".*.*." + store + "." + event.Token(uuid)
}

// Newest reads the newest events of a subject, which may have wildcards, the newest first: at most n of those before a
// sequence, 0 for all. More reports whether the log has older ones. However many events there are, it makes a
// few requests, without a consumer: the log says how many events follow a sequence, so a binary search finds where to begin.
func Newest(ctx context.Context, conn *nats.Conn, js jetstream.JetStream, subject string, before uint64, n int) (page []*Entry, more bool, err error) {
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
	l := search{ctx: ctx, conn: conn, subject: subject}
	after := l.from(end) // those that are not wanted
	first, low, high := state.First, state.First, end
	total := l.from(first) - after
	for have := total; have > 2*n && high-low > 1 && l.err == nil; {
		middle := low + (high-low)/2
		if rest := l.from(middle) - after; rest >= n {
			first, low, have = middle, middle, rest
		} else {
			high = middle
		}
	}
	for e := range l.read(first, min(2*n, total), end) {
		page = append(page, e)
	}
	if l.err != nil {
		return nil, false, l.err
	}
	slices.Reverse(page)
	page = page[:min(n, len(page))]
	return page, total > len(page), nil
}

// search makes direct gets of the events of a subject. Its first error is kept.
type search struct {
	ctx     context.Context
	conn    *nats.Conn
	subject string
	err     error
}

// from returns how many events there are from a sequence on.
func (s *search) from(sequence uint64) (count int) {
	s.request(sequence, 1, func(_ *Entry, following int) { count = following + 1 })
	return count
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
	replies, err := s.conn.SubscribeSync(s.conn.NewInbox())
	if err != nil {
		s.err = unavailable(err)
		return
	}
	defer func() { _ = replies.Unsubscribe() }()
	if err := s.conn.PublishRequest(directGet, replies.Subject, request); err != nil {
		s.err = unavailable(err)
		return
	}
	for {
		m, err := replies.NextMsgWithContext(s.ctx)
		if err != nil {
			s.err = orDenied(s.conn, directGet, noReply(s.ctx, err))
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
			return // a server without batched direct gets, which does not say what follows
		}
	}
}
