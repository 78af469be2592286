package mapping_test

import (
	"context"
	"strings"
	"testing"

	"belfry/listeners/mapping"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/test/model"
)

// Events that a worker handles in one batch can fill an array, be refused an entry, and make room, in any order. Here
// they are those of two books that are created and of one that moves away; the last of them begins the batch.
func TestArraysConvergeWhenEventsAreHandledTogether(t *testing.T) {
	for _, order := range []string{"v x y", "x v y", "x y v", "y x v"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			s := model.Scenario{
				MaxInFlight:   2,
				Mappings:      books(2),
				Setup:         join(authors(), model.Save("Books", "v", `{"author":"a"}`)),
				AtomicClients: true,
				Clients: [][]model.Op{
					{model.Save("Books", "x", `{"author":"a"}`), model.Save("Books", "y", `{"author":"a"}`),
						model.Update("Books", "v", `{"author":"b"}`)},
					{model.Save("Books", "u", `{"author":"a"}`)},
				},
			}
			s.Fault.DropEvent = func(e *event.Envelope) bool { return e.UUID == "x" || e.UUID == "y" } // handled with v
			c, err := model.New(t.Context(), s, func(set *store.Set) []model.Consumer {
				w := mapping.NewWorker(set, mapping.Options{})
				handle := func(ctx context.Context, e *event.Envelope) error {
					if e.Event == event.StoreUpdated {
						return w.HandleTogether(ctx, e, strings.Fields(order)...)
					}
					return w.HandleSerially(ctx, e)
				}
				return []model.Consumer{{Name: "mapping", Filters: mapping.Filters(set), Handle: handle}}
			}, afterTheMove)
			if err != nil {
				t.Fatal(err)
			}
			exploreAll(t, c)
		})
	}
}

// afterTheMove checks the invariant once the batch has begun: until then events of it are waiting.
func afterTheMove(ctx context.Context, set *store.Set, histories model.Histories) error {
	v, err := set.Store("Books").Get(ctx, "v")
	if err != nil || !strings.Contains(string(v.Body), `"author":"b"`) {
		return err
	}
	return checkInvariant(ctx, set, histories)
}
