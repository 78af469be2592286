package applied_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"belfry/pkg/api/applied"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/test/kit"
)

// outbox publishes nothing.
type outbox struct{}

func (outbox) Committed(string, driver.Pending) {}

// worker makes some writes for each event, and returns the errors in turn.
type worker struct {
	store  *store.Store
	writes int
	errs   []error
}

func newWorker(t *testing.T, writes int, errs ...error) *worker {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	s, err := store.Open(t.Context(), backend, store.Options{Name: "Books", Outbox: outbox{}})
	if err != nil {
		t.Fatal(err)
	}
	return &worker{store: s, writes: writes, errs: errs}
}

func (w *worker) handle(ctx context.Context, _ *event.Envelope) error {
	var writing sync.WaitGroup
	failed := make(chan error, w.writes)
	for range w.writes {
		writing.Go(func() {
			if _, err := w.store.Save(ctx, object.Object{}, ""); err != nil {
				failed <- err
			}
		})
	}
	writing.Wait()
	if len(failed) > 0 {
		return <-failed
	}
	if len(w.errs) == 0 {
		return nil
	}
	err := w.errs[0]
	w.errs = w.errs[1:]
	return err
}

// reports has a worker handle one event several times, and returns its reports.
func reports(t *testing.T, w *worker, times int, numbered bool) []report {
	t.Helper()
	f := newFixture(t)
	received, err := f.conn.SubscribeSync("applied.test.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.conn.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	handle := applied.Reporting(f.conn, "mapping", w.handle)
	for attempt := range times {
		number := 0
		if numbered {
			number = attempt + 1
		}
		_ = handle(t.Context(), &event.Envelope{ID: "e1", Ctx: event.Ctx{Wait: "applied.test.1"}}, number)
	}
	if err := f.conn.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	var all []report
	for n, _, _ := received.Pending(); len(all) < n; {
		m, err := received.NextMsg(long)
		if err != nil {
			t.Fatal(err)
		}
		var r report
		if err := json.Unmarshal(m.Data, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func TestWorkerReportsCausedEvents(t *testing.T) {
	all := reports(t, newWorker(t, 3), 1, false)
	if len(all) != 1 || all[0].Event != "e1" || all[0].Worker != "mapping" || all[0].Part || len(all[0].Caused) != 3 {
		t.Errorf("reported %+v", all)
	}
}

func TestManyCausesAreReportedInParts(t *testing.T) {
	all := reports(t, newWorker(t, 2100), 1, false)
	causes := map[string]bool{}
	for i, r := range all {
		if last := i == len(all)-1; r.Part == last || len(r.Caused) > 1000 {
			t.Errorf("report %d of %d: part %v, %d causes", i, len(all), r.Part, len(r.Caused))
		}
		for _, c := range r.Caused {
			causes[c.ID] = true
		}
	}
	if len(causes) != 2100 {
		t.Errorf("%d causes are reported, want 2100", len(causes))
	}
}

// TestFailedAttemptReportsCausedEvents: writes before the failure cause work as
// well, and the next attempt does not know of them.
func TestFailedAttemptReportsCausedEvents(t *testing.T) {
	all := reports(t, newWorker(t, 2, errors.New("not now")), 2, false)
	if len(all) != 2 || !all[0].Part || len(all[0].Caused) != 2 || all[1].Part || len(all[1].Caused) != 2 {
		t.Errorf("reported %+v", all)
	}
	if all := reports(t, newWorker(t, 0, errors.New("not now")), 1, false); len(all) != 0 {
		t.Errorf("a failure that caused nothing reports %+v", all)
	}
}

// TestAttemptsAreNumbered: a waiter learns from the numbers that one is missing, also
// that of a failed attempt that wrote nothing.
func TestAttemptsAreNumbered(t *testing.T) {
	all := reports(t, newWorker(t, 0, errors.New("not now")), 2, true)
	if len(all) != 2 || all[0].Attempt != 1 || !all[0].Failed || !all[0].Part || all[1].Attempt != 2 || all[1].Failed ||
		all[1].Part {
		t.Errorf("reported %+v", all)
	}
}

// TestReportsGoToWaitSubjectsOnly: the subject comes with the event, and a worker may
// publish where others may not.
func TestReportsGoToWaitSubjectsOnly(t *testing.T) {
	f := newFixture(t)
	received, err := f.conn.SubscribeSync(">")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, 0)
	handle := applied.Reporting(f.conn, "mapping", w.handle)
	for _, subject := range []string{"Store.Saved", "events.1.Store.Saved.Books.x", "applied.", "applied.a b",
		"applied.>", "applied.x\r\nPUB y 1\r\nz", "applied.x..1", "applied.good.1"} {
		if err := handle(t.Context(), &event.Envelope{ID: "e1", Ctx: event.Ctx{Wait: subject}}, 1); err != nil {
			t.Error(err)
		}
	}
	if err := f.conn.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	var subjects []string
	for n, _, _ := received.Pending(); n > 0; n-- {
		m, err := received.NextMsg(long)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(m.Subject, "$") { // advisories of the server
			subjects = append(subjects, m.Subject)
		}
	}
	if want := []string{"applied.good.1"}; !slices.Equal(subjects, want) {
		t.Errorf("received reports on %q, want %q", subjects, want)
	}
}
