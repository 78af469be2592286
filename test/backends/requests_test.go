package backends

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/api/apitest"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/idempotent"
)

// TestRequestsOnEachBackend: batches, streams of objects, and requests with a key do the same on each backend.
func TestRequestsOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, at := range places() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			open := at(t)
			t.Run("a process that crashes", func(t *testing.T) { crash(t, open) })
			f := front(t, open)
			others := []*apitest.Front{f}
			if name != "files" { // a folder is one process's
				others = append(others, front(t, open))
			}
			onceAfterACrash(f)
			onceOfMany(others)
			batchIsExecuted(f)
			streamIsCreated(f)
		})
	}
}

// front starts a process on a place, with ways to change its backend. It takes the requests of others over at once.
func front(t *testing.T, open func() (driver.Backend, error),
	change ...func(driver.Backend) driver.Backend) *apitest.Front {
	t.Helper()
	backend, err := open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	for _, c := range change {
		backend = c(backend)
	}
	return apitest.Start(t, backend, func(o *idempotent.Options) { o.TakeoverDelay = time.Millisecond })
}

// dying is a backend of a process that crashes at a write of each request with a key: before that of the object or,
// once late is set, before that of the reply.
type dying struct {
	driver.Backend
	late *atomic.Bool
}

func (b dying) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return &dyingStore{Store: s, name: spec.Name, late: b.late}, err
}

type dyingStore struct {
	driver.Store
	name string
	late *atomic.Bool

	mu   sync.Mutex
	keys map[string]bool // of requests that are stored
}

func (s *dyingStore) Put(ctx context.Context, w driver.Write) error {
	crashed := errs.New(errs.Unavailable, "the process has crashed")
	switch s.name {
	case "Books":
		if !s.late.Load() && !strings.HasPrefix(w.UUID, "there") {
			return crashed
		}
	case "Requests":
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.keys[w.UUID] {
			return crashed
		}
		if s.keys == nil {
			s.keys = map[string]bool{}
		}
		s.keys[w.UUID] = true
	}
	return s.Store.Put(ctx, w)
}

// keyed are requests with a key, by the moment of the crash.
func keyed(when string) []struct{ method, path, body, other, events string } {
	return []struct{ method, path, body, other, events string }{
		{"POST", "/books", `{"uuid":"new-` + when + `","title":"t"}`, `{"uuid":"new-` + when + `","title":"u"}`,
			"Saved"},
		{"PUT", "/books/put-" + when, `{"year":1}`, `{"year":2}`, "Saved Updated"},
		{"DELETE", "/books/delete-" + when, ``, `{"title":"u"}`, "Saved Deleted"},
	}
}

// crash sends requests, each of which ends the process.
func crash(t *testing.T, open func() (driver.Backend, error)) {
	late := &atomic.Bool{}
	late.Store(true)
	f := front(t, open, func(b driver.Backend) driver.Backend { return dying{b, late} })
	for _, when := range []string{"before", "after"} {
		for _, method := range []string{"put", "delete"} {
			f.Do("POST", "/books", fmt.Sprintf(`{"uuid":"%s-%s","title":"t"}`, method, when)).Want(201)
		}
	}
	for _, when := range []string{"before", "after"} {
		late.Store(when == "after")
		for _, r := range keyed(when) {
			f.Do(r.method, r.path, r.body, "Idempotency-Key", r.method+when).Want(503)
		}
	}
}

// onceAfterACrash: each request is executed once, by the process that crashed or by the next one, whatever is sent
// again.
func onceAfterACrash(f *apitest.Front) {
	for _, when := range []string{"before", "after"} {
		for _, r := range keyed(when) {
			key := []string{"Idempotency-Key", r.method + when}
			if r.method != "DELETE" {
				f.Do(r.method, r.path, r.other, key...).Want(409).Says("another request")
			}
			want := map[string]int{"POST": 201, "DELETE": 204}[r.method]
			if want == 0 {
				want = 200
			}
			first := f.Do(r.method, r.path, r.body, key...).Want(want)
			if replayed := first.Header.Get("Idempotency-Replayed"); (replayed == "true") != (when == "after") {
				f.Errorf("%s %s: replayed %q", r.method, when, replayed)
			}
			again := f.Do(r.method, r.path, r.body, key...).Want(want).HasHeader("Idempotency-Replayed",
				"true").HasHeader("Etag", first.Header.Get("Etag"))
			if again.Text != first.Text {
				f.Errorf("%s %s: %s, then %s", r.method, when, first.Text, again.Text)
			}
			uuid := strings.TrimPrefix(r.path, "/books/")
			if r.method == "POST" {
				uuid = "new-" + when
			}
			if got := events(f, uuid); got != r.events {
				f.Errorf("%s %s: events %q, want %q", r.method, when, got, r.events)
			}
		}
	}
}

