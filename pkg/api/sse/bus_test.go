package sse_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/api/sse"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// Streams stay open while the bus is unavailable, and new ones can begin. Once it
// has recovered no event is missed.
func TestStreamsResumeWhenTheBusRecovers(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start(func(o *sse.Options) { o.Heartbeat = 10 * time.Millisecond })
	e := w.listen(sse.Subscription{}, anonymous())
	w.save("Books", "a", `{}`)
	e.receives("Store.Saved Books a")
	w.must(w.bus.StopServer())
	late := w.connect(sse.Subscription{After: after("0")}, anonymous())
	beats := e.heartbeats()
	kit.WaitUntil(t, func() error {
		if e.heartbeats() < beats+3 || late.heartbeats() < 3 {
			return errors.New("no heartbeat")
		}
		return nil
	})
	logs := func(what string) {
		t.Helper()
		kit.WaitUntil(t, func() error {
			if text := w.logged.String(); !strings.Contains(text, what) {
				return errors.New("it is not logged: " + text)
			}
			return nil
		})
	}
	logs("can't be read")
	w.must(w.bus.StartServer(t.Context()))
	w.save("Books", "b", `{}`)
	e.receives("Store.Saved Books a", "Store.Saved Books b")
	late.receives("Store.Saved Books a", "Store.Saved Books b")
	logs("is read again")
}

// A client is notified of events that the log has deleted.
func TestAClientIsResetWhenEventsWereDeletedFromTheLog(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	present := w.listen(sse.Subscription{}, anonymous())
	w.flood(1, 10, "")
	kit.WaitUntil(t, func() error {
		if n := len(present.received()); n != 10 {
			return fmt.Errorf("%d", n)
		}
		return nil
	})
	log, err := w.bus.JetStream().Stream(t.Context(), bus.StreamEvents)
	w.must(err)
	// Later streams begin with another window.
	w.start()
	w.must(log.Purge(t.Context(), jetstream.WithPurgeSequence(6)))
	late := w.listen(sse.Subscription{After: after("3")}, anonymous())
	late.receives("reset", "Store.Saved Books b", "Store.Saved Books b", "Store.Saved Books b", "Store.Saved Books b",
		"Store.Saved Books b")
	if all := late.received(); all[0].id != "5" || all[1].id != "6" ||
		!strings.Contains(fmt.Sprint(all[0].data["reason"]), "deleted from the log") {
		t.Errorf("%+v", all)
	}
	w.listen(sse.Subscription{After: after("6")}, anonymous()).receives("Store.Saved Books b", "Store.Saved Books b",
		"Store.Saved Books b", "Store.Saved Books b")

	// Nothing is left at all.
	w.start()
	w.must(log.Purge(t.Context()))
	empty := w.listen(sse.Subscription{After: after("3")}, anonymous())
	empty.receives("reset")
	if id := empty.lastID(); id != "10" {
		t.Errorf("it continues from %s", id)
	}
	w.listen(sse.Subscription{After: after("10")}, anonymous()).receives()
	w.flood(11, 11, "")
	empty.receives("reset", "Store.Saved Books b")
}

// A connected client is reset when the log deletes events that were not read yet.
func TestAConnectedClientIsResetWhenEventsAreDeletedFromTheLog(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	e := w.listen(sse.Subscription{}, anonymous())
	w.must(w.bus.StopServer())
	w.must(w.bus.StartServer(t.Context()))
	log, err := w.bus.JetStream().Stream(t.Context(), bus.StreamEvents)
	w.must(err)
	// A gap, as if a hundred events had been published and deleted.
	w.must(log.Purge(t.Context(), jetstream.WithPurgeSequence(100)))
	w.flood(1, 1, "")
	e.receives("reset", "Store.Saved Books b")
	if all := e.received(); all[1].id != "100" {
		t.Errorf("%+v", all)
	}
}

