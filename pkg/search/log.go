package search

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/bus/eventlog"
)

// sharedLog is the log for all indexes of a process. Those that follow it together read each page once.
type sharedLog struct {
	conn *nats.Conn
	js   jetstream.JetStream

	reading sync.Mutex // held while a page is read
	recent  []logPage

	mu   sync.Mutex
	ends []logEnd // the last ones that are known, the oldest first
}

// logPage is a page of the log.
type logPage struct {
	first  uint64
	events []*eventlog.Entry
	more   bool
	read   time.Time
}

// logEnd is the end of the log at a time.
type logEnd struct {
	at       time.Time
	sequence uint64
}

const (
	keptPages = 2 // each may have 4 MiB

	// Beyond one of these an index is late.
	lateAfter  = 10 * time.Second
	lateEvents = 10_000
)

// page returns the events from a sequence on. One that was read a moment ago for another index is not read again.
func (l *sharedLog) page(ctx context.Context, first uint64) (events []*eventlog.Entry, more bool, err error) {
	l.reading.Lock()
	defer l.reading.Unlock()
	l.recent = slices.DeleteFunc(l.recent,
		func(p logPage) bool { return !p.more && time.Since(p.read) > pollInterval/2 })
	if i := slices.IndexFunc(l.recent, func(p logPage) bool { return p.first == first }); i >= 0 {
		return l.recent[i].events, l.recent[i].more, nil
	}
	events, more, err = eventlog.Page(ctx, l.conn, first, pageLimit)
	if err != nil {
		return nil, false, err
	}
	l.recent = append(l.recent, logPage{first, events, more, time.Now()})
	l.recent = l.recent[max(0, len(l.recent)-keptPages):]
	return events, more, nil
}

// state returns the bounds of the log.
func (l *sharedLog) state(ctx context.Context) (eventlog.State, error) {
	state, err := eventlog.GetState(ctx, l.js)
	if err == nil {
		l.note(state.Last, time.Now())
	}
	return state, err
}

// note keeps the end of the log at a time. It drops the ends of a log that was replaced.
func (l *sharedLog) note(sequence uint64, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.ends); n > 0 && l.ends[n-1].sequence > sequence {
		l.ends = nil
	}
	l.ends = append(l.ends, logEnd{at, sequence})
	for len(l.ends) > 1 && at.Sub(l.ends[1].at) >= lateAfter {
		l.ends = l.ends[1:]
	}
}

// behind returns how many events were not followed by an index that has followed the log to a sequence, and whether
// these are too many, or have been there for too long.
func (l *sharedLog) behind(followed uint64) (events uint64, late bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ends) == 0 {
		return 0, false
	}
	first, last := l.ends[0], l.ends[len(l.ends)-1]
	if last.sequence > followed {
		events = last.sequence - followed
	}
	return events, events > lateEvents || first.sequence > followed && last.at.Sub(first.at) >= lateAfter
}

// watch reads the end of the log at intervals, independently of the indexes.
func (l *sharedLog) watch(ctx context.Context) {
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		_, _ = l.state(limited) // the indexes report errors of the log
		cancel()
		_ = backoff.Sleep(ctx, checkInterval) // ends with ctx
	}
}
