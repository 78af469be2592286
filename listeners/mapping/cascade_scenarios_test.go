package mapping_test

import (
	"testing"

	"belfry/pkg/store"
	"belfry/test/model"
)

// cascadeScenarios need the clock, because a cascade compares times.
func cascadeScenarios() map[string]model.Scenario {
	mappings := books(0)
	mappings[0].Cascade = true
	people := []store.Mapping{{Source: "People", Target: "People", Key: "boss", Array: "staff", Cascade: true}}
	all := map[string]model.Scenario{
		"a source is saved while its target is deleted": {
			Mappings: mappings,
			Setup:    authors(),
			Clients: [][]model.Op{
				{model.Delete("Authors", "a")},
				{model.Save("Books", "x", `{"author":"a"}`)},
			},
		},
		"a source is moved while its targets are deleted": {
			Mappings: mappings,
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Authors", "b")},
				{model.Update("Books", "x", `{"author":"b"}`)},
			},
		},
		"a linked source changes after its target is deleted": {
			Mappings: mappings,
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{{
				model.Delete("Authors", "a"), model.Save("Authors", "c", `{}`), model.Save("Authors", "d", `{}`),
				model.Update("Books", "x", `{"title":"2"}`),
			}},
		},
		"a target is deleted and created again": {
			Mappings: mappings,
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Authors", "a"), model.Save("Authors", "a", `{}`),
					model.Update("Books", "x", `{"title":"2"}`)},
			},
		},
		"a source that a condition hides": {
			Mappings: cascades(publishedBooks(0)),
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Authors", "a")},
				{model.Update("Books", "x", `{"published":true}`)},
			},
		},
		"a target is created again with another owner, and a stranger names both": {
			Mappings: cascades(ownBooks(0)),
			Setup: []model.Op{
				model.Save("Authors", "a", `{"owner":"ann"}`), model.Save("Books", "x", `{"author":"a","owner":"ann"}`),
				model.Save("Books", "y", `{"author":"a","owner":"bob"}`),
			},
			Clients: [][]model.Op{{model.Delete("Authors", "a"), model.Save("Authors", "a", `{"owner":"bob"}`)}},
		},
		"the owner of a target and a stranger save sources while it is deleted": {
			Mappings: cascades(ownBooks(0)),
			Setup:    []model.Op{model.Save("Authors", "a", `{"owner":"ann"}`)},
			Clients: [][]model.Op{
				{model.Delete("Authors", "a")},
				{model.Save("Books", "x", `{"author":"a","owner":"ann"}`),
					model.Save("Books", "y", `{"author":"a","owner":"bob"}`)},
			},
		},
		"a cycle of two": {
			Mappings: people,
			Setup:    []model.Op{model.Save("People", "p", `{"boss":"q"}`), model.Save("People", "q", `{"boss":"p"}`)},
			Clients:  [][]model.Op{{model.Delete("People", "p")}, {model.Update("People", "q", `{"boss":null}`)}},
		},
	}
	for name, s := range all {
		s.Clock, s.AtomicClients = true, true
		all[name] = s
	}
	return all
}

// In no interleaving does an object remain that a cascade should have deleted,
// and none deletes another. With crashes there are too many states: they are left
// to TestSoakEveryInterleavingWithCrashes and to the random schedules.
func TestCascadesAreExactInEveryInterleaving(t *testing.T) {
	for name, s := range cascadeScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight = 2
			explore(t, s)
		})
	}
}
