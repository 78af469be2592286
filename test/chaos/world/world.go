// Package world runs belfry deployments that can be harmed: real processes, servers and disks, and the
// faults that can be injected into each.
package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/kit/clock"
	"belfry/test/kit/gotest"
	"belfry/test/kit/programs"
)

// Kind is a kind of deployment.
type Kind string

// The kinds. The stores of Mongo, Dynamo and Cluster are in a server, which several processes use.
const (
	Files       Kind = "files"         // one process with the embedded bus
	FilesAndBus Kind = "files-and-bus" // one process and a NATS server
	Mongo       Kind = "mongodb"       // two fronts, two workers and a NATS server
	Dynamo      Kind = "dynamodb"      // the same
	// four fronts, four workers (in short runs two of each) and three NATS servers, on DynamoDB's stand-in
	Cluster Kind = "cluster"
)

// Kinds returns all kinds.
func Kinds() []Kind { return []Kind{Files, FilesAndBus, Mongo, Dynamo, Cluster} }

// Storage stands for the type and place of a binary storage in the configuration that a world is
// started with: `binaries: {binary: {$STORAGE, map: {Children: [picture]}}}`.
const Storage = "$STORAGE"

// Deployment is what clients and checks need to reach a belfry deployment.
type Deployment struct {
	Fronts  []string // base URLs of the HTTP fronts
	Workers []string // base URLs of the processes without one
	Bus     string   // URLs of the bus, reachable while no fault is there; several servers are separated by commas
	Config  string   // configuration file for belfry's commands, such as verify
	Env     []string // what these commands need in their environment
}

// Nemesis is one kind of fault.
type Nemesis struct {
	Name string
	// Inject returns when the fault is there. heal ends it, and returns when the processes are started
	// again, not when they are ready. What is random is read from r.
	Inject func(ctx context.Context, r *rand.Rand) (heal func(ctx context.Context) error, err error)
	// Kills and PowerCuts is how many process kills and power cuts one injection counts as, at least.
	Kills, PowerCuts int
	// Full is how long the fault must last to have all its effects, such as that events are redelivered to
	// another process; 0: it has them at once.
	Full time.Duration
	// Alone says that no other fault can overlap it.
	Alone bool
	// Harmless says that no request may fail because of it.
	Harmless bool
}

// World is a running deployment. Its methods are not safe for concurrent use.
type World struct {
	t          testing.TB
	kind       Kind
	folder     string
	programs   binaries
	deployment Deployment
	env        []string // of every process

	fronts, workers []*unit // of belfry; a process that is both is a front
	buses           []*bus
	machines        []*machine // that can lose their power, with a disk that can fail
	proxies         *backing.Proxies
	toBus, toStores map[*unit][]*backing.Proxy // connections of a process of belfry
	backend         restarter                  // nil without a server
	clock           *clock.Clock               // of all processes; nil: the system's
	missing         []string
}

type binaries struct{ belfry, commands, nats string }

// restarter is a server that can be killed and started again on the same data and address.
type restarter interface {
	Kill()
	Restart()
}

// Start starts a deployment that ends with the test, and waits until it is ready. served is the part of
// the configuration that says what is served: stores, authentication and binaries. A data race in a
// process of it fails the test. With steppable clocks a nemesis can step the wall clock of all processes, which are
// programs of their own then, whose first build takes minutes.
func Start(t testing.TB, kind Kind, served string, steppable bool) *World {
	t.Helper()
	return start(t, kind, served, steppable, "")
}

// StartWith is Start with a program of belfry, which Replace replaces.
func StartWith(t testing.TB, kind Kind, served, program string) *World {
	t.Helper()
	return start(t, kind, served, false, program)
}

