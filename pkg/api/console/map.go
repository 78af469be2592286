package console

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"belfry/internal/count"
	"belfry/pkg/store"
)

// Graph is the data of the view Map: the stores, and the mappings that copy and delete their objects.
type Graph struct {
	Stores   []string // by name
	Modeled  bool     // the view Model describes them
	Mappings []store.Mapping
	// Lag returns the events that the workers have not handled yet, by the name of the worker.
	Lag func(ctx context.Context) (map[string]uint64, error)
	// Overflow returns how many entries of an array the worker of this process has refused since it started. nil: other
	// processes apply the mappings.
	Overflow func(source, target, array string) uint64
	// Fill returns the progress of filling an array from the objects that existed before its mapping; nil if this
	// process does not know it.
	Fill func(source, target, array string) Fill
}

// Fill is the progress of filling an array.
type Fill struct {
	Known     bool
	Done      bool
	Repairing bool // it is filled again because events were missed
	Waiting   bool // for a process with another configuration, which runs

	Targets, Total int64 // objects with the array: filled, and all, approximately
	Failed         int64 // arrays that can't be written
}

// Text describes the progress of filling an array.
func (f Fill) Text() string {
	switch {
	case !f.Known:
		return "unknown"
	case f.Done && f.Repairing:
		return "yes; repairing after missed events: " + formatCount(f.Targets) + " of " +
			formatCount(max(f.Total, f.Targets))
	case f.Done && f.Failed > 0:
		return "all but " + formatCount(f.Failed)
	case f.Done:
		return "yes"
	case f.Waiting:
		return "waits for processes with another configuration to end"
	case f.Total > 0:
		return formatCount(f.Targets) + " of " + formatCount(max(f.Total, f.Targets))
	default:
		return "not yet"
	}
}

// Names of the workers that apply mappings.
const (
	mappingWorker   = "mapping"
	cascadeWorker   = "cascade"
	aggregateWorker = "aggregate"
)

func (c *Console) graph(g *Graph, verification *Operation) view {
	if g == nil {
		return view{}
	}
	v := mapView{g: g, verification: verification, places: layOut(g)}
	return view{name: "map", title: "Map", routes: []route{get("/map", v.show)}}
}

type mapView struct {
	g            *Graph
	verification *Operation // whose result has Copies; may be nil
	places       drawing
}

func (v mapView) show(r *request) error {
	ctx, cancel := r.busContext() // stores and mappings are shown without the bus, too
	defer cancel()
	lag, noLag := v.g.Lag(ctx)
	problem := ""
	if noLag != nil {
		r.RecordError(noLag)
		problem, _ = messageOf(noLag)
	}
	run, err := v.verification.last(r.Context())
	if err != nil {
		return err
	}
	edges := make([]mapEdge, len(v.g.Mappings))
	for i, m := range v.g.Mappings {
		e := mapEdge{Mapping: m, Worker: mappingWorker, LagKnown: noLag == nil}
		switch {
		case len(m.Aggregates) > 0 && (m.Array == "" || lag[aggregateWorker] > lag[mappingWorker]):
			e.Worker = aggregateWorker
		case m.Array == "":
			e.Worker = cascadeWorker
		}
		if e.Here = m.Array != "" && v.g.Overflow != nil; e.Here {
			e.Overflow = v.g.Overflow(m.Source, m.Target, m.Array)
		}
		e.Fill = v.fillOf(m)
		e.Lag = lag[e.Worker]
		e.verified(copiesOf(run))
		edges[i] = e
	}
	d := v.places
	d.Edges = slices.Clone(d.Edges)
	for i := range d.Edges {
		e := edges[i]
		d.Edges[i].State = e
		d.Edges[i].Troubled = e.Differs > 0 || e.Overflow > 0 || e.Full > 0
	}
	return r.Page("map", "Map", struct {
		drawing
		All     []mapEdge
		Problem string
		Run     *Run
		Modeled bool
	}{d, edges, problem, run, v.g.Modeled})
}

// drawing is a graph in layers: each store is to the right of the stores that are copied into it, unless they form a
// cycle.
type drawing struct {
	Width, Height int
	Nodes         []node
	Edges         []edge
	Summary       string
}

type node struct {
	Name                              string
	X, Y, Width, Height, TextX, TextY int
}

type edge struct {
	Path           string // of the line
	LabelX, LabelY int
	Text           string
	Cascade        bool // deletes with its target, and copies nothing
	Troubled       bool
	State          mapEdge
}

// Measures of the drawing.
const (
	nodeHeight  = 44
	letterWidth = 8
	layerGap    = 170
	rowGap      = 40
	border      = 24
)