// A power cut takes the newest events of the log back, which clients have received, and others get their sequences.
// Nobody resumes after events that they have never seen: whoever was connected and whoever comes back is reset.
func TestClientsAreResetWhenTheLogHasOtherEvents(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	w.flood(1, 2, "")
	before := filepath.Join(t.TempDir(), "bus")
	restart := func(at func()) {
		w.must(w.bus.StopServer())
		at()
		w.must(w.bus.StartServer(t.Context()))
	}
	restart(func() { w.must(os.CopyFS(before, os.DirFS(w.folder))) })
	kept := w.listen(sse.Subscription{After: after("2")}, anonymous())
	w.flood(3, 5, "")
	kept.receives("Store.Saved Books b", "Store.Saved Books b", "Store.Saved Books b")
	id, first := w.id("4"), w.id("2")
	restart(func() {
		w.must(os.RemoveAll(w.folder))
		w.must(os.CopyFS(w.folder, os.DirFS(before)))
	})
	w.flood(103, 110, "")
	all := append([]string{"reset"}, slices.Repeat([]string{"Store.Saved Books b"}, 10)...)
	kept.receives(append(slices.Repeat([]string{"Store.Saved Books b"}, 3), all...)...)
	again := w.listen(sse.Subscription{After: id}, anonymous())
	again.receives(all...)
	if reason := fmt.Sprint(again.received()[0].data["reason"]); !strings.Contains(reason, "is not in the log") {
		t.Error(reason)
	}
	// What was on disk is what it was.
	w.listen(sse.Subscription{After: first}, anonymous()).receives(all[3:]...)
}

// The log is created again, and has more events than before when a client comes back: it gets all of them.
func TestAnIDOfAnotherLogIsReset(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	w.flood(1, 4, "")
	ids := []string{w.id("4"), w.id("1")}
	state, err := eventlog.GetState(t.Context(), w.bus.JetStream())
	w.must(err)
	ids = append(ids, sealID(2, state.Mark(), 0)) // of an event that was not known
	w.must(w.bus.JetStream().DeleteStream(t.Context(), bus.StreamEvents))
	w.must(w.bus.Setup(t.Context()))
	w.start()
	w.flood(5, 16, "")
	for _, id := range ids {
		w.listen(sse.Subscription{After: id},
			anonymous()).receives(append([]string{"reset"}, slices.Repeat([]string{"Store.Saved Books b"}, 12)...)...)
	}
}

// Somebody has removed an event from the middle of the log. Whoever has not been sent it learns that there was one.
func TestAClientIsResetWhereAnEventWasRemoved(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	w.flood(1, 6, "")
	log, err := w.bus.JetStream().Stream(t.Context(), bus.StreamEvents)
	w.must(err)
	w.must(log.SecureDeleteMsg(t.Context(), 4))
	w.start()
	e := w.listen(sse.Subscription{After: after("2")}, anonymous())
	e.receives("Store.Saved Books b", "reset", "Store.Saved Books b", "Store.Saved Books b")
	if m := e.received()[1]; m.id != "4" || !strings.Contains(fmt.Sprint(m.data["reason"]), "have been removed") {
		t.Errorf("%+v", m)
	}
	w.listen(sse.Subscription{After: after("4")}, anonymous()).receives("Store.Saved Books b", "Store.Saved Books b")
	w.listen(sse.Subscription{After: after("5")}, anonymous()).receives("Store.Saved Books b")
}

// The id of a release before, which names no event, is reset once.
func TestAnIDOfTheReleaseBeforeIsReset(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	w.flood(1, 3, "")
	e := w.listen(sse.Subscription{After: sealer.Seal("events", binary.BigEndian.AppendUint64(nil, 2))}, anonymous())
	e.receives("reset")
	w.flood(4, 4, "")
	e.receives("reset", "Store.Saved Books b")
}

func TestAnIDAfterTheEndOfTheLogIsReset(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	w.flood(1, 2, "")
	e := w.listen(sse.Subscription{After: after("18446744073709551615")}, anonymous())
	e.receives("reset", "Store.Saved Books b", "Store.Saved Books b")
	if reason := fmt.Sprint(e.received()[0].data["reason"]); !strings.Contains(reason, "after the end of the log") {
		t.Error(reason)
	}
}

