package eventlog_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit"
)

func TestPageIsLimitedByEventsAndBytes(t *testing.T) {
	b := open(t)
	page := func(first uint64, limit eventlog.Limit) (sequences []uint64, more bool) {
		t.Helper()
		all, more, err := eventlog.Page(t.Context(), b.Conn(), first, limit)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			sequences = append(sequences, e.Sequence)
		}
		return sequences, more
	}
	is := func(first uint64, limit eventlog.Limit, from, to uint64, wantMore bool) {
		t.Helper()
		got, more := page(first, limit)
		if more != wantMore || len(got) != int(to+1-from) {
			t.Fatalf("%v, %t", got, more)
		}
		for i, sequence := range got {
			if sequence != from+uint64(i) {
				t.Fatalf("%v", got)
			}
		}
	}
	ten := eventlog.Limit{Events: 10, Bytes: 1 << 20}
	is(1, ten, 1, 0, false) // an empty log
	state, err := eventlog.GetState(t.Context(), b.JetStream())
	if err != nil || state.First != 1 || state.Last != 0 || state.Created.IsZero() {
		t.Errorf("%+v, %v", state, err)
	}
	for range 25 {
		publish(t, b, event.StoreSaved, "Books", "a.b")
	}
	is(0, ten, 1, 10, true)
	is(11, ten, 11, 20, true)
	is(16, ten, 16, 25, false)
	is(25, ten, 25, 25, false)
	is(26, ten, 26, 25, false)
	is(1000, ten, 1, 0, false)
	is(3, eventlog.Limit{Events: 10, Bytes: 1}, 3, 3, true) // a page has at least one event
	one, _, err := eventlog.Page(t.Context(), b.Conn(), 7, ten)
	if err != nil || one[0].Subject != event.Subject(event.StoreSaved, "Books", "a.b") ||
		time.Since(one[0].Time) > time.Minute {
		t.Fatalf("%+v, %v", one[0], err)
	}
	if e, err := event.Decode(one[0].Data); err != nil || e.UUID != "a.b" {
		t.Errorf("%+v, %v", e, err)
	}

	s, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context(), jetstream.WithPurgeSequence(20)); err != nil {
		t.Fatal(err)
	}
	is(5, ten, 20, 25, false)
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	is(5, ten, 5, 4, false)
	if state, err = eventlog.GetState(t.Context(), b.JetStream()); err != nil || state.First != 26 || state.Last != 25 {
		t.Errorf("%+v, %v", state, err)
	}
	if err := b.JetStream().DeleteStream(t.Context(), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	if _, _, err := eventlog.Page(t.Context(), b.Conn(), 1, ten); !errors.Is(err, errs.Unavailable) {
		t.Errorf("no log: %v", err)
	}
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	if _, _, err := eventlog.Page(ctx, b.Conn(), 1, ten); !errors.Is(err, errs.Unavailable) || ctx.Err() != nil {
		t.Errorf("no bus: %v", err)
	}
	if _, err := eventlog.Last(ctx, b.Conn(), "any"); !errors.Is(err, errs.Unavailable) || ctx.Err() != nil {
		t.Errorf("no bus: %v", err)
	}
}

func TestLastReadsTheNewestEventOfASubject(t *testing.T) {
	b := open(t)
	subject := event.Subject(event.StoreDeleted, "Books", "a.b")
	if _, err := eventlog.Last(t.Context(), b.Conn(), subject); !errors.Is(err, errs.NotFound) {
		t.Errorf("an empty log: %v", err)
	}
	publish(t, b, event.StoreDeleted, "Books", "a.b")
	publish(t, b, event.StoreDeleted, "Books", "a.b")
	publish(t, b, event.StoreDeleted, "Books", "other")
	publish(t, b, event.StoreSaved, "Books", "a.b")
	if e, err := eventlog.Last(t.Context(), b.Conn(), subject); err != nil || e.Sequence != 2 || e.Subject != subject ||
		len(e.Data) == 0 {
		t.Errorf("%+v, %v", e, err)
	}
}

// Followers of the log poll it several times a second: a process that does so must count as one at rest, which returns
// its memory.
func TestAPollOfTheLogAllocatesLittle(t *testing.T) {
	b := open(t)
	publish(t, b, event.StoreSaved, "Books", "a")
	poll := func() {
		_, _, err := eventlog.Page(t.Context(), b.Conn(), 2, eventlog.Limit{Events: 500, Bytes: 4 << 20})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = eventlog.Newest(t.Context(), b.Conn(), b.JetStream(), eventlog.Object{Store: "Books", UUID: "a"},
			[]event.Name{event.StoreSaved}, 0, 1)
		if err != nil {
			t.Fatal(err)
		}
	}
	poll()
	const polls, most = 50, 256 << 10 // bytes of two reads, those of the server in this process included
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range polls {
		poll()
	}
	runtime.ReadMemStats(&after)
	if each := (after.TotalAlloc - before.TotalAlloc) / polls; each > most {
		t.Errorf("a poll and a search allocate %d bytes, at most %d are expected", each, most)
	}
}
