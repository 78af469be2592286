package console

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"belfry/internal/count"
)

// drawing is a graph as it is drawn. Its lengths are pixels at full size.
type drawing struct {
	Width, Height int
	Nodes         []node
	Edges         []edge // as the mappings
	TooLarge      bool   // there is more than is drawn

	ShownWidth, ShownHeight int  // at the chosen size
	Fit                     bool // it is as wide as the page

	Summary string
}

type node struct {
	Name                              string
	X, Y, Width, Height, TextX, TextY int
}

// edge is a line with a label: the properties above it, and the lag below it.
type edge struct {
	Path    string
	Lines   []labelLine
	LagX    int
	LagY    int
	Kind    string // a class: "", "aggregate" or "cascade"
	Title   string
	Trouble bool
	State   mapEdge

	points []point // of the path: between them curves and straight lines alternate
	box    box     // of the label
}

type labelLine struct {
	X, Y int
	Text string
}

type point struct{ x, y float64 }

type box struct{ x, y, width, height float64 }

// Measures of the drawing.
const (
	nodeHeight = 44
	portGap    = 14 // between edges at a store
	laneHeight = 10 // of an edge that passes a column
	placeGap   = 12 // between two places of a column
	lineHeight = 15 // of a label
	monoWidth  = 7.3
	border     = 24
	tipRoom    = 3 // the tip of an arrow ends before the frame of the store
)

// layOut places the stores that mappings connect, and the others in rows below.
func layOut(g *Graph) drawing {
	d := drawing{Summary: count.Of(len(g.Stores), "store") + " and " + count.Of(len(g.Mappings), "mapping") +
		", which the table below lists"}
	l := layer(g)
	if l == nil || len(g.Stores) > maxPlaces {
		d.TooLarge = true
		return d
	}
	labels := make([]edge, len(g.Mappings))
	for i, m := range g.Mappings {
		labels[i] = labelOf(mapEdge{Mapping: m})
	}
	l.measure(labels)
	l.untangle()
	l.dock()
	l.align()
	width, height := l.draw(&d, labels)
	d.Edges = labels
	for _, s := range g.Stores {
		if l.stores[s] == nil {
			d.Nodes = append(d.Nodes, node{Name: s})
		}
	}
	d.placeRest(len(l.stores), width, height)
	return d
}

// placeRest places the stores that no mapping connects in rows below the others.
func (d *drawing) placeRest(connected int, width, height float64) {
	d.Width, d.Height = max(int(width), 320), int(height)
	x, y := border, d.Height
	for i := range d.Nodes[connected:] {
		n := &d.Nodes[connected+i]
		own := int(nameWidth(n.Name)) + 32
		if x > border && x+own+border > max(d.Width, 640) {
			x, y = border, y+nodeHeight+border/2
		}
		*n = nodeAt(n.Name, x, y, own, nodeHeight)
		x += own + border/2
		d.Width, d.Height = max(d.Width, x+border/2), y+nodeHeight+border
	}
}

func nodeAt(name string, x, y, width, height int) node {
	return node{Name: name, X: x, Y: y, Width: width, Height: height, TextX: x + width/2, TextY: y + height/2 + 5}
}

// measure sets the size of each place.
func (l *layering) measure(labels []edge) {
	for _, column := range l.columns {
		for _, p := range column {
			switch {
			case p.store != "":
				ports := max(len(p.left), len(p.right))
				p.width, p.height = nameWidth(p.store)+32, max(nodeHeight, float64(ports)*portGap+16)
			case p.label:
				above, below := float64(len(labels[p.edge].Lines)*lineHeight+4), float64(lineHeight+2)
				p.width, p.height = labels[p.edge].labelWidth()+16, above+below
				p.line = above - p.height/2
				if p.loop { // two lines, with the label between them
					p.width, p.height, p.line = p.width+24, p.height+2*laneHeight, 0
				}
			default:
				p.height = laneHeight
			}
		}
	}
}

// align moves places up and down, so that edges are as straight as the order of the columns permits.
func (l *layering) align() {
	for _, column := range l.columns {
		settle(column, func(*slot) (float64, float64) { return 0, 1 })
	}
	const sweeps = 16
	for sweep := range sweeps {
		both := sweep > sweeps/2
		for i := range l.columns {
			column, left := l.columns[i], sweep%2 == 0
			if !left {
				column = l.columns[len(l.columns)-1-i]
			}
			settle(column, func(p *slot) (float64, float64) { return p.wanted(left || both, !left || both) })
		}
	}
}

// wanted returns where a place would be best, considering those left or right of it, and how much that matters.
func (p *slot) wanted(left, right bool) (center, weight float64) {
	sum, n := 0.0, 0.0
	add := func(other *slot, offset float64) {
		w := 1.0
		if p.store == "" && other.store == "" {
			w = 4 // edges bend beside stores
		}
		sum, n = sum+w*(other.center+offset), n+w
	}
	for _, s := range p.left {
		if left {
			add(s.from, s.y1-s.y2)
		}
	}
	for _, s := range p.right {
		if right {
			add(s.to, s.y2-s.y1)
		}
	}
	if n == 0 {
		return p.center, 0.1
	}
	return sum / n, n
}

// settle moves the places of a column as close to where each is wanted as their order and sizes permit: the weighted
// least squares, by pooling adjacent violators.
func settle(column []*slot, wanted func(*slot) (center, weight float64)) {
	type pool struct {
		at, weight float64
		n          int
	}
	offset := make([]float64, len(column))
	var pools []pool
	for i, p := range column {
		if i > 0 {
			before := column[i-1]
			offset[i] = offset[i-1] + (before.height+p.height)/2 + placeGap
		}
		center, weight := wanted(p)
		pools = append(pools, pool{center - offset[i], weight, 1})
		for last := len(pools) - 1; last > 0 && pools[last-1].at > pools[last].at; last-- {
			a, b := pools[last-1], pools[last]
			weight := a.weight + b.weight
			pools[last-1] = pool{(a.at*a.weight + b.at*b.weight) / weight, weight, a.n + b.n}
			pools = pools[:last]
		}
	}
	i := 0
	for _, one := range pools {
		for range one.n {
			column[i].center = one.at + offset[i]
			i++
		}
	}
}

