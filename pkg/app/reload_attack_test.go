package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
	"weak"

	"github.com/nats-io/nats.go"

	"belfry/config"
	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// Objects get an owner by a reload: the right holds at once, and the index of the owner is built in the background.
func TestAReloadAddsAnOwner(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {list: true}, uuid: client, indexes: [year]}
`
	p := newPlace(t, text)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"b1","year":1815}`, http.StatusCreated)
	p.write("belfry.yaml", strings.Replace(text, "indexes:", "policy: owner, owner: by, indexes:", 1))
	r, err := a.Reload(t.Context())
	if err != nil || !slices.Contains(r.Building, "Books.by") {
		t.Fatalf("%+v, %v", r, err)
	}
	p.want(a, "GET", "/books/b1", "", http.StatusUnauthorized)
	if status, list := p.do(a, "GET", "/books?filter=year%3D%3D1815", ""); strings.Contains(list, "b1") {
		t.Errorf("%d, %s", status, list)
	}
}

// Whoever loses a right by a reload has lost it when that is done: over HTTP, over the bus, and in a stream that was
// open, which resumes without what its client may not receive any more.
func TestAReloadTakesRightsAtOnce(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
stores:
  Books: {expose: {list: true}, uuid: client, policy: {create: "true", get: "true", list: "true"}}
  Marks: {expose: {list: true}, uuid: client}
  Notes: {expose: {events: true}, uuid: client, fields: {pin: {read: "true"}}}
`
	taken := strings.NewReplacer(`get: "true", list: "true"`,
		`get: "user.admin == true", list: "user.admin == true"}, bus: false, intercept: {`, `pin: {read: "true"}`,
		`pin: {read: "false"}`).Replace(text)
	p := newPlace(t, text)
	a, _ := p.reloadable()
	conn, err := nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p.want(a, "POST", "/books", `{"uuid":"b1"}`, http.StatusCreated)
	p.want(a, "POST", "/notes", `{"uuid":"n1","pin":4711}`, http.StatusCreated)
	// Until it has read all of these, or the end.
	stream := func(last string) (next func(until ...string) (read, id string)) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.HTTPAddress()+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		if last != "" {
			req.Header.Set("Last-Event-Id", last)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		lines := bufio.NewScanner(res.Body)
		return func(until ...string) (read, id string) {
			missing := func(text string) bool { return !strings.Contains(read, text) }
			for lines.Scan() {
				read += lines.Text() + "\n"
				if after, ok := strings.CutPrefix(lines.Text(), "id: "); ok {
					id = after
				}
				if len(until) > 0 && !slices.ContainsFunc(until, missing) {
					return read, id
				}
			}
			return read, id
		}
	}
	next := stream("")
	next("event: ready")
	p.want(a, "POST", "/books", `{"uuid":"b2"}`, http.StatusCreated)
	if read, _ := next(`"uuid":"b2"`); !strings.Contains(read, "Store.Saved") {
		t.Fatal(read)
	}
	overBus := func() error {
		_, err := natsserver.Request(conn, "store.Books.get", []byte(`{"uuid":"b1"}`))
		return err
	}
	if err := overBus(); err != nil {
		t.Fatal(err)
	}

	p.reload(a, taken)
	if err := overBus(); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("over the bus: %v", err)
	}
	p.want(a, "GET", "/books/b1", "", http.StatusUnauthorized)
	if status, list := p.do(a, "GET", "/books", ""); strings.Contains(list, `"b1"`) {
		t.Errorf("%d, %s", status, list)
	}
	if _, note := p.do(a, "GET", "/notes/n1", ""); strings.Contains(note, `"pin"`) {
		t.Error(note)
	}
	p.want(a, "POST", "/books", `{"uuid":"b3"}`, http.StatusCreated)
	p.want(a, "PATCH", "/notes/n1", `{"title":"x"}`, http.StatusOK)
	p.want(a, "POST", "/marks", `{"uuid":"m1"}`, http.StatusCreated)
	rest, last := next()
	if strings.Contains(rest, `"b3"`) || strings.Contains(rest, `"m1"`) ||
		!strings.Contains(rest, "the configuration of the server has changed") {
		t.Error(rest)
	}
	// Events of different objects come in any order.
	if read, _ := stream(last)(`"uuid":"m1"`, `"uuid":"n1"`); strings.Contains(read, `"b3"`) ||
		strings.Contains(read, `"pin"`) || !strings.Contains(read, `"n1"`) {
		t.Error(read)
	}

	for range 5 { // what is in flight on the connection to the bus is of the configuration before
		p.reload(a, text)
		if err := overBus(); err != nil {
			t.Error(err)
		}
		p.reload(a, taken)
		if err := overBus(); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("over the bus: %v", err)
		}
	}
}

// A stream of creations ends at a reload: the line after those that have begun meets the new rules, in another stream.
func TestAReloadEndsStreamsOfCreations(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {}, uuid: client, policy: {create: "true", get: "true"}}
`
	p := newPlace(t, text)
	a, _ := p.reloadable()
	body, lines := io.Pipe()
	defer func() { _ = lines.Close() }()
	send := func(body io.Reader) *bufio.Scanner {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+a.HTTPAddress()+"/books", body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		return bufio.NewScanner(res.Body)
	}
	go func() { _, _ = lines.Write([]byte(`{"uuid":"b1"}` + "\n")) }()
	replies := send(body)
	if !replies.Scan() || !strings.Contains(replies.Text(), `"status":201`) {
		t.Fatal(replies.Text(), replies.Err())
	}
	p.reload(a, strings.Replace(text, `create: "true"`, `create: "false"`, 1))
	if !replies.Scan() || !strings.Contains(replies.Text(), `{"line":2,"status":503,`) ||
		!strings.Contains(replies.Text(), "the configuration of the server has changed: send this line") {
		t.Error(replies.Text(), replies.Err())
	}
	if replies.Scan() || replies.Err() != nil {
		t.Error("it does not end:", replies.Text(), replies.Err())
	}
	if again := send(strings.NewReader(`{"uuid":"b2"}`)); !again.Scan() ||
		!strings.Contains(again.Text(), `"status":401`) {
		t.Error(again.Text())
	}
	p.want(a, "GET", "/books/b1", "", http.StatusOK)
}

