package eventlog_test

import (
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
)

// Events are erased once every listener has handled them, and no others with them.
func TestEventsOfAnObjectAreErased(t *testing.T) {
	b := open(t)
	for range 2 {
		publish(t, b, event.StoreSaved, "Users", "ada")
		publish(t, b, event.StoreSaved, "Users", "bob")
		publish(t, b, event.StoreSaved, "Books", "ada")
	}
	log, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	slow, err := log.CreateConsumer(t.Context(),
		jetstream.ConsumerConfig{Durable: "slow", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	handle := func(n int) {
		t.Helper()
		for range n {
			m, err := slow.Next()
			if err == nil {
				err = m.DoubleAck(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	erase := func(before time.Time, dry bool, want eventlog.Erasure, left ...uint64) {
		t.Helper()
		got, err := eventlog.Erase(t.Context(), b.JetStream(),
			eventlog.Select{Stores: []string{"Users"}, UUIDs: []string{"ada"}}, before, dry)
		if err != nil || got != want {
			t.Errorf("%+v, %v; want %+v", got, err, want)
		}
		if all := sequences(t, b, eventlog.Reader{}); !slices.Equal(all, left) {
			t.Errorf("left: %v, want %v", all, left)
		}
	}
	now := time.Now().Add(time.Minute)
	erase(now.Add(-time.Hour), false, eventlog.Erasure{Young: 2}, 1, 2, 3, 4, 5, 6)
	erase(now, false, eventlog.Erasure{Unhandled: 2, Listener: "slow"}, 1, 2, 3, 4, 5, 6)
	handle(2)
	erase(now, true, eventlog.Erasure{Erased: 1, Unhandled: 1, Listener: "slow"}, 1, 2, 3, 4, 5, 6)
	erase(now, false, eventlog.Erasure{Erased: 1, Unhandled: 1, Listener: "slow"}, 2, 3, 4, 5, 6)
	handle(4)
	erase(now, false, eventlog.Erasure{Erased: 1}, 2, 3, 5, 6)
	erase(now, false, eventlog.Erasure{}, 2, 3, 5, 6)
}
