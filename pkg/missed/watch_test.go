package missed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/listener"
	"belfry/pkg/missed"
	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

// fixture is a bus with a few events, of which the consumers have handled none, and the store that a watch needs.
type fixture struct {
	*testing.T
	bus    *bus.Bus
	folder string // of the bus
	store  *store.Store
	logged *kit.Tail
}

func newFixture(t *testing.T, consumers ...string) *fixture {
	f := &fixture{T: t, logged: &kit.Tail{}, folder: t.TempDir()}
	var err error
	f.bus, err = bus.Open(t.Context(), bus.Options{Server: embedded.New(embedded.Options{Folder: f.folder})})
	f.must(err)
	t.Cleanup(func() { _ = f.bus.Close(context.Background()) })
	f.store, err = store.Open(t.Context(), model.NewMemory(), store.Options{Name: "LogPositions", NoEvents: true})
	f.must(err)
	for _, name := range consumers {
		_, err := listener.Setup(t.Context(), f.bus, listener.Spec{Name: name, Start: listener.StartAll()}, false)
		f.must(err)
	}
	f.publish(3)
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) publish(n int) {
	f.Helper()
	for i := range n {
		id := fmt.Sprint(time.Now().UnixNano(), i)
		f.must(f.bus.Publish(f.Context(),
			[]bus.Event{{ID: id, Subject: "events.1.Store.Saved.Books.x", Payload: []byte("{}")}}))
	}
}

// watch starts a watch as a process would.
func (f *fixture) watch(repair func(context.Context) error) *missed.Watch {
	f.Helper()
	w, err := missed.Start(missed.Options{
		Bus: f.bus, Conn: f.bus.Conn(), Store: f.store, Logger: slog.New(slog.NewTextHandler(f.logged, nil)),
		BuiltIn: func() []string { return []string{"mapping"} },
		Repairs: []missed.Repair{{Consumers: []string{"mapping"},
			Do: func(ctx context.Context, _ string) error { return repair(ctx) }}}, Interval: 10 * time.Millisecond,
	})
	f.must(err)
	f.Cleanup(w.Close)
	return w
}

// known waits until the store has the log's last event, and the position of every consumer: all events are pending,
// which the server says a moment after they are in the log.
func (f *fixture) known(last int, consumers ...string) {
	f.Helper()
	kit.WaitUntil(f, func() error {
		o, err := f.store.Get(f.Context(), bus.StreamEvents)
		if err != nil {
			return err
		}
		want := []string{fmt.Sprintf(`"last":%d,`, last)}
		for _, name := range consumers {
			want = append(want, fmt.Sprintf(`"%s":{"done":0,"pending":%d,`, name, last))
		}
		for _, part := range want {
			if !strings.Contains(string(o.Body), part) {
				return fmt.Errorf("%s has no %s", o.Body, part)
			}
		}
		return nil
	})
}

// lose has the log be another one.
func (f *fixture) lose() {
	f.Helper()
	f.must(f.bus.JetStream().DeleteStream(f.Context(), bus.StreamEvents))
	kit.WaitUntil(f, func() error { return f.bus.Setup(f.Context()) })
}

// of waits for what a watch says that a consumer has missed.
func (f *fixture) of(w *missed.Watch, consumer string, as func(missed.Status) bool) {
	f.Helper()
	kit.WaitUntil(f, func() error {
		for _, s := range w.Missed() {
			if s.Consumer == consumer && as(s) {
				return nil
			}
		}
		return fmt.Errorf("%+v\n%s", w.Missed(), f.logged)
	})
}

func repaired(s missed.Status) bool { return !s.Repaired.IsZero() }

func TestALogThatIsLostWhileProcessesRunIsRepairedByOneOfThem(t *testing.T) {
	f := newFixture(t, "mapping", "yours")
	var repairs, atOnce atomic.Int64
	repair := func(context.Context) error {
		if atOnce.Add(1) > 1 {
			t.Error("two processes repair at once")
		}
		defer atOnce.Add(-1)
		repairs.Add(1)
		return nil
	}
	all := []*missed.Watch{f.watch(repair), f.watch(repair), f.watch(repair)}
	f.known(3, "mapping", "yours")
	f.lose()
	for _, w := range all {
		f.of(w, "mapping", func(s missed.Status) bool {
			return repaired(s) && s.Reason == missed.Replaced && s.Events == 3 && s.AtLeast
		})
		f.of(w, "yours", func(s missed.Status) bool { return s.Open() && s.Gone && s.Events == 3 })
	}
	if n := repairs.Load(); n != 1 {
		t.Errorf("%d repairs, want 1", n)
	}
	if log := f.logged.String(); strings.Count(log, "listener=mapping") != 1 ||
		strings.Count(log, "listener=yours") != 1 {
		t.Errorf("not logged once:\n%s", log)
	}
}

