package console

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"belfry/pkg/store"
)

// generated returns a model with n stores and mappings between random ones.
func generated(seed uint64, n int) *Graph {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	g := &Graph{}
	for i := range n {
		g.Stores = append(g.Stores, fmt.Sprintf("%s%d", strings.Repeat("Wide", r.IntN(4)), i))
	}
	if n == 0 {
		return g
	}
	for i := range r.IntN(2*n + 1) {
		m := store.Mapping{Source: g.Stores[r.IntN(n)], Target: g.Stores[r.IntN(n)], Array: fmt.Sprint("array", i)}
		switch r.IntN(6) {
		case 0:
			m.Array, m.Cascade = "", true
		case 1:
			m.Array = ""
			m.Aggregates = []store.Aggregate{{Property: "count", Function: "count"},
				{Property: "最大", Function: "max", Field: strings.Repeat("long", 5)}}
		case 2: // back and forth, and twice
			g.Mappings = append(g.Mappings, m, store.Mapping{Source: m.Target, Target: m.Source, Array: "back"})
		case 3:
			m.Target = m.Source
		}
		g.Mappings = append(g.Mappings, m)
	}
	return g
}

// at returns points of a path, close to each other.
func (e *edge) at() (all []point) {
	const steps = 16
	for i := 1; i < len(e.points); i++ {
		a, b := e.points[i-1], e.points[i]
		for step := range steps + 1 {
			t := float64(step) / steps
			p := point{a.x + (b.x-a.x)*t, a.y + (b.y-a.y)*t}
			if i%2 == 1 && a.x != b.x { // a curve with the control points of the path
				mid := (a.x + b.x) / 2
				p.x = cubic(t, a.x, mid, mid, b.x)
				p.y = cubic(t, a.y, a.y, b.y, b.y)
			}
			all = append(all, p)
		}
	}
	return all
}

func cubic(t, a, b, c, d float64) float64 {
	u := 1 - t
	return u*u*u*a + 3*u*u*t*b + 3*u*t*t*c + t*t*t*d
}

func (b box) overlaps(o box) bool {
	const slack = 1 // of rounding
	return b.x+slack < o.x+o.width && o.x+slack < b.x+b.width && b.y+slack < o.y+o.height && o.y+slack < b.y+b.height
}

func (n node) box() box { return box{float64(n.X), float64(n.Y), float64(n.Width), float64(n.Height)} }

func TestTheMapOfAnyModelIsLegible(t *testing.T) {
	t.Parallel()
	for n := range 41 {
		for seed := range uint64(3) {
			g := generated(seed, n)
			d := layOut(g)
			if d.TooLarge || len(d.Nodes) != n || len(d.Edges) != len(g.Mappings) {
				t.Fatalf("%d stores, seed %d: %d stores and %d of %d edges are drawn", n, seed, len(d.Nodes),
					len(d.Edges), len(g.Mappings))
			}
			checkDrawing(t, fmt.Sprintf("%d stores, seed %d", n, seed), g, d)
		}
	}
}

func checkDrawing(t *testing.T, name string, g *Graph, d drawing) {
	t.Helper()
	all := box{0, 0, float64(d.Width), float64(d.Height)}
	inside := func(b box) bool {
		return b.x >= 0 && b.y >= 0 && b.x+b.width <= all.width && b.y+b.height <= all.height
	}
	nodes := map[string]box{}
	for i, a := range d.Nodes {
		nodes[a.Name] = a.box()
		if !inside(a.box()) || nameWidth(a.Name) > float64(a.Width) {
			t.Errorf("%s: the store %+v is outside of the drawing, or its name is cut", name, a)
		}
		for _, b := range d.Nodes[:i] {
			if a.box().overlaps(b.box()) {
				t.Errorf("%s: %+v and %+v overlap", name, a, b)
			}
		}
	}
	for i, e := range d.Edges {
		m := g.Mappings[i]
		if !inside(e.box) || e.labelWidth() > e.box.width || float64(e.LagY) > e.box.y+e.box.height {
			t.Errorf("%s: the label of %s is outside of the drawing or of its place", name, e.Title)
		}
		for _, o := range d.Edges[:i] {
			if e.box.overlaps(o.box) {
				t.Errorf("%s: the labels of %s and %s overlap", name, e.Title, o.Title)
			}
		}
		for _, n := range nodes {
			if e.box.overlaps(n) {
				t.Errorf("%s: the label of %s covers a store", name, e.Title)
			}
		}
		first, last := e.points[0], e.points[len(e.points)-1]
		if !beside(nodes[m.Source], first) || !beside(nodes[m.Target], last) {
			t.Errorf("%s: %s leads from %v to %v, not from %v to %v", name, e.Title, first, last, nodes[m.Source],
				nodes[m.Target])
		}
		for _, p := range e.at() {
			for of, n := range nodes {
				if n.overlaps(box{p.x - 1, p.y - 1, 2, 2}) {
					t.Fatalf("%s: %s runs behind %s at %v", name, e.Title, of, p)
				}
			}
			for j, o := range d.Edges {
				if j != i && o.box.overlaps(box{p.x - 1, p.y - 1, 2, 2}) {
					t.Fatalf("%s: %s runs behind the label of %s", name, e.Title, o.Title)
				}
			}
			if !inside(box{p.x, p.y, 0, 0}) {
				t.Fatalf("%s: %s leaves the drawing", name, e.Title)
			}
		}
	}
}

// beside reports whether a point is at the left or the right side of a store.
func beside(n box, p point) bool {
	near := math.Min(math.Abs(p.x-n.x), math.Abs(p.x-n.x-n.width)) <= tipRoom+1
	return near && p.y > n.y && p.y < n.y+n.height
}

func TestAModelThatIsTooLargeIsNotDrawn(t *testing.T) {
	t.Parallel()
	g := &Graph{}
	for i := range 2 * maxPlaces {
		g.Stores = append(g.Stores, fmt.Sprint("Store", i))
		if i > 0 {
			g.Mappings = append(g.Mappings, store.Mapping{Source: g.Stores[i-1], Target: g.Stores[i], Array: "a"})
		}
	}
	if d := layOut(g); !d.TooLarge || len(d.Nodes) > 0 {
		t.Errorf("%d stores are drawn", len(d.Nodes))
	}
}

func BenchmarkTheMapOf40Stores(b *testing.B) {
	g := generated(1, 40)
	for b.Loop() {
		layOut(g)
	}
}
