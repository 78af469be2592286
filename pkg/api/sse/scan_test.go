package sse_test

import (
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats.go"

	"belfry/pkg/api/sse"
	"belfry/pkg/event"
	"belfry/test/kit"
)

// Clients that begin with the oldest event don't read the log each.
func TestClientsThatCatchUpShareOneScanOfTheLog(t *testing.T) {
	t.Parallel()
	const clients, events, page = 40, 3000, 200
	w := newFixture(t)
	w.open("Books", nil)
	w.flood(1, events, "")
	var reads atomic.Int64
	_, err := w.bus.Conn().Subscribe("$JS.API.DIRECT.GET.>", func(*nats.Msg) { reads.Add(1) })
	w.must(err)
	w.must(w.bus.Conn().FlushTimeout(kit.Limit))
	w.start()
	var all []*testClient
	for range clients {
		all = append(all,
			w.connect(sse.Subscription{Events: []string{"Store.Deleted"}, After: after("0")}, anonymous()))
	}
	last := event.Envelope{ID: "last", Event: event.StoreDeleted, Store: "Books", UUID: "b", Revision: events + 1}
	w.publish(event.Subject(event.StoreDeleted, "Books", "b"), string(last.Append(nil)))
	for _, e := range all {
		e.receives("Store.Deleted Books b")
	}
	w.must(w.bus.Conn().FlushTimeout(kit.Limit))
	// The events before the window once, and what the window itself takes.
	if got, most := reads.Load(), int64(2*events/page); got > most {
		t.Errorf("%d clients that read %d events caused %d reads of the log, want at most %d", clients, events, got,
			most)
	}
}
