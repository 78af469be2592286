package mapping_test

import (
	"testing"

	"belfry/pkg/store"
	"belfry/test/model"
)

// books are mapped into the arrays of authors.
func books(limit int) []store.Mapping {
	return []store.Mapping{{
		Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}, Limit: limit,
	}}
}

func authors() []model.Op {
	return []model.Op{model.Save("Authors", "a", `{}`), model.Save("Authors", "b", `{}`)}
}

func with(acts []model.Op, more ...model.Op) []model.Op { return append(acts, more...) }

// small are worlds of which every state is gone through: two clients, two
// events in hand at once, handlers that vanish between any two steps and whose
// event comes again.
func small() map[string]model.Scenario {
	return map[string]model.Scenario{
		"a change and a move": {
			Mappings:      books(0),
			Setup:         with(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"title":"2"}`)},
				{model.Update("Books", "x", `{"author":"b"}`)},
			},
		},
		"a source is deleted and created again": {
			Mappings: books(0),
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "x"), model.Save("Books", "x", `{"author":"a","title":"2"}`)},
			},
		},
		"a source is deleted while it changes": {
			Mappings: books(0),
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "x")},
				{model.Update("Books", "x", `{"title":"2"}`)},
			},
		},
		"a source comes before its target": {
			Mappings:      books(0),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Books", "x", `{"author":"a","title":"1"}`), model.Update("Books", "x", `{"title":"2"}`)},
				{model.Save("Authors", "a", `{}`)},
			},
		},
		"a target is deleted and created again": {
			Mappings: books(0),
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
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
		"an array with room for one": {
			Mappings: books(1),
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "x")},
				{model.Save("Books", "y", `{"author":"a"}`)},
			},
		},
		"a store mapped onto itself": {
			Mappings: []store.Mapping{{Source: "People", Target: "People", Key: "boss", Array: "staff", Fields: []string{"name"}}},
			Setup:    []model.Op{model.Save("People", "p", `{"name":"1"}`)},
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
	}
}

// crowded are worlds in which vanishing handlers are left to the walks, or to
// -model.crash.
func crowded() map[string]model.Scenario {
	return map[string]model.Scenario{
		"a change that is taken back": {
			Mappings:      books(0),
			Setup:         with(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"author":"b"}`), model.Update("Books", "x", `{"author":"a"}`)},
			},
		},
		"a key that names two": {
			Mappings:      books(0),
			Setup:         with(authors(), model.Save("Books", "x", `{"author":["a","b"],"title":"1"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Update("Books", "x", `{"author":["b"]}`)},
				{model.Update("Books", "x", `{"title":"2"}`)},
			},
		},
		"an array without room": {
			Mappings:      books(1),
			Setup:         with(authors(), model.Save("Books", "x", `{"author":"a"}`), model.Save("Books", "y", `{"author":"a"}`)),
			AtomicClients: true,
			Clients:       [][]model.Op{{model.Delete("Books", "x"), model.Delete("Books", "y")}},
		},
		"a target is created again while others change": {
			Mappings:      books(0),
			Setup:         with(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			AtomicClients: true,
			Clients: [][]model.Op{
				{model.Save("Books", "y", `{"author":"a"}`)},
				{model.Delete("Authors", "a"), model.Save("Authors", "a", `{}`), model.Delete("Books", "x")},
			},
		},
	}
}

// In no order of steps do arrays and objects differ at the end.
func TestEveryInterleaving(t *testing.T) {
	for name, w := range small() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.MaxInFlight, w.Crash = *handsFlag, true
			explore(t, w)
		})
	}
	for name, w := range crowded() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.MaxInFlight, w.Crash = *handsFlag, *crashFlag
			explore(t, w)
		})
	}
}
