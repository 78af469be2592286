package outbox_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/outbox"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

func sorted[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func position(after []byte) (string, uint64) {
	if after == nil {
		return "", 0
	}
	u, r, _ := strings.Cut(string(after), "/")
	revision, err := strconv.ParseUint(r, 10, 64)
	if err != nil {
		panic(err)
	}
	return u, revision
}

// open opens an embedded bus.
func open(t testing.TB) *bus.Bus {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir()}),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return b
}

func start(t testing.TB, opts outbox.Options) *outbox.Relay {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	r := outbox.NewRelay(opts)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
		defer cancel()
		_ = r.Close(ctx)
	})
	return r
}

func flush(t testing.TB, r *outbox.Relay) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	if err := r.Flush(ctx); err != nil {
		t.Fatal(err)
	}
}

// log is what stream EVENTS holds, in its order.
func log(t testing.TB, b *bus.Bus) []event.Envelope {
	t.Helper()
	stream, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	want := int(stream.CachedInfo().State.Msgs) //nolint:gosec // small
	if want == 0 {
		return nil
	}
	batch, err := consumer.Fetch(want, natsserver.Wait()...)
	if err != nil {
		t.Fatal(err)
	}
	var list []event.Envelope
	for m := range batch.Messages() {
		var e event.Envelope
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	if err := batch.Error(); err != nil || len(list) != want {
		t.Fatalf("%d of %d events were read: %v", len(list), want, err)
	}
	return list
}

// verify holds that the log has every event once and each object's in order.
func verify(t testing.TB, list []event.Envelope, want int) {
	t.Helper()
	seen, last := map[string]bool{}, map[string]uint64{}
	for _, e := range list {
		if seen[e.ID] {
			t.Errorf("event %s is stored twice", e.ID)
		}
		if key := strings.Join([]string{strings.Split(e.ID, "-")[0], e.UUID}, "/"); e.Revision <= last[key] {
			t.Errorf("%s: revision %d follows %d", key, e.Revision, last[key])
		} else {
			last[key] = e.Revision
		}
		seen[e.ID] = true
	}
	if len(seen) != want {
		t.Errorf("%d events are stored, want %d", len(seen), want)
	}
}

func TestCommittedEventsArePublishedAndCleared(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b})
	s := newRecords("Users")
	r.Add("Users", s)
	live, err := b.Conn().SubscribeSync("Store.Saved")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Conn().FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, relay: r, store: s}
	for i := range 100 {
		w.commit(i%7, 100)
	}
	flush(t, r)
	verify(t, log(t, b), 100)
	eventually(t, func() bool { return s.count() == 0 })
	for range 100 {
		if _, err := natsserver.Next(live); err != nil {
			t.Fatal(err)
		}
	}
	if st := r.Stats(); st.Published < 100 || st.Events != 0 || st.Bytes != 0 || st.Sweeping != 0 {
		t.Errorf("unexpected numbers: %+v", st)
	}
}

func TestPendingEventsArePublishedAtTheStart(t *testing.T) {
	b := open(t)
	s := newRecords("Users")
	for i := range 1234 {
		s.write("u"+strconv.Itoa(i%100), 10)
	}
	r := start(t, outbox.Options{Publisher: b})
	r.Add("Users", s)
	flush(t, r)
	verify(t, log(t, b), 1234)
	eventually(t, func() bool { return s.count() == 0 })
}

func TestEventsOfAnObjectKeepTheirOrderThroughOverflow(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b, MaxEvents: 50, MaxBytes: 20 << 10})
	stores := []*records{newRecords("Users"), newRecords("Books")}
	const each, writers = 400, 4
	var wg sync.WaitGroup
	for _, s := range stores {
		r.Add(s.name, s)
		w := &writer{t: t, relay: r, store: s}
		for range writers {
			wg.Go(func() {
				for range each {
					w.commit(rand.IntN(40), 50)
				}
			})
		}
	}
	wg.Wait()
	flush(t, r)
	verify(t, log(t, b), len(stores)*writers*each)
	if r.Stats().Dropped == 0 {
		t.Error("the memory limits were not exceeded: the test is void")
	}
	for _, s := range stores {
		eventually(t, func() bool { return s.count() == 0 })
	}
}

