package deadletter_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/listener/deadletter"
	"belfry/test/kit"
)

func open(t *testing.T) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir()}), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

// publish publishes events of an object, with the ids <uuid>-<from> and so on.
func publish(t *testing.T, b *bus.Bus, uuid string, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		e := event.Envelope{ID: fmt.Sprintf("%s-%d", uuid, i), Event: event.StoreSaved, Store: "Books", UUID: uuid,
			Revision: uint64(i + 1)}
		if err := b.Publish(t.Context(),
			[]bus.Event{{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID),
				Payload: e.Append(nil)}}); err != nil {
			t.Fatal(err)
		}
	}
}

// testListener is a handler that fails until it is repaired.
type testListener struct {
	mu       sync.Mutex
	broken   func(*listener.Event) bool
	received []*listener.Event
}

func (h *testListener) handle(_ context.Context, e *listener.Event) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.received = append(h.received, e)
	if h.broken != nil && h.broken(e) {
		return listener.Permanent(errors.New("Out of tea"))
	}
	return nil
}

func (h *testListener) repair() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.broken, h.received = nil, nil
}

func (h *testListener) ids() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []string
	for _, e := range h.received {
		all = append(all, e.ID)
	}
	return all
}

// run runs a listener until the test, or stop, ends it.
func run(t *testing.T, b *bus.Bus, s listener.Spec) (stop func()) {
	t.Helper()
	s.Start = listener.StartAll()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- listener.Run(ctx, b, slog.New(slog.DiscardHandler), s) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func list(t *testing.T, b *bus.Bus, s deadletter.Select) []*deadletter.Letter {
	t.Helper()
	var all []*deadletter.Letter
	if err := deadletter.List(t.Context(), b, s,
		func(l *deadletter.Letter) error { all = append(all, l); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// waiting returns the number of retries that are not handled.
func waiting(t *testing.T, b *bus.Bus) uint64 {
	t.Helper()
	s, err := b.JetStream().Stream(t.Context(), bus.StreamRetry)
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo().State.Msgs
}

func always(*listener.Event) bool { return true }

func TestRetryIsDeliveredToItsListenerOnly(t *testing.T) {
	b := open(t)
	tea, other := &testListener{broken: always}, &testListener{}
	run(t, b, listener.Spec{Name: "tea", Filters: []string{event.Filter(event.StoreSaved, "Books")},
		Handler: tea.handle})
	run(t, b, listener.Spec{Name: "other", Handler: other.handle})
	publish(t, b, "a", 0, 3)
	kit.WaitFor(t, "all have failed",
		func() bool { return len(list(t, b, deadletter.Select{})) == 3 && len(other.ids()) == 3 })
	tea.repair()
	first := list(t, b, deadletter.Select{})[1]
	if err := deadletter.Retry(t.Context(), b, first.ID); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the retry is handled",
		func() bool { return slices.Equal(tea.ids(), []string{"a-1"}) && waiting(t, b) == 0 })
	if e := tea.received[0]; e.Sequence != 2 || e.Attempt != 1 {
		t.Errorf("the retry has sequence %d, attempt %d", e.Sequence, e.Attempt)
	}
	if left := list(t, b, deadletter.Select{}); len(left) != 2 || left[0].Sequence != 1 || left[1].Sequence != 3 {
		t.Errorf("%d dead letters are left", len(left))
	}
	if n := len(other.ids()); n != 3 {
		t.Errorf("the other listener handled %d events, want 3", n)
	}
	if err := deadletter.Retry(t.Context(), b, first.ID); !errors.Is(err, errs.NotFound) {
		t.Errorf("a deleted dead letter: %v", err)
	}
}

func TestFailedRetryIsADeadLetterAgain(t *testing.T) {
	b := open(t)
	tea := &testListener{broken: always}
	run(t, b, listener.Spec{Name: "tea", Batch: func(ctx context.Context, all []*listener.Event) []error {
		failed := make([]error, len(all))
		for i, e := range all {
			failed[i] = tea.handle(ctx, e)
		}
		return failed
	}})
	publish(t, b, "a.b", 0, 1)
	before := &deadletter.Letter{}
	for retries := range 3 {
		kit.WaitFor(t, "the dead letter is stored", func() bool {
			all := list(t, b, deadletter.Select{})
			return len(all) == 1 && all[0].ID != before.ID
		})
		l := list(t, b, deadletter.Select{})[0]
		if l.Retries != retries || l.Sequence != 1 || l.UUID != "a.b" || l.Store != "Books" ||
			l.Event != event.StoreSaved || l.Reason != "Out of tea" || l.Attempts != 1 || l.Listener != "tea" {
			t.Errorf("after %d retries the dead letter is %+v", retries, l)
		}
		if err := deadletter.Retry(t.Context(), b, l.ID); err != nil {
			t.Fatal(err)
		}
		before = l
	}
}

// The retry is kept although the log no longer has its event. A crash between
// the publish of the retry and the deletion of the dead letter causes a second
// delivery at most.
func TestRetryIsKeptUntilItsListenerRuns(t *testing.T) {
	b := open(t)
	tea := &testListener{broken: always}
	stop := run(t, b, listener.Spec{Name: "tea", Handler: tea.handle})
	publish(t, b, "a", 0, 2)
	kit.WaitFor(t, "all have failed", func() bool { return len(list(t, b, deadletter.Select{})) == 2 })
	stop()
	tea.repair()
	for _, l := range list(t, b, deadletter.Select{}) {
		if err := deadletter.Retry(t.Context(), failingSync{b}, l.ID); err == nil {
			t.Error("a retry that is not synced succeeded")
		}
	}
	if n := len(list(t, b, deadletter.Select{})); n != 2 {
		t.Fatalf("%d dead letters are left, want the 2 whose retries are not synced", n)
	}
	for _, l := range list(t, b, deadletter.Select{}) {
		if err := deadletter.Retry(t.Context(), b, l.ID); err != nil {
			t.Fatal(err)
		}
	}
	if n := waiting(t, b); n != 2 {
		t.Errorf("%d retries wait, want one for each dead letter", n)
	}
	s, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	run(t, b, listener.Spec{Name: "tea", Handler: tea.handle})
	kit.WaitFor(t, "both are handled",
		func() bool { return slices.Equal(tea.ids(), []string{"a-0", "a-1"}) && waiting(t, b) == 0 })
}

// failingSync is a bus whose Sync fails.
type failingSync struct{ *bus.Bus }

func (failingSync) Sync(context.Context) error { return errors.New("the disk fails") }

// TestRetryOfAnOrderedListenerIsHandledAlone runs the listener twice and checks
// that no two events of the object are in flight at once.
func TestRetryOfAnOrderedListenerIsHandledAlone(t *testing.T) {
	b := open(t)
	var mu sync.Mutex
	inFlight, retried, failing := 0, 0, true
	handle := func(_ context.Context, e *listener.Event) error {
		mu.Lock()
		inFlight++
		if inFlight > 1 {
			t.Errorf("%d events of one object are in flight at once", inFlight)
		}
		failed := failing && e.Revision <= 5
		if !failing && e.Revision <= 5 {
			retried++
		}
		mu.Unlock()
		<-time.After(2 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		inFlight--
		if failed {
			return listener.Permanent(errors.New("no"))
		}
		return nil
	}
	for range 2 {
		run(t, b, listener.Spec{Name: "tea", Ordered: true, Handler: handle})
	}
	publish(t, b, "a", 0, 5)
	kit.WaitFor(t, "they have failed", func() bool { return len(list(t, b, deadletter.Select{})) == 5 })
	mu.Lock()
	failing = false
	mu.Unlock()
	publish(t, b, "a", 5, 50)
	for _, l := range list(t, b, deadletter.Select{Listener: "tea"}) {
		if err := deadletter.Retry(t.Context(), b, l.ID); err != nil {
			t.Fatal(err)
		}
		publish(t, b, "a", 1000+int(l.ID)*20, 1000+int(l.ID)*20+20)
	}
	kit.WaitFor(t, "all are handled", func() bool {
		pending, unacked, err := listener.Lag(t.Context(), b, "tea")
		mu.Lock()
		defer mu.Unlock()
		return err == nil && pending+unacked == 0 && retried >= 5 && waiting(t, b) == 0
	})
	c, err := b.JetStream().Consumer(t.Context(), bus.StreamEvents, fmt.Sprintf("tea-%d", event.Partition("a")))
	if err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "its partition is resumed", func() bool {
		info, err := c.Info(t.Context())
		return err == nil && !info.Paused
	})
}

func TestDeadLettersAreSelected(t *testing.T) {
	b := open(t)
	tea := &testListener{broken: always}
	run(t, b, listener.Spec{Name: "tea", Handler: tea.handle})
	run(t, b, listener.Spec{Name: "other", Handler: tea.handle, Stores: []string{"Books"}})
	publish(t, b, "a", 0, 1)
	publish(t, b, "b", 0, 1)
	kit.WaitFor(t, "all have failed", func() bool { return len(list(t, b, deadletter.Select{})) == 4 })
	for want, s := range map[deadletter.Select]int{
		{Listener: "tea"}: 2, {Listener: "tea", UUID: "b"}: 1, {Store: "Books"}: 4, {Store: "None"}: 0,
		{Event: "Store.Saved"}:   4,
		{Event: "Store.Deleted"}: 0, {Reason: "OF TEA"}: 4, {Reason: "coffee"}: 0,
		{Since: time.Now().Add(-time.Hour)}: 4, {Since: time.Now().Add(time.Hour)}: 0, {Listener: "none"}: 0,
	} {
		if n := len(list(t, b, want)); n != s {
			t.Errorf("%+v selects %d dead letters, want %d", want, n, s)
		}
	}
	if err := deadletter.List(t.Context(), b, deadletter.Select{Listener: "*"}, nil); !errors.Is(err, errs.Invalid) {
		t.Errorf("a pattern for a name: %v", err)
	}
	for name, total := range map[string]int{"": 4, "tea": 2, "none": 0} {
		var ids []uint64
		for after, more := uint64(0), true; more; after = ids[len(ids)-1] {
			page, follow, err := deadletter.Page(t.Context(), b, name, after, 1)
			if err != nil {
				t.Fatal(err)
			}
			if len(page) > 1 {
				t.Errorf("a page of %q has %d dead letters", name, len(page))
			}
			for _, l := range page {
				ids = append(ids, l.ID)
			}
			if more = follow; len(ids) == 0 {
				break
			}
		}
		if len(ids) != total || !slices.IsSorted(ids) || len(slices.Compact(ids)) != total {
			t.Errorf("pages of %q have %v", name, ids)
		}
	}
	id := list(t, b, deadletter.Select{UUID: "b"})[0].ID
	if l, err := deadletter.Get(t.Context(), b, id); err != nil ||
		!slices.Contains([]string{"tea", "other"}, l.Listener) || len(l.Data) == 0 {
		t.Errorf("the dead letter is %+v, %v", l, err)
	}
	if err := deadletter.Drop(t.Context(), b, id); err != nil {
		t.Fatal(err)
	}
	if err := deadletter.Drop(t.Context(), b, id); !errors.Is(err, errs.NotFound) {
		t.Errorf("dropped twice: %v", err)
	}
	if _, err := deadletter.Get(t.Context(), b, id); !errors.Is(err, errs.NotFound) {
		t.Errorf("a deleted dead letter: %v", err)
	}
}

// The event must be the one of the dead letter: another log may have another
// event with its sequence.
func TestOmittedEventIsReadFromTheLog(t *testing.T) {
	b := open(t)
	publish(t, b, "a", 0, 1)
	subject := event.Subject(event.StoreSaved, "Books", "a")
	letter := func(subject string) uint64 {
		ack, err := b.JetStream().PublishMsg(t.Context(), omitted(subject))
		if err != nil {
			t.Fatal(err)
		}
		return ack.Sequence
	}
	if l, err := deadletter.Get(t.Context(), b, letter(subject)); err != nil || !l.Omitted || len(l.Data) == 0 {
		t.Errorf("the dead letter is %+v, %v", l, err)
	}
	other := letter(event.Subject(event.StoreSaved, "Books", "b"))
	if l, err := deadletter.Get(t.Context(), b, other); err != nil || l.Data != nil {
		t.Errorf("the dead letter has the event of another object: %+v, %v", l, err)
	}
	if err := deadletter.Retry(t.Context(), b, other); !errors.Is(err, errs.NotFound) {
		t.Errorf("retried without an event: %v", err)
	}
}

func omitted(subject string) *nats.Msg {
	return &nats.Msg{Subject: bus.DeadPrefix + "tea", Header: nats.Header{
		listener.HeaderSubject: {subject}, listener.HeaderSequence: {"1"}, listener.HeaderOmitted: {"true"},
	}}
}
