package applied_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/pkg/api/applied"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/test/kit"
)

// report is a report as any client of the bus may send it.
type report struct {
	Event  string        `json:"event"`
	Worker string        `json:"worker"`
	Caused []store.Cause `json:"caused,omitempty"`
	Part   bool          `json:"part,omitempty"`

	Attempt int  `json:"attempt,omitempty"`
	Failed  bool `json:"failed,omitempty"`
}

// saved and deleted are causes: mapping has work with the first, mapping and
// cascade have with the second.
func saved(id string) store.Cause {
	return store.Cause{ID: id, Event: event.StoreSaved, Store: "Books"}
}
func deleted(id string) store.Cause {
	return store.Cause{ID: id, Event: event.StoreDeleted, Store: "Books"}
}

func workers(c store.Cause) []string {
	switch c.Event {
	case event.StoreSaved:
		return []string{"mapping"}
	case event.StoreDeleted:
		return []string{"mapping", "cascade"}
	default:
		return nil
	}
}

// fixture is a waiter on a real bus, and a connection that sends reports.
type fixture struct {
	t      *testing.T
	conn   *nats.Conn // of the worker, and of forged reports
	waiter *applied.Waiter
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	b, err := bus.Open(t.Context(), bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0"}),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	w, err := applied.NewWaiter(b.Conn(), workers)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Conn().FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(b.ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return &fixture{t: t, conn: conn, waiter: w}
}

// send sends reports to a subject.
func (w *fixture) send(subject string, reports ...report) {
	w.t.Helper()
	for _, r := range reports {
		data, err := json.Marshal(r)
		if err != nil {
			w.t.Fatal(err)
		}
		w.raw(subject, data)
	}
}

func (w *fixture) raw(subject string, data []byte) {
	w.t.Helper()
	if err := w.conn.Publish(subject, data); err != nil {
		w.t.Fatal(err)
	}
	if err := w.conn.FlushTimeout(kit.Limit); err != nil {
		w.t.Fatal(err)
	}
}

// request is one wait, which start runs in the background.
type request struct {
	subject string
	result  chan error
	end     func()
	start   func(causes ...store.Cause)
}

func (w *fixture) request(patience time.Duration) *request {
	subject, wait, end := w.waiter.Begin()
	w.t.Cleanup(end)
	r := &request{subject: subject, result: make(chan error, 1), end: end}
	r.start = func(causes ...store.Cause) {
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			r.result <- wait(ctx, causes)
		}()
	}
	return r
}

func (r *request) done(t *testing.T) {
	t.Helper()
	if err := <-r.result; err != nil {
		t.Errorf("the wait did not end with all events applied: %v", err)
	}
}

func (r *request) notDone(t *testing.T, why string) {
	t.Helper()
	if err := <-r.result; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%s: got %v, want the end of its patience", why, err)
	}
}

const (
	long  = kit.Limit
	short = 150 * time.Millisecond
)

func TestWaitNeedsEveryWorkerOfItsEvents(t *testing.T) {
	w := newFixture(t)
	r := w.request(long)
	r.start(deleted("e1"), saved("e2"))
	w.send(r.subject, report{Event: "e1", Worker: "mapping"}, report{Event: "e2", Worker: "mapping"},
		report{Event: "e1", Worker: "cascade"})
	r.done(t)

	for name, some := range map[string][]report{
		"one worker of two":  {{Event: "e1", Worker: "mapping"}},
		"the same one twice": {{Event: "e1", Worker: "cascade"}, {Event: "e1", Worker: "cascade"}},
		"none":               nil,
		"of another event":   {{Event: "e1", Worker: "mapping"}, {Event: "e9", Worker: "cascade"}},
		"by a stranger":      {{Event: "e1", Worker: "mapping"}, {Event: "e1", Worker: "mail"}},
	} {
		r := w.request(short)
		r.start(deleted("e1"))
		w.send(r.subject, some...)
		r.notDone(t, name)
	}
}

func TestWaitWithoutWorkEndsAtOnce(t *testing.T) {
	w := newFixture(t)
	for _, causes := range [][]store.Cause{nil, {{ID: "e", Event: event.StoreUpdated}}} {
		r := w.request(long)
		r.start(causes...)
		r.done(t)
	}
}

func TestWaitIncludesEventsCausedByWorkers(t *testing.T) {
	w := newFixture(t)
	const depth = 50
	chain := []report{{Event: "e0", Worker: "mapping"},
		{Event: "e0", Worker: "cascade", Caused: []store.Cause{deleted("e1")}}}
	for i := 1; i < depth; i++ {
		id := fmt.Sprint("e", i)
		chain = append(chain, report{Event: id, Worker: "mapping"},
			report{Event: id, Worker: "cascade", Caused: []store.Cause{deleted(fmt.Sprint("e", i+1))}})
	}
	end := []report{{Event: fmt.Sprint("e", depth), Worker: "mapping"},
		{Event: fmt.Sprint("e", depth), Worker: "cascade"}}

	r := w.request(short)
	r.start(deleted("e0"))
	w.send(r.subject, chain...)
	r.notDone(t, "the last of the chain is open")

	r = w.request(long)
	r.start(deleted("e0"))
	w.send(r.subject, append(chain, end...)...)
	r.done(t)
}