func start(t testing.TB, kind Kind, served string, steppable bool, program string) *World {
	t.Helper()
	w := &World{t: t, kind: kind, folder: t.TempDir(), toBus: map[*unit][]*backing.Proxy{},
		toStores: map[*unit][]*backing.Proxy{}}
	belfry, nats := programs.Belfry, programs.NATS
	if steppable {
		belfry, nats = programs.BelfryWithClock, programs.NATSWithClock
		w.clock = clock.New(t)
	}
	if w.programs.belfry = program; program == "" {
		w.programs.belfry = w.must(belfry())
	}
	w.programs.commands = w.must(programs.BelfryWithoutRace())
	w.programs.nats = w.must(nats())
	w.env = append(os.Environ(),
		gotest.RaceOptions+" log_path="+filepath.Join(w.folder, raceLog), "GOGC=",
		"AWS_ACCESS_KEY_ID="+backing.AccessKey, "AWS_SECRET_ACCESS_KEY="+backing.SecretKey)
	if steppable {
		w.env = append(w.env, w.clock.Env())
	}
	if kind != Files {
		w.proxies = backing.StartProxies(t)
	}
	w.layOut(served)
	t.Cleanup(w.end) // before the disks are unmounted
	for _, u := range w.units() {
		if err := u.start(); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := kit.Patience(t.Context(), 2*time.Minute)
	defer cancel()
	if err := w.Ready(ctx); err != nil {
		t.Fatalf("%v\n%s", err, w.Logs())
	}
	return w
}

const raceLog = "race" // with the process id appended

func (w *World) must(value string, err error) string {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	return value
}

// Deployment is how to reach the world.
func (w *World) Deployment() Deployment { return w.deployment }

// Missing says which faults can't be injected here, and why.
func (w *World) Missing() []string { return slices.Clone(w.missing) }

// belfries returns the processes of belfry.
func (w *World) belfries() []*unit { return slices.Concat(w.fronts, w.workers) }

// units returns all processes, in the order in which they start.
func (w *World) units() []*unit {
	var all []*unit
	for _, b := range w.buses {
		all = append(all, b.unit)
	}
	return append(all, w.belfries()...)
}

// Ready waits until every process of belfry is ready, with the configuration of the beginning.
func (w *World) Ready(ctx context.Context) error {
	if err := w.restore(ctx); err != nil {
		return err
	}
	client := &http.Client{Timeout: kit.Limit, Transport: &http.Transport{DisableKeepAlives: true}}
	for _, u := range w.belfries() {
		for {
			err := ready(ctx, client, u.url)
			if err == nil {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("%s is not ready: %w\n%s", u.name, err, u.log())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	return nil
}

func ready(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		text := make([]byte, 500)
		n, _ := res.Body.Read(text)
		return fmt.Errorf("%s: %s", res.Status, text[:n])
	}
	return nil
}

// Ends returns the processes that ended by themselves since the last call, with the end of their logs. They
// were started again. A process may end when its disk fails, if it says so.
func (w *World) Ends() []string {
	var all []string
	for _, u := range w.units() {
		all = append(all, u.takeEnds()...)
	}
	return all
}

// Logs returns the end of each process's output.
func (w *World) Logs() string {
	var b strings.Builder
	for _, u := range w.units() {
		fmt.Fprintf(&b, "--- %s\n%s\n", u.name, u.log())
	}
	return b.String()
}

// Goroutines ends the processes of belfry, and returns what their goroutines were doing.
func (w *World) Goroutines() string {
	var b strings.Builder
	for _, u := range w.belfries() {
		fmt.Fprintf(&b, "--- %s\n%s\n", u.name, u.goroutines())
	}
	return b.String()
}

// Stop stops belfry and then the buses, and reports those that don't end properly.
func (w *World) Stop() error {
	var all []error
	for _, u := range slices.Backward(w.units()) {
		all = append(all, u.stop())
	}
	return errors.Join(all...)
}

// StopBelfry stops the processes of belfry; the buses run on.
func (w *World) StopBelfry() error {
	var all []error
	for _, u := range slices.Backward(w.belfries()) {
		all = append(all, u.stop())
	}
	return errors.Join(all...)
}

// end kills what runs and reports data races.
func (w *World) end() {
	for _, u := range slices.Backward(w.units()) {
		u.kill()
	}
	races, err := filepath.Glob(filepath.Join(w.folder, raceLog+".*"))
	if err != nil {
		w.t.Error(err)
	}
	for _, race := range races {
		report, err := os.ReadFile(race)
		w.t.Errorf("belfry has a data race: %v\n%s", err, report)
	}
}

// freePort returns a port that no other process of the world has.
func (w *World) freePort() int { return kit.FreePort(w.t) }
