package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// password is the password that the environment of nats.conf has for a user.
func password(user string) string { return "pw-of-" + user }

// passwords sets the environment that nats.conf needs.
func passwords(t *testing.T, store string) {
	t.Helper()
	t.Setenv("BELFRY_NATS_NAME", "test")
	t.Setenv("BELFRY_NATS_STORE", store)
	for variable, user := range map[string]string{
		"FRONT": "front", "WORKER": "worker", "ALL": "belfry", "LISTENER": "listener",
		"OBSERVER": "observer", "CLIENT": "client", "ADMIN": "admin", "SYSTEM": "system",
	} {
		t.Setenv("BELFRY_"+variable+"_PASSWORD", password(user))
	}
}

// production starts a server from the nats.conf that belfry ships.
func production(t *testing.T) string {
	t.Helper()
	passwords(t, t.TempDir())
	return serve(t, "../../nats.conf")
}

// serve starts a server from a file, on a free port.
func serve(t *testing.T, file string) string {
	t.Helper()
	if !natsserver.Options(t, file).SyncAlways {
		t.Error("an acknowledged event is not on disk: sync_interval is not always")
	}
	return natsserver.ServeFile(t, file).ClientURL()
}

// dial connects as a command does.
func dial(t *testing.T, url, user string) *bus.Client {
	t.Helper()
	c, err := bus.Dial(bus.Options{URL: url, Auth: bus.Auth{User: user, Password: password(user)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// prepare creates the streams, and the consumers of listeners, as the admin.
func prepare(t *testing.T, url string, listeners ...listener.Spec) {
	t.Helper()
	admin := dial(t, url, "admin")
	if _, err := bus.SetupStreams(t.Context(), admin, bus.Limits{}, 0, false); err != nil {
		t.Fatal(err)
	}
	for _, spec := range listeners {
		if _, err := listener.Setup(t.Context(), admin, spec, false); err != nil {
			t.Fatal(err)
		}
	}
}

// listenerSpec is a listener to all events from the beginning of the log.
func listenerSpec(name string) listener.Spec {
	return listener.Spec{Name: name, Start: listener.StartAll()}
}

// as opens a bus as a user of nats.conf, and waits until it is ready. Listeners
// do not manage the streams, as their programs don't.
func as(t *testing.T, url, user string, log *slog.Logger) *bus.Bus {
	t.Helper()
	b := open(t, bus.Options{
		URL: url, Unmanaged: user == "listener" || user == "audit",
		Auth: bus.Auth{User: user, Password: password(user)}, Logger: log,
	})
	eventually(t, func() bool { return b.Ready(t.Context()) == nil })
	return b
}

func TestRolesOfNatsConfHaveTheNeededPermissions(t *testing.T) {
	for _, roles := range []struct{ front, worker, listener string }{
		{"front", "worker", "mapping"}, {"belfry", "belfry", "cascade"}, {"front", "listener", "listener"},
	} {
		t.Run(roles.front+" and "+roles.worker, func(t *testing.T) {
			url := production(t)
			prepare(t, url, listenerSpec(roles.listener))
			denied := &logged{}
			log := slog.New(slog.NewTextHandler(denied, &slog.HandlerOptions{Level: slog.LevelWarn}))
			front := as(t, url, roles.front, log)
			worker := as(t, url, roles.worker, log)

			observer, refusals := connectAs(t, url, "observer")
			live, err := observer.SubscribeSync("Store.*")
			if err != nil {
				t.Fatal(err)
			}
			if err := observer.FlushTimeout(kit.Limit); err != nil {
				t.Fatal(err)
			}
			front.Live(event.StoreSaved, []byte("{}"))
			if _, err := natsserver.Next(live); err != nil {
				t.Error(err)
			}

			list := readable("e", 700)
			if err := front.Publish(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			if front.BatchesOff() {
				t.Error("fast batches are not used")
			}
			if n := handle(t, worker, listenerSpec(roles.listener), 700); n != 700 {
				t.Errorf("%d events were handled, want 700", n)
			}
			readAsObserver(t, observer, list[0].Subject)
			if text := denied.String(); text != "" || len(refusals) > 0 {
				t.Errorf("a role lacks a permission:\n%s\n%d permission errors of the observer", text, len(refusals))
			}
		})
	}
}

// readAsObserver reads the first event in each way that an observer may.
func readAsObserver(t *testing.T, observer *nats.Conn, subject string) {
	t.Helper()
	js, err := jetstream.NewWithDomain(observer, "belfry")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := stream.GetMsg(t.Context(), 1); err != nil || m.Subject != subject {
		t.Errorf("by sequence the observer reads %v, %v", m, err)
	}
	if m, err := stream.GetLastMsgForSubject(t.Context(), subject); err != nil || m.Sequence != 1 {
		t.Errorf("by subject the observer reads %v, %v", m, err)
	}
	m, err := natsserver.Request(observer, "$JS.belfry.API.STREAM.MSG.GET.EVENTS", []byte(`{"seq":1}`))
	if err != nil || !strings.Contains(string(m.Data), subject) {
		t.Errorf("from the leader the observer reads %v, %v", m, err)
	}
}

// handle runs a listener until so many events are acknowledged or dead letters;
// the first of them fails permanently.
func handle(t *testing.T, b *bus.Bus, spec listener.Spec, events int) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handled := make(chan struct{}, events)
	done := make(chan error, 1)
	go func() {
		spec.Concurrency = 32
		spec.Handler = func(_ context.Context, e *listener.Event) error {
			handled <- struct{}{}
			if e.Attempt > 1 {
				t.Errorf("event %d was delivered to nobody before", e.Sequence)
			}
			if e.Sequence == 1 {
				return listener.Permanent(errors.New("never"))
			}
			return nil
		}
		done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), spec)
	}()
	eventually(t, func() bool {
		if len(handled) < events {
			return false
		}
		pending, unacked, err := listener.Lag(t.Context(), b, spec.Name)
		return err == nil && pending+unacked == 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return len(handled)
}

// readable are events that a listener can read.
func readable(prefix string, n int) []bus.Event {
	list := events(prefix, n, 0)
	for i := range list {
		e := event.Envelope{ID: list[i].ID, Event: event.StoreSaved, Store: "Users", UUID: list[i].ID, Revision: 1}
		list[i].Payload = e.Append(nil)
	}
	return list
}
