package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"belfry/internal/count"
)

// point is what was measured of one operation on one deployment. A file of -json has all of a run.
type point struct {
	Part    string `json:"part"`    // scale
	Backend string `json:"backend"` // and its server
	// map, map-shared, map-again: an event that workers apply; create; get; these alone; append; idle: a second without
	// requests
	Operation string `json:"operation"`
	Fronts    int    `json:"fronts"`  // processes
	Workers   int    `json:"workers"` // processes
	// that all processes run on together; each front and each worker has one of them
	Processors int `json:"processors"`

	Streams int `json:"streams,omitempty"` // of append: that are written at once
	Batch   int `json:"batch,omitempty"`   // of append: events that are published together

	Operations int     `json:"operations"` // that were measured
	Rate       float64 `json:"rate"`       // operations a second
	// seconds after the last operation until everything that they caused was done
	Late float64 `json:"late"`

	// Processor time of all processes of a kind for one operation and all that it causes, in microseconds: front,
	// worker, bus, database, generator.
	CPU map[string]float64 `json:"cpu"`

	// Processors that each process used while the rate was measured: front 1, worker 2, bus, database, generator.
	Busy       map[string]float64 `json:"busy"`
	Others     float64            `json:"others"`     // processors that other programs used
	Bottleneck string             `json:"bottleneck"` // what was busy all the time, for people

	// For one operation and all that it causes.
	Events   float64            `json:"events"`             // in the log
	Bus      traffic            `json:"bus"`                // between the bus and its clients
	Database map[string]float64 `json:"database,omitempty"` // requests, by their kind

	Lag *lagAt `json:"lag,omitempty"` // of map-again, and of create
}

// traffic is that of the bus with its clients, acknowledgments and requests included.
type traffic struct {
	In       float64 `json:"in"`       // messages that the bus receives
	Out      float64 `json:"out"`      // messages that it sends
	InBytes  float64 `json:"inBytes"`  // of these
	OutBytes float64 `json:"outBytes"` // of these
}

// lagAt is how long after the reply to a create its entry is visible in its target, at a rate of creates.
type lagAt struct {
	Rate    float64 `json:"rate"` // creates a second
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"` // milliseconds
	P99     float64 `json:"p99"` // milliseconds
}

// measured sets what differs between three moments: the operations began, the last one ended, and all that they caused
// was done.
func (p *point) measured(operations int, began, ended, settled moment) {
	n := float64(operations)
	took := ended.at.Sub(began.at)
	p.Operations, p.Rate, p.Late = operations, n/took.Seconds(), settled.at.Sub(ended.at).Seconds()
	p.CPU, p.Busy = map[string]float64{}, map[string]float64{}
	used := time.Duration(0)
	for process, now := range settled.cpu {
		p.CPU[kind(process)] += float64((now - began.cpu[process]).Microseconds()) / n
		meanwhile := ended.cpu[process] - began.cpu[process]
		p.Busy[process] = meanwhile.Seconds() / took.Seconds()
		used += meanwhile
	}
	p.Others = max(0, (ended.machine-began.machine-used).Seconds()/took.Seconds())
	p.Events = float64(settled.events-began.events) / n
	p.Bus = traffic{
		float64(settled.bus.In-began.bus.In) / n, float64(settled.bus.Out-began.bus.Out) / n,
		float64(settled.bus.InBytes-began.bus.InBytes) / n, float64(settled.bus.OutBytes-began.bus.OutBytes) / n,
	}
	p.Bottleneck = bottleneck(p.Busy, p.Others, p.Processors)
}

// kind is the kind of a process: its name without its number.
func kind(process string) string {
	name, _, _ := strings.Cut(process, " ")
	return name
}

// full is the share of a processor from which on it counts as always busy: the rest are waits between two requests.
const full = 0.9

// bottleneck says what was busy all the time: a front or a worker, which have one processor each, or all processors.
func bottleneck(busy map[string]float64, others float64, processors int) string {
	total := others
	for _, used := range busy {
		total += used
	}
	all := slices.SortedFunc(maps.Keys(busy), func(a, b string) int {
		if busy[a] != busy[b] {
			return int(math.Copysign(1, busy[b]-busy[a]))
		}
		return strings.Compare(a, b)
	})
	text := func(names []string) string {
		var parts []string
		for _, name := range names {
			if busy[name] >= 0.05 {
				parts = append(parts, fmt.Sprintf("%s %.2f", name, busy[name]))
			}
		}
		if others >= 0.05 {
			parts = append(parts, fmt.Sprintf("other programs %.2f", others))
		}
		return strings.Join(parts, ", ")
	}
	saturated := slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return kind(name) != "front" && kind(name) != "worker" || busy[name] < full
	})
	switch {
	case processors > 1 && len(saturated) > 0:
		return fmt.Sprintf("%s, of its processor (%s)", strings.Join(saturated, " and "), text(all))
	case total >= full*float64(processors):
		return "the processors (" + text(all) + ")"
	default:
		return fmt.Sprintf("none: %.2f of %d processors were busy (%s)", total, processors, text(all))
	}
}

func (p *point) print() {
	rate := fmt.Sprintf("%.0f/s", p.Rate)
	if p.Operation == idle {
		rate = "in a second"
	}
	fmt.Printf("  %s, %s: %s; processor time: %s µs; messages of the bus: %.2f in, %.2f out; events in the log: %.2f\n",
		p.label(), count.Of(p.Processors, "processor"), rate, costs(p.CPU), p.Bus.In, p.Bus.Out, p.Events)
	if p.Lag != nil {
		fmt.Printf("    mapping lag at %.0f creates/s, %d samples: p50 %.1f ms, p99 %.1f ms\n", p.Lag.Rate,
			p.Lag.Samples, p.Lag.P50, p.Lag.P99)
	}
	if p.Operation == idle {
		fmt.Printf("    requests to the database: %s\n", byKind(p.Database))
		return
	}
	fmt.Printf("    busy: %s; all done %.1f s later\n", p.Bottleneck, p.Late)
}

func (p *point) label() string {
	if p.Operation == appendOnly {
		return fmt.Sprintf("%s, %s, batches of %d", p.Operation, count.Of(p.Streams, "stream"), p.Batch)
	}
	return fmt.Sprintf("%s, %s, %s", p.Operation, count.Of(p.Fronts, "front"), count.Of(p.Workers, "worker"))
}

func costs(cpu map[string]float64) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(cpu)) {
		if cpu[name] >= 1 {
			all = append(all, fmt.Sprintf("%s %.0f", name, cpu[name]))
		}
	}
	return strings.Join(all, ", ")
}

// grows is from how many processes on a rate does not grow any more, by a twentieth at least; rates are by processes,
// ascending. It is 0 if the last rate has still grown.
func grows(processes []int, rates []float64) (until int) {
	const noticeable = 1.05
	for i := 1; i < len(rates); i++ {
		if rates[i] < noticeable*rates[i-1] {
			return processes[i-1]
		}
	}
	return 0
}

// worst is the largest ratio of a value to the first one.
func worst(values []float64) float64 {
	ratio := 1.0
	for _, v := range values[1:] {
		ratio = max(ratio, v/values[0])
	}
	return ratio
}

// writePoints writes what was measured so far, if that is requested.
func (b *bench) writePoints() error {
	if b.json == "" {
		return nil
	}
	text, err := json.MarshalIndent(b.points, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(b.json, append(text, '\n'), 0o600)
}
