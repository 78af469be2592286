package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/event"
)

// fact is one write whose event the log must hold. A deletion is acknowledged
// without its revision; after is then the revision before it.
type fact struct {
	store, uuid string
	revision    uint64
	after       uint64
}

func (f fact) String() string {
	if f.after > 0 {
		return fmt.Sprintf("deletion of %s %s after revision %d", f.store, f.uuid, f.after)
	}
	return fmt.Sprintf("%s %s at revision %d", f.store, f.uuid, f.revision)
}

// recorder is a durable listener that records what it receives.
type recorder struct {
	mu      sync.Mutex
	writes  map[fact]bool     // by store, uuid, revision
	deleted map[fact][]uint64 // by store, uuid: revisions of deletions
	double  int               // redelivered events
	lower   int               // events received after one with a higher revision of the same object
	last    map[[2]string]uint64
	request map[string]uint64 // revision of what a client's request wrote, by its id
	errs    []error
}

// record starts a recorder on a bus, and keeps it connected through the bus's outages.
func record(t *testing.T, url string) *recorder {
	t.Helper()
	conn, err := nats.Connect(url, nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	r := &recorder{writes: map[fact]bool{}, deleted: map[fact][]uint64{}, last: map[[2]string]uint64{}, request: map[string]uint64{}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	consumer, err := js.CreateOrUpdateConsumer(ctx, "EVENTS", jetstream.ConsumerConfig{
		Durable: "recorder", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 5 * time.Second, MaxAckPending: 10_000,
	})
	if err != nil {
		t.Fatal(err)
	}
	consuming, err := consumer.Consume(r.receive)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(consuming.Stop)
	return r
}

func (r *recorder) receive(m jetstream.Msg) {
	var e event.Envelope
	err := json.Unmarshal(m.Data(), &e)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.errs = append(r.errs, err)
	}
	f := fact{store: e.Store, uuid: e.UUID, revision: e.Revision}
	if r.writes[f] {
		r.double++
	}
	r.writes[f] = true
	if e.Event == event.StoreDeleted {
		key := fact{store: e.Store, uuid: e.UUID}
		r.deleted[key] = append(r.deleted[key], e.Revision)
	}
	if id := e.Ctx.Request; id != "" && e.Origin == event.OriginHTTP {
		if was := r.request[id]; was != 0 && was != e.Revision {
			r.errs = append(r.errs, fmt.Errorf("request %s was applied twice: %s at revision %d and at %d", id, f, was, e.Revision))
		}
		r.request[id] = e.Revision
	}
	key := [2]string{e.Store, e.UUID}
	if e.Revision < r.last[key] {
		r.lower++
	}
	r.last[key] = max(r.last[key], e.Revision)
	// An acknowledgement that gets lost brings the event again.
	_ = m.Ack()
}

// missing returns the facts that have no event.
func (r *recorder) missing(facts []fact) []fact {
	r.mu.Lock()
	defer r.mu.Unlock()
	var missing []fact
	for _, f := range facts {
		received := r.writes[f]
		if f.after > 0 {
			for _, revision := range r.deleted[fact{store: f.store, uuid: f.uuid}] {
				received = received || revision > f.after
			}
		}
		if !received {
			missing = append(missing, f)
		}
	}
	return missing
}
