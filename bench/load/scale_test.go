package main

import (
	"maps"
	"strings"
	"testing"
	"time"
)

func TestProcessorTimeOfAProcessHasThatOfItsChildren(t *testing.T) {
	// The name may have spaces and parentheses. After it: state, parent, and further numbers; then user, system, and
	// those of children that have ended.
	text := "7 (a (b) c) S 3 7 7 0 -1 4194560 1 2 3 4 100 20 30 4 20 0 1 0 1234 5 6"
	got, ok := parseProcess(text)
	if want := (processTime{parent: 3, own: 1200 * time.Millisecond, ended: 340 * time.Millisecond}); !ok ||
		got != want {
		t.Errorf("%+v, %t; want %+v", got, ok, want)
	}
	for _, text := range []string{"", "7 (a", "7 (a) S 3", strings.Replace(text, "100", "x", 1)} {
		if _, ok := parseProcess(text); ok {
			t.Errorf("%q is taken for a process", text)
		}
	}
	all := map[int]processTime{3: {1, time.Second, 0}, 7: {3, 2 * time.Second, 16 * time.Second},
		8: {7, 4 * time.Second, 0}, 9: {1, 8 * time.Second, 0}}
	for root, want := range map[int]time.Duration{3: 23 * time.Second, 8: 4 * time.Second, 9: 8 * time.Second, 10: 0} {
		if got := treeTime(all, root); got != want {
			t.Errorf("%d: %s, want %s", root, got, want)
		}
	}
}

func TestAProcessorIsBusyExceptWhenItIsIdleOrWaitsForADisk(t *testing.T) {
	text := "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 1 2 4 1000 2000 8 16 32 0 0\ncpu10 1 0 0 0 0 0 0 0 0 0\nintr 5\n"
	for processor, want := range map[int]time.Duration{0: 630 * time.Millisecond, 10: 10 * time.Millisecond} {
		if got, ok := parseProcessor(text, processor); !ok || got != want {
			t.Errorf("processor %d: %s, %t; want %s", processor, got, ok, want)
		}
	}
	if _, ok := parseProcessor(text, 1); ok {
		t.Error("there is no processor 1")
	}
}

func TestTheBottleneckIsWhatIsBusyAllTheTime(t *testing.T) {
	for name, c := range map[string]struct {
		busy       map[string]float64
		others     float64
		processors int
		want       string
	}{
		"a worker has its processor": {
			map[string]float64{"worker 1": 0.97, "database": 0.4, "bus": 0.1}, 0, 2,
			"worker 1, of its processor (worker 1 0.97, database 0.40, bus 0.10)",
		},
		"two workers have theirs": {
			map[string]float64{"worker 1": 0.92, "worker 2": 0.95}, 0, 2,
			"worker 2 and worker 1, of its processor (worker 2 0.95, worker 1 0.92)",
		},
		"all share one processor": {
			map[string]float64{"worker 1": 0.95, "database": 0.04}, 0, 1, "the processors (worker 1 0.95)",
		},
		"the database needs more than a processor": {
			map[string]float64{"worker 1": 0.5, "database": 1.4}, 0, 2, "the processors (database 1.40, worker 1 0.50)",
		},
		"other programs": {
			map[string]float64{"worker 1": 0.5}, 1.5, 2, "the processors (worker 1 0.50, other programs 1.50)",
		},
		"everything waits": {
			map[string]float64{"worker 1": 0.3, "database": 0.9}, 0, 2,
			"none: 1.20 of 2 processors were busy (database 0.90, worker 1 0.30)",
		},
	} {
		if got := bottleneck(c.busy, c.others, c.processors); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestAPointIsWhatHappenedBetweenItsMoments(t *testing.T) {
	start := time.Unix(1_900_000_000, 0)
	began := moment{start, map[string]time.Duration{"worker 1": time.Second, "worker 2": 0, "bus": 0}, time.Second,
		busTotals{10, 20, 100, 200}, 5}
	ended := moment{start.Add(2 * time.Second),
		map[string]time.Duration{"worker 1": 2 * time.Second, "worker 2": time.Second, "bus": 500 * time.Millisecond},
		4 * time.Second, busTotals{}, 0}
	settled := moment{start.Add(5 * time.Second),
		map[string]time.Duration{"worker 1": 3 * time.Second, "worker 2": time.Second, "bus": time.Second}, 0,
		busTotals{110, 220, 1100, 2200}, 25}
	p := &point{Processors: 2}
	p.measured(100, began, ended, settled)
	if p.Rate != 50 || p.Late != 3 || p.Events != 0.2 || p.Others != 0.25 || p.Bus != (traffic{1, 2, 10, 20}) {
		t.Errorf("%+v", p)
	}
	if want := map[string]float64{"worker": 30_000, "bus": 10_000}; !maps.Equal(p.CPU, want) {
		t.Errorf("processor time %v, want %v", p.CPU, want)
	}
	if want := map[string]float64{"worker 1": 0.5, "worker 2": 0.5, "bus": 0.25}; !maps.Equal(p.Busy, want) {
		t.Errorf("busy %v, want %v", p.Busy, want)
	}
}

func TestARateOfTheDatabaseIsNotJudged(t *testing.T) {
	for name, c := range map[string]struct {
		database, rate float64
		want           string
	}{
		"fast enough": {50, 171, "reached"},
		"too slow":    {50, 169, "MISSED"},
		"that of the database": {101, 171,
			"not judged, since the database needs more processor time for an event than a worker"},
	} {
		one := &point{Rate: 100, CPU: map[string]float64{"database": c.database, "worker": 100}}
		if got := judge(one, &point{Rate: c.rate}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWhereARateStopsGrowing(t *testing.T) {
	for _, c := range []struct {
		rates []float64
		want  int
	}{
		{[]float64{100, 200, 400}, 0},
		{[]float64{100, 190, 195}, 2},
		{[]float64{100, 90, 300}, 1},
		{[]float64{100}, 0},
	} {
		if got := grows(several, c.rates); got != c.want {
			t.Errorf("%v: %d, want %d", c.rates, got, c.want)
		}
	}
	if got := worst([]float64{2, 1, 3}); got != 1.5 {
		t.Errorf("worst is %v", got)
	}
}
