package console

import (
	"context"
	"slices"

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
		d.Edges[i].Trouble = e.Differs > 0 || e.Overflow > 0 || e.Full > 0
	}
	return r.Page("map", "Map", struct {
		drawing
		Zooms   []zoom
		All     []mapEdge
		Problem string
		Run     *Run
		Modeled bool
	}{d.at(r.Query("zoom")), d.zooms(r.Query("zoom")), edges, problem, run, v.g.Modeled})
}

// zoom is a size at which the drawing can be seen.
type zoom struct {
	Name, Title string
	Current     bool
}

// zooms returns the sizes.
func (d drawing) zooms(chosen string) []zoom {
	all := []zoom{{"", "100 %", true}, {"fit", "Fit", false}, {"50", "50 %", false}, {"200", "200 %", false}}
	for i := range all[1:] {
		if all[i+1].Name == chosen {
			all[0].Current, all[i+1].Current = false, true
		}
	}
	return all
}

// at returns the drawing at a size; the one of an unknown name is that of 100 %.
func (d drawing) at(chosen string) drawing {
	d.ShownWidth, d.ShownHeight = d.Width, d.Height
	switch chosen {
	case "fit":
		d.Fit = true
	case "50":
		d.ShownWidth, d.ShownHeight = d.Width/2, d.Height/2
	case "200":
		d.ShownWidth, d.ShownHeight = d.Width*2, d.Height*2
	}
	return d
}
