package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// point is what bench/load measured of an operation on a deployment; its fields are explained there.
type point struct {
	Part       string             `json:"part"`
	Backend    string             `json:"backend"`
	Operation  string             `json:"operation"`
	Fronts     int                `json:"fronts"`
	Workers    int                `json:"workers"`
	Processors int                `json:"processors"`
	Streams    int                `json:"streams,omitempty"`
	Batch      int                `json:"batch,omitempty"`
	Operations int                `json:"operations"`
	Rate       float64            `json:"rate"`
	CPU        map[string]float64 `json:"cpu"`  // microseconds of an operation, by the kind of process
	Busy       map[string]float64 `json:"busy"` // processors, by process
	Others     float64            `json:"others"`
	Events     float64            `json:"events"`
	Database   map[string]float64 `json:"database,omitempty"` // requests

	// Of several runs.
	Spent map[string]float64 `json:"-"` // see spentByKind
	Least float64            `json:"-"` // of the rates
	Most  float64            `json:"-"`
}

// The kinds of processes.
const (
	front     = "front"
	worker    = "worker"
	bus       = "bus"
	database  = "database"
	generator = "generator"
)

// The operations, as bench/load names them.
const (
	create      = "create"
	createAlone = "create-alone"
	get         = "get"
	getAlone    = "get-alone"
	mapOwn      = "map"
	childAlone  = "child-alone"
	appendOnly  = "append"
)

// points are those of one backend.
type points []point

// readPoints reads the points of the part scale from a file, or from all files of a folder, which are several runs, by
// their backend.
func readPoints(from string) (all []points, err error) {
	files := []string{from}
	if info, err := os.Stat(from); err == nil && info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(from, "*.json")); err != nil {
			return nil, err
		}
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var read points
		if err := json.Unmarshal(text, &read); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, p := range read {
			if p.Part == "scale" {
				all = add(all, p)
			}
		}
	}
	if len(all) == 0 {
		return nil, errors.New(from + " has no points of the part scale")
	}
	return all, nil
}

func add(all []points, p point) []points {
	i := slices.IndexFunc(all, func(ps points) bool { return ps[0].Backend == p.Backend })
	if i < 0 {
		return append(all, points{p})
	}
	all[i] = append(all[i], p)
	return all
}

// same reports whether two points are the same in two runs.
func (p *point) same(as *point) bool {
	return p.Operation == as.Operation && p.Fronts == as.Fronts && p.Workers == as.Workers &&
		p.Processors == as.Processors && p.Streams == as.Streams && p.Batch == as.Batch
}

// merged has the points of several runs as one each, the median of each of its values, with the least and the greatest
// rate.
func (ps points) merged() (all points) {
	for i := range ps {
		if slices.ContainsFunc(all, func(p point) bool { return p.same(&ps[i]) }) {
			continue
		}
		var runs points
		for _, p := range ps {
			if p.same(&ps[i]) {
				runs = append(runs, p)
			}
		}
		all = append(all, runs.median())
	}
	return all
}

// median is the median of each value of the runs of a point.
func (ps points) median() point {
	of := func(value func(p *point) float64) float64 {
		var values []float64
		for i := range ps {
			values = append(values, value(&ps[i]))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	each := func(values func(p *point) map[string]float64) map[string]float64 {
		medians := map[string]float64{}
		for name := range values(&ps[0]) {
			medians[name] = of(func(p *point) float64 { return values(p)[name] })
		}
		return medians
	}
	m := ps[0]
	m.Rate, m.Others, m.Events = of(func(p *point) float64 { return p.Rate }),
		of(func(p *point) float64 { return p.Others }), of(func(p *point) float64 { return p.Events })
	m.CPU, m.Database = each(func(p *point) map[string]float64 { return p.CPU }),
		each(func(p *point) map[string]float64 { return p.Database })
	m.Spent = each((*point).spentByKind)
	m.Least, m.Most = math.Inf(1), 0
	for _, p := range ps {
		m.Least, m.Most = min(m.Least, p.Rate), max(m.Most, p.Rate)
	}
	return m
}

// reference is the point of an operation with one front and one worker on two processors, by which others are
// predicted; nil without one.
func (ps points) reference(operation string) *point {
	for i := range ps {
		if p := &ps[i]; p.Operation == operation && p.Fronts == 1 && p.Workers == 1 && p.Processors == 2 {
			return p
		}
	}
	return nil
}

// asReference is a point by whose costs others are predicted.
func (p *point) asReference() point {
	r := *p
	r.Fronts, r.Workers, r.Processors = 1, 1, 2
	return r
}

// spentByKind is the processor time of each kind of process for an operation while the rate was measured, in
// microseconds. What follows after the last operation, such as the removal of its event from the record, is not part of
// it.
func (p *point) spentByKind() map[string]float64 {
	spent := map[string]float64{}
	for process, share := range p.Busy {
		kind, _, _ := strings.Cut(process, " ")
		spent[kind] += share / p.Rate * 1e6
	}
	return spent
}

// spent is that of one kind.
func (p *point) spent(kind string) time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(p.Spent[kind] * float64(time.Microsecond))
}

// total is the processor time of a kind of process for an operation and all that it causes.
func (p *point) total(kind string) time.Duration {
	if p == nil {
		return 0
	}
	return time.Duration(p.CPU[kind] * float64(time.Microsecond))
}