// events returns the names of the events of a book, in the order of its writes.
func events(f *apitest.Front, uuid string) string {
	f.Helper()
	pending, _, err := f.Books.Driver().Pending(f.Context(), nil, 1000)
	f.Must(err)
	var names []string
	for _, p := range pending {
		if p.UUID == uuid {
			names = append(names, strings.Split(p.Subject, ".")[3])
		}
	}
	return strings.Join(names, " ")
}

// onceOfMany: of requests that are sent to several processes at once, one is executed, and all have its reply.
func onceOfMany(fronts []*apitest.Front) {
	t := fronts[0]
	var sent sync.WaitGroup
	replies := make([]apitest.Reply, 4)
	for i := range replies {
		f := fronts[i%len(fronts)]
		sent.Go(func() { replies[i] = f.Do("POST", "/books", `{"title":"one"}`, "Idempotency-Key", "many") })
	}
	sent.Wait()
	first := 0
	for _, r := range replies {
		if r.StatusCode != 201 || r.Text != replies[0].Text {
			t.Errorf("%d %s, and another reply is %s", r.StatusCode, r.Text, replies[0].Text)
		}
		if r.Header.Get("Idempotency-Replayed") == "" {
			first++
		}
	}
	var made struct{ UUID string }
	replies[0].JSON(&made)
	if got := events(fronts[0], made.UUID); got != "Saved" || first > 1 {
		t.Errorf("events %q, and %d replies are the first one", got, first)
	}
}

// batchIsExecuted: each operation sees what those before it have written, and one that fails leaves the others.
func batchIsExecuted(f *apitest.Front) {
	const batch = `{"operations":[
		{"method":"POST","path":"/books","body":{"uuid":"kim","title":"Kim"},"headers":{"Idempotency-Key":"kim"}},
		{"method":"POST","path":"/books","body":{"uuid":"kim"}},
		{"method":"PUT","path":"/books/kim","body":{"year":1901}},
		{"method":"PATCH","path":"/books/kim","body":{"title":null},"headers":{"If-Match":"\"1\""}},
		{"method":"GET","path":"/books/kim"},
		{"method":"DELETE","path":"/books/none"},
		{"method":"POST","path":"/authors","body":{"uuid":"kipling"},"headers":{"If-None-Match":"*"}},
		{"method":"DELETE","path":"/books/kim"},
		{"method":"GET","path":"/books/kim"}]}`
	// The second time, what has no key is executed again.
	for i, want := range []string{"[201 409 200 412 200 404 201 204 404]", "[201 201 200 412 200 404 412 204 404]"} {
		var reply struct {
			Results []struct {
				Status  int
				Headers map[string]string
				Body    struct{ Year int }
			}
		}
		r := f.Do("POST", "/batch", batch).Want(200)
		r.JSON(&reply)
		var got []int
		for _, one := range reply.Results {
			got = append(got, one.Status)
		}
		if fmt.Sprint(got) != want || reply.Results[4].Body.Year != 1901 ||
			(reply.Results[0].Headers["Idempotency-Replayed"] == "true") != (i == 1) {
			f.Fatalf("%v, want %s: %s", got, want, r.Text)
		}
	}
	if got := events(f, "kim"); got != "Saved Updated Deleted Saved Updated Deleted" {
		f.Errorf("events %q", got)
	}
}

// streamIsCreated: of two lines with one uuid, the first one creates it; every line that says so has created its
// object, with one event.
func streamIsCreated(f *apitest.Front) {
	var body strings.Builder
	for i := range 12 {
		fmt.Fprintf(&body, "{\"uuid\":\"line%d\",\"year\":%d}\n", i/2, i)
	}
	body.WriteString("{\"uuid\":\n")
	body.WriteString(`{"title":"the last line"}`)
	r := f.Do("POST", "/books", body.String(), "Content-Type", "", "Content-Type", "application/x-ndjson").Want(200)
	n := 0
	for text := range strings.Lines(r.Text) {
		var line struct {
			Line, Status int
			UUID         string
			Revision     uint64
		}
		f.Must(json.Unmarshal([]byte(text), &line))
		want := 201
		switch {
		case n == 12:
			want = 400
		case n < 12 && n%2 == 1:
			want = 409
		}
		if line.Line != n+1 || line.Status != want {
			f.Errorf("line %d: %s", n+1, text)
		}
		if line.Status == 201 {
			got := f.Do("GET", "/books/"+line.UUID, "").Want(200).HasHeader("Etag", fmt.Sprintf(`"%d"`, line.Revision))
			if n < 12 && !strings.Contains(got.Text, fmt.Sprintf(`"year":%d`, n)) {
				f.Errorf("line %d has created %s", n+1, got.Text)
			}
		}
		n++
	}
	if n != 14 {
		f.Errorf("%d lines", n)
	}
	for i := range 6 {
		if got := events(f, fmt.Sprint("line", i)); got != "Saved" {
			f.Errorf("the events of line%d are %q", i, got)
		}
	}
}
