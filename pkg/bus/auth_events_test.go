package bus_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// publishLogins publishes an event of a store, and two about the security of an account.
func publishLogins(t *testing.T, b *bus.Bus) {
	t.Helper()
	for _, e := range []event.Envelope{
		{ID: "in", Event: event.AuthLoggedIn, Store: "Users", UUID: "u"},
		{ID: "out", Event: event.AuthLoggedOut, Store: "Users", UUID: "u"},
		{ID: "saved", Event: event.StoreSaved, Store: "Users", UUID: "u"},
	} {
		if err := b.Publish(t.Context(),
			[]bus.Event{{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID),
				Payload: e.Append(nil)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// received runs a listener until it has received the event that was published last, or one that ends it, and returns
// all it has.
func received(t *testing.T, b *bus.Bus, spec listener.Spec, last string) []string {
	t.Helper()
	var mu sync.Mutex
	var ids []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	spec.Handler = func(_ context.Context, e *listener.Event) error {
		mu.Lock()
		defer mu.Unlock()
		if ids = append(ids, e.ID); e.ID == last {
			cancel()
		}
		return nil
	}
	if err := listener.Run(ctx, b, slog.New(slog.DiscardHandler), spec); err != nil {
		t.Fatal(err)
	}
	return ids
}

// What a listener receives is what the admin has set its consumer up for: its user can neither create another one nor
// widen its own, and where its consumer is wider than it asks for, it leaves out what it does not name.
func TestAListenerReceivesEventsOfAccountsOnlyIfItsConsumerNamesThem(t *testing.T) {
	quiet := slog.New(slog.DiscardHandler)
	all, security := listenerSpec("listener"), listenerSpec("listener")
	security.Events = event.Auth()
	for name, c := range map[string]struct {
		setUp, wants listener.Spec
		last         string
		want         []string
	}{
		"it names none":               {all, all, "saved", []string{"saved"}},
		"it names them":               {security, security, "out", []string{"in", "out"}},
		"it would like to":            {all, security, "saved", nil}, // the consumer differs, so it does not run
		"the consumer is of an older": {listener.Spec{}, all, "saved", []string{"saved"}},
	} {
		t.Run(name, func(t *testing.T) {
			url := production(t)
			prepare(t, url, all)
			admin := as(t, url, "admin", quiet)
			if c.setUp.Name == "" {
				s, err := admin.JetStream().Consumer(t.Context(), bus.StreamEvents, "listener")
				if err != nil {
					t.Fatal(err)
				}
				config := s.CachedInfo().Config
				config.FilterSubject, config.FilterSubjects = "", []string{"events.>"}
				if _, err := admin.JetStream().UpdateConsumer(t.Context(), bus.StreamEvents, config); err != nil {
					t.Fatal(err)
				}
			} else if _, err := listener.Setup(t.Context(), admin, c.setUp, false); err != nil {
				t.Fatal(err)
			}
			publishLogins(t, as(t, url, "front", quiet))
			b := as(t, url, "listener", quiet)
			if c.want == nil {
				if _, err := listener.Setup(t.Context(), b, c.wants, false); err == nil {
					t.Error("the listener has widened its consumer")
				}
				return
			}
			if got := received(t, b, c.wants, c.last); !slices.Equal(got, c.want) {
				t.Errorf("received %v, want %v", got, c.want)
			}
		})
	}
}

// A listener that asks the server itself is denied as well.
func TestAListenerCanNotCreateAConsumerOfEventsOfAccounts(t *testing.T) {
	url := production(t)
	prepare(t, url, listenerSpec("listener"))
	c, refusals := connectAs(t, url, "listener")
	for _, subject := range []string{consumer + "CREATE.EVENTS.mine.events.*.Auth.>",
		consumer + "CREATE.EVENTS.listener", consumer + "DURABLE.CREATE.EVENTS.listener"} {
		request, err := json.Marshal(map[string]any{"stream_name": "EVENTS",
			"config": jetstream.ConsumerConfig{Durable: "listener", FilterSubject: "events.*.Auth.>"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Publish(subject, request); err != nil {
			t.Fatal(err)
		}
		refused(t, refusals, "create a consumer", "publish to", subject)
	}
	for _, subject := range []string{"events.*.Auth.>", "Auth.*", "Auth.LoggedIn"} {
		if _, err := c.SubscribeSync(subject); err != nil {
			t.Fatal(err)
		}
		refused(t, refusals, "subscribe", "subscription to", subject)
	}
}
