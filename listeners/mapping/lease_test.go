package mapping_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/pkg/event"
	protocol "belfry/pkg/mapping"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/model"
)

// fillState is what the processes of the model share about a fill, as pkg/mapping/fill does.
type fillState struct {
	Holder string
	Begun  bool // a fill is in progress, or was interrupted
	Filled bool // it is complete
}

// lease can be claimed at any time: a holder may have stalled at any step, and no two clocks agree.
// TestALeaseInEveryInterleaving has the times.
func (s *fillState) lease() store.Lease {
	stalled := func() bool { return true }
	return store.Lease{Holder: &s.Holder, Beat: new(uint64), Lasts: time.Minute, Ended: stalled}
}

func sharedFill(s *store.Store) store.Shared[fillState] {
	return store.Shared[fillState]{Store: s, UUID: "state"}
}

// fence is the condition on which a process records that the fill is complete.
type fence func(s *fillState, process string) bool

func fenced(s *fillState, process string) bool {
	return s.lease().Renew(process, time.Time{}) && s.Begun && !s.Filled
}

// leasedFill is a process that claims the lease, fills, and records it.
func leasedFill(process string, set *store.Set, mine fence) func(ctx context.Context, _ *event.Envelope) error {
	r, shared := protocol.NewReconciler(set, protocol.Options{}), sharedFill(set.Store("Books"))
	return func(ctx context.Context, _ *event.Envelope) error {
		claimed := false
		_, _, err := shared.Change(ctx, func(s *fillState) bool {
			if claimed = !s.Filled; claimed {
				s.lease().Claim(process, time.Time{})
				s.Begun = true
			}
			return claimed
		})
		if err != nil || !claimed {
			return err
		}
		if err := fillAll(ctx, r, set, "a"); err != nil {
			return err
		}
		_, _, err = shared.Change(ctx, func(s *fillState) bool {
			has := mine(s, process)
			s.Filled = s.Filled || has
			return has
		})
		return err
	}
}

// leased is a scenario of two processes that fill, each of which may stall or crash between any two steps while the
// other one takes over. Meanwhile an event is lost, and the fill is requested again.
func leased(mine fence) (model.Scenario, func(*store.Set) []model.Consumer) {
	request := func(ctx context.Context, s *store.Store) error {
		_, _, err := sharedFill(s).Change(ctx, func(s *fillState) bool {
			s.Begun, s.Filled = false, false
			return true
		})
		return err
	}
	lose := func(ctx context.Context, s *store.Store) error {
		_, err := s.Update(ctx, encoded.Object{"title": []byte(`"lost"`)}, store.UpdateOptions{UUID: "x"})
		return cmp.Or(err, request(ctx, s))
	}
	s := model.Scenario{
		Mappings: books(100), MaxInFlight: 2, AtomicClients: true, Crash: true, MaxCrashes: 1,
		OneHandler: true, // a process fills once at a time
		Setup: []model.Op{
			model.Save("Authors", "a", `{}`), model.Save("Authors", "c", `{}`),
			model.Save("Books", "x", `{"author":"a","title":"1"}`),
			model.Save("Books", "state", `{"state":{}}`), model.Do("request", "Books", "state", request),
		},
		Clients: [][]model.Op{{model.Update("Authors", "c", `{"begin":1}`), model.Do("lose", "Books", "x", lose),
			model.Delete("Authors", "c")}},
	}
	s.Fault.DropEvent = func(e *event.Envelope) bool {
		return e.Store == "Books" && (e.UUID == "state" || strings.Contains(string(e.Object), "lost"))
	}
	return s, func(set *store.Set) []model.Consumer {
		return append(workers(set),
			model.Consumer{Name: "process 1", Filters: []string{event.Filter(event.StoreUpdated, "Authors")},
				Handle: leasedFill("1", set, mine)},
			model.Consumer{Name: "process 2", Filters: []string{event.Filter(event.StoreDeleted, "Authors")},
				Handle: leasedFill("2", set, mine)})
	}
}

// filledAsRecorded checks that arrays are right after a fill that is recorded as complete, which some process does.
func filledAsRecorded(ctx context.Context, set *store.Set, histories model.Histories) error {
	s, _, err := sharedFill(set.Store("Books")).Get(ctx)
	switch _, begun := histories["Authors/c"]; {
	case err != nil:
		return err
	case s.Filled:
		return checkInvariant(ctx, set, histories)
	case begun && !histories["Authors/c"].Live:
		return fmt.Errorf("nobody fills: %+v", s)
	}
	return nil
}

func TestArraysConvergeWhileProcessesTakeOverALease(t *testing.T) {
	s, consumers := leased(fenced)
	c, err := model.New(t.Context(), s, consumers, filledAsRecorded)
	if err != nil {
		t.Fatal(err)
	}
	exploreAll(t, c)
}

// Without the fence, a process that stalled records its former fill as the one that was requested since.
func TestModelFindsLeasesWithoutAFence(t *testing.T) {
	for name, mine := range map[string]fence{
		"the lease is another process's": func(s *fillState, _ string) bool { return s.Begun && !s.Filled },
		"the fill is over": func(s *fillState, process string) bool {
			return s.lease().Renew(process, time.Time{})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, consumers := leased(mine)
			c, err := model.New(t.Context(), s, consumers, filledAsRecorded)
			if err != nil {
				t.Fatal(err)
			}
			stats, err := c.Explore(t.Context(), 1_000_000)
			var v *model.Violation
			if !errors.As(err, &v) || errors.Is(err, model.ErrNoTermination) {
				t.Fatalf("the fault was not found: %v, %v", stats, err)
			}
		})
	}
}