func TestOutagesLoseNothingAndKeepOrder(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b, MaxEvents: 200})
	s := newRecords("Users")
	r.Add("Users", s)
	w := &writer{t: t, relay: r, store: s}
	var wg sync.WaitGroup
	const each, writers = 500, 4
	for range writers {
		wg.Go(func() {
			for range each {
				w.commit(rand.IntN(40), 50)
			}
		})
	}
	for range 3 {
		published := r.Stats().Published
		if err := b.StopServer(); err != nil {
			t.Fatal(err)
		}
		w.commit(1, 10)
		eventually(t, func() bool { return r.Stats().Unavailable })
		if err := b.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		eventually(t, func() bool { return r.Stats().Published > published })
	}
	wg.Wait()
	flush(t, r)
	verify(t, log(t, b), writers*each+3)
	eventually(t, func() bool { return s.count() == 0 })
}

func TestAnOutageIsLoggedOnceAndItsEndOnce(t *testing.T) {
	b := open(t)
	var lines lines
	r := start(t, outbox.Options{Publisher: b, Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	s := newRecords("Users")
	r.Add("Users", s)
	flush(t, r)
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, relay: r, store: s}
	w.commit(1, 10)
	eventually(t, func() bool { return r.Stats().Failures >= 3 })
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	flush(t, r)
	if n := lines.count("level=WARN"); n != 1 {
		t.Errorf("%d warnings, want one:\n%s", n, lines.String())
	}
	if n := lines.count("publishing works again"); n != 1 {
		t.Errorf("the end is logged %d times, want once:\n%s", n, lines.String())
	}
}

func TestMemoryIsBoundedDuringAnOutage(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b, MaxEvents: 10})
	s := newRecords("Users")
	r.Add("Users", s)
	flush(t, r)
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, relay: r, store: s}
	for i := range 1_000 {
		w.commit(i%9, 10)
		if st := r.Stats(); st.Events > 10 {
			t.Fatalf("%d events in memory", st.Events)
		}
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	flush(t, r)
	verify(t, log(t, b), 1_000)
}

func TestARefusedEventDoesNotBlockOthers(t *testing.T) {
	b := open(t)
	var lines lines
	r := start(t, outbox.Options{Publisher: b, SweepEvery: 10 * time.Millisecond,
		Logger: slog.New(slog.NewTextHandler(&lines, nil))})
	s := newRecords("Users")
	r.Add("Users", s)
	w := &writer{t: t, relay: r, store: s}
	w.commit(1, 10)
	w.commit(1, 1<<20)
	w.commit(1, 10)
	flush(t, r)
	verify(t, log(t, b), 2)
	eventually(t, func() bool { return s.count() == 1 && r.Stats().Refused > 2 })
	if n := lines.count("level=ERROR"); n != 1 {
		t.Errorf("the refused event is logged %d times, want once:\n%s", n, lines.String())
	}
}

// picky is a bus that refuses events of a size for good until it is told to accept all.
type picky struct {
	*bus.Bus
	all atomic.Bool
}

func (p *picky) Publish(ctx context.Context, events []bus.Event) error {
	var rejected []bus.RejectedEvent
	var fine []bus.Event
	for _, e := range events {
		if !p.all.Load() && len(e.Payload) > 10_000 {
			rejected = append(rejected, bus.RejectedEvent{ID: e.ID, Reason: "it is too large"})
			continue
		}
		fine = append(fine, e)
	}
	if err := p.Bus.Publish(ctx, fine); err != nil || rejected == nil {
		return err
	}
	return &bus.RejectedError{Events: rejected}
}