func TestReportsAreAcceptedEarlyAndTwice(t *testing.T) {
	w := newFixture(t)
	r := w.request(long)
	all := []report{
		{Event: "e2", Worker: "mapping"},
		{Event: "e2", Worker: "mapping"},
		{Event: "e1", Worker: "mapping"},
		{Event: "e1", Worker: "cascade", Caused: []store.Cause{saved("e2")}},
		{Event: "e1", Worker: "cascade", Caused: []store.Cause{saved("e2")}},
	}
	w.send(r.subject, all...)
	r.start(deleted("e1"))
	r.done(t)
}

func TestPartialReportDoesNotEndAWait(t *testing.T) {
	w := newFixture(t)
	r := w.request(short)
	r.start(saved("e1"))
	w.send(r.subject, report{Event: "e1", Worker: "mapping", Part: true})
	r.notDone(t, "only a part was reported")
}

func TestEndedWaitReceivesNoReports(t *testing.T) {
	w := newFixture(t)
	ended := w.request(long)
	ended.end()
	w.send(ended.subject, report{Event: "e1", Worker: "mapping"})
	if n := w.waiter.Waits(); n != 0 {
		t.Errorf("%d waits are kept", n)
	}
	other := w.request(long)
	if other.subject == ended.subject {
		t.Error("a subject is used again")
	}
}

func TestInvalidReportsAreIgnored(t *testing.T) {
	w := newFixture(t)
	r := w.request(long)
	r.start(saved("e1"))
	for _, garbage := range []string{
		"", "null", "[]", "{", `"x"`, `{"event":5}`, `{"event":"e1","worker":"mapping","caused":{}}`,
		`{"event":"e1","worker":["mapping"]}`, `{"caused":[null,{}]}`, strings.Repeat("[", 100_000), "\x00\xff",
	} {
		w.raw(r.subject, []byte(garbage))
		w.raw(r.subject+"0", []byte(garbage))
	}
	w.send(r.subject, report{Event: "e1", Worker: "mapping"})
	r.done(t)
}

// TestForgedReportsUseBoundedMemory sends far more than any request causes. A
// flooded wait must not report that all events are applied, since it can't know.
func TestForgedReportsUseBoundedMemory(t *testing.T) {
	w := newFixture(t)
	const limit = 2500
	w.waiter.LimitMarks(limit)
	r := w.request(long)
	r.start(saved("e1"))
	large := strings.Repeat("x", 1000)
	for i := range 5 {
		caused := make([]store.Cause, 1000)
		for j := range caused {
			caused[j] = deleted(fmt.Sprintf("%d-%d", i, j))
		}
		w.send(r.subject, report{Event: fmt.Sprint("f", i, large), Worker: large, Caused: caused, Part: true})
	}
	w.send(r.subject, report{Event: "e1", Worker: "mapping"})
	probe := w.request(long)
	probe.start(saved("e1"))
	w.send(probe.subject, report{Event: "e1", Worker: "mapping"})
	probe.done(t) // all reports before are received
	if n := w.waiter.Marks(); n > limit+10 {
		t.Errorf("%d marks are stored", n)
	}
	if len(r.result) > 0 {
		t.Error("a flooded wait reported that all events are applied")
	}
}

// TestWaitNeedsEveryAttemptOfAWorker: an attempt that was not reported may have made
// writes whose events the waiter does not know.
func TestWaitNeedsEveryAttemptOfAWorker(t *testing.T) {
	w := newFixture(t)
	first := report{Event: "e1", Worker: "mapping", Attempt: 1, Part: true, Failed: true}
	part := report{Event: "e1", Worker: "mapping", Attempt: 1, Part: true}
	second := report{Event: "e1", Worker: "mapping", Attempt: 2}
	for name, some := range map[string][]report{
		"the first crashed":                       {second},
		"the first crashed while it reported":     {part, second},
		"the second crashed":                      {first, {Event: "e1", Worker: "mapping", Attempt: 3}},
		"the only one has failed":                 {first},
		"the only one may continue":               {part},
		"another worker reported its first":       {{Event: "e1", Worker: "cascade", Attempt: 1}, second},
		"the first of another event was reported": {{Event: "e2", Worker: "mapping", Attempt: 1}, second},
	} {
		r := w.request(short)
		r.start(saved("e1"))
		w.send(r.subject, some...)
		r.notDone(t, name)
	}
	for _, some := range [][]report{
		{first, second}, {second, first}, {second, part, first}, // in any order
		{second, {Event: "e1", Worker: "mapping", Attempt: 1}}, // the first was slow
		{{Event: "e1", Worker: "mapping", Attempt: 1}},
		{{Event: "e1", Worker: "mapping"}}, // no attempt can be missing
	} {
		r := w.request(long)
		r.start(saved("e1"))
		w.send(r.subject, some...)
		r.done(t)
	}
}
