package sse_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"belfry/pkg/api/sse"
	"belfry/pkg/event"
	"belfry/test/kit"
)

// hasReceived waits until the client has received a number of messages.
func (e *testClient) hasReceived(want int) {
	e.Helper()
	kit.WaitUntil(e, func() error {
		if n := len(e.received()); n != want {
			return fmt.Errorf("%d messages were received, want %d", n, want)
		}
		return nil
	})
}

func envelope(uuid string, n int, pad string) string {
	e := event.Envelope{ID: fmt.Sprintf("e%d", n), Event: event.StoreSaved, Store: "Books", UUID: uuid,
		Revision: uint64(n), Object: []byte(fmt.Sprintf(`{"uuid":%q,"n":%d,"pad":%q}`, uuid, n, pad))}
	return string(e.Append(nil))
}

// flood publishes events of Books, from one on.
func (w *fixture) flood(from, to int, pad string) {
	for n := from; n <= to; n++ {
		w.publish(event.Subject(event.StoreSaved, "Books", "b"), envelope("b", n, pad))
		w.bus.Live(event.StoreSaved, nil)
	}
}

// A client that disconnects and resumes again and again while events are published
// receives each exactly once and in order: from the window, from the log, and across
// the change from one to the other.
func TestNoEventIsMissedOrRepeated(t *testing.T) {
	t.Parallel()
	const events, clients = 1500, 12
	w := newFixture(t)
	w.open("Books", nil)
	// A window that holds few of the events, so that resuming reads the log.
	w.start(func(o *sse.Options) { o.Buffer = 40 << 10 })
	w.flood(1, 100, "")
	all := make([][]string, clients)
	var running sync.WaitGroup
	for i := range clients {
		running.Go(func() {
			last := "0"
			for last != fmt.Sprint(events) {
				e := w.connect(sse.Subscription{After: after(last)}, anonymous())
				goal := len(all[i]) + 1 + rand.IntN(200)
				kit.WaitUntil(t, func() error {
					select {
					case <-e.done:
						return nil
					default:
					}
					if got := len(all[i]) + len(e.received()); got < min(goal, events) {
						return fmt.Errorf("%d events were received, want %d", got, min(goal, events))
					}
					return nil
				})
				e.leave()
				for _, m := range e.received() {
					if m.event != "dropped" { // for being slow, which it may be here
						all[i] = append(all[i], m.id)
					}
				}
				last = e.lastID()
			}
		})
	}
	w.flood(101, events, "")
	running.Wait()
	var want []string
	for n := range events {
		want = append(want, fmt.Sprint(n+1))
	}
	for i, got := range all {
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("client %d received %d events: %s", i, len(got), got)
		}
	}
}

// A client that does not read its stream is disconnected once the events it has not
// received have left the window. It receives the reason, and resumes where it was.
func TestASlowClientIsDisconnectedAndResumes(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.start(func(o *sse.Options) { o.Buffer = 100 << 10 })
	quick, slow := w.listen(sse.Subscription{}, anonymous()), w.listen(sse.Subscription{}, anonymous())
	for range 10 { // otherwise one slow client is half of all, for whom the tail waits
		w.listen(sse.Subscription{Events: []string{"Store.Deleted"}}, anonymous())
	}
	w.flood(1, 1, "")
	slow.receives("Store.Saved Books b")
	hold := make(chan struct{})
	slow.mu.Lock()
	slow.hold = hold
	slow.mu.Unlock()
	for n := 2; n <= 300; n++ {
		w.flood(n, n, strings.Repeat("x", 1000))
		if n%20 == 0 { // or the quick client is too slow when it pauses for a moment
			quick.hasReceived(n)
		}
	}
	slow.mu.Lock()
	slow.hold = nil
	slow.mu.Unlock()
	close(hold)
	if reason := slow.ends(); !strings.HasPrefix(reason, "too slow") {
		t.Errorf("the reason is %q", reason)
	}
	before := slow.received()
	again := w.connect(sse.Subscription{After: after(slow.lastID())}, anonymous())
	kit.WaitUntil(t, func() error {
		if n := len(before) - 1 + len(again.received()); n != 300 {
			return fmt.Errorf("%d of 300 events were received", n)
		}
		return nil
	})
	if first := again.received()[0].id; first != fmt.Sprint(len(before)) {
		t.Errorf("it resumes with %s, after %d events", first, len(before)-1)
	}
}

// An event that is larger than anything bounded is sent nevertheless, from the
// window and from the log.
func TestLargeEvents(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.start(func(o *sse.Options) { o.Buffer = 1000 })
	live1 := w.listen(sse.Subscription{}, anonymous())
	for n := 1; n <= 3; n++ {
		w.flood(n, n, strings.Repeat("x", 200<<10))
		live1.hasReceived(n) // or it is too slow for a window of one event
	}
	w.listen(sse.Subscription{After: after("0")}, anonymous()).receives("Store.Saved Books b", "Store.Saved Books b",
		"Store.Saved Books b")
}
