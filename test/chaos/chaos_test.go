package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"belfry/test/backing"
	"belfry/test/chaos/history"
	"belfry/test/chaos/run"
	"belfry/test/chaos/world"
	"belfry/test/kit"
	"belfry/test/process"
)

// only restricts the faults, to see whether the checks find a defect that one of them reveals.
var only = flag.String("chaos.only", "", "inject only faults whose name contains this")

func TestMain(m *testing.M) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": backing.AccessKey,
		"AWS_SECRET_ACCESS_KEY": backing.SecretKey} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// checkEvery is how many rounds are between two checks.
const checkEvery = 3

// lossEvery is in one of how many rounds the log is lost in long runs, by world.
var lossEvery = map[world.Kind]int{world.Files: 8, world.FilesAndBus: 4, world.Mongo: 12, world.Dynamo: 12,
	world.Cluster: 12}

// soak runs rounds in a world: faults are injected while clients write.
func soak(t *testing.T, kind world.Kind, rounds int) {
	t.Helper()
	t.Parallel()
	w := world.Start(t, kind, history.Stores, kit.LongSoak())
	soak := kit.Soak(t, rounds) // the time begins when the world is there
	t.Cleanup(func() {
		if t.Failed() {
			if kit.LongSoak() {
				t.Log(w.Goroutines()) // work may be pending because a process waits for something
			}
			t.Log(w.Logs())
		}
	})
	for _, missing := range w.Missing() {
		t.Log("not injected here:", missing)
	}
	losses := lossEvery[kind]
	if !strings.Contains(w.LogLoss().Name, *only) {
		losses = 0
	}
	r, err := run.New(t.Context(), run.Options{
		Deployment: w.Deployment(), Nemeses: nemeses(w), Loss: w.LogLoss(), LossEvery: losses, Ready: w.Ready,
		Belfry: process.Commands(t), Seed: soak.Seed(),
		Tag: fmt.Sprint("s", soak.Seed()), Ordered: kind == world.Files || kind == world.FilesAndBus, Accounts: true,
		ClockSteps: soak.Long(), Long: soak.Long(), Logf: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	unchecked := 0
	for soak.More() {
		if err := r.Round(t.Context(), soak.Rand()); err != nil {
			t.Fatal(err)
		}
		if unchecked++; unchecked == checkEvery || kind == world.Files && r.Lost() {
			examine(t, w, r)
			unchecked = 0
		}
	}
	if unchecked > 0 {
		examine(t, w, r)
	}
	r.End(t, fmt.Sprint(kind), w.StopBelfry)
}

func nemeses(w *world.World) []world.Nemesis {
	return slices.DeleteFunc(w.Nemeses(), func(n world.Nemesis) bool { return !strings.Contains(n.Name, *only) })
}

// examine makes all checks, and ends the test when a promise was broken.
func examine(t *testing.T, w *world.World, r *run.Run) {
	t.Helper()
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, end := range w.Ends() {
		if strings.Contains(end, "panic:") || strings.Contains(end, "fatal error:") {
			t.Error(end)
		}
	}
	if report := r.Report(); report.Broken() > 0 {
		t.Fatal(report.Text())
	}
}

func TestSoakNothingIsLostOnFiles(t *testing.T) { soak(t, world.Files, 2) }

func TestSoakNothingIsLostOnFilesWithABusOfItsOwn(t *testing.T) { soak(t, world.FilesAndBus, 2) }

func TestSoakNothingIsLostOnMongoDB(t *testing.T) { soak(t, world.Mongo, 1) }

func TestSoakNothingIsLostOnDynamoDB(t *testing.T) { soak(t, world.Dynamo, 1) }

func TestSoakNothingIsLostInACluster(t *testing.T) { soak(t, world.Cluster, 1) }
