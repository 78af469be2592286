package httpkit_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/event"
	"belfry/pkg/store"
)

// A reply after waiting has the object with the effects of the write.
func TestPreferWait(t *testing.T) {
	t.Parallel()
	w := &apitest.Waiter{Subject: "_INBOX.waiting"}
	f := apitest.Start(t, w.Use)
	var caused []store.Cause
	w.Work = func(ctx context.Context, causes []store.Cause) error {
		caused = causes
		return apitest.Map(f)(ctx, causes)
	}
	const limit = time.Minute
	began := time.Now()
	created := f.Do("POST", "/books", `{"uuid":"emma"}`, "Prefer", "wait=60").Want(201).HasHeader("Preference-Applied",
		"wait")
	written := f.Events.Last()
	if len(caused) != 1 || caused[0].Event != event.StoreSaved || caused[0].Store != "Books" || caused[0].ID == "" {
		t.Errorf("waited for %+v", caused)
	}
	if earliest, latest := began.Add(limit), time.Now().Add(limit); w.Deadline.Before(earliest) ||
		w.Deadline.After(latest) {
		t.Errorf("waited until %v, want it from %v to %v", w.Deadline, earliest, latest)
	}
	for _, r := range []apitest.Reply{
		created,
		f.Do("PUT", "/books/emma", `{"year":1815}`, "Prefer", "wait=60").Want(200).HasHeader("Preference-Applied",
			"wait"),
		f.Do("PATCH", "/books/emma", `{"year":1816}`, "Prefer", "wait=60").Want(200).HasHeader("Preference-Applied",
			"wait"),
	} {
		if !strings.Contains(r.Text, `"chapters":[{"uuid":"c1"}]`) {
			t.Errorf("not read again: %s", r.Text)
		}
	}
	r := f.Do("PUT", "/books/emma", `{}`, "Prefer", "wait=60").Want(200)
	f.Do("GET", "/books/emma", "").Want(200).HasHeader("Etag", r.Header.Get("Etag"))
	if written.Event != event.StoreUpdated || f.Events.First().Ctx.Wait != "_INBOX.waiting" {
		t.Errorf("the event does not say who waits: %+v", f.Events.First().Ctx)
	}

	w.Work = func(context.Context, []store.Cause) error { return nil }
	f.Do("DELETE", "/books/emma", "", "Prefer", "wait=60").Want(204).HasHeader("Preference-Applied", "wait")
	if w.Begun.Load() != w.Ended.Load() {
		t.Errorf("begun %d times, ended %d", w.Begun.Load(), w.Ended.Load())
	}
}

// A write is acknowledged even if waiting for its effects fails.
func TestPreferWaitInVain(t *testing.T) {
	t.Parallel()
	w := &apitest.Waiter{Work: func(ctx context.Context, _ []store.Cause) error {
		<-ctx.Done()
		return ctx.Err()
	}}
	f := apitest.Start(t, w.Use, func(o *api.Options) { o.MaxWait = 50 * time.Millisecond })
	f.Do("POST", "/books", `{"uuid":"emma"}`, "Prefer", "wait=3600").Want(201).HasHeader("Preference-Applied", "")
	w.Work = func(context.Context, []store.Cause) error { return errors.New("the bus is unavailable") }
	f.Do("PUT", "/books/emma", `{"year":1}`, "Prefer", "wait=1").Want(200).HasHeader("Preference-Applied", "")
	f.Do("DELETE", "/books/emma", "", "Prefer", "wait=1").Want(204).HasHeader("Preference-Applied", "")
	if w.Begun.Load() != 3 || w.Ended.Load() != 3 {
		t.Errorf("begun %d times, ended %d", w.Begun.Load(), w.Ended.Load())
	}
}

// An object that was deleted during the wait is returned as it was written.
func TestPreferWaitForObjectThatGoes(t *testing.T) {
	t.Parallel()
	w := &apitest.Waiter{}
	f := apitest.Start(t, w.Use)
	w.Work = func(ctx context.Context, _ []store.Cause) error { return f.Books.Delete(ctx, "emma", 0) }
	r := f.Do("POST", "/books", `{"uuid":"emma","title":"Emma"}`, "Prefer", "wait=60").Want(201)
	if !strings.Contains(r.Text, `"title":"Emma"`) {
		t.Errorf("%s", r.Text)
	}
}

func TestPreferWaitNotAsked(t *testing.T) {
	t.Parallel()
	w := &apitest.Waiter{Work: func(context.Context, []store.Cause) error { return nil }}
	f := apitest.Start(t, w.Use)
	for _, prefer := range []string{"", "wait", "wait=", "wait=0", "wait=-1", "wait=1.5", "wait=x", "return=minimal",
		`x="wait=5"`, "waiting=5"} {
		f.Do("POST", "/books", `{}`, "Prefer", prefer).Want(201).HasHeader("Preference-Applied", "")
	}
	if w.Begun.Load() != 0 {
		t.Errorf("waited %d times", w.Begun.Load())
	}
	f.Do("POST", "/books", `{"uuid":7}`, "Prefer", "wait=5").Want(400).HasHeader("Preference-Applied", "")
}

// Draining ends waits at once, and replies with Connection: close.
func TestDrain(t *testing.T) {
	t.Parallel()
	waiting := make(chan struct{})
	w := &apitest.Waiter{Work: func(ctx context.Context, _ []store.Cause) error {
		close(waiting)
		<-ctx.Done()
		return ctx.Err()
	}}
	f := apitest.Start(t, w.Use, func(o *api.Options) { o.MaxWait = time.Hour })
	f.Do("GET", "/readyz", "").Want(200)
	go func() {
		<-waiting
		f.API.Drain()
	}()
	f.Do("POST", "/books", `{}`, "Prefer", "wait=3600").Want(201).HasHeader("Preference-Applied", "")
	f.Do("GET", "/readyz", "").Want(503).Says("belfry is stopping")
	f.Alive()
}

// Shutdown answers the requests in flight, waits included.
func TestShutdown(t *testing.T) {
	t.Parallel()
	waiting := make(chan struct{})
	w := &apitest.Waiter{Work: func(ctx context.Context, _ []store.Cause) error {
		close(waiting)
		<-ctx.Done()
		return ctx.Err()
	}}
	f := apitest.Start(t, w.Use, func(o *api.Options) { o.MaxWait = time.Hour })
	stopped := make(chan error)
	go func() {
		<-waiting
		stopped <- f.Config.Shutdown(context.Background())
	}()
	f.Do("POST", "/books", `{}`, "Prefer", "wait=3600").Want(201)
	f.Must(<-stopped)
}
