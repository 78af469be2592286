package eventlog_test

import (
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/event"
)

// BenchmarkNewest reads the history of an object whose events are in the middle of a long log, and of one whose events
// are spread over it.
func BenchmarkNewest(b *testing.B) {
	const events = 300_000
	log, err := bus.Open(b.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: b.TempDir()}), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = log.Close(b.Context()) }()
	var some []bus.Event
	for i := range events {
		name, uuid := event.StoreSaved, fmt.Sprintf("other-%d", i)
		switch {
		case i > events/2 && i < events/2+2000:
			name, uuid = event.StoreUpdated, "dense"
		case i%1000 == 0:
			name, uuid = event.StoreUpdated, "spread"
		}
		e := event.Envelope{ID: fmt.Sprint("e", i), Event: name, Store: "Books", UUID: uuid, Revision: uint64(i + 1),
			Object: []byte(`{"note":"` + strings.Repeat("x", 400) + `"}`)}
		some = append(some, bus.Event{ID: e.ID, Subject: event.Subject(name, e.Store, uuid), Payload: e.Append(nil)})
		if len(some) == 1000 || i == events-1 {
			if err := log.Publish(b.Context(), some); err != nil {
				b.Fatal(err)
			}
			some = nil
		}
	}
	for _, uuid := range []string{"dense", "spread", "other-5", "nobody"} {
		b.Run(uuid, func(b *testing.B) {
			before := processorTime(b)
			for b.Loop() {
				if _, _, err := eventlog.Newest(b.Context(), log.Conn(), log.JetStream(),
					eventlog.Object{Store: "Books", UUID: uuid}, eventlog.Changes(), 0, 21); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "processor-µs/op")
		})
	}
}

// processorTime is that of this process, with the server in it: other programs on the machine do not change it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
