package mapping_test

import (
	"testing"

	"belfry/pkg/store"
	"belfry/test/model"
)

// large are worlds of which some ways are walked by chance.
func large() map[string]model.Scenario {
	pages := append([]store.Mapping{{
		Source: "Pages", Target: "Books", Key: "book", Array: "pages", Fields: []string{"text"}, Cascade: true,
	}}, cascades(books(0))...)
	all := map[string]model.Scenario{
		"two clients and all they can do": {
			Mappings: books(0),
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a","title":"1"}`)),
			Clients: [][]model.Op{
				{
					model.Update("Books", "x", `{"author":"b"}`), model.Delete("Authors", "b"), model.Delete("Books", "x"),
					model.Save("Books", "x", `{"author":["a","b"],"title":"2"}`), model.Save("Authors", "b", `{}`),
				},
				{
					model.Save("Books", "y", `{"author":"a"}`), model.Update("Books", "x", `{"title":"3"}`),
					model.Update("Books", "y", `{"author":["b","none"]}`), model.Delete("Authors", "a"),
					model.Update("Books", "x", `{"author":"a"}`), model.Save("Authors", "a", `{}`),
				},
			},
		},
		"arrays without room": {
			Mappings: books(1),
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a"}`), model.Save("Books", "y", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "x"), model.Save("Books", "z", `{"author":"a"}`), model.Update("Books", "y", `{"author":"b"}`)},
				{model.Delete("Books", "y"), model.Save("Books", "x", `{"author":["a","b"]}`), model.Save("Books", "y", `{"author":"b"}`)},
			},
		},
		"arrays with room for two": {
			Mappings: books(2),
			Setup: with(authors(), model.Save("Books", "v", `{"author":"a"}`), model.Save("Books", "w", `{"author":"a"}`),
				model.Save("Books", "x", `{"author":"a"}`), model.Save("Books", "y", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Delete("Books", "v"), model.Update("Books", "w", `{"author":"b"}`), model.Delete("Books", "y")},
				{model.Delete("Books", "x"), model.Save("Books", "v", `{"author":"a"}`), model.Update("Books", "w", `{"author":"a"}`)},
			},
		},
		"a target's child is changed by a worker": {
			Mappings: pages,
			Setup:    with(authors(), model.Save("Books", "x", `{"author":"a"}`)),
			Clients: [][]model.Op{
				{model.Save("Pages", "p", `{"book":"x"}`)},
				{model.Delete("Authors", "a"), model.Save("Authors", "a", `{}`)},
			},
			Clock: true,
		},
		"cascades, and all that clients can do": {
			Mappings: append([]store.Mapping{
				{Source: "Pages", Target: "Books", Key: "book", Array: "pages", Cascade: true},
				{Source: "Books", Target: "Books", Key: "part", Array: "parts", Cascade: true},
			}, cascades(books(2))...),
			Setup: with(authors(), model.Save("Books", "x", `{"author":"a"}`), model.Save("Pages", "p", `{"book":"x"}`)),
			Clients: [][]model.Op{
				{
					model.Save("Books", "y", `{"author":"a","part":"x"}`), model.Delete("Authors", "a"),
					model.Save("Authors", "a", `{}`), model.Update("Books", "y", `{"title":"2"}`), model.Save("Pages", "q", `{"book":"y"}`),
				},
				{
					model.Update("Books", "x", `{"title":"2"}`), model.Update("Books", "x", `{"author":"b"}`),
					model.Delete("Authors", "b"), model.Save("Books", "z", `{"author":["a","b"]}`), model.Save("Books", "x", `{"author":"a"}`),
				},
			},
			Clock: true,
		},
	}
	for name, w := range cascading() {
		w.Clock = true
		all[name] = w
	}
	return all
}

func cascades(mappings []store.Mapping) []store.Mapping {
	for i := range mappings {
		mappings[i].Cascade = true
	}
	return mappings
}

// No way is found by chance in which arrays and objects differ at the end.
func TestManyInterleavings(t *testing.T) {
	for name, w := range large() {
		w.MaxInFlight, w.Crash = 3, true
		lagging := w
		lagging.LaggingIndexes = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			walk(t, w)
		})
		t.Run(name+", indexes lagging", func(t *testing.T) {
			t.Parallel()
			walk(t, lagging)
		})
	}
}