// An old copy of the log takes its place, and gets more events than it has lost before anybody looks: those that it has
// lost were handled by nobody.
func TestAnOldCopyOfTheLogThatHasGrownIsNoticed(t *testing.T) {
	f := newFixture(t, "mapping")
	before := filepath.Join(t.TempDir(), "bus")
	restart := func(do func()) {
		f.must(f.bus.StopServer())
		do()
		f.must(f.bus.StartServer(t.Context()))
	}
	restart(func() { f.must(os.CopyFS(before, os.DirFS(f.folder))) })
	f.publish(2)
	first := f.watch(nil)
	f.known(5, "mapping")
	first.Close()
	restart(func() {
		f.must(os.RemoveAll(f.folder))
		f.must(os.CopyFS(f.folder, os.DirFS(before)))
	})
	f.publish(4)
	w := f.watch(func(context.Context) error { return nil })
	f.of(w, "mapping", func(s missed.Status) bool { return s.Reason == missed.Truncated && repaired(s) })
}

// Somebody removes an event from the middle of the log before it was handled, as to erase personal data: that is
// noticed, and what belfry maintains is repaired. Removing what was handled is no loss.
func TestAnEventThatIsRemovedFromTheMiddleIsMissed(t *testing.T) {
	f := newFixture(t, "mapping", "other")
	var repairs atomic.Int32
	w := f.watch(func(context.Context) error { repairs.Add(1); return nil })
	f.known(3, "mapping", "other")
	log, err := f.bus.JetStream().Stream(t.Context(), bus.StreamEvents)
	f.must(err)
	f.must(log.SecureDeleteMsg(t.Context(), 2))
	for _, consumer := range []string{"mapping", "other"} {
		f.of(w, consumer,
			func(s missed.Status) bool { return s.Reason == missed.Removed && s.Events == 1 && !s.AtLeast })
	}
	f.of(w, "mapping", func(s missed.Status) bool { return !s.Repaired.IsZero() })
	if repairs.Load() != 1 {
		t.Errorf("%d repairs", repairs.Load())
	}
}

// The log was lost while no process ran, and a process that ended before had begun to repair.
func TestARepairThatEndsWithItsProcessIsMadeByTheNext(t *testing.T) {
	f := newFixture(t, "mapping")
	w := f.watch(func(context.Context) error { return nil })
	f.known(3, "mapping")
	w.Close()
	f.lose()
	began := make(chan struct{})
	w = f.watch(func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	})
	<-began
	w.Close()
	w = f.watch(func(context.Context) error { return nil })
	f.of(w, "mapping", repaired)
}

func TestWhatAListenerHasMissedIsToldOnTheBusUntilItIsConfirmed(t *testing.T) {
	f := newFixture(t, "yours")
	w := f.watch(func(context.Context) error { return errors.New("nothing to repair") })
	f.known(3, "yours")
	f.lose()
	f.of(w, "yours", func(s missed.Status) bool { return s.Open() })
	got, err := missed.Fetch(t.Context(), f.bus.Conn())
	if err != nil || len(got) != 1 || got[0].Consumer != "yours" || !got[0].Open() || got[0].Events != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	f.must(missed.Confirm(t.Context(), f.bus.Conn(), []string{"yours"}))
	if got, err = missed.Fetch(t.Context(), f.bus.Conn()); err != nil || len(got) != 1 || got[0].Open() {
		t.Errorf("after the confirmation: %+v, %v", got, err)
	}
	if err := missed.Confirm(t.Context(), f.bus.Conn(), []string{"other"}); !errors.Is(err, errs.Conflict) {
		t.Errorf("the confirmation of a listener that has missed nothing: %v", err)
	}
	// A reply goes to an inbox only: belfry may publish events, and the requester may not.
	events, err := f.bus.Conn().SubscribeSync("Store.Saved")
	f.must(err)
	f.must(f.bus.Conn().PublishRequest(missed.SubjectList, "Store.Saved", nil))
	_, err = missed.Fetch(t.Context(), f.bus.Conn())
	f.must(err)
	f.must(f.bus.Conn().FlushTimeout(kit.Limit))
	if n, _, err := events.Pending(); err != nil || n > 0 {
		t.Errorf("%d replies to a subject that is no inbox, %v", n, err)
	}
	w.Close()
	if _, err := missed.Fetch(t.Context(), f.bus.Conn()); !errors.Is(err, errs.Unavailable) {
		t.Errorf("without a watch: %v", err)
	}
}

// slowBus replies to a watch late.
type slowBus struct {
	bus.Requester
	asked, reply chan struct{}
}

// UntilDenied is called when the log is read, and its listeners are not.
func (b slowBus) UntilDenied(ctx context.Context, subjects ...string) (context.Context, context.CancelFunc) {
	if slices.Contains(subjects, eventlog.DirectGet) {
		return b.Requester.UntilDenied(ctx, subjects...)
	}
	select {
	case b.asked <- struct{}{}:
	case <-ctx.Done():
	}
	select {
	case <-b.reply:
	case <-ctx.Done():
	}
	return b.Requester.UntilDenied(ctx, subjects...)
}

