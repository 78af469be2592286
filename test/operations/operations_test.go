// Package operations kills the real belfry at random moments while programs use
// its stores over the bus, and asks everything again: each request has had one
// effect, and has one answer.
package operations

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/client"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/object"
	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

var kills = flag.Int("operations.kills", 10, "how often belfry is killed")

func TestMain(m *testing.M) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		if err := os.Setenv(name, "belfry-tests"); err != nil {
			panic(err)
		}
	}
	process.Main(m)
}

const stores = `
data: %s
backends: {default: %s}
listen: 127.0.0.1:0
stores:
  Authors: {}
  Books:
    map: {Authors: {key: author, target: books, fields: title}}
`

func configure(t *testing.T, backend, bus string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "belfry.yaml")
	text := fmt.Sprintf(stores, filepath.Join(t.TempDir(), "data"), backend) + bus
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func connect(t *testing.T, url string) *nats.Conn {
	t.Helper()
	conn, err := nats.Connect(url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// asked is a request with its answer.
type asked struct {
	op, key string
	uuid    string // of the object
	object  object.Object
	answer  string
}

// world is what all programs share.
type world struct {
	store *client.Store
	mu    sync.Mutex
	all   []asked
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// ask makes a request, however long that takes, and returns the answer.
func (w *world) ask(a asked) (answer, uuid string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	var stored client.Stored
	switch a.op {
	case "save":
		stored, err = w.store.Save(ctx, a.object, client.WithKey(a.key))
	case "update":
		stored, err = w.store.Update(ctx, a.object, client.WithKey(a.key))
	default:
		err = w.store.Delete(ctx, a.uuid, client.WithKey(a.key))
	}
	return fmt.Sprintf("%s %d", stored.Object.Encode(), stored.Revision), stored.UUID(), err
}

// program saves, updates and deletes objects of its own until it is to stop.
func (w *world) program(number int, r *rand.Rand, stop <-chan struct{}) error {
	var mine []string
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		a := asked{op: "save", key: fmt.Sprintf("%d/%d", number, n), object: object.Object{"author": []byte(fmt.Sprintf(`"author-%d"`, r.IntN(3)))}}
		a.object.Set("title", fmt.Sprintf("t%d", n))
		i := 0
		if len(mine) > 0 {
			i = r.IntN(len(mine))
		}
		switch kind := r.IntN(10); {
		case len(mine) == 0 || kind < 2:
		case kind < 4:
			a.object.Set("uuid", fmt.Sprintf("p%d-%d", number, n))
		case kind < 9:
			a.op, a.uuid = "update", mine[i]
			a.object.Set("uuid", a.uuid)
		default:
			a.op, a.uuid = "delete", mine[i]
			mine = append(mine[:i], mine[i+1:]...)
		}
		answer, uuid, err := w.ask(a)
		if err != nil {
			return fmt.Errorf("%s %s %s: %w", a.op, a.key, a.uuid, err)
		}
		a.answer = answer
		if a.op == "save" {
			a.uuid, mine = uuid, append(mine, uuid)
		}
		w.mu.Lock()
		w.all = append(w.all, a)
		w.mu.Unlock()
	}
}

// run lets programs work while disturb disturbs belfry.
func (w *world) run(t *testing.T, programs int, disturb func(more func(n int))) {
	t.Helper()
	seed := rand.Uint64()
	stop := make(chan struct{})
	failed := make(chan error, programs)
	var working sync.WaitGroup
	for i := range programs {
		working.Go(func() {
			if err := w.program(i, rand.New(rand.NewPCG(seed, uint64(i))), stop); err != nil {
				failed <- err
			}
		})
	}
	disturb(func(n int) {
		enough := w.count() + n
		process.Eventually(t, 2*time.Minute, func() error {
			select {
			case err := <-failed:
				t.Fatal(err)
			default:
			}
			if have := w.count(); have < enough {
				return fmt.Errorf("%d of %d requests are answered", have, enough)
			}
			return nil
		})
	})
	close(stop)
	working.Wait()
	select {
	case err := <-failed:
		t.Fatal(err)
	default:
	}
}

// audit asks everything again, and counts the effects in the log of events.
func (w *world) audit(t *testing.T, conn *nats.Conn) {
	t.Helper()
	want := map[string]map[event.Name]int{}
	for _, a := range w.all {
		again, _, err := w.ask(a)
		if err != nil || again != a.answer {
			t.Errorf("%s %s: %s, and then %s, %v", a.op, a.key, a.answer, again, err)
		}
		if want[a.uuid] == nil {
			want[a.uuid] = map[event.Name]int{}
		}
		want[a.uuid][map[string]event.Name{"save": event.StoreSaved, "update": event.StoreUpdated, "delete": event.StoreDeleted}[a.op]]++
		other := a
		other.object = object.Object{"title": []byte(`"another"`), "uuid": object.AppendString(nil, a.uuid)}
		if a.op != "delete" {
			if _, _, err := w.ask(other); !errors.Is(err, errs.Conflict) {
				t.Errorf("%s %s with another body: %v", a.op, a.key, err)
			}
		}
	}
	process.Eventually(t, time.Minute, func() error {
		have, err := effects(t.Context(), conn)
		if err != nil {
			return err
		}
		for uuid, counts := range want {
			if fmt.Sprint(have[uuid]) != fmt.Sprint(counts) {
				return fmt.Errorf("%s: the log tells %v, asked for were %v", uuid, have[uuid], counts)
			}
		}
		if len(have) != len(want) {
			return fmt.Errorf("the log tells of %d objects, %d are known", len(have), len(want))
		}
		return nil
	})
	t.Logf("%d requests about %d objects", len(w.all), len(want))
}

// effects counts the distinct events of each book in the log.
func effects(ctx context.Context, conn *nats.Conn) (map[string]map[event.Name]int, error) {
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, "EVENTS")
	if err != nil {
		return nil, err
	}
	consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{FilterSubjects: []string{event.Filter("Store.*", "Books")}})
	if err != nil {
		return nil, err
	}
	found, seen := map[string]map[event.Name]int{}, map[string]bool{}
	for {
		batch, err := consumer.Fetch(1000, jetstream.FetchMaxWait(200*time.Millisecond))
		if err != nil {
			return nil, err
		}
		n := 0
		for m := range batch.Messages() {
			n++
			e, err := event.Decode(m.Data())
			if err != nil {
				return nil, err
			}
			if seen[e.ID] {
				continue
			}
			seen[e.ID] = true
			if found[e.UUID] == nil {
				found[e.UUID] = map[event.Name]int{}
			}
			found[e.UUID][e.Event]++
		}
		if n == 0 {
			return found, nil
		}
	}
}