// What the bus refuses for good is counted, each event once, until it is published or in no record any more.
func TestEventsThatAreStuckAreCounted(t *testing.T) {
	p := &picky{Bus: open(t)}
	r := start(t, outbox.Options{Publisher: p, SweepEvery: 10 * time.Millisecond})
	s := newRecords("Users")
	r.Add("Users", s)
	w := &writer{t: t, relay: r, store: s}
	w.commit(1, 10)
	w.commit(1, 20_000)
	w.commit(2, 20_000)
	w.commit(3, 20_000)
	flush(t, r)
	eventually(t, func() bool { return r.Stats().Refused > 10 })
	if st := r.Stats(); st.Stuck != 3 || st.Reason != "it is too large" || st.Unavailable {
		t.Errorf("after sweeps: %+v", st)
	}
	s.mu.Lock()
	delete(s.waiting, "u2")
	s.mu.Unlock()
	eventually(t, func() bool { return r.Stats().Stuck == 2 })
	p.all.Store(true)
	eventually(t, func() bool { st := r.Stats(); return st.Stuck == 0 && st.Reason == "" && s.count() == 0 })
}

func TestAbandonedEventsArePublishedOnceTheyAreOld(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b, SweepEvery: 10 * time.Millisecond, SweepAge: time.Hour})
	s := newRecords("Users")
	r.Add("Users", s)
	flush(t, r)
	left := func(age time.Duration) {
		id := uuid.Must(uuid.NewV7())
		ms := time.Now().Add(-age).UnixMilli()
		for i := range 6 {
			id[i] = byte(ms >> (8 * (5 - i)))
		}
		s.writeAs(id.String(), fmt.Sprint("left", age), 10)
	}
	left(time.Minute)
	left(2 * time.Hour)
	left(-2 * time.Hour) // the clock was set back since
	eventually(t, func() bool { return s.count() == 1 })
	for _, e := range log(t, b) {
		if e.UUID == fmt.Sprint("left", time.Minute) {
			t.Error("an event that its own process may still publish was published by a sweep")
		}
	}
}

func TestAnUnavailableStoreDoesNotBlockOthers(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b, SweepEvery: 20 * time.Millisecond, SweepAge: time.Nanosecond})
	away, there := newRecords("Away"), newRecords("There")
	away.write("u", 10)
	away.setUnavailable(true)
	r.Add("Away", away)
	r.Add("There", there)
	w := &writer{t: t, relay: r, store: there}
	for i := range 100 {
		w.commit(i, 10)
	}
	eventually(t, func() bool { return there.count() == 0 })
	away.setUnavailable(false)
	eventually(t, func() bool { return away.count() == 0 })
	verify(t, log(t, b), 101)
}

func TestEventsThatCouldNotBeClearedAreClearedLater(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b, SweepEvery: 20 * time.Millisecond, SweepAge: time.Nanosecond})
	s := newRecords("Users")
	r.Add("Users", s)
	flush(t, r)
	s.setUnavailable(true)
	w := &writer{t: t, relay: r, store: s}
	for i := range 100 {
		w.commit(i, 10)
	}
	flush(t, r)
	eventually(t, func() bool { return r.Stats().ClearFailures > 0 })
	s.setUnavailable(false)
	eventually(t, func() bool { return s.count() == 0 })
	verify(t, log(t, b), 100)
}

func TestCloseReturnsDuringAnOutage(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b})
	s := newRecords("Users")
	r.Add("Users", s)
	flush(t, r)
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	w := &writer{t: t, relay: r, store: s}
	w.commit(1, 10)
	ctx, cancel := context.WithCancel(t.Context())
	eventually(t, func() bool { return r.Stats().Unavailable })
	cancel()
	if err := r.Close(ctx); errs.KindOf(err) != errs.Canceled {
		t.Errorf("close reports %v, want Canceled", err)
	}
	if s.count() != 1 {
		t.Error("the event was cleared")
	}
}

func TestClosePublishesAndClearsQueuedEvents(t *testing.T) {
	b := open(t)
	r := start(t, outbox.Options{Publisher: b})
	s := newRecords("Users")
	r.Add("Users", s)
	w := &writer{t: t, relay: r, store: s}
	for i := range 777 {
		w.commit(i, 10)
	}
	if err := r.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	verify(t, log(t, b), 777)
	if n := s.count(); n != 0 {
		t.Errorf("%d events are still in their records", n)
	}
}

var _ driver.Store = (*records)(nil)

// lines is a log that can be read while it is written.
type lines struct{ kit.Tail }

func (l *lines) count(s string) int { return strings.Count(l.String(), s) }

// eventually waits until a condition holds.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	kit.WaitFor(t, "the expected state", ok)
}
