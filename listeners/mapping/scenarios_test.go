package mapping_test

import (
	"maps"
	"testing"

	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

// books are mapped into the arrays of authors.
func books(limit int) []store.Mapping {
	return []store.Mapping{{
		Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}, Limit: limit,
	}}
}

// booksInBytes are mapped into arrays of at most 65 bytes and entries of at most 40: an array is
// full with more than 25. A book with a short title takes 25 with its comma, one with a long title
// 36, and a longer title is too large for an entry.
func booksInBytes() []store.Mapping {
	m := books(0)
	m[0].MaxBytes, m[0].MaxEntry = 65, 40
	return m
}

const (
	short   = `"title":"1"`
	long    = `"title":"123456789012"`
	tooLong = `"title":"12345678901234567890"`
)

func authors() []model.Op {
	return []model.Op{model.Save("Authors", "a", `{}`), model.Save("Authors", "b", `{}`)}
}

func join(ops []model.Op, more ...model.Op) []model.Op { return append(ops, more...) }

// smallScenarios are explored with two events in flight and with handlers that
// crash between any two steps.
func smallScenarios() map[string]model.Scenario {
	return map[string]model.Scenario{
		"a change and a move": {
			Mappings:      books(0),
			Setup:         join(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"title":"2"}`)},
				{model.Update("Books", "x", `{"author":"b"}`)},
			},
		},
		"a source is deleted and created again": {
			Mappings: books(0),
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "x"), model.Save("Books", "x", `{"author":"a","title":"2"}`)},
			},
		},
		"a source is deleted while it changes": {
			Mappings: books(0),
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "x")},
				{model.Update("Books", "x", `{"title":"2"}`)},
			},
		},
		"a source is created before its target": {
			Mappings:      books(0),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Books", "x", `{"author":"a","title":"1"}`), model.Update("Books", "x", `{"title":"2"}`)},
				{model.Save("Authors", "a", `{}`)},
			},
		},
		"a target is deleted and created again": {
			Mappings: books(0),
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			Clients: [][]model.Op{
				{model.Delete("Authors", "a"), model.Save("Authors", "a", `{}`)},
				{model.Update("Books", "x", `{"title":"2"}`)},
			},
		},
		"two sources of one target": {
			Mappings:      books(0),
			Setup:         authors(),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Books", "x", `{"author":"a","title":"1"}`), model.Delete("Books", "x")},
				{model.Save("Books", "y", `{"author":"a","title":null}`)},
			},
		},
		"an array with a limit of one": {
			Mappings: books(1),
			Setup:    join(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "x")},
				{model.Save("Books", "y", `{"author":"a"}`)},
			},
		},
		"a store mapped onto itself": {
			Mappings: []store.Mapping{{Source: "People", Target: "People", Key: "boss", Array: "staff",
				Fields: []string{"name"}}},
			Setup: []model.Op{model.Save("People", "p", `{"name":"1"}`)},
			Clients: [][]model.Op{
				{model.Update("People", "p", `{"boss":"p"}`)},
				{model.Update("People", "p", `{"name":"2"}`)},
			},
		},
		"two stores mapped onto each other": {
			Mappings: []store.Mapping{
				{Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}},
				{Source: "Authors", Target: "Books", Key: "best", Array: "bestOf", Fields: []string{"name"}},
			},
			Setup: []model.Op{model.Save("Authors", "a", `{"name":"1"}`), model.Save("Books", "x", `{"title":"1"}`)},
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"author":"a"}`)},
				{model.Update("Authors", "a", `{"best":"x"}`)},
			},
		},
		"a change that is reverted": {
			Mappings:      books(0),
			Setup:         join(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"author":"b"}`), model.Update("Books", "x", `{"author":"a"}`)},
			},
		},
		"records with escapes that are not written any more": {
			Mappings: booksInBytes(),
			Setup: []model.Op{
				model.Old("Authors", "a", `{"uuid":"\u0061","books":[{"\u0075uid":"x","title":"\u0031"}]}`),
				model.Old("Books", "x", `{"uuid":"x","\u0061uthor":"\u0061","title":"\u0031"}`),
			},
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Books", "y", `{"author":"a","title":"\u0031"}`),
					model.Update("Books", "y", `{"title":"\u0032"}`)},
				{model.Update("Authors", "a", `{"name":"\u004e"}`)},
				{model.Update("Books", "x", `{"title":"\u0032"}`)},
			},
		},
		"a key that names two targets": {
			Mappings:      books(0),
			Setup:         join(authors(), model.Save("Books", "x", `{"author":["a","b"],"title":"1"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"author":["b"]}`)},
				{model.Update("Books", "x", `{"title":"2"}`)},
			},
		},
		"a key is a number, and then the same as a text": {
			Mappings: books(0),
			Setup: []model.Op{model.Save("Authors", "1", `{}`),
				model.Save("Books", "x", `{"author":1,"title":"1"}`)},
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"author":"1"}`), model.Update("Books", "x", `{"author":1.0}`)},
				{model.Update("Books", "x", `{"title":"2"}`)},
			},
		},
		"a key has numbers and a text": {
			Mappings: books(0),
			Setup: []model.Op{model.Save("Authors", "1", `{}`), model.Save("Authors", "a", `{}`),
				model.Save("Books", "x", `{"author":["a",1],"title":"1"}`)},
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"author":[1,"1",2]}`)},
				{model.Delete("Authors", "1"), model.Save("Authors", "1", `{}`)},
			},
		},
		"an array at its limit": {
			Mappings: books(1),
			Setup: join(authors(), model.Save("Books", "x", `{"author":"a"}`),
				model.Save("Books", "y", `{"author":"a"}`)),
			AtomicClients: true,
			Clients:       [][]model.Op{{model.Delete("Books", "x"), model.Delete("Books", "y")}},
		},
	}
}

// bytesScenarios are explored like smallScenarios.
func bytesScenarios() map[string]model.Scenario {
	scenario := func(setup []model.Op, clients ...[]model.Op) model.Scenario {
		return model.Scenario{Mappings: booksInBytes(), Setup: join(authors(), setup...), AtomicClients: true,
			Clients: clients}
	}
	return map[string]model.Scenario{
		"an entry shrinks in an array that is full in bytes": scenario(
			[]model.Op{model.Save("Books", "x", `{"author":"a",`+long+`}`)},
			[]model.Op{model.Update("Books", "x", `{`+short+`}`)},
			[]model.Op{model.Save("Books", "y", `{"author":"a",`+short+`}`)},
		),
		"entries grow beyond the limit in bytes": scenario(
			[]model.Op{model.Save("Books", "x", `{"author":"a",`+short+`}`),
				model.Save("Books", "y", `{"author":"a",`+short+`}`)},
			[]model.Op{model.Update("Books", "x", `{`+long+`}`)},
			[]model.Op{model.Update("Books", "y", `{`+long+`}`)},
		),
		"an entry becomes too large, and small again": scenario(
			[]model.Op{model.Save("Books", "x", `{"author":"a",`+short+`}`)},
			[]model.Op{model.Update("Books", "x", `{`+tooLong+`}`), model.Update("Books", "x", `{`+short+`}`)},
			[]model.Op{model.Save("Books", "y", `{"author":"a",`+long+`}`)},
		),
	}
}

// largeScenarios are explored without crashes by default, because those
// multiply their states.
func largeScenarios() map[string]model.Scenario {
	return map[string]model.Scenario{
		"an array that is full in bytes is refilled": {
			Mappings: booksInBytes(),
			Setup: join(authors(),
				model.Save("Books", "x", `{"author":"a",`+long+`}`),
				model.Save("Books", "y", `{"author":"a",`+short+`}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Delete("Books", "y"), model.Update("Books", "x", `{`+short+`}`)},
				{model.Save("Books", "z", `{"author":"a",`+short+`}`)},
			},
		},
		"a source is hidden and moves while an array is refilled": {
			Mappings: publishedBooks(1),
			Setup: join(authors(), model.Save("Books", "x", publishedByA),
				model.Save("Books", "y", publishedByA)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"published":false}`)},
				{model.Update("Books", "y", `{"author":"b"}`)},
			},
		},
		"the owner of a target changes back": {
			Mappings: ownBooks(0),
			Setup: []model.Op{model.Save("Authors", "a", `{"owner":"ann"}`),
				model.Save("Books", "x", `{"author":"a","owner":"ann"}`)},
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Authors", "a", `{"owner":"bob"}`), model.Update("Authors", "a", `{"owner":"ann"}`)},
				{model.Update("Books", "x", `{"owner":"bob"}`)},
			},
		},
		"a target is created again while others change": {
			Mappings:      books(0),
			Setup:         join(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Books", "y", `{"author":"a"}`)},
				{model.Delete("Authors", "a"), model.Save("Authors", "a", `{}`), model.Delete("Books", "x")},
			},
		},
	}
}

// powerScenarios are explored with power failures, which take back what is not durable and end all
// workers at once.
func powerScenarios() map[string]model.Scenario {
	twoBackends := smallScenarios()["a change and a move"]
	twoBackends.OwnLogs = true
	return map[string]model.Scenario{
		"a change and a move, and power failures of two backends": twoBackends,
		"a create before its target, and " +
			"power failures": smallScenarios()["a source is created before its target"],
		"an array at its limit, and power failures": {
			Mappings:      books(1),
			Setup:         join(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Books", "y", `{"author":"a"}`)},
				{model.Save("Books", "z", `{"author":"a"}`)},
				{model.Delete("Books", "x")},
			},
		},
	}
}

// refilledAfterPowerFailure has an object that only the mark of an array is a sign of: the array is full
// when the object is saved, and has room when the mark was taken back.
func refilledAfterPowerFailure() model.Scenario {
	s := powerScenarios()["an array at its limit, and power failures"]
	s.Clients[2] = append(s.Clients[2], model.Delete("Books", "y"))
	return s
}

// In every interleaving arrays match objects when workers have nothing to do, and once a request's
// wait is over no target shows anything older than its write.
func TestArraysConvergeInEveryInterleaving(t *testing.T) {
	for _, scenarios := range []map[string]model.Scenario{smallScenarios(), bytesScenarios(), ownerScenarios(),
		conditionScenarios(), computedScenarios()} {
		for name, s := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.MaxInFlight, s.Crash = 2, true
				explore(t, s)
			})
		}
	}
	for name, s := range awaitedScenarios() {
		t.Run(name+", which a request waits for", func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight = 2
			explore(t, s)
		})
	}
	for name, s := range largeScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight = 2
			explore(t, s)
		})
	}
	for name, s := range powerScenarios() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Volatile = 2, true
			explore(t, s)
		})
	}
}

// A soak run explores with crashes what the other tests explore without.
func TestSoakEveryInterleavingWithCrashes(t *testing.T) {
	scenarios := map[string]model.Scenario{}
	if kit.Soak(t, 1).Long() {
		maps.Copy(scenarios, largeScenarios())
		maps.Copy(scenarios, cascadeScenarios())
		for name, s := range awaitedScenarios() {
			s.MaxCrashes = 2
			scenarios[name+", which a request waits for"] = s
		}
		scenarios["a count is mapped onward while its holder moves and returns"] = computedReturns()
		refilled := refilledAfterPowerFailure()
		refilled.Volatile = true
		scenarios["an array is refilled after power failures"] = refilled
	} else {
		const smallest = "a source is saved while its target is deleted"
		scenarios[smallest] = cascadeScenarios()[smallest]
	}
	for name, s := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight, s.Crash = 2, !s.Volatile
			explore(t, s)
		})
	}
}