func TestKilled(t *testing.T) {
	port := kit.FreePort(t)
	config := configure(t, "{type: file}", fmt.Sprintf("bus: {listen: '127.0.0.1:%d'}\n", port))
	server := process.Serve(t, config)
	conn := connect(t, server.Bus)
	c := client.New(conn)
	c.Attempt = time.Second
	w := &world{store: c.Store("Books")}
	w.run(t, 8, func(more func(int)) {
		for range *kills {
			more(10 + rand.IntN(100))
			server.Kill()
			server = process.Serve(t, config)
		}
		more(20)
	})
	w.audit(t, conn)
	if err := server.Stop(); err != nil {
		t.Errorf("%v\n%s", err, server.Log())
	}
}

// TestTwoFronts shares a database and an external bus between two belfrys, and
// kills one or the other.
func TestTwoFronts(t *testing.T) {
	port := kit.FreePort(t)
	folder, address := t.TempDir(), fmt.Sprintf("nats://127.0.0.1:%d", port)
	backend := fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: '%s'}", backing.Dynoxide(t).URL)
	var configs []string
	var servers []*process.Server
	for range 2 {
		configs = append(configs, configure(t, backend, fmt.Sprintf("bus: {url: %q}\n", address)))
		servers = append(servers, process.Serve(t, configs[len(configs)-1]))
	}
	bus := process.StartBus(t, folder, port) // later than those who use it
	conn := connect(t, bus.URL)
	c := client.New(conn)
	c.Attempt = time.Second
	w := &world{store: c.Store("Books")}
	w.run(t, 4, func(more func(int)) {
		for i := range 4 {
			more(10 + rand.IntN(30))
			servers[i%2].Kill()
			more(5)
			servers[i%2] = process.Serve(t, configs[i%2])
		}
		more(10)
		bus.Kill()
		bus = process.StartBus(t, folder, port)
		more(10)
	})
	w.audit(t, conn)
	for _, s := range servers {
		if err := s.Stop(); err != nil {
			t.Errorf("%v\n%s", err, s.Log())
		}
	}
}
