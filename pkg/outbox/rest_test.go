package outbox_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/outbox"
	"belfry/pkg/store/driver"
)

// ready is a bus that takes everything at once.
type ready struct{}

func (ready) Publish(context.Context, []bus.Event) error { return nil }
func (ready) Sync(context.Context) error                 { return nil }
func (ready) Live(event.Name, []byte)                    {}

// slow is a store that takes its time to clear events.
type slow struct {
	driver.Store
	takes time.Duration

	mu     sync.Mutex
	clears []int // events of each
}

func (*slow) Pending(context.Context, []byte, int) ([]driver.Pending, []byte, error) {
	return nil, nil, nil
}

func (s *slow) Clear(_ context.Context, events []driver.Pending) error {
	s.mu.Lock()
	s.clears = append(s.clears, len(events))
	s.mu.Unlock()
	time.Sleep(s.takes)
	return nil
}

func (s *slow) cleared() (clears, events int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.clears {
		events += n
	}
	return len(s.clears), events
}

// TestSlowStoresAreClearedLessOften: a store that clears slowly has most of the time for
// other requests, and a quick one clears soon.
func TestSlowStoresAreClearedLessOften(t *testing.T) {
	for _, c := range []struct {
		takes       time.Duration
		every       time.Duration // interval of events
		least, most int           // clears in ten seconds
	}{
		{0, 10 * time.Millisecond, 300, 401},
		{100 * time.Millisecond, 10 * time.Millisecond, 20, 26},
		{2 * time.Second, 10 * time.Millisecond, 3, 5},
		{2 * time.Second, time.Millisecond / 2, 5, 6}, // so many come that it clears all the time
	} {
		t.Run(fmt.Sprint(c.takes, c.every), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{takes: c.takes}
				r := start(t, outbox.Options{Publisher: ready{}})
				r.Add("Users", s)
				synctest.Wait()
				n := int(10 * time.Second / c.every)
				for i := range n {
					id := fmt.Sprint(i)
					r.Committed("Users",
						driver.Pending{Event: driver.Event{ID: id,
							Subject: event.Subject(event.StoreSaved, "Users", id)}, UUID: id, Revision: 1})
					time.Sleep(c.every)
				}
				if clears, _ := s.cleared(); clears < c.least || clears > c.most {
					t.Errorf("it cleared %d times, want %d to %d", clears, c.least, c.most)
				}
				if err := r.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, events := s.cleared(); events != n {
					t.Errorf("%d of %d events were cleared", events, n)
				}
			})
		})
	}
}
