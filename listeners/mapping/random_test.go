package mapping_test

import (
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"

	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

// randomScenarios have too many states to explore: random schedules sample them.
func randomScenarios() map[string]model.Scenario {
	pages := append([]store.Mapping{{
		Source: "Pages", Target: "Books", Key: "book", Array: "pages", Fields: []string{"text"}, Cascade: true,
	}}, cascades(books(0))...)
	all := map[string]model.Scenario{
		"two clients with every operation": {
			Mappings: books(0),
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			Clients: [][]model.Op{
				{
					model.Update("Books", "x", `{"author":"b"}`), model.Delete("Authors", "b"),
					model.Delete("Books", "x"),
					model.Save("Books", "x", `{"author":["a","b"],"title":"2"}`), model.Save("Authors", "b", `{}`),
				},
				{
					model.Save("Books", "y", `{"author":"a"}`), model.Update("Books", "x", `{"title":"3"}`),
					model.Update("Books", "y", `{"author":["b","none"]}`), model.Delete("Authors", "a"),
					model.Update("Books", "x", `{"author":"a"}`), model.Save("Authors", "a", `{}`),
				},
			},
		},
		"arrays at a limit of one": {
			Mappings: books(1),
			Setup: join(authors(), model.Save("Books", "x", `{"author":"a"}`),
				model.Save("Books", "y", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "x"), model.Save("Books", "z", `{"author":"a"}`),
					model.Update("Books", "y", `{"author":"b"}`)},
				{model.Delete("Books", "y"), model.Save("Books", "x", `{"author":["a","b"]}`),
					model.Save("Books", "y", `{"author":"b"}`)},
			},
		},
		"arrays with a limit in bytes": {
			Mappings: booksInBytes(),
			Setup: join(authors(), model.Save("Books", "v", `{"author":"a",`+short+`}`),
				model.Save("Books", "w", `{"author":"a",`+long+`}`),
				model.Save("Books", "x", `{"author":"a",`+short+`}`),
				model.Save("Books", "y", `{"author":"b",`+tooLong+`}`)),
			Clients: [][]model.Op{
				{model.Update("Books", "v", `{`+long+`}`), model.Update("Books", "w", `{`+short+`}`),
					model.Update("Books", "y", `{"author":"a",`+long+`}`)},
				{model.Delete("Books", "x"), model.Update("Books", "w", `{`+tooLong+`}`),
					model.Save("Books", "x", `{"author":["a","b"],`+short+`}`)},
			},
		},
		"conditions and a limit of one": {
			Mappings: publishedBooks(1),
			Setup: join(authors(), model.Save("Books", "x", `{"author":"a","published":true}`),
				model.Save("Books", "y", `{"author":"a"}`),
				model.Save("Books", "z", `{"author":"a","published":true}`)),
			Clients: [][]model.Op{
				{
					model.Update("Books", "x", `{"published":false}`),
					model.Update("Books", "x", `{"author":"b","published":true}`),
					model.Delete("Books", "z"), model.Update("Books", "x", `{"author":["a","b"]}`),
				},
				{
					model.Update("Books", "y", `{"published":true}`), model.Update("Books", "y", `{"author":"b"}`),
					model.Update("Books", "y", `{"author":"a","published":false}`),
					model.Update("Books", "y", `{"published":true}`),
				},
			},
		},
		"owners that change, and a limit of one": {
			Mappings: ownBooks(1),
			Setup: []model.Op{
				model.Save("Authors", "a", `{"owner":"ann"}`), model.Save("Authors", "b", `{}`),
				model.Save("Books", "x", `{"author":"a","owner":"ann"}`),
				model.Save("Books", "y", `{"author":["a","b"],"owner":"bob"}`),
			},
			Clients: [][]model.Op{
				{
					model.Update("Authors", "a", `{"owner":"bob"}`), model.Delete("Authors", "b"),
					model.Update("Authors", "a", `{"owner":null}`),
					model.Save("Authors", "b", `{"owner":"bob"}`), model.Update("Authors", "a", `{"owner":"ann"}`),
				},
				{
					model.Save("Books", "z", `{"author":["a","b"],"owner":"bob"}`),
					model.Update("Books", "x", `{"owner":"bob"}`),
					model.Update("Books", "y", `{"author":"b"}`), model.Delete("Books", "z"),
					model.Update("Books", "x", `{"owner":"ann"}`),
				},
			},
		},
		"arrays with a limit of two": {
			Mappings: books(2),
			Setup: join(authors(), model.Save("Books", "v", `{"author":"a"}`),
				model.Save("Books", "w", `{"author":"a"}`),
				model.Save("Books", "x", `{"author":"a"}`), model.Save("Books", "y", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "v"), model.Update("Books", "w", `{"author":"b"}`), model.Delete("Books", "y")},
				{model.Delete("Books", "x"), model.Save("Books", "v", `{"author":"a"}`),
					model.Update("Books", "w", `{"author":"a"}`)},
			},
		},
		"a child of a target is written by a worker": {
			Mappings: pages,
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Save("Pages", "p", `{"book":"x"}`)},
				{model.Delete("Authors", "a"), model.Save("Authors", "a", `{}`)},
			},
			Clock: true,
		},
		"cascades and every operation of clients": {
			Mappings: append([]store.Mapping{
				{Source: "Pages", Target: "Books", Key: "book", Array: "pages", Cascade: true},
				{Source: "Books", Target: "Books", Key: "part", Array: "parts", Cascade: true},
			}, cascades(books(2))...),
			Setup: join(authors(), model.Save("Books", "x", `{"author":"a"}`),
				model.Save("Pages", "p", `{"book":"x"}`)),
			Clients: [][]model.Op{
				{
					model.Save("Books", "y", `{"author":"a","part":"x"}`), model.Delete("Authors", "a"),
					model.Save("Authors", "a", `{}`), model.Update("Books", "y", `{"title":"2"}`),
					model.Save("Pages", "q", `{"book":"y"}`),
				},
				{
					model.Update("Books", "x", `{"title":"2"}`), model.Update("Books", "x", `{"author":"b"}`),
					model.Delete("Authors", "b"), model.Save("Books", "z", `{"author":["a","b"]}`),
					model.Save("Books", "x", `{"author":"a"}`),
				},
			},
			Clock: true,
		},
	}
	for name, s := range cascadeScenarios() {
		s.AtomicClients = false
		all[name] = s
	}
	return all
}

