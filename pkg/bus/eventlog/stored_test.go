package eventlog_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
)

func stored(t *testing.T, b *bus.Bus, r eventlog.Stored) []uint64 {
	t.Helper()
	var all []uint64
	if err := r.Each(t.Context(), b,
		func(m *eventlog.Message) error { all = append(all, m.Sequence); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// Messages in the middle and at both ends are deleted, and the stream is a work queue.
func TestAllThatAStreamHasIsReadWithoutAConsumer(t *testing.T) {
	b := open(t)
	if got := stored(t, b, eventlog.Stored{Stream: bus.StreamRetry}); got != nil {
		t.Errorf("an empty stream has %v", got)
	}
	const n = 1203 // three pages
	for i := range n {
		if _, err := b.JetStream().PublishMsg(t.Context(),
			&nats.Msg{Subject: "retry.a",
				Header: nats.Header{"Nats-Msg-Id": {fmt.Sprint(i)}, "X": {"y"}}}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.JetStream().Stream(t.Context(), bus.StreamRetry)
	if err != nil {
		t.Fatal(err)
	}
	gone := []uint64{1, 2, 500, 501, 502, 700, n - 1, n}
	for _, sequence := range gone {
		if err := s.DeleteMsg(t.Context(), sequence); err != nil {
			t.Fatal(err)
		}
	}
	var want []uint64
	for i := uint64(1); i <= n; i++ {
		if !slices.Contains(gone, i) {
			want = append(want, i)
		}
	}
	if got := stored(t, b, eventlog.Stored{Stream: bus.StreamRetry}); !slices.Equal(got, want) {
		t.Errorf("%d messages, want %d", len(got), len(want))
	}
	if got := stored(t, b, eventlog.Stored{Stream: bus.StreamRetry, First: n - 3}); !slices.Equal(got,
		[]uint64{n - 3, n - 2}) {
		t.Errorf("the end is %v", got)
	}
	pages := &lagging{Bus: b, replica: b.Conn()}
	if err := (eventlog.Stored{Stream: bus.StreamRetry}).Each(t.Context(), pages,
		func(*eventlog.Message) error { return nil }); err != nil || pages.gets > 5 {
		t.Errorf("%d requests, %v", pages.gets, err)
	}
	stop := errors.New("stop")
	err = eventlog.Stored{Stream: bus.StreamRetry, First: 9}.Each(t.Context(), b, func(m *eventlog.Message) error {
		if m.Sequence != 9 || m.Subject != "retry.a" || len(m.Header) != 2 || m.Header.Get("Nats-Msg-Id") != "8" {
			t.Errorf("%+v", m)
		}
		return stop
	})
	if !errors.Is(err, stop) {
		t.Errorf("an error of the caller: %v", err)
	}
}

// lagging is a bus whose direct gets reach a replica with fewer messages, at first.
type lagging struct {
	*bus.Bus
	replica *nats.Conn
	gets    int
}

func (l *lagging) JetStream() jetstream.JetStream { return laggingStreams{l.Bus.JetStream(), l} }

type laggingStreams struct {
	jetstream.JetStream
	of *lagging
}

func (s laggingStreams) Conn() *nats.Conn {
	if s.of.gets++; s.of.gets <= 3 {
		return s.of.replica
	}
	return s.of.Conn()
}

func TestAReplicaThatLagsIsAwaited(t *testing.T) {
	b, replica := open(t), open(t)
	for i := range 5 {
		publish(t, b, event.StoreSaved, "Books", "a")
		if i < 2 {
			publish(t, replica, event.StoreSaved, "Books", "a")
		}
	}
	l := &lagging{Bus: b, replica: replica.Conn()}
	var all []uint64
	err := eventlog.Stored{Stream: bus.StreamEvents}.Each(t.Context(), l,
		func(m *eventlog.Message) error { all = append(all, m.Sequence); return nil })
	if err != nil || len(all) != 5 || l.gets < 4 {
		t.Errorf("read %v by %d requests, %v", all, l.gets, err)
	}
}