// An upload, which can take hours, is written with the rules that hold when its content has arrived; what does not
// concern it does not end it.
func TestAnUploadIsWrittenWithTheRulesAfterAReload(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {}, uuid: client, policy: {create: "true", get: "true", update: "true"}}
binaries: {binary: {map: {Books: [covers]}}}
`
	p := newPlace(t, text)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"b1"}`, http.StatusCreated)
	upload := func(reload string) int {
		t.Helper()
		rest, status := p.begin(a, "PUT", "/binary/upload/Books/b1/covers/add", "text/plain", "a part")
		p.reload(a, reload)
		_, _ = rest.Write([]byte(", and the rest"))
		_ = rest.Close()
		return <-status
	}
	if status := upload(text + "limits: {loopback: true}\n"); status != http.StatusCreated {
		t.Errorf("after a reload that does not concern it: %d", status)
	}
	if status := upload(strings.Replace(text, `update: "true"`, `update: "false"`,
		1)); status != http.StatusUnauthorized {
		t.Errorf("after a reload that takes the right: %d", status)
	}
	if _, book := p.do(a, "GET", "/books/b1", ""); strings.Count(book, `"hash"`) != 1 {
		t.Error(book)
	}
}

// A client that sends a file slowly delays neither fills nor indexes: its file is written with the configuration that
// is served once the content has arrived. What that no longer has is refused, and the object stays as it was.
func TestAnUploadDelaysNoIndexAndMeetsTheConfigurationAtItsEnd(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
stores:
  Books: {expose: {list: true}, uuid: client}
  Marks: {expose: {list: true}, uuid: client}
binaries: {binary: {map: {Books: [covers], Marks: [covers]}}}
`
	indexed := strings.Replace(text, "Books: {expose: {list: true},", "Books: {expose: {list: true}, indexes: [year],", 1)
	p := newPlace(t, text)
	a, _ := p.reloadable()
	p.want(a, "POST", "/books", `{"uuid":"b1","year":1815}`, http.StatusCreated)
	p.want(a, "POST", "/marks", `{"uuid":"m1"}`, http.StatusCreated)
	for name, c := range map[string]struct {
		store, object, next string
		status              int
	}{
		"an index is added":       {"Books", "b1", indexed, http.StatusCreated},
		"the property is removed": {"Books", "b1", strings.Replace(text, "Books: [covers], ", "", 1), http.StatusNotFound},
		"the store is removed": {"Marks", "m1", strings.Replace(strings.Replace(text,
			"  Marks: {expose: {list: true}, uuid: client}\n", "", 1), ", Marks: [covers]", "", 1), http.StatusNotFound},
		"the service is removed": {"Books", "b1", before(text, "binaries:"), http.StatusNotFound},
		"the file is too large": {"Books", "b1", strings.Replace(text, "binary: {map:", "binary: {maxSize: 4B, map:", 1),
			http.StatusRequestEntityTooLarge},
		"the file has another type": {"Books", "b1", strings.Replace(text, "binary: {map:",
			"binary: {types: [image/*], map:", 1), http.StatusUnsupportedMediaType},
	} {
		t.Run(name, func(t *testing.T) {
			p.reload(a, text)
			rest, status := p.begin(a, "PUT", "/binary/upload/"+c.store+"/"+c.object+"/covers/add", "text/plain", "a part")
			p.reload(a, c.next)
			if c.next == indexed {
				if got := uuidsIn(t, p.built(a, "/books?sort=year")); len(got) != 1 {
					t.Errorf("listed are %q", got)
				}
			}
			_, _ = rest.Write([]byte(", and the rest"))
			_ = rest.Close()
			if got := <-status; got != c.status {
				t.Errorf("%d, want %d", got, c.status)
			}
		})
	}
	p.reload(a, indexed)
	if _, book := p.do(a, "GET", "/books/b1", ""); strings.Count(book, `"hash"`) != 1 {
		t.Error(book)
	}
	if got := uuidsIn(t, p.built(a, "/books?sort=year")); len(got) != 1 {
		t.Errorf("after the upload: %q", got)
	}
}

// A reload that fails at its last step, here since nothing can be subscribed to any more, leaves nothing half done.
func TestAReloadThatFailsAtLastChangesNothing(t *testing.T) {
	p := newPlace(t, books+"metrics: {listen: '127.0.0.1:0'}\n")
	a, applied := p.reloadable()
	before := a.now()
	a.Bus().Conn().Close()
	p.write("belfry.yaml", books+"metrics: {listen: '127.0.0.1:0'}\nlimits: {loopback: true}\n")
	if _, err := a.Reload(t.Context()); !errors.Is(err, errs.Unavailable) {
		t.Error(err)
	}
	if a.now() != before || len(*applied) > 0 {
		t.Error("something has changed")
	}
	p.want(a, "POST", "/authors", `{}`, http.StatusCreated)
}

// A configuration on a file system that does not answer holds up neither whoever gives up waiting, nor a stop.
func TestAReloadThatCannotReadHoldsUpNothing(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	if _, err := a.Reload(t.Context()); !errors.Is(err, errs.Unavailable) ||
		!strings.Contains(err.Error(), "belfry is starting") {
		t.Errorf("before the start is complete: %v", err)
	}
	reading, silence := make(chan struct{}), make(chan struct{})
	defer close(silence)
	a.OnReload(Reloading{Read: func() (*config.Config, error) {
		reading <- struct{}{}
		<-silence
		return nil, os.ErrClosed
	}})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	reload := func(ctx context.Context) { _, err := a.Reload(ctx); ended <- err }
	go reload(ctx)
	<-reading
	cancel()
	if err := <-ended; !errors.Is(err, errs.Canceled) {
		t.Error(err)
	}
	go reload(context.Background())
	<-reading
	p.stop(a)
	if err := <-ended; !errors.Is(err, errs.Unavailable) {
		t.Error(err)
	}
}

// collectable returns what reports whether nothing refers to a value any more.
func collectable[T any](value *T) func() bool {
	p := weak.Make(value)
	return func() bool { return p.Value() == nil }
}

// However often the configuration is reloaded, or refused: nothing of those before stays.
func TestSoakReloadsLeaveNothing(t *testing.T) {
	soak := kit.Soak(t, 6)
	const text = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
metrics: {listen: "127.0.0.1:0"}
authentication: {providers: {email: {from: a@example.com}}}
stores:
  Authors: {expose: {list: true}}
  Books: {expose: {list: true}, schema: book.json, map: {Authors: {key: author, target: books, fields: title}}}
binaries: {binary: {map: {Books: [covers]}}}
`
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.write("book.json", `{}`)
	p.config = p.load(text)
	a := p.start()
	a.OnReload(Reloading{Read: func() (*config.Config, error) {
		return config.Load(p.path("belfry.yaml"), os.LookupEnv)
	}})
	state := func() (running, files int, heap uint64) {
		var m runtime.MemStats
		for range 3 { // what was in a sync.Pool is gone after the second
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		open, _ := os.ReadDir("/proc/self/fd") // none elsewhere
		return len(goroutines()), len(open), m.HeapAlloc
	}
	reload := func(n int) {
		p.reload(a, text+"limits: {loopback: true, address: {writes: "+strings.Repeat("9", 3+n%2)+"}}\n")
		p.want(a, "POST", "/books", `{"author":"a1","title":"t"}`, http.StatusCreated)
		p.write("belfry.yaml", text+"limits: {loopback: nonsense}\n")
		if _, err := a.Reload(t.Context()); err == nil {
			t.Error("it is not refused")
		}
	}
	for n := range 4 {
		reload(n)
	}
	_ = a.served.Retired(context.Background())
	before, files, heap := state()
	rounds, kept := 0, map[string]func() bool{}
	for ; soak.More(); rounds++ {
		now := a.now()
		for part, collected := range map[string]func() bool{
			"what was served": collectable(now), "the configuration": collectable(now.Config),
			"the stores": collectable(now.Set), "the routes": collectable(now.API),
			"authentication": collectable(now.Auth), "operations over the bus": collectable(now.Operations),
			"streams": collectable(now.Live),
			"files":   collectable(now.Binaries["binary"]), "the worker": collectable(now.Mapper),
		} {
			kept[fmt.Sprint(part, " of round ", rounds)] = collected
		}
		reload(rounds)
	}
	_ = a.served.Retired(context.Background())
	const spare = 8 // connections and timers of others
	kit.WaitUntil(t, func() error {
		g, f, h := state()
		if g > before+spare || f > files+spare {
			return errs.New(errs.Internal, "%d reloads: %d goroutines, then %d; %d files, then %d", rounds, before,
				g, files, f)
		}
		maps.DeleteFunc(kept, func(_ string, collected func() bool) bool { return collected() })
		if len(kept) > 0 {
			return errs.New(errs.Internal, "%d reloads: %d parts are still in memory, such as %s", rounds, len(kept),
				slices.Min(slices.Collect(maps.Keys(kept))))
		}
		t.Logf("%d reloads: %d before, then %d; %d files, then %d; %d KiB, then %d", rounds, before, g, files,
			f, heap>>10, h>>10)
		return nil
	})
}

// A reload works while the bus is unavailable, and what the bus brings afterwards meets the new configuration.
func TestAReloadWhileTheBusIsUnavailable(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
stores:
  Books: {expose: {}, uuid: client, schema: book.json}
`
	p := &place{T: t, folder: t.TempDir(), logged: &kit.Tail{}}
	p.write("book.json", `{}`)
	p.config = p.load(text)
	a, _ := p.reloadable()
	if err := a.Bus().StopServer(); err != nil {
		t.Fatal(err)
	}
	kit.WaitFor(t, "the end of the connection", func() bool { return a.Bus().Connected() != nil })
	p.write("book.json", `{"required": ["title"]}`)
	if keys := p.reload(a, text); len(keys) != 1 {
		t.Errorf("changed are %q", keys)
	}
	p.want(a, "POST", "/books", `{"uuid":"b1"}`, http.StatusBadRequest)
	p.want(a, "POST", "/books", `{"uuid":"b1","title":"Emma"}`, http.StatusCreated)
	if err := a.Bus().StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit), nats.MaxReconnects(-1),
		nats.RetryOnFailedConnect(true))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	save := func() (status string, err error) {
		reply, err := natsserver.Request(conn, "store.Books.save", []byte(`{"object":{}}`))
		if err != nil {
			return "", err
		}
		return reply.Header.Get("Nats-Service-Error-Code"), nil
	}
	kit.WaitUntil(t, func() error { _, err := save(); return err })
	for range 20 {
		if status, err := save(); err != nil || status != "400" {
			t.Errorf("%q, %v", status, err)
		}
	}
}

// A reload gives nobody further requests: limits that are the same continue, also where others change.
func TestAReloadContinuesLimits(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: "127.0.0.1:0"}
limits: {loopback: true, address: {reads: 100000, writes: 1}, bus: {requests: 1, bytes: 1MiB}}
stores:
  Books: {expose: {}}
`
	p := newPlace(t, text)
	a, _ := p.reloadable()
	conn, err := nats.Connect(a.Bus().ClientURL(), nats.Timeout(kit.Limit))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	overHTTP := func() int { status, _ := p.do(a, "POST", "/books", "{}"); return status }
	overBus := func() string {
		reply, err := natsserver.Request(conn, "store.Books.list", []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		return reply.Header.Get("Nats-Service-Error-Code")
	}
	// accepted is how many requests are accepted until there is a limit for both.
	accepted := func() (n int) {
		for web, bus := true, true; web || bus; {
			if web = web && overHTTP() != http.StatusTooManyRequests; web {
				n++
			}
			if bus = bus && overBus() != "429"; bus {
				n++
			}
		}
		return n
	}
	accepted()
	exhausted := time.Now()
	p.reload(a, strings.NewReplacer("reads: 100000", "reads: 90000", "bytes: 1MiB", "bytes: 2MiB").Replace(text))
	n := accepted()
	if most := 2 * (2 + int(time.Since(exhausted).Seconds())); n > most { // one token a second comes to each
		t.Errorf("%d requests are accepted, at most %d were left", n, most)
	}
}

// before returns the part of a text before another one.
func before(text, end string) string {
	part, _, _ := strings.Cut(text, end)
	return part
}
