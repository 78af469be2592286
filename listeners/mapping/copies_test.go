package mapping_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

// copied has recipes with the names of their authors, and comments with these names, which are mapped into recipes.
func copied(setup []model.Op, clients ...[]model.Op) model.Scenario {
	return model.Scenario{
		// The first two are links, which have the stores opened: they neither copy nor delete.
		Mappings: []store.Mapping{
			{Source: "Recipes", Target: "Authors", Key: "author"},
			{Source: "Comments", Target: "Recipes", Key: "recipe"},
		},
		Options: func(o *store.Options) {
			o.Arrays = slices.DeleteFunc(o.Arrays, func(name string) bool { return name == "" })
			switch o.Name {
			case "Authors":
				o.CopiedFrom = []string{"name"}
			case "Recipes":
				o.CopiedFrom = []string{"chef"}
				o.References = []store.Reference{{Field: "author", Target: "Authors", Indexed: true}}
				o.Copies = []store.Copy{{Field: "chef", Reference: "author", Source: "Authors", From: "name"}}
			case "Comments":
				o.References = []store.Reference{{Field: "recipe", Target: "Recipes", Indexed: true}}
				o.Copies = []store.Copy{{Field: "chef", Reference: "recipe", Source: "Recipes", From: "chef"}}
			}
		},
		Setup:         setup,
		AtomicClients: true,
		Clients:       clients,
	}
}

// ofTwo is handled in two parts.
const ofTwo = "a source of two objects changes"

func ann() []model.Op { return []model.Op{model.Save("Authors", "a", `{"name":"Ann"}`)} }

func soup() []model.Op { return join(ann(), model.Save("Recipes", "r", `{"author":"a"}`)) }

// bothWays adds a mapping of recipes with their copies into the authors.
func bothWays(s model.Scenario) model.Scenario {
	s.Mappings = slices.Clone(s.Mappings)
	s.Mappings[0] = store.Mapping{
		Source: "Recipes", Target: "Authors", Key: "author", Array: "recipes", Fields: []string{"chef"},
		FollowsWorkers: true,
	}
	return s
}

// copyScenarios are explored like smallScenarios.
func copyScenarios() map[string]model.Scenario {
	written := copied(ann(),
		[]model.Op{model.Save("Recipes", "r", `{"author":"a"}`)},
		[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`)},
	)
	moved := copied(join(soup(), model.Save("Authors", "b", `{"name":"Bob"}`)),
		[]model.Op{model.Update("Recipes", "r", `{"author":"b"}`)},
		[]model.Op{model.Update("Authors", "b", `{"name":"Ben"}`)},
	)
	written.AtomicClients, moved.AtomicClients = false, false
	return map[string]model.Scenario{
		"an object is written while its source changes":     written,
		"an object names another source while that changes": moved,
		"an object is written, and its source changes twice": copied(ann(),
			[]model.Op{model.Save("Recipes", "r", `{"author":"a"}`)},
			[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`), model.Update("Authors", "a", `{"name":"Ann"}`)},
		),
		"a source changes twice": copied(soup(),
			[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`), model.Update("Authors", "a", `{"name":"Ann"}`)},
		),
		"a source changes while its object does": copied(soup(),
			[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`)},
			[]model.Op{model.Update("Recipes", "r", `{"title":"Soup"}`)},
		),
		"an object names another source": copied(join(soup(), model.Save("Authors", "b", `{"name":"Bob"}`)),
			[]model.Op{model.Update("Recipes", "r", `{"author":"b"}`)},
			[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`)},
			[]model.Op{model.Update("Authors", "b", `{"name":"Ben"}`)},
		),
		"a source is deleted and created again": copied(soup(),
			[]model.Op{model.Delete("Authors", "a"), model.Save("Authors", "a", `{"name":"Bea"}`)},
		),
		"a source is created after its object": copied(nil,
			[]model.Op{model.Save("Recipes", "r", `{"author":"a"}`)},
			[]model.Op{model.Save("Authors", "a", `{"name":"Ann"}`)},
		),
		ofTwo: copied(join(soup(), model.Save("Recipes", "s", `{"author":"a"}`)),
			[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`)},
		),
		"a chain of two": copied(join(soup(), model.Save("Comments", "c", `{"recipe":"r"}`)),
			[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`)},
		),
		"both directions": bothWays(copied(soup(),
			[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`)},
			[]model.Op{model.Update("Recipes", "r", `{"title":"Soup"}`)},
		)),
	}
}

