package main

import (
	"math"
	"testing"
	"time"
)

// created is a point of creates.
func created(fronts, processors int) *point {
	p := &point{
		Part: "scale", Backend: "b", Operation: create, Fronts: fronts, Workers: 1, Processors: processors,
		Operations: 5_000, Rate: 1000, Events: 1,
		CPU: map[string]float64{front: 100, database: 20, bus: 15, generator: 5}, Busy: map[string]float64{},
	}
	for kind, micros := range p.CPU {
		p.Busy[kind] = micros * p.Rate / 1e6
	}
	return p
}

// rateOf simulates a point by its own costs, in front of a worker that has nothing to do.
func rateOf(t *testing.T, p *point) float64 {
	t.Helper()
	rate := modelOf(points{p.asReference()}.merged(), (*point).spent).rate(p)
	if rate == 0 {
		t.Fatalf("%s is not simulated", p.Operation)
	}
	return rate
}

func near(got, want, within float64) bool { return math.Abs(got/want-1) <= within }

// A processor is hardly ever idle while 32 clients wait: an operation takes its processor time, over all processors.
func TestTheRateIsThatOfFullProcessors(t *testing.T) {
	for _, c := range []struct{ fronts, processors int }{{1, 1}, {2, 2}, {4, 4}, {4, 2}} {
		p := created(c.fronts, c.processors)
		total := 0.0
		for _, micros := range p.CPU {
			total += micros
		}
		if got, want := rateOf(t, p), float64(c.processors)*1e6/total; !near(got, want, 0.08) {
			t.Errorf("%d fronts on %d processors: %.0f/s, want %.0f/s", c.fronts, c.processors, got, want)
		}
	}
}

// One front is bounded by its processor, however many others there are.
func TestOneProcessorOfAFrontBoundsTheRate(t *testing.T) {
	if got := rateOf(t, created(1, 8)); !near(got, 1e6/100, 0.05) {
		t.Errorf("one front of 100 µs an operation: %.0f/s", got)
	}
}

// loop simulates clients that execute steps.
func loop(clients, operations int, steps ...step) float64 {
	s := newSimulation()
	return s.closedLoop(clients, operations, func(_ int, replied, ended func()) {
		s.run(func() {
			ended()
			replied()
		}, steps...)
	})
}

func some(threads int, on ...*processor) *process { return &process{on: on, threads: threads} }

// Little's law, for clients that wait between two requests.
func TestClientsAreInOneOfTheirSteps(t *testing.T) {
	const delay, work, clients = 10 * time.Millisecond, 100 * time.Microsecond, 32
	got := loop(clients, 5_000, step{time: delay}, step{at: some(1, newProcessor()), time: work})
	if want := clients / (delay + 130*time.Microsecond).Seconds(); !near(got, want, 0.05) {
		t.Errorf("%.0f/s, want %.0f/s", got, want)
	}
}

func TestAProcessTakesAsManyStepsAtOnceAsItHasThreads(t *testing.T) {
	for threads, want := range map[int]float64{1: 1000, 3: 3000} {
		if got := loop(32, 5_000,
			step{at: some(threads, newProcessor(), newProcessor(), newProcessor()), time: time.Millisecond}); !near(got,
			want, 0.05) {
			t.Errorf("%d threads: %.0f/s of a millisecond each, want %.0f/s", threads, got, want)
		}
	}
}

func TestAProcessThatHasNothingToDoNeedsMoreForAStep(t *testing.T) {
	at := some(1, newProcessor())
	wakes := step{at: at, time: time.Millisecond, wake: time.Millisecond}
	if got := loop(1, 5_000, wakes); !near(got, 500, 0.05) {
		t.Errorf("one client: %.0f/s", got)
	}
	if got := loop(32, 5_000, wakes); !near(got, 1000, 0.05) {
		t.Errorf("32 clients: %.0f/s", got)
	}
}

func TestASimulationIsRepeatable(t *testing.T) {
	if first, again := rateOf(t, created(2, 2)), rateOf(t, created(2, 2)); first != again {
		t.Errorf("%v, then %v", first, again)
	}
}