// dock sets where edges leave and enter: at a store in the order of the other ends, so that they do not cross there.
func (l *layering) dock() {
	for _, column := range l.columns {
		for _, p := range column {
			slices.SortStableFunc(p.left, func(a, b *span) int { return cmp.Compare(a.from.center, b.from.center) })
			slices.SortStableFunc(p.right, func(a, b *span) int { return cmp.Compare(a.to.center, b.to.center) })
			for i, s := range p.left {
				s.y2 = p.port(i, len(p.left), s.loop)
			}
			for i, s := range p.right {
				s.y1 = p.port(i, len(p.right), s.loop)
			}
		}
	}
}

// port returns how far below the center of a place the ith of n edges is.
func (p *slot) port(i, n int, second bool) float64 {
	switch {
	case p.store != "":
		return (float64(i) - float64(n-1)/2) * portGap
	case p.loop && second:
		return p.height/2 - laneHeight/2
	case p.loop:
		return laneHeight/2 - p.height/2
	}
	return p.line
}

// draw adds stores and edges at their places, and returns the size of what it has drawn.
func (l *layering) draw(d *drawing, labels []edge) (width, height float64) {
	top, bottom := math.Inf(1), math.Inf(-1)
	left, widths := make([]float64, len(l.columns)), make([]float64, len(l.columns))
	x := float64(border)
	for i, column := range l.columns {
		spans, steepest := 0, 0.0
		for _, p := range column {
			widths[i] = max(widths[i], math.Ceil(p.width))
			top, bottom = min(top, p.center-p.height/2), max(bottom, p.center+p.height/2)
			spans += len(p.right)
			for _, s := range p.right {
				steepest = max(steepest, math.Abs(s.from.center+s.y1-s.to.center-s.y2))
			}
		}
		left[i] = x
		x += widths[i]
		if i < len(l.columns)-1 {
			x += math.Round(min(28+2*float64(spans)+steepest/4, 120))
		}
	}
	if len(l.columns) == 0 {
		return 0, border
	}
	down := border - top
	for i, column := range l.columns {
		for _, p := range column {
			if p.store != "" {
				p.width = widths[i]
				d.Nodes = append(d.Nodes, nodeAt(p.store, int(left[i]), int(math.Round(p.center+down-p.height/2)),
					int(widths[i]), int(p.height)))
				continue
			}
			if p.label {
				labels[p.edge].place(p, left[i], widths[i], down)
			}
		}
	}
	for i, chain := range l.chains {
		labels[i].route(chain, left, widths, down, l.back[i])
	}
	return x + border, bottom + down + border
}

// place places the label of an edge within a column.
func (e *edge) place(p *slot, left, width, down float64) {
	e.box = box{left, p.center + down - p.height/2, width, p.height}
	x, y := int(left+width/2), e.box.y
	if p.loop {
		y += laneHeight
	}
	for i := range e.Lines {
		e.Lines[i].X, e.Lines[i].Y = x, int(y)+i*lineHeight+12
	}
	e.LagX, e.LagY = x, int(y)+len(e.Lines)*lineHeight+4+13
}

// route draws the line of an edge: curves between columns, and straight within them.
func (e *edge) route(chain []*span, left, widths []float64, down float64, back bool) {
	for _, s := range chain {
		e.points = append(e.points,
			point{left[s.from.column] + widths[s.from.column], s.from.center + s.y1 + down},
			point{left[s.to.column], s.to.center + s.y2 + down})
	}
	switch last := len(e.points) - 1; {
	case chain[0].to.loop:
		e.turn(chain[0].to, left, widths)
		return
	case back:
		e.points[0].x += tipRoom
		slices.Reverse(e.points)
	default:
		e.points[last].x -= tipRoom
	}
	var b strings.Builder
	fmt.Fprintf(&b, "M%.0f,%.1f", e.points[0].x, e.points[0].y)
	for i := 1; i < len(e.points); i++ {
		if i%2 == 1 {
			b.WriteString(" " + curve(e.points[i-1], e.points[i]))
		} else {
			fmt.Fprintf(&b, " L%.0f,%.1f", e.points[i].x, e.points[i].y)
		}
	}
	e.Path = b.String()
}

// turn draws an edge that returns to its store. It turns at the right end of its place.
func (e *edge) turn(p *slot, left, widths []float64) {
	there, home := e.points[:2], e.points[2:]
	home[0].x += tipRoom
	end := left[p.column] + widths[p.column] - laneHeight
	e.Path = fmt.Sprintf("M%.0f,%.1f %s H%.0f C%.0f,%.1f %.0f,%.1f %.0f,%.1f H%.0f %s",
		there[0].x, there[0].y, curve(there[0], there[1]),
		end, end+laneHeight, there[1].y, end+laneHeight, home[1].y, end, home[1].y,
		home[1].x, curve(home[1], home[0]))
	e.points = []point{there[0], there[1], {end, there[1].y}, {end, home[1].y}, home[1], home[0]}
}

// curve is a curve that begins and ends horizontally, and stays between its ends.
func curve(a, b point) string {
	mid := (a.x + b.x) / 2
	return fmt.Sprintf("C%.0f,%.1f %.0f,%.1f %.0f,%.1f", mid, a.y, mid, b.y, b.x, b.y)
}