func cascades(mappings []store.Mapping) []store.Mapping {
	for i := range mappings {
		mappings[i].Cascade = true
	}
	return mappings
}

// No random schedule of a large scenario leads to a state in which arrays and
// objects differ although workers have nothing to do.
func TestSoakRandomSchedules(t *testing.T) {
	type simulation struct {
		name    string
		checker *model.Checker
		model.Stats
	}
	var simulations []*simulation
	scenarios := randomScenarios()
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		s := scenarios[name]
		s.MaxInFlight, s.Crash = 3, true
		simulations = append(simulations, &simulation{name: name, checker: newChecker(t, s)})
		s.LaggingIndexes = true
		simulations = append(simulations, &simulation{name: name + ", indexes lag", checker: newChecker(t, s)})
	}
	const seeds = 10 // in a round
	round := func(s *simulation, seed uint64) {
		for i := range uint64(seeds) {
			stats, err := s.checker.Simulate(t.Context(), seed*seeds+i)
			if err != nil {
				t.Errorf("%s, schedule %d: %v", s.name, i, err)
				return
			}
			s.Transitions += stats.Transitions
			s.Quiescent += stats.Quiescent
		}
	}
	run := kit.Soak(t, 2)
	for run.More() && !t.Failed() {
		var running sync.WaitGroup
		slots := make(chan struct{}, runtime.GOMAXPROCS(0))
		for _, s := range simulations {
			slots <- struct{}{}
			running.Go(func() {
				round(s, run.Seed())
				<-slots
			})
		}
		running.Wait()
	}
	var total model.Stats
	for _, s := range simulations {
		t.Logf("%s: %d transitions, %d quiescent states checked", s.name, s.Transitions, s.Quiescent)
		total.Transitions += s.Transitions
		total.Quiescent += s.Quiescent
	}
	t.Logf("%d schedules of %d scenarios, %d transitions, %d quiescent states checked",
		run.Round()*seeds*len(simulations), len(simulations), total.Transitions, total.Quiescent)
}
