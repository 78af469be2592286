package sse_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api/sse"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit"
)

func TestEventsAreSelected(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.open("Notes", nil)
	w.open("Hidden", nil) // not streamed
	w.start()
	all := w.listen(sse.Subscription{}, anonymous())
	books := w.listen(sse.Subscription{Stores: []string{"Books"}}, anonymous())
	both := w.listen(sse.Subscription{Stores: []string{"Books", "Notes"},
		Events: []string{"Store.Deleted", "Store.Saved"}}, anonymous())
	deleted := w.listen(sse.Subscription{Events: []string{"Store.Deleted"}}, anonymous())
	w.save("Books", "a.b@c", `{"title":"x"}`)
	w.save("Hidden", "h", `{}`)
	w.save("Notes", "n", `{}`)
	w.save("Books", "a.b@c", `{"title":"y"}`)
	w.delete("Books", "a.b@c")
	w.delete("Notes", "n")
	all.receives("Store.Saved Books a.b@c", "Store.Saved Notes n", "Store.Updated Books a.b@c",
		"Store.Deleted Books a.b@c", "Store.Deleted Notes n")
	books.receives("Store.Saved Books a.b@c", "Store.Updated Books a.b@c", "Store.Deleted Books a.b@c")
	both.receives("Store.Saved Books a.b@c", "Store.Saved Notes n", "Store.Deleted Books a.b@c",
		"Store.Deleted Notes n")
	deleted.receives("Store.Deleted Books a.b@c", "Store.Deleted Notes n")
	if got := all.received()[3]; got.id != "5" {
		t.Errorf("the id is %q, not the place in the log", got.id)
	}
}

func TestUnknownStoresAndEventsAreNamed(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	for says, want := range map[string]sse.Subscription{
		`store "Hidden" has no event stream; there are Books`: {Stores: []string{"Books", "Hidden"}},
		`store "*" has no event stream`:                       {Stores: []string{"*"}},
		`event "Store.Save" is not streamed`:                  {Events: []string{"Store.Save"}},
		`event "Register" is not streamed`:                    {Events: []string{"Register"}},
		`there are Store.Saved, Store.Updated, Store.D`:       {Events: []string{strings.Repeat("x", 1000)}},
	} {
		kind(t, w.hub.Validate(want), errs.Invalid, says)
		kind(t, w.connect(want, anonymous()).refused(), errs.Invalid, says)
	}
}

// Which fields of an event are sent.
func TestFramesOfEvents(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil, "secret")
	w.start()
	e := w.listen(sse.Subscription{}, anonymous())
	w.save("Books", "a", `{"title":"x","secret":1,"_internal":2}`)
	w.save("Books", "a", `{"title":"y\nz"}`)
	index := 3
	envelope := func(change func(*event.Envelope)) string {
		actor := "somebody"
		all := event.Envelope{ID: "e", Event: event.BinaryUploaded, Time: "t", Store: "Books", UUID: "a", Revision: 7,
			Actor: &actor, Origin: "http",
			Previous: map[string]json.RawMessage{"record": json.RawMessage(`1`)}, Binaries: []byte(`{}`),
			Property: "covers", Index: &index, Record: []byte(`{"hash":"h"}`), Ctx: event.Ctx{Address: "198.51.100.7"}}
		change(&all)
		return string(all.Append(nil))
	}
	subject := event.Subject(event.BinaryUploaded, "Books", "a")
	// The field was not private when the event was written, and the body has line
	// breaks.
	w.publish(subject, envelope(func(e *event.Envelope) { e.Object = []byte("{\"uuid\":\"a\",\n\r\"secret\":1}") }))
	w.publish(subject, envelope(func(e *event.Envelope) { e.ObjectOmitted = true }))
	// The content of these contradicts their subject or store.
	w.publish(subject, envelope(func(e *event.Envelope) { e.Property = "secret" }))
	w.publish(subject, envelope(func(e *event.Envelope) { e.Store = "Hidden" }))
	w.publish(subject, envelope(func(e *event.Envelope) { e.UUID = "b" }))
	w.publish(subject, envelope(func(e *event.Envelope) { e.Event = event.StoreSaved }))
	w.publish(subject, "nonsense")
	w.publish("events.1.x", "nonsense")
	w.delete("Books", "a")
	e.receives("Store.Saved Books a", "Store.Updated Books a", "Binary.Uploaded Books a", "Binary.Uploaded Books a",
		"Store.Deleted Books a")
	all := e.received()
	is := func(m message, want string) {
		t.Helper()
		got := map[string]any{}
		for name, value := range m.data {
			if !slices.Contains([]string{"time", "revision"}, name) && (name != "id" || value == "e") {
				got[name] = value
			} else if value == "" {
				t.Errorf("%s is empty", name)
			}
		}
		if o, ok := got["object"].(map[string]any); ok {
			delete(o, "created")
			delete(o, "updated")
		}
		text, err := json.Marshal(got)
		if err != nil || string(text) != want {
			t.Errorf("%s\nwant %s", text, want)
		}
	}
	is(all[0], `{"event":"Store.Saved","object":{"title":"x","uuid":"a"},"store":"Books","uuid":"a"}`)
	is(all[1], `{"event":"Store.Updated","object":{"title":"y\nz","uuid":"a"},"store":"Books","uuid":"a"}`)
	is(all[2], `{"event":"Binary.Uploaded","id":"e","index":3,"object":{"uuid":"a"},"property":"covers","record":{"hash":"h"},"store":"Books","uuid":"a"}`)
	is(all[3], `{"event":"Binary.Uploaded","id":"e","index":3,"objectOmitted":true,"property":"covers","record":{"hash":"h"},"store":"Books","uuid":"a"}`)
	is(all[4], `{"event":"Store.Deleted","object":{"title":"y\nz","uuid":"a"},"store":"Books","uuid":"a"}`)
}

