package mapping_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	"belfry/listeners/mapping"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/model"
)

// counted maps books into authors, whose number of books is computed and mapped onward into publishers.
func counted(clients ...[]model.Op) model.Scenario {
	computed, problems := policy.CompileComputed(map[string]string{"count": "size(books)"},
		policy.Known{Arrays: []string{"books"}})
	if len(problems) > 0 {
		panic(problems)
	}
	return model.Scenario{
		Mappings: []store.Mapping{
			{Source: "Books", Target: "Authors", Key: "author", Array: "books"},
			{Source: "Authors", Target: "Publishers", Key: "publisher", Array: "authors", Fields: []string{"count"},
				FollowsWorkers: true},
		},
		Options: func(o *store.Options) {
			if o.Name == "Authors" {
				o.Computed = computed
			}
		},
		Setup: []model.Op{
			model.Save("Publishers", "p", `{}`), model.Save("Authors", "a", `{"publisher":"p"}`),
			model.Save("Books", "x", `{"author":"a"}`),
		},
		AtomicClients: true,
		Clients:       clients,
	}
}

// computedScenarios are explored like smallScenarios.
func computedScenarios() map[string]model.Scenario {
	return map[string]model.Scenario{
		"a count is mapped onward while books come and go": counted(
			[]model.Op{model.Save("Books", "y", `{"author":"a"}`)},
			[]model.Op{model.Delete("Books", "x")},
		),
		"a count is mapped onward while its holder moves": counted(
			[]model.Op{model.Delete("Books", "x")},
			[]model.Op{model.Update("Authors", "a", `{"publisher":"q"}`)},
		),
		"a count is mapped onward into what is created later": counted(
			[]model.Op{model.Delete("Books", "x")},
			[]model.Op{model.Delete("Publishers", "p"), model.Save("Publishers", "p", `{}`)},
		),
	}
}

// computedReturns is explored in soak runs.
func computedReturns() model.Scenario {
	return counted(
		[]model.Op{model.Delete("Books", "x")},
		[]model.Op{model.Update("Authors", "a", `{"publisher":"q"}`),
			model.Update("Authors", "a", `{"publisher":"p"}`)},
	)
}

// checkCounts checks that a computed field fits the array that it is computed from, in every state.
func checkCounts(ctx context.Context, set *store.Set) error {
	if set.Store("Publishers") == nil {
		return nil
	}
	authors, err := objects(ctx, set.Store("Authors"))
	for uuid, a := range authors {
		books, _ := a["books"].([]any)
		if fmt.Sprint(a["count"]) != strconv.Itoa(len(books)) {
			err = fmt.Errorf("%s has %d books, and says %v", uuid, len(books), a["count"])
		}
	}
	return err
}

// Without the events of workers' own writes, copies of computed fields stay behind.
func TestCopiesOfComputedFieldsNeedTheEventsOfWorkers(t *testing.T) {
	s := counted([]model.Op{model.Delete("Books", "x")})
	s.MaxInFlight = 1
	s.Fault.DropEvent = func(e *event.Envelope) bool { return e.Origin == mapping.Name }
	_, err := newChecker(t, s).Explore(t.Context(), 1_000_000)
	if err == nil {
		t.Error("it was not noticed")
	}
}