// layOut places the stores that mappings connect, and then the others in a row below.
func layOut(g *Graph) drawing {
	connected := map[string]bool{}
	for _, m := range g.Mappings {
		connected[m.Source], connected[m.Target] = true, true
	}
	layers := layersOf(g, connected)
	untangle(layers, g)
	var d drawing
	at := map[string]node{}
	x, height := border, 0
	for _, layer := range layers {
		width := 0
		for _, s := range layer {
			width = max(width, len(s)*letterWidth+32)
		}
		for i, s := range layer {
			n := nodeOf(s, x, border+i*(nodeHeight+rowGap), width)
			d.Nodes, at[s] = append(d.Nodes, n), n
			height = max(height, n.Y+nodeHeight)
		}
		x += width + layerGap
	}
	d.Width = max(x-layerGap+border, 320)
	x, y := border, height+border
	if height > 0 {
		y += rowGap / 2
	}
	for _, s := range g.Stores {
		if connected[s] {
			continue
		}
		width := len(s)*letterWidth + 32
		if x > border && x+width+border > max(d.Width, 640) {
			x, y = border, y+nodeHeight+border/2
		}
		n := nodeOf(s, x, y, width)
		d.Nodes, at[s] = append(d.Nodes, n), n
		x += width + border/2
		d.Width, height = max(d.Width, x+border/2), max(height, y+nodeHeight)
	}
	d.Height = height + border
	d.draw(g, at)
	d.Summary = count.Of(len(g.Stores), "store") + " and " + count.Of(len(g.Mappings), "mapping") +
		", which the table below lists"
	return d
}

func nodeOf(s string, x, y, width int) node {
	return node{Name: s, X: x, Y: y, Width: width, Height: nodeHeight, TextX: x + width/2, TextY: y + nodeHeight/2 + 5}
}

// layersOf returns the connected stores by the number of mappings on the longest path to them. Mappings that close a
// cycle do not count.
func layersOf(g *Graph, connected map[string]bool) (layers [][]string) {
	into := map[string][]string{}
	for _, m := range g.Mappings {
		if m.Source != m.Target {
			into[m.Target] = append(into[m.Target], m.Source)
		}
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
	for _, s := range g.Stores {
		if !connected[s] {
			continue
		}
		d := visit(s)
		for len(layers) <= d {
			layers = append(layers, nil)
		}
		layers[d] = append(layers[d], s)
	}
	return slices.DeleteFunc(layers, func(l []string) bool { return len(l) == 0 })
}

// untangle orders the stores of each layer, so that few lines cross: each store goes to the mean row of the stores that
// mappings connect it with.
func untangle(layers [][]string, g *Graph) {
	row := map[string]float64{}
	placed := func(layer []string) {
		for i, s := range layer {
			row[s] = float64(i)
		}
	}
	for _, layer := range layers {
		placed(layer)
	}
	const sweeps = 4 // to the right and back, twice
	for sweep := range sweeps {
		for i := range layers {
			layer := layers[i]
			if sweep%2 == 1 {
				layer = layers[len(layers)-1-i]
			}
			mean := map[string]float64{}
			for _, s := range layer {
				sum, n := 0.0, 0.0
				for _, m := range g.Mappings {
					switch {
					case m.Source == m.Target:
					case m.Source == s:
						sum, n = sum+row[m.Target], n+1
					case m.Target == s:
						sum, n = sum+row[m.Source], n+1
					}
				}
				mean[s] = sum / max(n, 1)
			}
			slices.SortStableFunc(layer, func(a, b string) int { return cmp.Compare(mean[a], mean[b]) })
			placed(layer)
		}
	}
}

// draw draws the mappings, each as a curve from its source to its target. Several between two stores are apart.
func (d *drawing) draw(g *Graph, at map[string]node) {
	pairs := map[string]int{}
	for _, m := range g.Mappings {
		from, to := at[m.Source], at[m.Target]
		pair := strings.Join(slices.Sorted(slices.Values([]string{m.Source, m.Target})), " ")
		n := pairs[pair]
		pairs[pair]++
		properties := derivedBy(m)
		e := edge{Cascade: len(properties) == 0, Text: strings.Join(properties, ", ")}
		if e.Cascade {
			e.Text = "cascade"
		}
		offset := n * 26
		switch {
		case m.Source == m.Target:
			x, y := from.X+from.Width, from.Y+12
			e.Path = fmt.Sprintf("M%d,%d C%d,%d %d,%d %d,%d", x, y, x+60+offset, y-16-offset, x+60+offset, y+36+offset,
				x+4, y+20)
			e.LabelX, e.LabelY = x+54+offset, y+14+offset
		case from.X == to.X:
			x := from.X + from.Width
			e.Path = fmt.Sprintf("M%d,%d C%d,%d %d,%d %d,%d", x, mid(from), x+50+offset, mid(from), x+50+offset,
				mid(to), x+4, mid(to))
			e.LabelX, e.LabelY = x+46+offset, (mid(from)+mid(to))/2+4
		default:
			x1, x2, way := from.X+from.Width, to.X-4, 1
			if from.X > to.X {
				x1, x2, way = from.X, to.X+to.Width+4, -1
			}
			bend := way * int(math.Abs(float64(x2-x1))) / 2
			y1, y2 := mid(from)+apart(n), mid(to)+apart(n)
			e.Path = fmt.Sprintf("M%d,%d C%d,%d %d,%d %d,%d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
			e.LabelX, e.LabelY = (x1+x2)/2, (y1+y2)/2-6
		}
		d.Width, d.Height = max(d.Width, e.LabelX+len(e.Text)*letterWidth+border), max(d.Height, e.LabelY+border)
		d.Edges = append(d.Edges, e)
	}
}

func mid(n node) int { return n.Y + nodeHeight/2 }

// apart is how far the nth line between two stores is from the middle: 0, 14, -14.
func apart(n int) int {
	if n%2 == 1 {
		return (n + 1) / 2 * 14
	}
	return -n / 2 * 14
}
