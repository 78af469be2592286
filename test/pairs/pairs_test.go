// Package pairs tests what references, copies, aggregates and linked rules do together with each other feature of
// stores: a table whose cells run in one belfry for each backend.
package pairs

import (
	"strings"
	"testing"
)

// pair is one cell of the table; nil where it makes no sense.
type pair func(c *cell)

// column is a feature that the four meet. Cells of one column share what begin has made, and see nothing of others.
type column struct {
	name  string
	begin func(w *world) // nil: belfry serves the configuration

	references, copies, aggregates, linked pair
}

// TestPairs is the table. Its cells without a test:
//
//   - search over references and aggregates: uuids and numbers are not searched
//   - uniqueness of copies and aggregates is refused at the start, which the cells test
//
// A world with all its objects is verified after the columns that share a process.
func TestPairs(t *testing.T) {
	t.Parallel()
	for _, kind := range sorted(backends) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, kind)
			w.serve(configuration)
			w.login("ann")
			w.login("ben")
			for _, all := range [][]column{writing, reading, passing} {
				for _, each := range all {
					if w.column(each); w.server == nil {
						t.FailNow() // it could not begin
					}
				}
			}
			w.settle()
			w.close(false)
			w.verified()
		})
	}
}

var features = []string{"references", "copies", "aggregates", "linked"}

// cell returns a cell of the table.
func (w *world) cell(column, feature string) *cell {
	return &cell{world: w, prefix: strings.ReplaceAll(column, " ", "") + "-" + feature + "-"}
}

// column runs the cells of a column.
func (w *world) column(each column) {
	t := w.T
	t.Run(each.name, func(t *testing.T) {
		w.T = t
		if each.begin != nil {
			each.begin(w)
		}
		for i, try := range []pair{each.references, each.copies, each.aggregates, each.linked} {
			if try == nil {
				continue
			}
			feature := features[i]
			t.Run(feature, func(t *testing.T) {
				w.T = t
				try(w.cell(each.name, feature))
			})
		}
	})
	w.T = t
}
