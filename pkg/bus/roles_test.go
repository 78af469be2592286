package bus_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

// password is the one that nats.conf takes for a user from the environment.
func password(user string) string { return "pw-of-" + user }

// production starts a server from the nats.conf that belfry ships.
func production(t *testing.T) string {
	t.Helper()
	t.Setenv("BELFRY_NATS_NAME", "test")
	for variable, user := range map[string]string{
		"FRONT": "front", "WORKER": "worker", "ALL": "belfry", "LISTENER": "listener",
		"OBSERVER": "observer", "ADMIN": "admin", "SYSTEM": "system",
	} {
		t.Setenv("BELFRY_"+variable+"_PASSWORD", password(user))
	}
	opts, err := server.ProcessConfigFile("../../nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	if !opts.SyncAlways {
		t.Error("an acknowledged event is not on disk: sync_interval is not always")
	}
	opts.Host, opts.Port, opts.HTTPPort = "127.0.0.1", server.RANDOM_PORT, 0
	opts.StoreDir, opts.NoSigs, opts.NoLog = t.TempDir(), true, true
	s, err := server.NewServer(opts)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server is not ready")
	}
	return s.ClientURL()
}

// as opens a bus as a user of nats.conf, and waits until it is ready.
func as(t *testing.T, url, user string, log *slog.Logger) *bus.Bus {
	t.Helper()
	b := open(t, bus.Options{URL: url, Auth: bus.Auth{User: user, Password: password(user)}, Logger: log})
	eventually(t, func() bool { return b.Ready(t.Context()) == nil })
	return b
}

func TestTheRolesOfNatsConfAreEnoughForTheirWork(t *testing.T) {
	for _, roles := range []struct{ front, worker string }{{"front", "worker"}, {"belfry", "belfry"}, {"front", "listener"}} {
		t.Run(roles.front+" and "+roles.worker, func(t *testing.T) {
			url := production(t)
			denied := &logged{}
			log := slog.New(slog.NewTextHandler(denied, &slog.HandlerOptions{Level: slog.LevelWarn}))
			front := as(t, url, roles.front, log)
			worker := as(t, url, roles.worker, log)

			observer, refusals := connectAs(t, url, "observer")
			live, err := observer.SubscribeSync("Store.*")
			if err != nil {
				t.Fatal(err)
			}
			if err := observer.Flush(); err != nil {
				t.Fatal(err)
			}
			front.Live(event.StoreSaved, []byte("{}"))
			if _, err := live.NextMsg(10 * time.Second); err != nil {
				t.Error(err)
			}

			list := readable("e", 700)
			if err := front.Publish(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			if front.BatchesOff() {
				t.Error("fast batches are not used")
			}
			if n := handle(t, worker, "listener", 700); n != 700 {
				t.Errorf("%d events were handled, want 700", n)
			}
			js, err := jetstream.New(observer)
			if err != nil {
				t.Fatal(err)
			}
			stream, err := js.Stream(t.Context(), bus.StreamEvents)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := stream.GetMsg(t.Context(), 1); err != nil || m.Subject != list[0].Subject {
				t.Errorf("the observer reads %v, %v", m, err)
			}
			if text := denied.String(); text != "" || len(refusals) > 0 {
				t.Errorf("somebody lacks a right:\n%s\n%d refusals of the observer", text, len(refusals))
			}
		})
	}
}

// handle runs a listener until it has acknowledged, or put with the dead
// letters, so many events; the first of them fails for good.
func handle(t *testing.T, b *bus.Bus, name string, events int) int {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	handled := make(chan struct{}, events)
	done := make(chan error, 1)
	go func() {
		done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), listener.Spec{
			Name: name, Filters: []string{"events.>"}, Start: listener.All, Concurrency: 32,
			Handler: func(_ context.Context, e *listener.Event) error {
				handled <- struct{}{}
				if e.Sequence == 1 {
					return listener.Permanent(errors.New("never"))
				}
				return nil
			},
		})
	}()
	eventually(t, func() bool {
		if len(handled) < events {
			return false
		}
		pending, unacked, err := listener.Lag(t.Context(), b, name)
		return err == nil && pending+unacked == 0
	})
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	return len(handled)
}

