// Package crash kills the real belfry, its bus and its backends at random moments while clients
// write: no acknowledged write and no event of one may be lost, and every copy must be correct in the
// end.
package crash

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

func TestMain(m *testing.M) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.Setenv(name, "belfry-tests"); err != nil {
			panic(err)
		}
	}
	process.Main(m)
}

const stores = `
data: ./data
backends: {default: %s}
listen: 127.0.0.1:0
stores:
  Parents: {expose: {}}
  Children:
    expose: {}
    map: {Parents: {key: parent, target: children, fields: title, cascade: true}}
  Tags:
    expose: {}
    map: {Parents: {key: parents, target: tags, fields: "title, parents"}}
`

// inFiles is the backend that needs no server.
const inFiles = "{type: file}"

func configure(t *testing.T, backend, bus string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(path, []byte(fmt.Sprintf(stores, backend)+bus), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clients returns so many writers of each store.
func clients(w *history, seed uint64, each int) []*client {
	var all []*client
	for i := range 3 * each {
		all = append(all, newClient(w, seed, i, []string{"Parents", "Children", "Tags"}[i/each]))
	}
	return all
}

// write lets every client write until stop is closed, whatever the replies are.
func write(all []*client, round int, stop <-chan struct{}) (wait func()) {
	var writing sync.WaitGroup
	for _, c := range all {
		writing.Go(func() {
			for n := 0; ; n++ {
				pause := time.Duration(0)
				if !c.step(round*1_000_000 + n) {
					pause = 10 * time.Millisecond
				}
				select {
				case <-stop:
					return
				case <-time.After(pause):
				}
			}
		})
	}
	return writing.Wait
}

// load is how much clients write when belfry is killed.
type load struct {
	clients int // of each store
	writes  int // between two kills, at most
	kills   int // by default
}

func TestSoakNothingIsLostWhenBelfryIsKilled(t *testing.T) {
	t.Parallel()
	killed(t, inFiles, load{clients: 3, writes: 300, kills: 4})
}

// There is one connection, since the server of the tests loses one of two writes to a record that
// overlap.
func TestSoakNothingIsLostWhenBelfryIsKilledOnMongoDB(t *testing.T) {
	t.Parallel()
	killed(t, fmt.Sprintf("{type: mongodb, url: '%s?maxPoolSize=1'}", backing.Mongo(t)), load{clients: 1, writes: 30, kills: 2})
}

func TestSoakNothingIsLostWhenBelfryIsKilledOnDynamoDB(t *testing.T) {
	t.Parallel()
	killed(t, fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: '%s'}", backing.Dynoxide(t).URL), load{clients: 1, writes: 30, kills: 2})
}

// killed lets clients write, and kills belfry once in each round.
func killed(t *testing.T, backend string, l load) {
	t.Helper()
	soak := kit.Soak(t, l.kills)
	seed := soak.Seed()
	port := kit.FreePort(t)
	config := configure(t, backend, fmt.Sprintf("bus: {listen: '127.0.0.1:%d'}\n", port))
	w := &history{deleted: map[string]bool{}}
	all := clients(w, seed, l.clients)

	server := process.Serve(t, config)
	received := record(t, fmt.Sprintf("nats://127.0.0.1:%d", port))
	for soak.More() {
		w.moveTo(server)
		stop := make(chan struct{})
		wait := write(all, soak.Round(), stop)
		w.awaitMore(t, 20+soak.Rand().IntN(l.writes))
		server.Kill()
		close(stop)
		wait()
		server = process.Serve(t, config)
		w.moveTo(server)
		audit(t, all)
	}
	t.Logf("%d writes acknowledged around %d kills", w.acked, soak.Round())
	finish(t, server, config, w, received)
}

// Each round kills the external bus: writes continue to be accepted, and their events are published
// once it runs again.
func TestSoakEventsArriveAfterTheBusIsKilled(t *testing.T) {
	t.Parallel()
	soak := kit.Soak(t, 2)
	folder, port := t.TempDir(), kit.FreePort(t)
	bus := process.StartBus(t, folder, port)
	config := configure(t, inFiles, fmt.Sprintf("bus: {url: %q}\n", bus.URL))
	w := &history{deleted: map[string]bool{}}
	all := clients(w, soak.Seed(), 3)
	server := process.Serve(t, config)
	w.moveTo(server)
	idle(t, server) // the streams are there
	received := record(t, bus.URL)
	stop := make(chan struct{})
	wait := write(all, 0, stop)
	for soak.More() {
		w.awaitMore(t, 100)
		bus.Kill()
		w.awaitMore(t, 100)
		bus = process.StartBus(t, folder, port)
	}
	w.awaitMore(t, 100)
	close(stop)
	wait()
	audit(t, all)
	t.Logf("%d writes acknowledged around %d outages", w.acked, soak.Round())
	finish(t, server, config, w, received)
}

func audit(t *testing.T, all []*client) {
	t.Helper()
	for _, c := range all {
		if err := c.audit(); err != nil {
			t.Fatal(err)
		}
		for _, f := range c.failures {
			t.Error(f)
		}
		c.failures = nil
	}
}

// finish checks that every event was received and every copy is correct, while belfry serves and after
// it has stopped.
func finish(t *testing.T, server *process.Server, config string, w *history, received *recorder) {
	t.Helper()
	settle(t, w)
	idle(t, server)
	process.Eventually(t, time.Minute, func() error {
		if missing := received.missing(w.facts); len(missing) > 0 {
			return fmt.Errorf("%d events of %d acknowledged writes were not received, for instance of %s", len(missing), len(w.facts), missing[0])
		}
		return nil
	})
	received.mu.Lock()
	t.Logf("%d events received, %d again, %d after a later one of the same object", len(received.writes), received.double, received.lower)
	for _, err := range received.errs {
		t.Error(err)
	}
	received.mu.Unlock()
	verify(t, config)
	if err := server.Stop(); err != nil {
		t.Errorf("stopping: %v\n%s", err, server.Log())
	}
	verify(t, config)
}

// settle writes objects that no client deletes, so that there are copies to verify.
func settle(t *testing.T, w *history) {
	t.Helper()
	for _, store := range []string{"Parents", "Children", "Tags"} {
		c := newClient(w, 0, 0, store)
		status, _, err := c.send(http.MethodPost, c.path, "last", state{exists: true, title: "last", parents: []string{"last"}})
		if err != nil || status != http.StatusCreated {
			t.Fatalf("%s: status %d, %v, %v", store, status, c.failures, err)
		}
	}
}

func verify(t *testing.T, config string) {
	t.Helper()
	out, errOut, exit, err := process.Run(process.Program(t), "verify", "--json", "--config", config)
	if err != nil {
		t.Fatal(err)
	}
	var report struct{ Objects, Targets, Entries int }
	if err := json.Unmarshal([]byte(out), &report); err != nil || exit != 0 {
		t.Errorf("belfry verify: exit %d\n%s%s", exit, out, errOut)
	}
	if report.Objects < 3 || report.Targets < 1 || report.Entries < 2 {
		t.Errorf("belfry verify did not check what was written last: %s", out)
	}
	t.Logf("verified %d objects, %d targets, %d entries", report.Objects, report.Targets, report.Entries)
}

func idle(t *testing.T, server *process.Server) {
	t.Helper()
	if err := server.Idle(); err != nil {
		t.Fatal(err)
	}
}
