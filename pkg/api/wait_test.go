package api_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/api"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
)

// worker is a Waiter that does the work itself, when asked to wait for it.
type worker struct {
	work     func(ctx context.Context, causes []store.Cause) error
	begun    atomic.Int32
	ended    atomic.Int32
	deadline time.Time // of the last wait
	subject  string
}

func (w *worker) Begin() (string, func(context.Context, []store.Cause) error, func()) {
	w.begun.Add(1)
	wait := func(ctx context.Context, causes []store.Cause) error {
		w.deadline, _ = ctx.Deadline()
		return w.work(ctx, causes)
	}
	return w.subject, wait, func() { w.ended.Add(1) }
}

func (w *worker) use(o *api.Options) { o.Waiter, o.MaxWait = w, 2*time.Minute }

// keep is what the mapping worker does: it puts an array into the object.
func keep(f *front) func(context.Context, []store.Cause) error {
	return func(ctx context.Context, causes []store.Cause) error {
		ctx = store.WithCall(ctx, store.Call{Origin: event.OriginMapping})
		base, err := f.books.Get(ctx, "emma")
		if err != nil {
			return err
		}
		_, err = store.NewWorker(f.books).CompareAndSet(ctx, base, object.Object{"chapters": []byte(`[{"uuid":"c1"}]`)})
		return err
	}
}

// A reply after waiting shows the object with what the write has caused.
func TestPreferWait(t *testing.T) {
	w := &worker{subject: "_INBOX.waiting"}
	f := start(t, w.use)
	var caused []store.Cause
	w.work = func(ctx context.Context, causes []store.Cause) error {
		caused = causes
		return keep(f)(ctx, causes)
	}
	const limit = time.Minute
	began := time.Now()
	created := f.do("POST", "/books", `{"uuid":"emma"}`, "Prefer", "wait=60").want(201).header("Preference-Applied", "wait")
	written := f.events.last()
	if len(caused) != 1 || caused[0].Event != event.StoreSaved || caused[0].Store != "Books" || caused[0].ID == "" {
		t.Errorf("waited for %+v", caused)
	}
	if earliest, latest := began.Add(limit), time.Now().Add(limit); w.deadline.Before(earliest) || w.deadline.After(latest) {
		t.Errorf("waited until %v, want it from %v to %v", w.deadline, earliest, latest)
	}
	for _, r := range []reply{
		created,
		f.do("PUT", "/books/emma", `{"year":1815}`, "Prefer", "wait=60").want(200).header("Preference-Applied", "wait"),
		f.do("PATCH", "/books/emma", `{"year":1816}`, "Prefer", "wait=60").want(200).header("Preference-Applied", "wait"),
	} {
		if !strings.Contains(r.body, `"chapters":[{"uuid":"c1"}]`) {
			t.Errorf("not read again: %s", r.body)
		}
	}
	r := f.do("PUT", "/books/emma", `{}`, "Prefer", "wait=60").want(200)
	f.do("GET", "/books/emma", "").want(200).header("Etag", r.Header.Get("Etag"))
	if written.Event != event.StoreUpdated || f.events.first().Ctx.Wait != "_INBOX.waiting" {
		t.Errorf("the event does not say who waits: %+v", f.events.first().Ctx)
	}

	w.work = func(context.Context, []store.Cause) error { return nil }
	f.do("DELETE", "/books/emma", "", "Prefer", "wait=60").want(204).header("Preference-Applied", "wait")
	if w.begun.Load() != w.ended.Load() {
		t.Errorf("begun %d times, ended %d", w.begun.Load(), w.ended.Load())
	}
}

func (e *events) first() event.Envelope {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.all[0]
}

// Whatever becomes of the waiting, the write has been made and is confirmed.
func TestPreferWaitInVain(t *testing.T) {
	w := &worker{work: func(ctx context.Context, _ []store.Cause) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	f := start(t, w.use, func(o *api.Options) { o.MaxWait = 50 * time.Millisecond })
	f.do("POST", "/books", `{"uuid":"emma"}`, "Prefer", "wait=3600").want(201).header("Preference-Applied", "")
	w.work = func(context.Context, []store.Cause) error { return errors.New("the bus is away") }
	f.do("PUT", "/books/emma", `{"year":1}`, "Prefer", "wait=1").want(200).header("Preference-Applied", "")
	f.do("DELETE", "/books/emma", "", "Prefer", "wait=1").want(204).header("Preference-Applied", "")
	if w.begun.Load() != 3 || w.ended.Load() != 3 {
		t.Errorf("begun %d times, ended %d", w.begun.Load(), w.ended.Load())
	}
}

// An object that is gone after the wait is shown as it was written.
func TestPreferWaitForObjectThatGoes(t *testing.T) {
	w := &worker{}
	f := start(t, w.use)
	w.work = func(ctx context.Context, _ []store.Cause) error { return f.books.Delete(ctx, "emma", 0) }
	r := f.do("POST", "/books", `{"uuid":"emma","title":"Emma"}`, "Prefer", "wait=60").want(201)
	if !strings.Contains(r.body, `"title":"Emma"`) {
		t.Errorf("%s", r.body)
	}
}

func TestPreferWaitNotAsked(t *testing.T) {
	w := &worker{work: func(context.Context, []store.Cause) error { return nil }}
	f := start(t, w.use)
	for _, prefer := range []string{"", "wait", "wait=", "wait=0", "wait=-1", "wait=1.5", "wait=x", "return=minimal", `x="wait=5"`, "waiting=5"} {
		f.do("POST", "/books", `{}`, "Prefer", prefer).want(201).header("Preference-Applied", "")
	}
	if w.begun.Load() != 0 {
		t.Errorf("waited %d times", w.begun.Load())
	}
	f.do("POST", "/books", `{"uuid":7}`, "Prefer", "wait=5").want(400).header("Preference-Applied", "")
}

// Draining ends waits at once, and tells that no more requests should come.
func TestDrain(t *testing.T) {
	waiting := make(chan struct{})
	w := &worker{work: func(ctx context.Context, _ []store.Cause) error {
		close(waiting)
		<-ctx.Done()
		return ctx.Err()
	}}
	f := start(t, w.use, func(o *api.Options) { o.MaxWait = time.Hour })
	f.do("GET", "/readyz", "").want(200)
	go func() {
		<-waiting
		f.api.Drain()
	}()
	f.do("POST", "/books", `{}`, "Prefer", "wait=3600").want(201).header("Preference-Applied", "")
	f.do("GET", "/readyz", "").want(503).says("shutting down")
	f.alive()
}

// Shutdown answers what is under way, waits included.
func TestShutdown(t *testing.T) {
	waiting := make(chan struct{})
	w := &worker{work: func(ctx context.Context, _ []store.Cause) error {
		close(waiting)
		<-ctx.Done()
		return ctx.Err()
	}}
	f := start(t, w.use, func(o *api.Options) { o.MaxWait = time.Hour })
	stopped := make(chan error)
	go func() {
		<-waiting
		stopped <- f.Config.Shutdown(context.Background())
	}()
	f.do("POST", "/books", `{}`, "Prefer", "wait=3600").want(201)
	f.must(<-stopped)
}
