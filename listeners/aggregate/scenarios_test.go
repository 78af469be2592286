package aggregate_test

import (
	"maps"
	"slices"
	"testing"

	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

// ratings are aggregated in recipes.
func ratings() []store.Mapping {
	return []store.Mapping{{
		Source: "Ratings", Target: "Recipes", Key: "recipe", Limit: 100,
		Aggregates: []store.Aggregate{
			{Property: "ratings", Function: "count"},
			{Property: "stars", Function: "sum", Field: "stars"},
		},
	}}
}

// best has the greatest value as well, which takes a step more.
func best(m []store.Mapping) []store.Mapping {
	m[0].Aggregates = append(m[0].Aggregates, store.Aggregate{Property: "best", Function: "max", Field: "stars"})
	return m
}

// ownRatings count in recipes of the same owner only.
func ownRatings() []store.Mapping {
	m := ratings()
	m[0].SourceOwner, m[0].TargetOwner = "owner", "owner"
	return m
}

func recipes() []model.Op {
	return []model.Op{model.Save("Recipes", "a", `{}`), model.Save("Recipes", "b", `{}`)}
}

func join(ops []model.Op, more ...model.Op) []model.Op { return append(ops, more...) }

const (
	changed      = "a change and a move"
	twoSources   = "two sources of one target"
	created      = "a source is created before its target"
	reverted     = "a change that is reverted"
	createdAgain = "a target is deleted and created again"
	deletedAgain = "a source is deleted and created again"
	oneWithBest  = "the greatest value changes"
	waits        = "a change is reverted, and a request waits"
	ownerChanges = "the owner of a target changes while a source does"
)

// smallScenarios are explored with two events in flight and with handlers that crash between any two steps.
func smallScenarios() map[string]model.Scenario {
	x := model.Save("Ratings", "x", `{"recipe":"a","stars":1}`)
	scenario := func(setup []model.Op, clients ...[]model.Op) model.Scenario {
		return model.Scenario{Mappings: ratings(), Setup: setup, AtomicClients: true, Clients: clients}
	}
	rating := func(uuid, owner string) model.Op {
		return model.Save("Ratings", uuid, `{"recipe":"a","stars":1,"owner":"`+owner+`"}`)
	}
	recipe := func(owner string) model.Op { return model.Save("Recipes", "a", `{"owner":"`+owner+`"}`) }
	owned := func(setup []model.Op, clients ...[]model.Op) model.Scenario {
		s := scenario(setup, clients...)
		s.Mappings = ownRatings()
		return s
	}
	withBest := func(s model.Scenario) model.Scenario {
		s.Mappings = best(s.Mappings)
		return s
	}
	return map[string]model.Scenario{
		"a move": scenario(join(recipes(), x),
			[]model.Op{model.Update("Ratings", "x", `{"recipe":"b"}`)},
		),
		twoSources: scenario(recipes()[:1],
			[]model.Op{x},
			[]model.Op{model.Save("Ratings", "y", `{"recipe":"a","stars":3}`)},
		),
		oneWithBest: withBest(scenario(join(recipes()[:1], x, model.Save("Ratings", "y", `{"recipe":"a","stars":0}`)),
			[]model.Op{model.Update("Ratings", "x", `{"stars":-1}`)},
		)),
		deletedAgain: scenario(join(recipes()[:1], x),
			[]model.Op{model.Delete("Ratings", "x"), model.Save("Ratings", "x", `{"recipe":"a","stars":2}`)},
		),
		created: scenario(nil,
			[]model.Op{x},
			[]model.Op{model.Save("Recipes", "a", `{}`)},
		),
		reverted: scenario(join(recipes()[:1], x),
			[]model.Op{model.Update("Ratings", "x", `{"stars":2}`), model.Update("Ratings", "x", `{"stars":1}`)},
		),
		createdAgain: scenario(join(recipes()[:1], x),
			[]model.Op{model.Delete("Recipes", "a"), model.Save("Recipes", "a", `{}`)},
		),
		"a target is deleted while its source is": scenario(join(recipes()[:1], x),
			[]model.Op{model.Delete("Recipes", "a")},
			[]model.Op{model.Delete("Ratings", "x")},
		),
		"a key that names two targets": scenario(join(recipes(), x),
			[]model.Op{model.Update("Ratings", "x", `{"recipe":["a","b"]}`)},
		),
		ownerChanges: owned([]model.Op{recipe("ann"), rating("x", "ann"), rating("y", "bob")},
			[]model.Op{model.Update("Recipes", "a", `{"owner":"bob"}`)},
			[]model.Op{model.Update("Ratings", "y", `{"stars":2}`)},
		),
		"a source gets another owner": owned([]model.Op{recipe("ann"), rating("x", "bob")},
			[]model.Op{model.Update("Ratings", "x", `{"owner":"ann"}`)},
		),
	}
}

// largeScenarios are explored with two events in flight and without crashes.
func largeScenarios() map[string]model.Scenario {
	x := model.Save("Ratings", "x", `{"recipe":"a","stars":1}`)
	scenario := func(setup []model.Op, clients ...[]model.Op) model.Scenario {
		return model.Scenario{Mappings: ratings(), Setup: setup, AtomicClients: true, Clients: clients}
	}
	return map[string]model.Scenario{
		changed: scenario(join(recipes(), x),
			[]model.Op{model.Update("Ratings", "x", `{"stars":2}`)},
			[]model.Op{model.Update("Ratings", "x", `{"recipe":"b"}`)},
		),
		"a source moves while another is deleted and created again": scenario(
			join(recipes(), x, model.Save("Ratings", "y", `{"recipe":"a","stars":2}`)),
			[]model.Op{model.Update("Ratings", "x", `{"recipe":"b"}`)},
			[]model.Op{model.Delete("Ratings", "y"), model.Save("Ratings", "y", `{"recipe":"a","stars":3}`)},
		),
		"a target is deleted and created again while a source changes": scenario(join(recipes()[:1], x),
			[]model.Op{model.Delete("Recipes", "a"), model.Save("Recipes", "a", `{}`)},
			[]model.Op{model.Update("Ratings", "x", `{"stars":2}`)},
		),
	}
}

// awaitedScenarios have requests that wait for the work of their writes.
func awaitedScenarios() map[string]model.Scenario {
	x := model.Save("Ratings", "x", `{"recipe":"a","stars":1}`)
	scenario := func(setup []model.Op, client ...model.Op) model.Scenario {
		return model.Scenario{Mappings: ratings(), Setup: setup, AtomicClients: true, Clients: [][]model.Op{client}}
	}
	return map[string]model.Scenario{
		waits: scenario(join(recipes()[:1], x),
			model.Update("Ratings", "x", `{"stars":2}`), model.Await(model.Update("Ratings", "x", `{"stars":1}`))),
		"a source is created and deleted, and a request waits": scenario(recipes()[:1],
			x, model.Await(model.Delete("Ratings", "x"))),
	}
}

// inSoak are the small scenarios that are explored with crashes in a soak run only, because those multiply their
// states.
var inSoak = []string{twoSources, reverted, deletedAgain, "a move", "a source gets another owner"}

// In every interleaving aggregates match objects when workers have nothing to do, and once a request's wait is over no
// target shows anything older than its write.
func TestAggregatesConvergeInEveryInterleaving(t *testing.T) {
	for name, s := range smallScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Crash, s.MaxCrashes = 2, !slices.Contains(inSoak, name), 1
			explore(t, s, workers)
		})
	}
	t.Run(waits, func(t *testing.T) {
		t.Parallel()
		s := awaitedScenarios()[waits]
		s.MaxInFlight = 2
		explore(t, s, workers)
	})
}

// A soak run explores with crashes what the other test explores without, and more.
func TestSoakAggregatesWithCrashes(t *testing.T) {
	const smallest = "a target is deleted while its source is"
	scenarios := map[string]model.Scenario{smallest: smallScenarios()[smallest]}
	if kit.Soak(t, 1).Long() {
		maps.Copy(scenarios, smallScenarios())
		maps.Copy(scenarios, awaitedScenarios())
		maps.Copy(scenarios, largeScenarios())
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Crash, s.MaxCrashes = 2, true, 2
			explore(t, s, workers)
		})
	}
}
