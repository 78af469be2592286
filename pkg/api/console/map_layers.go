package console

import (
	"cmp"
	"slices"

	"belfry/pkg/store"
)

// The drawing is layered, from the left to the right: each store is right of the stores that are copied into it, unless
// they form a cycle. Columns alternate: stores, then what lies between them, then stores. An edge has a place of its
// own in each column that it passes, as a store has. So no edge runs behind a store, and no label covers another.
//
// maxPlaces bounds the work of a drawing: stores, and places of edges.
const maxPlaces = 4000

// slot is a place in a column: of a store, or of a part of an edge.
type slot struct {
	store         string // "": of an edge
	edge          int    // index of its mapping
	label         bool   // it has the label of the edge; else the edge passes
	loop          bool   // the edge leads from its store to the same store
	column        int
	center        float64
	height        float64
	line          float64 // where the edge runs, below the center
	left, right   []*span
	width, before float64 // before: its rank among the others while columns are ordered
}

// span is the part of an edge between two neighboring columns.
type span struct {
	edge     int
	from, to *slot   // from the left to the right
	y1, y2   float64 // where it leaves and arrives
	loop     bool    // the other half of an edge that returns to its store
}

// layering is what is drawn, in columns.
type layering struct {
	columns [][]*slot
	stores  map[string]*slot
	chains  [][]*span // by mapping, from the left to the right; of a loop, the way there and back
	back    []bool    // by mapping: it leads from the right to the left
}

// layer places stores that mappings connect. It returns nil if there is too much to draw.
func layer(g *Graph) *layering {
	depth, ok := depths(g)
	if !ok {
		return nil
	}
	l := &layering{stores: map[string]*slot{}, chains: make([][]*span, len(g.Mappings)),
		back: make([]bool, len(g.Mappings))}
	for _, s := range byNeighbors(g, depth) {
		l.stores[s] = l.add(&slot{store: s, edge: -1, column: 2 * depth[s]})
	}
	places := len(l.stores)
	for i, m := range g.Mappings {
		from, to := l.stores[m.Source], l.stores[m.Target]
		if from == to {
			p := l.add(&slot{edge: i, label: true, loop: true, column: from.column + 1})
			l.chains[i] = []*span{join(i, from, p, false), join(i, from, p, true)}
			continue
		}
		label := to.column - 1 // beside the target, whose property it names
		if l.back[i] = from.column > to.column; l.back[i] {
			from, to, label = to, from, to.column+1
		}
		if places += to.column - from.column; places > maxPlaces {
			return nil
		}
		at := from
		for c := from.column + 1; c < to.column; c++ {
			p := l.add(&slot{edge: i, label: c == label, column: c})
			l.chains[i] = append(l.chains[i], join(i, at, p, false))
			at = p
		}
		l.chains[i] = append(l.chains[i], join(i, at, to, false))
	}
	return l
}

func (l *layering) add(p *slot) *slot {
	for len(l.columns) <= p.column {
		l.columns = append(l.columns, nil)
	}
	l.columns[p.column] = append(l.columns[p.column], p)
	return p
}

func join(edge int, from, to *slot, loop bool) *span {
	s := &span{edge: edge, from: from, to: to, loop: loop}
	from.right, to.left = append(from.right, s), append(to.left, s)
	return s
}

// depths returns the connected stores by the number of mappings on the longest path to them. Mappings that close a
// cycle do not count. It reports whether there are few enough to draw.
func depths(g *Graph) (depth map[string]int, ok bool) {
	into, out := map[string][]string{}, map[string][]string{}
	var stores []string
	for _, m := range g.Mappings {
		for _, s := range []string{m.Source, m.Target} {
			if _, known := into[s]; !known {
				into[s], stores = nil, append(stores, s)
			}
		}
		if m.Source != m.Target {
			into[m.Target] = append(into[m.Target], m.Source)
			out[m.Source] = append(out[m.Source], m.Target)
		}
	}
	if len(stores)+len(g.Mappings) > maxPlaces {
		return nil, false
	}
	depth, open := map[string]int{}, map[string]bool{}
	var visit func(name string) int
	visit = func(name string) int {
		if d, done := depth[name]; done {
			return d
		}
		open[name] = true
		d := 0
		for _, source := range into[name] {
			if !open[source] {
				d = max(d, visit(source)+1)
			}
		}
		open[name] = false
		depth[name] = d
		return d
	}
	slices.Sort(stores)
	for _, s := range stores {
		visit(s)
	}
	for _, s := range stores { // a store that nothing is copied into goes to its nearest target
		nearest, first := len(stores), depth[s] == 0
		for _, target := range out[s] {
			nearest = min(nearest, depth[target])
		}
		for _, source := range into[s] { // of a cycle
			nearest = min(nearest, depth[source])
		}
		if first && len(out[s])+len(into[s]) > 0 {
			depth[s] = nearest - 1
		}
	}
	return depth, true
}

// byNeighbors returns the stores with those that mappings connect one after the other.
func byNeighbors(g *Graph, depth map[string]int) (all []string) {
	near := map[string][]store.Mapping{}
	for _, m := range g.Mappings {
		near[m.Source], near[m.Target] = append(near[m.Source], m), append(near[m.Target], m)
	}
	seen := map[string]bool{}
	names := make([]string, 0, len(depth))
	for s := range depth {
		names = append(names, s)
	}
	slices.Sort(names)
	for _, s := range names {
		for open := []string{s}; len(open) > 0; {
			at := open[len(open)-1]
			open = open[:len(open)-1]
			if seen[at] {
				continue
			}
			seen[at], all = true, append(all, at)
			for _, m := range near[at] {
				open = append(open, m.Source, m.Target)
			}
		}
	}
	return all
}

// untangle orders the places of each column, so that few edges cross: each goes to the mean rank of those that it is
// connected with. The best of some sweeps stays.
func (l *layering) untangle() {
	const sweeps = 12 // to the right and back
	best, fewest := l.order(), l.crossings()
	for sweep := range sweeps {
		for i := range l.columns {
			column, back := l.columns[i], sweep%2 == 1
			if back {
				column = l.columns[len(l.columns)-1-i]
			}
			for at, p := range column {
				near := p.left
				if back {
					near = p.right
				}
				p.before = meanRank(near, !back, float64(at))
			}
			slices.SortStableFunc(column, func(a, b *slot) int { return cmp.Compare(a.before, b.before) })
			for at, p := range column {
				p.center = float64(at) // until places are measured
			}
		}
		if n := l.crossings(); n < fewest {
			best, fewest = l.order(), n
		}
	}
	l.columns = best
}

// meanRank is the mean of the ranks that spans lead to; without any, the own rank.
func meanRank(near []*span, left bool, own float64) float64 {
	sum := 0.0
	for _, s := range near {
		if left {
			sum += s.from.center
		} else {
			sum += s.to.center
		}
	}
	if len(near) == 0 {
		return own
	}
	return sum / float64(len(near))
}

// order returns a copy of the columns.
func (l *layering) order() [][]*slot {
	all := make([][]*slot, len(l.columns))
	for i, column := range l.columns {
		all[i] = slices.Clone(column)
		for at, p := range column {
			p.center = float64(at)
		}
	}
	return all
}

// crossings counts the pairs of spans that cross.
func (l *layering) crossings() (n int) {
	for _, column := range l.columns {
		var ends []float64
		for _, p := range column {
			var own []float64
			for _, s := range p.right {
				own = append(own, s.to.center)
			}
			for _, end := range own {
				for _, before := range ends {
					if before > end {
						n++
					}
				}
			}
			ends = append(ends, own...)
		}
	}
	return n
}
