// Package operations kills the real belfry at random moments while clients use its stores over the bus,
// and repeats every request: each took effect once, and its repetition gets the same reply.
package operations

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/client"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
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
data: %s
backends: {default: %s}
listen: 127.0.0.1:0
stores:
  Authors: {}
  Books:
    map: {Authors: {key: author, target: books, fields: title}}
    search: {fields: [title]}
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
	conn, err := nats.Connect(url, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(20*time.Millisecond), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// request is a request with its reply.
type request struct {
	op, key string
	uuid    string // of the object
	object  object.Object
	reply   string
}

// history holds the requests that were answered.
type history struct {
	store *client.Store
	mu    sync.Mutex
	all   []request
}

func (w *history) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.all)
}

// send makes a request, however long that takes, and returns the reply.
func (w *history) send(a request) (reply, uuid string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
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

// client saves, updates and deletes objects that no other client writes, until stop is closed.
func (w *history) client(number int, r *rand.Rand, stop <-chan struct{}) error {
	var mine []string
	for n := 0; ; n++ {
		select {
		case <-stop:
			return nil
		default:
		}
		a := request{op: "save", key: fmt.Sprintf("%d/%d", number, n),
			object: object.Object{"author": []byte(fmt.Sprintf(`"author-%d"`, r.IntN(3)))}}
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
		reply, uuid, err := w.send(a)
		if err != nil {
			return fmt.Errorf("%s %s %s: %w", a.op, a.key, a.uuid, err)
		}
		a.reply = reply
		if a.op == "save" {
			a.uuid, mine = uuid, append(mine, uuid)
		}
		w.mu.Lock()
		w.all = append(w.all, a)
		w.mu.Unlock()
	}
}

// run lets clients write while disturb kills processes.
func (w *history) run(t *testing.T, seed uint64, clients int, disturb func(more func(n int))) {
	t.Helper()
	stop := make(chan struct{})
	failed := make(chan error, clients)
	var working sync.WaitGroup
	for i := range clients {
		working.Go(func() {
			if err := w.client(i, rand.New(rand.NewPCG(seed, uint64(i))), stop); err != nil {
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

// audit repeats every request, and counts the effects in the log of events.
func (w *history) audit(t *testing.T, conn *nats.Conn) {
	t.Helper()
	want := map[string]map[event.Name]int{}
	for _, a := range w.all {
		again, _, err := w.send(a)
		if err != nil || again != a.reply {
			t.Errorf("%s %s: %s, and then %s, %v", a.op, a.key, a.reply, again, err)
		}
		if want[a.uuid] == nil {
			want[a.uuid] = map[event.Name]int{}
		}
		want[a.uuid][map[string]event.Name{"save": event.StoreSaved, "update": event.StoreUpdated, "delete": event.StoreDeleted}[a.op]]++
		other := a
		other.object = object.Object{"title": []byte(`"another"`), "uuid": object.AppendString(nil, a.uuid)}
		if a.op != "delete" {
			if _, _, err := w.send(other); !errors.Is(err, errs.Conflict) {
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
				return fmt.Errorf("%s: the log has %v, requested were %v", uuid, have[uuid], counts)
			}
		}
		if len(have) != len(want) {
			return fmt.Errorf("the log has events of %d objects, %d are known", len(have), len(want))
		}
		return nil
	})
	t.Logf("%d requests about %d objects", len(w.all), len(want))
}

// searched waits until each title finds the objects that have it.
func (w *history) searched(t *testing.T) {
	t.Helper()
	find := func(q client.Query) (map[string][]string, error) {
		found := map[string][]string{}
		for o, err := range w.store.List(t.Context(), q) {
			if err != nil {
				return nil, err
			}
			title, _ := o.Text("title")
			uuid, _ := o.Text("uuid")
			found[title] = append(found[title], uuid)
		}
		for _, uuids := range found {
			slices.Sort(uuids)
		}
		return found, nil
	}
	want, err := find(client.Query{Page: 500})
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range w.all {
		if title, has := a.object.Text("title"); has && want[title] == nil {
			want[title] = nil // nothing has it any more
		}
	}
	process.Eventually(t, time.Minute, func() error {
		for title, uuids := range want {
			found, err := find(client.Query{Words: title})
			if err != nil {
				return err
			}
			if !slices.Equal(found[title], uuids) {
				return fmt.Errorf("%s finds %v, and is the title of %v", title, found, uuids)
			}
		}
		return nil
	})
	t.Logf("%d titles", len(want))
}

// effects counts the distinct events of each book in the log.
func effects(ctx context.Context, conn *nats.Conn) (map[string]map[event.Name]int, error) {
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(kit.Limit))
	if err != nil {
		return nil, err
	}
	stream, err := js.Stream(ctx, "EVENTS")
	if err != nil {
		return nil, err
	}
	consumer, err := stream.OrderedConsumer(ctx,
		jetstream.OrderedConsumerConfig{FilterSubjects: []string{event.Filter("Store.*", "Books")}})
	if err != nil {
		return nil, err
	}
	found, seen := map[string]map[event.Name]int{}, map[string]bool{}
	for left := consumer.CachedInfo().NumPending; left > 0; {
		batch, err := consumer.Fetch(int(min(left, 1000)), natsserver.Wait()...)
		if err != nil {
			return nil, err
		}
		for m := range batch.Messages() {
			left--
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
		if err := batch.Error(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func TestSoakEachRequestTakesEffectOnceWhenBelfryIsKilled(t *testing.T) {
	t.Parallel()
	soak := kit.Soak(t, 3)
	port := kit.FreePort(t)
	config := configure(t, "{type: file}", fmt.Sprintf("bus: {listen: '127.0.0.1:%d'}\n", port))
	server := process.Serve(t, config)
	conn := connect(t, server.Bus)
	c := client.New(conn, client.WithAttemptTimeout(time.Second))
	w := &history{store: c.Store("Books")}
	w.run(t, soak.Seed(), 8, func(more func(int)) {
		for soak.More() {
			more(10 + soak.Rand().IntN(60))
			server.Kill()
			server = process.Serve(t, config)
		}
		more(20)
	})
	w.audit(t, conn)
	w.searched(t)
	if err := server.Stop(); err != nil {
		t.Errorf("%v\n%s", err, server.Log())
	}
}

// Two belfrys share a database and an external bus; one or the other is killed, and then the bus.
func TestSoakEachRequestTakesEffectOnceWithTwoFronts(t *testing.T) {
	t.Parallel()
	soak := kit.Soak(t, 2)
	port := kit.FreePort(t)
	folder, address := t.TempDir(), fmt.Sprintf("nats://127.0.0.1:%d", port)
	backend := fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: '%s'}", backing.Dynoxide(t).URL)
	var configs []string
	var servers []*process.Server
	for range 2 {
		configs = append(configs, configure(t, backend, fmt.Sprintf("bus: {url: %q}\n", address)))
		servers = append(servers, process.Serve(t, configs[len(configs)-1]))
	}
	bus := process.StartBus(t, folder, port) // after its clients
	conn := connect(t, bus.URL)
	c := client.New(conn, client.WithAttemptTimeout(time.Second))
	w := &history{store: c.Store("Books")}
	w.run(t, soak.Seed(), 4, func(more func(int)) {
		for soak.More() {
			i := soak.Round()
			more(10 + soak.Rand().IntN(20))
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
	w.searched(t)
	for _, s := range servers {
		if err := s.Stop(); err != nil {
			t.Errorf("%v\n%s", err, s.Log())
		}
	}
}