func TestClientsAreBounded(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.start(func(o *sse.Options) { o.Clients, o.Address = 3, 2 })
	serve := func(address string) (*testClient, error) {
		e := &testClient{fixture: w, done: make(chan struct{}), stop: make(chan struct{}), viewer: anonymous()}
		result := make(chan error, 1)
		go func() {
			defer close(e.done)
			result <- w.hub.Serve(t.Context(), sse.Client{Address: address, Begin: func() { result <- nil },
				Send: e.send, Identify: e.who, Stop: e.stop})
		}()
		return e, <-result
	}
	first, err := serve("2001:db8::1")
	w.must(err)
	_, err = serve("2001:db8::2") // of the same network
	w.must(err)
	_, err = serve("2001:db8::3")
	kind(t, err, errs.Limited, "network address")
	_, err = serve("192.0.2.1")
	w.must(err)
	_, err = serve("192.0.2.2")
	kind(t, err, errs.Unavailable, "too many clients")
	close(first.stop)
	<-first.done
	_, err = serve("2001:db8::4")
	w.must(err)
}

// Heartbeats have the id of the last event, so that a client whose filter matches
// nothing can resume there.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.open("Notes", nil)
	w.start(func(o *sse.Options) { o.Heartbeat = 10 * time.Millisecond })
	e := w.listen(sse.Subscription{Stores: []string{"Notes"}}, anonymous())
	for i := range 5 {
		w.save("Books", fmt.Sprint(i), `{}`)
	}
	kit.WaitUntil(t, func() error {
		if e.heartbeats() < 3 || e.lastID() != "5" {
			return fmt.Errorf("%d heartbeats, the last id is %s", e.heartbeats(), e.lastID())
		}
		return nil
	})
	e.receives()
}

func TestAStoppingServerNotifiesClients(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	e := w.listen(sse.Subscription{}, anonymous())
	w.save("Books", "a", `{}`)
	e.receives("Store.Saved Books a")
	close(e.stop)
	if reason := e.ends(); reason != "the server stops" {
		t.Errorf("the reason is %q", reason)
	}
	if e.lastID() != "1" {
		t.Errorf("it would resume from %s", e.lastID())
	}
}

// The metrics show the hub that serves: one that is made for a reload counts only once it takes over.
func TestMetricsShowTheHubThatServes(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	clients := func() float64 {
		t.Helper()
		all, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, family := range all {
			if family.GetName() == "belfry_live_clients" {
				return family.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("there is no gauge")
		return 0
	}
	w := newFixture(t)
	w.open("Books", nil)
	w.start(func(o *sse.Options) { o.Registry = registry })
	before := w.hub
	w.listen(sse.Subscription{}, anonymous())
	w.start(func(o *sse.Options) { o.Registry = registry })
	if n := clients(); n != 1 {
		t.Errorf("%v clients, before the other hub serves", n)
	}
	before.Retire(w.hub)
	if n := clients(); n != 0 {
		t.Errorf("%v clients of the hub that serves now", n)
	}
}
