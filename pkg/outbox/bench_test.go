package outbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/outbox"
	"belfry/pkg/store/driver"
)

// sink is a store whose events need no clearing.
type sink struct {
	driver.Store
	cleared atomic.Int64
}

func (*sink) Pending(context.Context, []byte, int) ([]driver.Pending, []byte, error) {
	return nil, nil, nil
}

func (s *sink) Clear(_ context.Context, events []driver.Pending) error {
	s.cleared.Add(int64(len(events)))
	return nil
}

// BenchmarkRelay carries events of 900 bytes to an embedded bus, as fast as it
// takes them.
func BenchmarkRelay(b *testing.B) {
	r := start(b, outbox.Options{Publisher: open(b)})
	s := &sink{}
	r.Add("Users", s)
	flush(b, r)
	payload := []byte(strings.Repeat("x", 900))
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		id := fmt.Sprintf("0199f3a1-0000-7000-8000-%d", i)
		r.Committed("Users", driver.Pending{
			Event: driver.Event{ID: id, Subject: event.Subject(event.StoreSaved, "Users", id), Payload: payload},
			UUID:  id, Revision: 1,
		})
		if i%5_000 == 4_999 {
			flush(b, r)
		}
	}
	flush(b, r)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
