package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAPointIsPredictedFromAnother(t *testing.T) {
	one, two := created(1, 2), created(2, 2)
	two.Rate, two.Busy, two.CPU = rateOf(t, created(2, 2)), nil, nil
	got := predict(points{*one, *two}.merged())
	if len(got) != 2 {
		t.Fatalf("%d predictions", len(got))
	}
	if p := got[1]; p.Fronts != 2 || !near(p.Simulated, p.Rate, 0.001) {
		t.Errorf("%d fronts: %.0f/s, measured %.0f/s", p.Fronts, p.Simulated, p.Rate)
	}
}

func TestOtherProgramsSlowAPoint(t *testing.T) {
	p := created(1, 2)
	p.Others = 1
	if got := predict(points{*p}.merged())[0].Simulated; !near(got, rateOf(t, created(1, 2))/2, 0.02) {
		t.Errorf("%.0f/s beside programs that use half of the processors", got)
	}
}

func TestADatabaseThatUsedTwoProcessorsExecutesTwoRequestsAtOnce(t *testing.T) {
	for busy, want := range map[float64]int{0: 1, 0.7: 1, 1.2: 2} {
		p := created(1, 2)
		p.Busy[database] = busy
		if got := modelOf(points{*p}.merged(), (*point).spent).threads; got != want {
			t.Errorf("%v processors: %d at once, want %d", busy, got, want)
		}
	}
}

func TestTheCostsOfWakingAreThoseAboveTheCostsUnderLoad(t *testing.T) {
	alone := *created(1, 2)
	alone.Operation, alone.CPU = createAlone, map[string]float64{front: 160, database: 15}
	child := *created(1, 2)
	child.Operation, child.CPU = childAlone, map[string]float64{worker: 300, database: 100}
	mapped := *created(1, 2)
	mapped.Operation, mapped.CPU = mapOwn, map[string]float64{worker: 200, database: 60}
	m := modelOf(points{*created(1, 2), alone, child, mapped}.merged(), (*point).total)
	const us = time.Microsecond
	for name, c := range map[string]struct{ got, want cost }{
		"a front":                              {m.request[create][front], cost{100 * us, 60 * us}},
		"a database that costs less alone":     {m.request[create][database], cost{20 * us, 0}},
		"a worker":                             {m.event[worker], cost{200 * us, 100 * us}},
		"a database, less what a create costs": {m.event[database], cost{60 * us, 25 * us}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
}

func TestSeveralRunsHaveMedians(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"a.json": `[{"part":"scale","backend":"b","operation":"get","fronts":1,"rate":100,"cpu":{"front":30},"busy":{"front 1":0.1,"front 2":0.1}},{"part":"growth","operation":"get"}]`,
		"b.json": `[{"part":"scale","backend":"c","operation":"get","fronts":1,"rate":100},{"part":"scale","backend":"b","operation":"get","fronts":1,"rate":300,"cpu":{"front":10},"busy":{"front 1":0.3}}]`,
		"c.json": `[{"part":"scale","backend":"b","operation":"get","fronts":1,"rate":200,"cpu":{"front":20},"busy":{"front 1":0.6}},{"part":"scale","backend":"b","operation":"get","fronts":2,"rate":7}]`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	backends, err := readPoints(folder)
	if err != nil || len(backends) != 2 {
		t.Fatalf("%d backends, %v", len(backends), err)
	}
	all := backends[0].merged()
	if len(all) != 2 || all[1].Rate != 7 {
		t.Fatalf("%+v", all)
	}
	// The processor time while the rate was measured was 2000, 1000 and 3000 µs.
	if p := all[0]; p.Rate != 200 || p.Least != 100 || p.Most != 300 || p.CPU[front] != 20 ||
		!near(p.Spent[front], 2000, 1e-9) {
		t.Errorf("%+v", p)
	}
	for _, missing := range []string{filepath.Join(folder, "none.json"), t.TempDir()} {
		if _, err := readPoints(missing); err == nil {
			t.Errorf("%s has points", missing)
		}
	}
}
