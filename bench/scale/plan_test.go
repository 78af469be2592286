package main

import (
	"strings"
	"testing"
	"time"
)

// measuredPoints are those that a plan needs.
func measuredPoints() points {
	mapped := *created(1, 2)
	mapped.Operation, mapped.CPU = mapOwn, map[string]float64{worker: 1000, bus: 100}
	mapped.Database = map[string]float64{"GetItem": 3, "UpdateItem": 2}
	one := *created(1, 2)
	one.CPU, one.Database = map[string]float64{front: 500, bus: 50}, map[string]float64{"UpdateItem": 2}
	appended := point{Part: "scale", Backend: "b", Operation: appendOnly, Streams: 1, Batch: 100, Rate: 5000}
	return points{one, mapped, appended}.merged()
}

var small = target{creates: 10_000, mapped: 0.2, busy: 0.7, latency: time.Millisecond, wait: 20 * time.Millisecond,
	partitions: 32}

func TestAPlanNeedsALittleMoreThanTheDivision(t *testing.T) {
	p, err := planFor(measuredPoints(), small)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		kind    string
		divided float64
		planned int
	}{{front, 5, 8}, {worker, 2, 3}, {stream, 2.4, 4}} {
		n := p.needs[i]
		if n.kind != want.kind || !near(n.divided, want.divided, 1e-9) || n.planned != want.planned {
			t.Errorf("%+v, want %+v", n, want)
		}
		// Of two or three streams, some have more partitions than others.
		if least := int(want.divided); n.simulated < least || n.simulated > 2*least {
			t.Errorf("%d of %s are enough in the simulation, %.1f by division", n.simulated, n.kind, n.divided)
		}
	}
	if !near(p.bus, 0.7, 1e-9) || !near(p.reads, 6_000, 1e-9) || !near(p.writes, 24_000, 1e-9) {
		t.Errorf("%v processors of the bus, %v reads, %v writes", p.bus, p.reads, p.writes)
	}
	if p.reply.p50 < time.Millisecond || p.reply.p50 > 3*time.Millisecond || p.applied.p50 < 4*time.Millisecond ||
		p.applied.p50 > 12*time.Millisecond {
		t.Errorf("replies after %s, entries after %s", p.reply.p50, p.applied.p50)
	}
}

// A simulation with fewer processes than the division has a queue that grows.
func TestTooFewProcessesHaveAQueue(t *testing.T) {
	p := &plan{target: small}
	m := modelOf(measuredPoints(), (*point).total)
	enough := p.offer(m, 200*time.Microsecond, map[string]int{front: 8, worker: 4, stream: 4})
	for kind, n := range map[string]int{front: 4, worker: 1, stream: 2} {
		few := map[string]int{front: 8, worker: 4, stream: 4}
		few[kind] = n
		if got, least := p.offer(m, 200*time.Microsecond, few).of(kind).p99, enough.of(kind).p99; got < least+
			small.wait {
			t.Errorf("%d of %s: p99 %s, with enough %s", n, kind, got, least)
		}
	}
}

func TestThereAreNotMoreStreamsThanPartitions(t *testing.T) {
	large := small
	large.creates, large.partitions = 20_000, 4
	p, err := planFor(measuredPoints(), large)
	if err != nil {
		t.Fatal(err)
	}
	if n := p.needs[2]; n.divided < 4 || n.simulated != 0 || !strings.Contains(p.text(), "more than the 4 partitions") {
		t.Errorf("%+v", n)
	}
}

func TestMoreStreamsAreBetterOnlyIfNoneHasAsManyPartitions(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 9: 11, 12: 16, 16: 16, 17: 32, 31: 32, 40: 32} {
		if got := evenly(n, 32); got != want {
			t.Errorf("%d: %d, want %d", n, got, want)
		}
	}
}

func TestAPlanNeedsItsPoints(t *testing.T) {
	all := measuredPoints()
	for i := range all {
		without := append(append(points{}, all[:i]...), all[i+1:]...)
		if _, err := planFor(without, small); err == nil {
			t.Errorf("there is a plan without %s", all[i].Operation)
		}
	}
}

func TestASectionOfAPageIsReplaced(t *testing.T) {
	page := "before\n<!-- plan: make plots writes this -->\nold\n<!-- end of plan -->\nafter\n"
	got, err := withSection(page, "plan", "new\n")
	if want := "before\n<!-- plan: make plots writes this -->\n\nnew\n\n<!-- end of plan -->\nafter\n"; err != nil ||
		got != want {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := withSection(page, "other", "new\n"); err == nil {
		t.Error("a section that is not there was replaced")
	}
}