// When the log is created again, connected clients receive it from its beginning,
// even if its sequence numbers seem to continue.
func TestClientsAreResetWhenTheLogIsCreatedAgain(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	w.flood(1, 1, "")
	e := w.listen(sse.Subscription{}, anonymous())
	w.must(w.bus.JetStream().DeleteStream(t.Context(), bus.StreamEvents))
	w.must(w.bus.Setup(t.Context()))
	w.flood(2, 4, "")
	kit.WaitUntil(t, func() error {
		var got []string
		for _, m := range e.received() {
			got = append(got, m.event+" "+m.id)
		}
		if text := strings.Join(got, ", "); !strings.HasSuffix(text,
			"reset 0, Store.Saved 1, Store.Saved 2, Store.Saved 3") {
			return errors.New(text)
		}
		return nil
	})
}

// When the front's user lacks a permission on the bus, clients get 503 and the log
// names the permission.
func TestMissingPermissionsOnTheBus(t *testing.T) {
	for _, missing := range []string{"$JS.API.DIRECT.GET.EVENTS", "$JS.API.STREAM.INFO.EVENTS"} {
		t.Run(missing, func(t *testing.T) {
			s := natsserver.Serve(t, &server.Options{
				JetStream: true, StoreDir: t.TempDir(),
				Users: []*server.User{
					{Username: "admin", Password: "a"},
					{Username: "front", Password: "f", Permissions: &server.Permissions{
						Publish:   &server.SubjectPermission{Allow: []string{">"}, Deny: []string{missing}},
						Subscribe: &server.SubjectPermission{Allow: []string{"_INBOX_front.>"}},
					}},
				},
			})
			connect := func(user, password string) *bus.Bus {
				b, err := bus.Open(t.Context(), bus.Options{URL: s.ClientURL(),
					Auth: bus.Auth{User: user, Password: password}, Logger: slog.New(slog.DiscardHandler)})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = b.Close(context.Background()) })
				return b
			}
			admin := connect("admin", "a")
			kit.WaitUntil(t, func() error { return admin.Ready(t.Context()) })
			w := newFixture(t)
			w.bus = connect("front", "f")
			kit.WaitUntil(t, func() error {
				if !w.bus.Conn().IsConnected() {
					return errors.New("not connected")
				}
				return nil
			})
			w.open("Books", nil)
			w.start()
			kind(t, w.connect(sse.Subscription{}, anonymous()).refused(), errs.Unavailable,
				"belfry lacks a permission on the bus, which its log names")
			kit.WaitUntil(t, func() error {
				if text := w.logged.String(); !strings.Contains(text, "does not let this user publish to "+missing) {
					return errors.New(text)
				}
				return nil
			})
		})
	}
}

// The permissions of a front in nats.conf suffice to read the log and to be woken.
func TestTheFrontUserOfNatsConfMayReadEvents(t *testing.T) {
	const file = "../../../nats.conf"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile(`\$(BELFRY_\w+)`).FindAllStringSubmatch(string(text), -1) {
		t.Setenv(name[1], "secret")
	}
	opts := natsserver.Options(t, file)
	opts.Port, opts.HTTPPort, opts.StoreDir = server.RANDOM_PORT, 0, t.TempDir()
	s := natsserver.Serve(t, opts)
	w := newFixture(t)
	for _, user := range []string{"admin", "front", "belfry"} { // the first makes the streams
		warnings := &kit.Tail{}
		b, err := bus.Open(t.Context(), bus.Options{URL: s.ClientURL(), Auth: bus.Auth{User: user, Password: "secret"},
			Logger: slog.New(slog.NewTextHandler(warnings, nil))})
		w.must(err)
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		kit.WaitUntil(t, func() error { return b.Ready(t.Context()) })
		w.bus = b
		if user != "admin" {
			w.open("Books", nil)
			w.start()
			e := w.listen(sse.Subscription{}, anonymous())
			w.save("Books", user, `{}`)
			e.receives("Store.Saved Books " + user)
			if text := warnings.String(); strings.Contains(text, "violation") {
				t.Errorf("%s lacks a permission: %s", user, text)
			}
		}
	}
}

// Without permission for the live subjects events are found by polling the log.
func TestEventsAreFoundByPolling(t *testing.T) {
	w := newFixture(t)
	w.open("Books", nil)
	w.start()
	e := w.listen(sse.Subscription{}, anonymous())
	w.publish(event.Subject(event.StoreSaved, "Books", "b"), envelope("b", 1, "")) // without a live message
	e.receives("Store.Saved Books b")
}
