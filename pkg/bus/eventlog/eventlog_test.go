package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit/natsserver"
)

func open(t *testing.T) *bus.Bus {
	t.Helper()
	return openIn(t, t.TempDir())
}

func openIn(t *testing.T, folder string) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: folder}), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

func publish(t *testing.T, b *bus.Bus, name event.Name, store, uuid string) {
	t.Helper()
	e := event.Envelope{ID: fmt.Sprint(time.Now().UnixNano()), Event: name, Store: store, UUID: uuid, Revision: 1}
	natsserver.Publish(t, b, bus.Event{ID: e.ID, Subject: event.Subject(name, store, uuid), Payload: e.Append(nil)})
}

func sequences(t *testing.T, b *bus.Bus, r eventlog.Reader) []uint64 {
	t.Helper()
	var all []uint64
	if err := r.Each(t.Context(), b.JetStream(),
		func(e *eventlog.Entry) error { all = append(all, e.Sequence); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEventsAreSelected(t *testing.T) {
	b := open(t)
	if got := sequences(t, b, eventlog.Reader{}); got != nil {
		t.Errorf("an empty log holds %v", got)
	}
	publish(t, b, event.StoreSaved, "Books", "a")     // 1
	publish(t, b, event.StoreSaved, "Authors", "a")   // 2
	publish(t, b, event.StoreUpdated, "Books", "a")   // 3
	publish(t, b, event.StoreSaved, "Books", "a.b@c") // 4
	publish(t, b, event.Register, "Users", "a")       // 5
	publish(t, b, event.BinaryUploaded, "Books", "a") // 6
	publish(t, b, event.StoreDeleted, "Books", "a")   // 7
	for name, c := range map[string]struct {
		s    eventlog.Select
		want []uint64
	}{
		"all":    {eventlog.Select{}, []uint64{1, 2, 3, 4, 5, 6, 7}},
		"event":  {eventlog.Select{Events: []string{"Store.Saved"}}, []uint64{1, 2, 4}},
		"events": {eventlog.Select{Events: []string{"Store.Updated", "Register"}}, []uint64{3, 5}},
		"store":  {eventlog.Select{Stores: []string{"Books"}}, []uint64{1, 3, 4, 6, 7}},
		"users":  {eventlog.Select{Stores: []string{"Users"}}, []uint64{5}},
		"object": {eventlog.Select{Stores: []string{"Books"}, UUIDs: []string{"a"}}, []uint64{1, 3, 6, 7}},
		"uuid":   {eventlog.Select{UUIDs: []string{"a"}}, []uint64{1, 2, 3, 5, 6, 7}},
		"dotted": {eventlog.Select{UUIDs: []string{"a.b@c"}}, []uint64{4}},
		"two uuids": {eventlog.Select{UUIDs: []string{"a.b@c", "a"}, Events: []string{"Store.Saved"}},
			[]uint64{1, 2, 4}},
		"nothing": {eventlog.Select{Stores: []string{"None"}}, nil},
	} {
		if got := sequences(t, b, eventlog.Reader{Select: c.s}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for _, s := range []eventlog.Select{
		{Events: []string{"Store.Save"}}, {Events: []string{"*"}}, {Stores: []string{"*"}}, {Stores: []string{"a.b"}},
		{Stores: []string{""}},
		{UUIDs: []string{">"}}, {UUIDs: []string{"a b"}}, {UUIDs: []string{"a", "a"}},
		{Events: []string{"Register", "Register"}},
	} {
		if err := (eventlog.Reader{Select: s}).Each(t.Context(), b.JetStream(), nil); !errors.Is(err, errs.Invalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if e, err := eventlog.Get(t.Context(), b.JetStream(), 4); err != nil || e.Sequence != 4 ||
		e.Subject != event.Subject(event.StoreSaved, "Books", "a.b@c") {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := eventlog.Get(t.Context(), b.JetStream(), 8); !errors.Is(err, errs.NotFound) {
		t.Errorf("an event that is not published yet: %v", err)
	}
}

func TestFromIsResolvedToASequence(t *testing.T) {
	b := open(t)
	started := time.Now().Add(-time.Second)
	for range 3 {
		publish(t, b, event.StoreSaved, "Books", "a")
	}
	third, err := eventlog.Get(t.Context(), b.JetStream(), 3)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]uint64{
		"": 1, "all": 1, "new": 4, "0": 1, "1": 1, "3": 3, "4": 4, "1h": 1, started.Format(time.RFC3339Nano): 1,
		third.Time.Format(time.RFC3339Nano): 3, third.Time.Add(time.Nanosecond).Format(time.RFC3339Nano): 4,
		time.Now().Add(time.Hour).Format(time.RFC3339): 4,
	} {
		from, err := eventlog.ParseFrom(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := from.Sequence(t.Context(), b.JetStream()); err != nil || got != want {
			t.Errorf("%q is %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"-1", "-1h", "yesterday", "2026-11-21", "ALL", "1.5"} {
		if _, err := eventlog.ParseFrom(text); !errors.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", text, err)
		}
	}
	beyond, err := eventlog.ParseFrom("5")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := beyond.Sequence(t.Context(), b.JetStream()); !errors.Is(err, errs.Invalid) {
		t.Errorf("beyond the end: %v", err)
	}
	s, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if list := s.ListConsumers(t.Context()); len(list.Info()) > 0 {
		t.Error("the temporary consumer was not deleted")
	}
}

// The end of the log is lost with the power of the bus, and others are published. What follows the log does not go on
// after an event that it has never read.
func TestAFollowerEndsWhenTheLogHasOtherEvents(t *testing.T) {
	folder, before := t.TempDir(), filepath.Join(t.TempDir(), "bus")
	b := openIn(t, folder)
	restart := func(do func() error) {
		t.Helper()
		if err := errors.Join(b.StopServer(), do(), b.StartServer(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	publish(t, b, event.StoreSaved, "Books", "a")
	restart(func() error { return os.CopyFS(before, os.DirFS(folder)) })
	publish(t, b, event.StoreSaved, "Books", "b")
	received, done := make(chan uint64, 10), make(chan error, 1)
	go func() {
		done <- eventlog.Reader{Follow: true}.Each(t.Context(), b.JetStream(),
			func(e *eventlog.Entry) error { received <- e.Sequence; return nil })
	}()
	<-received
	<-received
	restart(func() error { return errors.Join(os.RemoveAll(folder), os.CopyFS(folder, os.DirFS(before))) })
	for range 3 {
		publish(t, b, event.StoreSaved, "Books", "c")
	}
	if err := <-done; !errors.Is(err, errs.NotFound) || !strings.Contains(err.Error(), "no longer has event 2") ||
		len(received) > 0 {
		t.Errorf("%v, and %d further events", err, len(received))
	}
}

func TestFollowReadsNewEvents(t *testing.T) {
	b := open(t)
	publish(t, b, event.StoreSaved, "Books", "a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	received, done := make(chan uint64, 10), make(chan error, 1)
	go func() {
		done <- eventlog.Reader{Follow: true, Select: eventlog.Select{Stores: []string{"Books"}}}.Each(ctx,
			b.JetStream(), func(e *eventlog.Entry) error { received <- e.Sequence; return nil })
	}()
	for n := uint64(1); n <= 5; n += 2 {
		if got := <-received; got != n {
			t.Errorf("received %d, want %d", got, n)
		}
		publish(t, b, event.StoreSaved, "Authors", "a")
		publish(t, b, event.StoreSaved, "Books", "a")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("a canceled follower: %v", err)
	}
	stop := errors.New("stop")
	if err := (eventlog.Reader{}).Each(t.Context(), b.JetStream(),
		func(*eventlog.Entry) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("an error of the caller: %v", err)
	}
	if err := b.JetStream().DeleteStream(t.Context(), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	if err := (eventlog.Reader{}).Each(t.Context(), b.JetStream(), nil); !errors.Is(err, errs.NotFound) {
		t.Errorf("no log: %v", err)
	}
}