func TestAProcessThatReadsTheLogBeforeAnotherAndStoresItAfterwardsReportsNothing(t *testing.T) {
	f := newFixture(t, "mapping")
	slow := slowBus{Requester: f.bus, asked: make(chan struct{}), reply: make(chan struct{})}
	late, err := missed.Start(missed.Options{
		Bus: slow, Store: f.store, Logger: slog.New(slog.NewTextHandler(f.logged, nil)), BuiltIn: func() []string { return []string{"mapping"} },
		Interval: 10 * time.Millisecond,
	})
	f.must(err)
	t.Cleanup(late.Close)
	<-slow.asked
	f.publish(2)
	w := f.watch(func(context.Context) error { return errors.New("nothing is to be repaired") })
	f.known(5, "mapping")
	slow.reply <- struct{}{}
	<-slow.asked // the first comparison is over
	if all := append(late.Missed(), w.Missed()...); len(all) > 0 ||
		strings.Contains(f.logged.String(), "left the log") {
		t.Errorf("%+v\n%s", all, f.logged)
	}
}

// A comparison that began before a confirmation, and ends after it, does not bring back what was before.
func TestAConfirmationStaysWhileTheLogIsCompared(t *testing.T) {
	f := newFixture(t, "yours")
	slow := slowBus{Requester: f.bus, asked: make(chan struct{}), reply: make(chan struct{})}
	w, err := missed.Start(missed.Options{Bus: slow, Conn: f.bus.Conn(), Store: f.store,
		Logger: slog.New(slog.DiscardHandler), Interval: 10 * time.Millisecond})
	f.must(err)
	t.Cleanup(w.Close)
	compare := func() { // ends the comparison that has begun, and waits until the next one has
		slow.reply <- struct{}{}
		<-slow.asked
	}
	<-slow.asked
	compare()
	f.lose()
	for range 2 { // the first has read the former log
		compare()
	}
	f.of(w, "yours", func(s missed.Status) bool { return s.Open() })
	f.must(missed.Confirm(t.Context(), f.bus.Conn(), []string{"yours"}))
	compare()
	if got, err := missed.Fetch(t.Context(), f.bus.Conn()); err != nil || len(got) != 1 || got[0].Open() {
		t.Errorf("%+v, %v", got, err)
	}
}

// What can't be repaired now is tried again, and keeps nothing else from being repaired.
func TestARepairThatFailsDoesNotKeepOthersFromBeingMade(t *testing.T) {
	f := newFixture(t, "mail", "mapping")
	w, err := missed.Start(missed.Options{
		Bus: f.bus, Conn: f.bus.Conn(), Store: f.store, Logger: slog.New(slog.NewTextHandler(f.logged, nil)),
		Interval: 10 * time.Millisecond, Repairs: []missed.Repair{
			{Consumers: []string{"mail"},
				Do: func(context.Context, string) error { return errors.New("the mail server is down") }},
			{Consumers: []string{"mapping"}, Do: func(context.Context, string) error { return nil }},
		},
	})
	f.must(err)
	t.Cleanup(w.Close)
	f.known(3, "mail", "mapping")
	f.lose()
	f.of(w, "mapping", repaired)
	f.of(w, "mail", func(s missed.Status) bool { return s.Open() })
	kit.WaitFor(t, "the log says why",
		func() bool { return strings.Contains(f.logged.String(), "the mail server is down") })
	f.must(missed.Confirm(t.Context(), f.bus.Conn(), []string{"mail"}))
	f.of(w, "mail", func(s missed.Status) bool { return !s.Open() && s.Repaired.IsZero() })
}

// A repair that takes long keeps no other waiting, nor what is missed meanwhile.
func TestRepairsAreMadeBesideEachOther(t *testing.T) {
	f := newFixture(t, "mail", "mapping")
	var mails, mappings atomic.Int64
	end := make(chan struct{})
	w, err := missed.Start(missed.Options{
		Bus: f.bus, Conn: f.bus.Conn(), Store: f.store, Logger: slog.New(slog.NewTextHandler(f.logged, nil)), Interval: 10 * time.Millisecond,
		Repairs: []missed.Repair{
			{Consumers: []string{"mapping"}, Do: func(ctx context.Context, _ string) error {
				mappings.Add(1)
				select {
				case <-end:
				case <-ctx.Done():
				}
				return ctx.Err()
			}},
			{Consumers: []string{"mail"}, Do: func(context.Context, string) error { mails.Add(1); return nil }},
		},
	})
	f.must(err)
	t.Cleanup(w.Close)
	f.known(3, "mail", "mapping")
	f.lose()
	f.of(w, "mail", repaired)
	f.of(w, "mapping", func(s missed.Status) bool { return s.Open() })
	made := mails.Load()
	f.publish(1)
	f.lose()
	kit.WaitFor(t, "the mails of another loss", func() bool { return mails.Load() > made })
	f.of(w, "mail", repaired)
	if n := mappings.Load(); n != 1 {
		t.Errorf("a repair is made %d times at once", n)
	}
	close(end)
	f.of(w, "mapping", repaired)
}
