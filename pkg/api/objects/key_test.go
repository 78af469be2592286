package objects_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"belfry/config"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
)

const keyHeader, replayed = "Idempotency-Key", "Idempotency-Replayed"

// keys returns how many keys are stored.
func keys(f *apitest.Front) int64 {
	f.Helper()
	n, _, err := f.Requests.Count(f.Context())
	f.Must(err)
	return n
}

func TestARepeatedRequestHasOneEffectAndTheSameReply(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	tag := f.Create("emma")
	for _, c := range []struct{ method, path, body, other, condition, value string }{
		{"POST", "/books", `{"title":"t"}`, `{"title":"u"}`, "", ""},
		{"POST", "/books", `{"uuid":"new","title":"t"}`, `{"uuid":"new","title":"u"}`, "If-None-Match", "*"},
		{"PUT", "/books/emma", `{"year":1815}`, `{"year":1816}`, "If-Match", tag},
		{"PATCH", "/books/emma", `{"title":null}`, `{"title":"t"}`, "X-Any", "header"},
		{"DELETE", "/books/emma", ``, `{"title":"t"}`, "", ""},
	} {
		headers := []string{keyHeader, c.method + c.body}
		if c.condition != "" {
			headers = append(headers, c.condition, c.value)
		}
		first := f.Do(c.method, c.path, c.body, headers...)
		if first.StatusCode >= 300 {
			t.Fatalf("%s: %d %s", c.method, first.StatusCode, first.Text)
		}
		first.HasHeader(replayed, "")
		last := f.Events.Last().ID
		again := f.Do(c.method, c.path, strings.ReplaceAll(c.body, ":", " : "), headers...).Want(first.StatusCode).
			HasHeader(replayed, "true").HasHeader("Etag", first.Header.Get("Etag")).HasHeader("Location",
			first.Header.Get("Location")).HasHeader("Cache-Control", "no-store")
		if again.Text != first.Text {
			t.Errorf("%s: %s, then %s", c.method, first.Text, again.Text)
		}
		if c.method != "DELETE" {
			f.Do(c.method, c.path, c.other, headers...).Want(409).Says("another request")
		}
		if now := f.Events.Last().ID; now != last {
			t.Errorf("%s: the repetition has written", c.method)
		}
	}
	f.Do("POST", "/books", `{}`, keyHeader, "k", keyHeader, "k").Want(400).Says("more than once")
	f.Do("POST", "/books", `{}`, keyHeader, "ä").Want(400).Says("printable ASCII")
}

// The key, the path, the conditions and the body are one request. Using the key for another one is an error.
func TestAKeyIsForOneRequest(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t)
	tag := f.Create("emma")
	f.Create("kim")
	f.Do("PUT", "/books/emma", `{"year":1}`, keyHeader, "k").Want(200)
	f.Do("PUT", "/books/kim", `{"year":1}`, keyHeader, "k").Want(409)
	f.Do("PATCH", "/books/emma", `{"year":1}`, keyHeader, "k").Want(409)
	f.Do("PUT", "/books/emma", `{"year":1}`, keyHeader, "k", "If-Match", tag).Want(409)
	f.Do("DELETE", "/books/emma", "", keyHeader, "k").Want(409)
	f.Do("POST", "/books", `{"year":1}`, keyHeader, "k").Want(409)
	f.Do("POST", "/authors", `{"year":1}`, keyHeader, "k").Want(201) // a key is of its store
	f.Do("GET", "/books/kim", "", keyHeader, "k").Want(200)
}

// Another user with the same key neither sees what the first one's request led to, nor is kept from using it.
func TestAKeyIsOfItsUser(t *testing.T) {
	t.Parallel()
	f := apitest.StartLogin(t, 1)[0]
	headers := map[string][]string{"nobody": {keyHeader, "k"}}
	for _, name := range []string{"ada", "bob"} {
		headers[name] = []string{keyHeader, "k", "Authorization",
			"Bearer " + f.Register(name+"@example.com", "a fine password")}
	}
	made := map[string]string{}
	for _, name := range []string{"ada", "bob", "nobody"} {
		r := f.Do("POST", "/books", `{"title":"t"}`, headers[name]...).Want(201).HasHeader(replayed, "")
		if other := made[r.Text]; other != "" {
			t.Errorf("%s has the reply of %s", name, other)
		}
		made[r.Text] = name
	}
	f.Do("POST", "/books", `{"title":"u"}`, headers["bob"]...).Want(409)
	f.Do("DELETE", r0(f, headers["ada"]), "", append([]string{keyHeader, "other"}, headers["bob"][2:]...)...).Want(204)
}

// r0 repeats a creation and returns where its object is.
func r0(f *apitest.Front, headers []string) string {
	f.Helper()
	return f.Do("POST", "/books", `{"title":"t"}`, headers...).Want(201).HasHeader(replayed,
		"true").Header.Get("Location")
}

