package mapping_test

import (
	"context"
	"slices"
	"testing"

	"belfry/listeners/mapping"
	"belfry/pkg/event"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/model"
)

// publishedBooks are mapped into the arrays of authors once they are published.
func publishedBooks(limit int) []store.Mapping {
	when, problems := policy.CompileCondition("source.published == true")
	if len(problems) > 0 {
		panic(problems)
	}
	m := books(limit)
	m[0].When = when
	return m
}

const publishedByA = `{"author":"a","published":true}`

// conditionScenarios are explored like smallScenarios.
func conditionScenarios() map[string]model.Scenario {
	published := func(uuid string) model.Op { return model.Save("Books", uuid, publishedByA) }
	scenario := func(limit int, setup []model.Op, clients ...[]model.Op) model.Scenario {
		return model.Scenario{Mappings: publishedBooks(limit), Setup: join(authors(), setup...), AtomicClients: true,
			Clients: clients}
	}
	return map[string]model.Scenario{
		"a condition changes while the source moves": scenario(0,
			[]model.Op{published("x")},
			[]model.Op{model.Update("Books", "x", `{"published":false}`)},
			[]model.Op{model.Update("Books", "x", `{"author":"b"}`)},
		),
		"a condition changes in the write that moves the source": scenario(0,
			[]model.Op{published("x")},
			[]model.Op{model.Update("Books", "x", `{"author":"b","published":false}`),
				model.Update("Books", "x", `{"author":"a","published":true}`)},
		),
		"a hidden source in a store whose arrays are at their limit": scenario(1,
			[]model.Op{published("x"), published("y"), model.Save("Books", "z", `{"author":"a"}`)},
			[]model.Op{model.Update("Books", "x", `{"published":false}`)},
			[]model.Op{model.Update("Books", "z", `{"published":true}`)},
		),
		"a hidden source is created before its target": {
			Mappings:      publishedBooks(0),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Books", "x", `{"author":"a"}`), model.Update("Books", "x", `{"published":true}`)},
				{model.Save("Authors", "a", `{}`)},
			},
		},
	}
}

// constant is a condition that was evaluated before.
type constant bool

func (c constant) Holds([]byte) bool { return bool(c) }

// withConditionOfEvents are workers that evaluate the condition of a mapping on the object of
// the event, instead of on the stored one.
func withConditionOfEvents(set *store.Set) []model.Consumer {
	handle := func(ctx context.Context, e *event.Envelope) error {
		mappings := slices.Clone(set.Mappings())
		for i := range mappings {
			if e.Store == mappings[i].Source {
				mappings[i].When = constant(mappings[i].When.Holds(e.Object))
			}
		}
		stores := []*store.Store{set.Store("Books"), set.Store("Authors")}
		return mapping.NewWorker(store.NewSet(stores, mappings), mapping.Options{}).HandleSerially(ctx, e)
	}
	return []model.Consumer{{Name: "mapping", Filters: mapping.Filters(set), Handle: handle}}
}

// dropHidden drops the events of books that are not published: what workers would do who take such a book for one
// that names nobody, and forget that it had an entry before.
func dropHidden(e *event.Envelope) bool {
	return e.Store == "Books" && string(encoded.Field(e.Object, "published")) != "true"
}

// A worker that evaluates the condition on an event's object, or that does nothing for what the condition hides, is
// found: objects keep entries that they must not have, or have none.
func TestModelFindsWhereConditionsAreEvaluatedWrongly(t *testing.T) {
	t.Parallel()
	for name, s := range conditionScenarios() {
		if name == "a hidden source is created before its target" {
			continue // it had no entry before
		}
		for variant, consumers := range map[string]func(*store.Set) []model.Consumer{
			"on the object of the event": withConditionOfEvents, "not at all for what is hidden": workers,
		} {
			s := s
			s.MaxInFlight = 2
			if variant == "not at all for what is hidden" {
				s.Fault.DropEvent = dropHidden
			}
			t.Run(variant+": "+name, func(t *testing.T) {
				t.Parallel()
				findFault(t, s, consumers)
			})
		}
	}
}
