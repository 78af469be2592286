// Package crash kills the real belfry at random moments, and takes its bus
// away, while clients write: no acknowledged write may be lost, nor its event,
// and every copy must be right in the end.
package crash

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
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

var (
	seedFlag = flag.Uint64("crash.seed", 0, "repeat the writes of a run; 0 draws one")
	kills    = flag.Int("crash.kills", 20, "how often belfry is killed")
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

// inFiles is the backend of a belfry that needs nothing else.
const inFiles = "{type: file}"

func configure(t *testing.T, backend, bus string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(path, []byte(fmt.Sprintf(stores, backend)+bus), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// clients are so many writers of each store.
func clients(w *world, seed uint64, each int) []*client {
	var all []*client
	for i := range 3 * each {
		all = append(all, newClient(w, seed, i, []string{"Parents", "Children", "Tags"}[i/each]))
	}
	return all
}

// write lets every client write until stop is closed, whatever it is told.
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

// load is how much is going on when belfry is killed.
type load struct {
	clients int // of each store
	writes  int // between two kills, at most
}

func TestKilled(t *testing.T) { killed(t, inFiles, load{clients: 3, writes: 600}) }

// TestKilledOnMongoDB has one connection, since the server of the tests loses
// one of two writes to a record that overlap.
func TestKilledOnMongoDB(t *testing.T) {
	killed(t, fmt.Sprintf("{type: mongodb, url: '%s?maxPoolSize=1'}", backing.Mongo(t)), load{clients: 1, writes: 60})
}

func TestKilledOnDynamoDB(t *testing.T) {
	killed(t, fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: '%s'}", backing.Dynoxide(t).URL), load{clients: 1, writes: 60})
}

// killed lets clients write, and kills belfry again and again.
func killed(t *testing.T, backend string, l load) {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("repeat with: go test -race ./test/crash -run '^%s$' -crash.seed=%d", t.Name(), seed)
	moments := rand.New(rand.NewPCG(seed, 1<<32))
	port := kit.FreePort(t)
	config := configure(t, backend, fmt.Sprintf("bus: {listen: '127.0.0.1:%d'}\n", port))
	w := &world{deleted: map[string]bool{}}
	all := clients(w, seed, l.clients)

	server := process.Serve(t, config)
	heard := record(t, fmt.Sprintf("nats://127.0.0.1:%d", port))
	for round := range *kills {
		w.moveTo(server)
		stop := make(chan struct{})
		wait := write(all, round, stop)
		w.awaitMore(t, 20+moments.IntN(l.writes))
		server.Kill()
		close(stop)
		wait()
		server = process.Serve(t, config)
		w.moveTo(server)
		audit(t, all)
	}
	t.Logf("%d writes acknowledged around %d kills", w.acked, *kills)
	finish(t, server, config, w, heard)
}

// TestBusAway takes the external bus away, three times and not gently: writes
// go on being accepted, and their events arrive later.
func TestBusAway(t *testing.T) {
	folder, port := t.TempDir(), kit.FreePort(t)
	bus := process.StartBus(t, folder, port)
	config := configure(t, inFiles, fmt.Sprintf("bus: {url: %q}\n", bus.URL))
	w := &world{deleted: map[string]bool{}}
	all := clients(w, rand.Uint64(), 3)
	server := process.Serve(t, config)
	w.moveTo(server)
	idle(t, server) // the streams are there
	heard := record(t, bus.URL)
	stop := make(chan struct{})
	wait := write(all, 0, stop)
	for range 3 {
		w.awaitMore(t, 200)
		bus.Kill()
		w.awaitMore(t, 200)
		bus = process.StartBus(t, folder, port)
	}
	w.awaitMore(t, 200)
	close(stop)
	wait()
	audit(t, all)
	t.Logf("%d writes acknowledged around 3 outages", w.acked)
	finish(t, server, config, w, heard)
}

func audit(t *testing.T, all []*client) {
	t.Helper()
	for _, c := range all {
		if err := c.audit(); err != nil {
			t.Fatal(err)
		}
		for _, wrong := range c.wrong {
			t.Error(wrong)
		}
		c.wrong = nil
	}
}

// finish judges the end: every event heard, every copy right, while belfry
// serves and after it has stopped.
func finish(t *testing.T, server *process.Server, config string, w *world, heard *recorder) {
	t.Helper()
	settle(t, w)
	idle(t, server)
	process.Eventually(t, time.Minute, func() error {
		if missing := heard.missing(w.facts); len(missing) > 0 {
			return fmt.Errorf("%d events of %d acknowledged writes were not heard, for instance of %s", len(missing), len(w.facts), missing[0])
		}
		return nil
	})
	heard.mu.Lock()
	t.Logf("%d events heard, %d again, %d after a later one of the same object", len(heard.writes), heard.double, heard.lower)
	for _, err := range heard.errs {
		t.Error(err)
	}
	heard.mu.Unlock()
	verify(t, config)
	if err := server.Stop(); err != nil {
		t.Errorf("stopping: %v\n%s", err, server.Log())
	}
	verify(t, config)
}

// settle writes what is there in the end whatever chance had the clients write
// and delete, so that there are copies to verify.
func settle(t *testing.T, w *world) {
	t.Helper()
	for _, store := range []string{"Parents", "Children", "Tags"} {
		c := newClient(w, 0, 0, store)
		status, _, err := c.send(http.MethodPost, c.path, "last", state{there: true, title: "last", parents: []string{"last"}})
		if err != nil || status != http.StatusCreated {
			t.Fatalf("%s: status %d, %v, %v", store, status, c.wrong, err)
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
		t.Errorf("belfry verify did not look at what was written last: %s", out)
	}
	t.Logf("verified %d objects, %d targets, %d entries", report.Objects, report.Targets, report.Entries)
}

func idle(t *testing.T, server *process.Server) {
	t.Helper()
	if err := server.Idle(); err != nil {
		t.Fatal(err)
	}
}