// What nobody is allowed leaves no key: else strangers could fill the disk.
func TestARefusedRequestLeavesNoKey(t *testing.T) {
	t.Parallel()
	denied := policy.Rules{Create: "has(input.open)", Update: "has(object.open)", Delete: "has(object.open)"}
	f, notes := startNotes(t, denied)
	save(f, notes, "n", `{}`)
	save(f, notes, "o", `{"open":true}`)
	for _, method := range []string{"PUT", "PATCH", "DELETE"} {
		f.Do(method, "/notes/n", "{}", keyHeader, "k").Want(401)
		f.Do(method, "/notes/none", "{}", keyHeader, "k").Want(404)
		f.Do(method, "/notes/o", "{}", keyHeader, "k", "If-None-Match", "*").Want(412)
	}
	f.Do("POST", "/notes", "{}", keyHeader, "k").Want(401)
	f.Do("POST", "/notes", `{"uuid":"mine","open":true}`, keyHeader, "k").Want(400)
	f.Do("POST", "/notes", `{"uuid":7,"open":true}`, keyHeader, "k").Want(400)
	if n := keys(f); n != 0 {
		t.Errorf("%d keys are stored", n)
	}
	// The server chooses the uuid, with a key as well.
	f.Do("POST", "/notes", `{"open":true}`, keyHeader, "k").Want(201)
	f.Do("DELETE", "/notes/o", "", keyHeader, "l").Want(204)
	if n := keys(f); n != 2 {
		t.Errorf("%d keys are stored, want 2", n)
	}
}

// What a write with a key was refused for stays its reply, though another write would not be refused any more.
func TestARefusalForAValueThatWasTakenIsRepeated(t *testing.T) {
	t.Parallel()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	pages, err := store.Open(t.Context(), backend, store.Options{Name: "Pages", Unique: [][]string{{"slug"}}})
	if err != nil {
		t.Fatal(err)
	}
	pages.Claims().Trust(true)
	f := apitest.Start(t, func(o *api.Options) { apitest.Expose(o, pages, config.Expose{URL: "/pages"}) })
	f.Do("POST", "/pages", `{"uuid":"a","slug":"x"}`).Want(201)
	f.Do("POST", "/pages", `{"uuid":"b"}`).Want(201)
	writes := []struct{ method, path, body string }{
		{"POST", "/pages", `{"slug":"x"}`}, {"POST", "/pages", `{"uuid":"a"}`}, {"PUT", "/pages/b", `{"slug":"x"}`},
		{"PATCH", "/pages/b", `{"slug":"x"}`},
	}
	send := func(repeated string) {
		for i, w := range writes {
			r := f.Do(w.method, w.path, w.body, keyHeader, fmt.Sprint("k", i)).HasHeader(replayed, repeated)
			if r.StatusCode != 409 { // its instance is that of the first request
				t.Errorf("%s %s: %d %s", w.method, w.body, r.StatusCode, r.Text)
			}
		}
	}
	send("")
	f.Do("DELETE", "/pages/a", "").Want(204)
	send("true")
	f.Do("POST", "/pages", `{"slug":"x"}`, keyHeader, "another").Want(201)
}

func TestARepeatedRequestDoesNotClaimToHaveWaited(t *testing.T) {
	t.Parallel()
	w := &apitest.Waiter{Work: func(context.Context, []store.Cause) error { return nil }}
	f := apitest.Start(t, w.Use)
	f.Do("POST", "/books", `{"uuid":"emma"}`, keyHeader, "k", "Prefer",
		"wait=5").Want(201).HasHeader("Preference-Applied", "wait")
	f.Do("POST", "/books", `{"uuid":"emma"}`, keyHeader, "k", "Prefer",
		"wait=5").Want(201).HasHeader("Preference-Applied", "").HasHeader(replayed, "true")
	f.Do("POST", "/books", `{"uuid":"kim"}`, "Prefer", "wait=5").Want(201).HasHeader("Preference-Applied", "wait")
}

// interceptor rejects as it says, and counts.
type interceptor struct {
	mu     sync.Mutex
	called int
	patch  object.Object
}

func (i *interceptor) Intercept(context.Context, store.InterceptRequest) (object.Object, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.called++
	return i.patch, nil
}

func TestInterceptorsAreAskedOnceForAKey(t *testing.T) {
	t.Parallel()
	asked := &interceptor{patch: object.Object{"by": []byte(`"interceptor"`)}}
	f := apitest.Start(t, func(o *api.Options) {
		apitest.ExposeOnly(o, o.Stores["Books"].WithOptions(func(s *store.Options) { s.Interceptor = asked }),
			config.Expose{URL: "/books"})
	})
	first := f.Do("POST", "/books", `{}`, keyHeader, "k").Want(201)
	before := asked.called
	if again := f.Do("POST", "/books", `{}`, keyHeader, "k").Want(201); again.Text != first.Text ||
		!strings.Contains(again.Text, `"interceptor"`) {
		t.Errorf("%s, then %s", first.Text, again.Text)
	}
	if asked.called != before {
		t.Errorf("%d calls for the repetition", asked.called-before)
	}
}

func TestALargeObjectIsNotKeptWithItsKey(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, func(o *api.Options) {
		o.Stores["Books"] = o.Stores["Books"].WithOptions(func(s *store.Options) { s.Arrays = []string{"copies"} })
	})
	f.Create("emma")
	worker := store.WithCall(t.Context(), store.Call{Origin: "mapping"})
	base, err := f.Books.Get(worker, "emma")
	f.Must(err)
	_, err = store.NewWorker(f.Books).CompareAndSet(worker, base,
		object.Object{"copies": []byte(`["` + strings.Repeat("x", 300<<10) + `"]`)})
	f.Must(err)
	for range 2 {
		if r := f.Do("PUT", "/books/emma", `{"year":1}`, keyHeader, "k").Want(200); r.Text != `{"uuid":"emma"}` {
			t.Errorf("%.100s", r.Text)
		}
	}
}
