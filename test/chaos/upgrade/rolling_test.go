package upgrade

import (
	"fmt"
	"os"
	"testing"

	"belfry/test/backing"
	"belfry/test/chaos/history"
	"belfry/test/chaos/run"
	"belfry/test/chaos/world"
	"belfry/test/kit"
	"belfry/test/kit/programs"
	"belfry/test/process"
)

// released is the configuration of the stores that the release has, too.
var released = history.Release()

func TestMain(m *testing.M) {
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": backing.AccessKey,
		"AWS_SECRET_ACCESS_KEY": backing.SecretKey} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// replaces has clients write while the release is replaced by this version, one process at a time, and then this
// version by the release; and again. Nothing may be lost with some processes of each, nor in the end.
func replaces(t *testing.T, kind world.Kind) {
	t.Helper()
	if !kit.SoakRequested() {
		return // it needs the history of the project, and builds the release
	}
	t.Parallel()
	release, err := programs.Release(Release)
	if err != nil {
		t.Fatal(err)
	}
	w := world.StartWith(t, kind, released, release)
	soak := kit.Soak(t, 1)
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(w.Logs())
		}
	})
	r, err := run.New(t.Context(), run.Options{
		Deployment: w.Deployment(), Nemeses: []world.Nemesis{w.Replace(release, process.Program(t))}, Ready: w.Ready,
		Belfry: process.Commands(t), Serving: w.Serving, Seed: soak.Seed(),
		Tag: fmt.Sprint("u", soak.Seed()), Ordered: kind == world.Files, Accounts: true, Logf: t.Logf,
	})
	if err != nil {
		t.Fatal(err)
	}
	every := max(w.Processes()/2, 1) // so that the versions are mixed at every other check
	for soak.More() {
		random := soak.Rand()
		for n := range 2 * w.Processes() {
			if err := r.Round(t.Context(), random); err != nil {
				t.Fatal(err)
			}
			if n%every == every-1 {
				examine(t, w, r)
			}
		}
	}
	r.End(t, fmt.Sprint(kind), w.StopBelfry)
}

// examine makes all checks, and ends the test when a promise was broken or a process has ended by itself.
func examine(t *testing.T, w *world.World, r *run.Run) {
	t.Helper()
	if err := r.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, end := range w.Ends() {
		t.Error(end)
	}
	if report := r.Report(); report.Broken() > 0 {
		t.Fatal(report.Text())
	}
}

func TestSoakAFolderIsOpenedByTheOtherVersion(t *testing.T) { replaces(t, world.Files) }

func TestSoakVersionsShareMongoDB(t *testing.T) { replaces(t, world.Mongo) }

func TestSoakVersionsShareDynamoDB(t *testing.T) { replaces(t, world.Dynamo) }