func TestTheRolesOfNatsConfCanDoNoMore(t *testing.T) {
	url := production(t)
	quiet := slog.New(slog.DiscardHandler)
	front := as(t, url, "front", quiet)
	if err := front.Publish(t.Context(), readable("e", 3)); err != nil {
		t.Fatal(err)
	}
	worker := as(t, url, "worker", quiet)
	handle(t, worker, "mapping", 3)

	for user, forbidden := range map[string][]string{
		"listener": {
			"Store.Saved", "events.1.Store.Saved.Users.u", "applied.x.1", "dead.mapping", "_INBOX_front.x",
			"$JS.API.STREAM.DELETE.EVENTS", "$JS.API.STREAM.PURGE.EVENTS", "$JS.API.STREAM.UPDATE.EVENTS",
			"$JS.API.STREAM.MSG.DELETE.EVENTS", "$JS.API.STREAM.CREATE.MINE", "$JS.API.STREAM.DELETE.DEAD",
			"$JS.API.CONSUMER.DELETE.EVENTS.mapping", "$JS.API.CONSUMER.CREATE.EVENTS.mapping",
			"$JS.API.CONSUMER.DURABLE.CREATE.EVENTS.mapping", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.mapping",
			"$JS.ACK.EVENTS.mapping.1.1.1.1.1",
			"retry.listener", "retry.mapping", "$JS.API.CONSUMER.CREATE.RETRY.listener", "$JS.API.CONSUMER.CREATE.RETRY.listener.retry.mapping",
			"$JS.API.CONSUMER.CREATE.RETRY.mapping.retry.mapping", "$JS.API.CONSUMER.MSG.NEXT.RETRY.mapping", "$JS.ACK.RETRY.mapping.1.1.1.1.1",
			"$JS.API.CONSUMER.RESET.EVENTS.listener", "$JS.API.CONSUMER.PAUSE.EVENTS.mapping", "$JS.API.STREAM.PURGE.RETRY", "$JS.API.STREAM.MSG.DELETE.DEAD",
		},
		"observer": {
			"Store.Saved", "events.1.Store.Saved.Users.u", "applied.x.1", "dead.observer", "_INBOX_front.x",
			"$JS.API.STREAM.DELETE.EVENTS", "$JS.API.STREAM.PURGE.EVENTS", "$JS.API.STREAM.UPDATE.EVENTS",
			"$JS.API.CONSUMER.CREATE.EVENTS.x", "$JS.API.CONSUMER.CREATE.EVENTS", "$JS.API.CONSUMER.MSG.NEXT.EVENTS.mapping",
		},
		"worker": {
			"$JS.API.STREAM.DELETE.EVENTS", "$JS.API.STREAM.PURGE.EVENTS", "$JS.API.STREAM.UPDATE.EVENTS",
			"$JS.API.CONSUMER.DELETE.EVENTS.mapping", "_INBOX_front.x", "retry.mapping", "$JS.API.CONSUMER.CREATE.RETRY.mapping",
			"$JS.API.CONSUMER.RESET.EVENTS.mapping",
		},
		"front": {
			"$JS.API.STREAM.DELETE.EVENTS", "$JS.API.STREAM.PURGE.EVENTS", "$JS.API.CONSUMER.DELETE.EVENTS.mapping",
			"$JS.API.CONSUMER.MSG.NEXT.EVENTS.mapping", "_INBOX_worker.x", "dead.x",
		},
	} {
		t.Run(user, func(t *testing.T) {
			c, refusals := connectAs(t, url, user)
			for _, subject := range forbidden {
				if err := c.Publish(subject, []byte("{}")); err != nil {
					t.Fatal(err)
				}
				refused(t, refusals, "publish to", subject)
			}
			for _, subject := range []string{"_INBOX_other.>", "_INBOX.>", ">", "$JS.>", "dead.>", "events.>", "_INBOX_*.>"} {
				if _, err := c.SubscribeSync(subject); err != nil {
					t.Fatal(err)
				}
				refused(t, refusals, "subscription to", subject)
			}
		})
	}
	if n := stored(t, as(t, url, "admin", quiet)); n != 3 {
		t.Errorf("%d events are stored, want 3", n)
	}
	if _, err := nats.Connect(url); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a stranger gets %v", err)
	}
}

// connectAs connects as a user and collects what the server refuses it.
func connectAs(t *testing.T, url, user string) (*nats.Conn, <-chan error) {
	t.Helper()
	refusals := make(chan error, 100)
	c, err := nats.Connect(url, nats.UserInfo(user, password(user)), nats.CustomInboxPrefix("_INBOX_"+user),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refusals <- err }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, refusals
}

func refused(t *testing.T, refusals <-chan error, what, subject string) {
	t.Helper()
	select {
	case err := <-refusals:
		text := strings.ToLower(err.Error())
		if !errors.Is(err, nats.ErrPermissionViolation) || !strings.Contains(text, what) || !strings.Contains(text, strings.ToLower(`"`+subject+`"`)) {
			t.Errorf("%s %s: the server says %v", what, subject, err)
		}
	case <-time.After(10 * time.Second):
		t.Errorf("%s %s is not refused", what, subject)
	}
}

func TestNatsConfNeedsItsPasswords(t *testing.T) {
	production(t)
	if err := os.Unsetenv("BELFRY_FRONT_PASSWORD"); err != nil {
		t.Fatal(err)
	}
	if _, err := server.ProcessConfigFile("../../nats.conf"); err == nil {
		t.Error("the server starts with a user whose password is missing")
	}
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