// faultyCopies lack a step of the protocol of copies.
func faultyCopies() map[string]model.Scenario {
	all := copyScenarios()
	noRecheck := all["a source changes twice"]
	noRecheck.Fault.NoRecheck = true
	noSpread := all["a source changes while its object does"]
	noSpread.Fault.DropEvent = func(e *event.Envelope) bool { return e.Store == "Authors" }
	noCorrect := all["an object is written while its source changes"]
	noCorrect.Fault.DropEvent = func(e *event.Envelope) bool { return e.Store == "Recipes" }
	deleted := all["a source is deleted and created again"]
	deleted.Fault.DropEvent = func(e *event.Envelope) bool { return e.Event == event.StoreDeleted }
	deleted.Clients = [][]model.Op{{model.Delete("Authors", "a")}}
	created := all["a source is created after its object"]
	created.Fault.DropEvent = func(e *event.Envelope) bool {
		return e.Store == "Authors" && e.Event == event.StoreSaved
	}
	chain := all["a chain of two"]
	chain.Fault.DropEvent = func(e *event.Envelope) bool { return e.Origin == event.OriginCopy }
	parts := all[ofTwo]
	parts.Fault.DropEvent = func(e *event.Envelope) bool { return e.Ctx.Rest != "" }
	onward := all["both directions"]
	onward.Fault.DropEvent = func(e *event.Envelope) bool { return e.Origin == event.OriginCopy }
	return map[string]model.Scenario{
		"copies: an object and its source are not read again after a write": noRecheck,
		"copies: the event of a source is lost":                             noSpread,
		"copies: the event of an object is lost":                            noCorrect,
		"copies: the deletion of a source is lost":                          deleted,
		"copies: the creation of a source is lost":                          created,
		"copies: the events of copies are lost to further copies":           chain,
		"copies: the events of copies are lost to mappings":                 onward,
		"copies: what is left of a pass is lost":                            parts,
	}
}

// twoOfTwice is handled in parts while another change begins a pass of its own.
func twoOfTwice() model.Scenario {
	s := copied(join(soup(), model.Save("Recipes", "s", `{"author":"a"}`)),
		[]model.Op{model.Update("Authors", "a", `{"name":"Bea"}`), model.Update("Authors", "a", `{"name":"Ann"}`)},
	)
	s.MaxInFlight, s.Crash = 2, true
	return s
}

// A soak run explores any number of crashes, with 19 million states.
func TestSoakModelOfPassesInParts(t *testing.T) {
	s := twoOfTwice()
	if !kit.Soak(t, 1).Long() {
		s.MaxCrashes = 1
	}
	explore(t, s)
}

func TestModelOfCopies(t *testing.T) {
	for name, s := range copyScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Crash = 2, true
			explore(t, s)
		})
	}
}

func TestModelFindsFaultsOfCopies(t *testing.T) {
	for name, s := range faultyCopies() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight = 2
			findFault(t, s, workers)
		})
	}
}

// checkCopies checks that each copy is what its source has.
func checkCopies(ctx context.Context, set *store.Set) error {
	for _, name := range slices.Sorted(maps.Keys(set.Stores())) {
		holders, err := objects(ctx, set.Store(name))
		if err != nil {
			return err
		}
		for _, c := range set.Store(name).Copies() {
			sources, err := objects(ctx, set.Store(c.Source))
			if err != nil {
				return err
			}
			for uuid, o := range holders {
				source, _ := o[c.Reference].(string)
				if want := sources[source][c.From]; !reflect.DeepEqual(o[c.Field], want) {
					return fmt.Errorf("%s/%s.%s is %v, and %s/%s.%s is %v", name, uuid, c.Field, o[c.Field], c.Source,
						source, c.From, want)
				}
			}
		}
	}
	return nil
}
