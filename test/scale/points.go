package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// point is what test/load measured of an operation on a deployment; its fields are explained there.
type point struct {
	Backend    string             `json:"backend"`
	Operation  string             `json:"operation"`
	Fronts     int                `json:"fronts"`
	Workers    int                `json:"workers"`
	Processors int                `json:"processors"`
	Operations int                `json:"operations"`
	Rate       float64            `json:"rate"`
	CPU        map[string]float64 `json:"cpu"` // microseconds of an operation, by the kind of process
	Others     float64            `json:"others"`
}

func readPoints(file string) (points []point, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &points); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(points) == 0 {
		return nil, errors.New(file + " has no points")
	}
	return points, nil
}

// The kinds of processes.
const (
	front     = "front"
	worker    = "worker"
	bus       = "bus"
	database  = "database"
	generator = "generator"
)

// How many operations are in flight: connections of test/load, and events that a worker handles at once.
const (
	connections = 32
	atOnce      = 64
)

// operationOf is an operation with the costs that were measured at a point. Of a create, half of the work of the database is
// before the reply, and half, which removes the event from its record, after the event is in the log.
func operationOf(p *point) (o operation, known bool) {
	at := func(kind string, share float64) step {
		return step{kind: kind, time: time.Duration(share * p.CPU[kind] * float64(time.Microsecond))}
	}
	switch p.Operation {
	case "create":
		return operation{
			request: []step{at(generator, 1), at(front, 1), at(database, 0.5)},
			logged:  []step{at(bus, 1)},
			after:   []step{at(worker, 1), at(database, 0.5)},
		}, true
	case "get":
		return operation{request: []step{at(generator, 1), at(front, 1), at(database, 1)}}, true
	case "map", "map-shared", "map-again":
		return operation{request: []step{at(bus, 1), at(worker, 1), at(database, 1)}}, true
	default:
		return operation{}, false
	}
}

// deploymentOf is the deployment of a point: each front and each worker on one processor, in turn, the others on all.
func deploymentOf(p *point) *deployment {
	d := &deployment{processes: map[string][]*process{}, clients: connections}
	for range p.Processors {
		d.processors = append(d.processors, &processor{})
	}
	for kind, n := range map[string]int{front: p.Fronts, worker: p.Workers} {
		for i := range n {
			d.processes[kind] = append(d.processes[kind], &process{processors: d.processors[i%p.Processors : i%p.Processors+1]})
		}
	}
	for _, kind := range []string{bus, database, generator} {
		d.processes[kind] = []*process{{processors: d.processors}}
	}
	if p.Operation != "create" && p.Operation != "get" {
		d.clients = atOnce * p.Workers
	}
	return d
}

// slowed is an operation on processors that other programs used for a share of the time.
func (o operation) slowed(share float64) operation {
	slow := func(steps []step) []step {
		out := make([]step, len(steps))
		for i, s := range steps {
			if out[i] = s; !s.delay {
				out[i].time = time.Duration(float64(s.time) / (1 - share))
			}
		}
		return out
	}
	return operation{slow(o.request), slow(o.logged), slow(o.after)}
}
