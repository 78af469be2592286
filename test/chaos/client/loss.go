package client

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/missed"
	"belfry/test/chaos/history"
	"belfry/test/kit"
)

// Lost ends the listener of a log that was lost while its bus is stopped. It returns the events that the
// listener had received since the last check, in the order of that log.
func (l *Log) Lost() []history.Event {
	l.consumes.Stop()
	<-l.consumes.Closed()
	l.mu.Lock()
	defer l.mu.Unlock()
	events := l.recorded
	l.recorded = nil
	slices.SortStableFunc(events, func(a, b history.Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events
}

// Reopen listens to the log that follows a lost one, from its beginning, once it is there.
func (l *Log) Reopen(ctx context.Context) error {
	l.first, l.next = 1, 1
	ctx, cancel := context.WithTimeout(ctx, kit.Limit)
	defer cancel()
	for delays := backoff.New(100*time.Millisecond, time.Second); ; {
		one, done := context.WithTimeout(ctx, requestTimeout)
		err := l.listen(one)
		done()
		if err == nil {
			return nil
		}
		if delays.Wait(ctx) != nil {
			return fmt.Errorf("listening to the log after it was lost: %w", err)
		}
	}
}

// MissedEvents returns what belfry says that listeners have missed, by consumer.
func (l *Log) MissedEvents(ctx context.Context) (map[string]missed.Status, error) {
	list, err := missed.Fetch(ctx, l.conn)
	all := map[string]missed.Status{}
	for _, s := range list {
		all[s.Consumer] = s
	}
	return all, err
}
