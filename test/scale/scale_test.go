package main

import (
	"math"
	"reflect"
	"testing"
	"time"
)

// created is a point of creates.
func created(fronts, processors int) *point {
	return &point{
		Backend: "b", Operation: "create", Fronts: fronts, Workers: 1, Processors: processors, Operations: 5_000,
		CPU: map[string]float64{front: 100, database: 20, bus: 10, worker: 10, generator: 5},
	}
}

func simulatePoint(t *testing.T, p *point) outcome {
	t.Helper()
	o, known := operationOf(p)
	if !known {
		t.Fatalf("%s is no operation", p.Operation)
	}
	return simulate(deploymentOf(p), o, p.Operations)
}

func near(got, want, within float64) bool { return math.Abs(got/want-1) <= within }

// A processor is never idle while 32 clients wait: an operation takes its processor time, over all processors.
func TestTheRateIsThatOfFullProcessors(t *testing.T) {
	for _, c := range []struct{ fronts, processors int }{{1, 1}, {2, 2}, {4, 4}, {4, 2}} {
		p := created(c.fronts, c.processors)
		total := 0.0
		for _, micros := range p.CPU {
			total += micros
		}
		got := simulatePoint(t, p)
		if want := float64(c.processors) * 1e6 / total; !near(got.rate, want, 0.05) {
			t.Errorf("%d fronts on %d processors: %.0f/s, want %.0f/s", c.fronts, c.processors, got.rate, want)
		}
	}
}

// One front is bounded by its processor, which the worker shares, however many others there are.
func TestOneProcessorOfAFrontBoundsTheRate(t *testing.T) {
	got := simulatePoint(t, created(1, 8))
	if !near(got.rate, 1e6/110, 0.05) {
		t.Errorf("one front of 100 µs an operation, beside a worker of 10 µs: %.0f/s", got.rate)
	}
}

// Little's law, for clients that wait between two requests.
func TestClientsAreInOneOfTheirSteps(t *testing.T) {
	d := deploymentOf(created(1, 1))
	const delay = 10 * time.Millisecond
	o := operation{request: []step{{time: delay, delay: true}, {kind: front, time: 100 * time.Microsecond}}}
	got := simulate(d, o, 5_000)
	if want := float64(d.clients) / (delay + 130*time.Microsecond).Seconds(); !near(got.rate, want, 0.05) {
		t.Errorf("%.0f/s, want %.0f/s", got.rate, want)
	}
	if share := got.busy[front]; !near(share, got.rate*100e-6, 0.05) {
		t.Errorf("the front is busy for %.2f of the time", share)
	}
}

func TestASerialProcessTakesOneStepAtATime(t *testing.T) {
	d := deploymentOf(created(4, 4))
	d.processes[database][0].serial = true
	o := operation{request: []step{{kind: database, time: time.Millisecond}}}
	if got := simulate(d, o, 5_000); !near(got.rate, 1000, 0.05) {
		t.Errorf("%.0f/s of a millisecond each", got.rate)
	}
}

func TestASimulationIsRepeatable(t *testing.T) {
	first, again := simulatePoint(t, created(2, 2)), simulatePoint(t, created(2, 2))
	if !reflect.DeepEqual(first, again) {
		t.Errorf("%+v, then %+v", first, again)
	}
}

func TestAPointIsPredictedFromAnother(t *testing.T) {
	one, two := *created(1, 2), *created(2, 2)
	one.Rate, two.Rate = simulatePoint(t, &one).rate, simulatePoint(t, &two).rate
	two.CPU = nil
	for _, p := range predict([]point{one, two}) {
		if !near(p.rate, p.point.Rate, 0.001) {
			t.Errorf("%d fronts: %.0f/s, measured %.0f/s", p.point.Fronts, p.rate, p.point.Rate)
		}
	}
}
