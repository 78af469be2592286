package events_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/api"
	"belfry/pkg/api/apitest"
	"belfry/pkg/api/sse"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// bell is a bus and the hub of a front whose events are published there.
type bell struct {
	*testing.T
	bus *bus.Bus
	hub *sse.Hub
}

func newBell(t *testing.T) *bell {
	t.Helper()
	b, err := bus.Open(t.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir()}), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	return &bell{T: t, bus: b}
}

// Committed publishes at once.
func (b *bell) Committed(_ string, p driver.Pending) {
	if err := b.bus.Publish(context.Background(),
		[]bus.Event{{ID: p.ID, Subject: p.Subject, Payload: p.Payload}}); err != nil {
		b.Error(err)
	}
	b.bus.Live(event.StoreSaved, nil) // any bell wakes who listens
}

// outbox sets this bell as the outbox of a store.
func (b *bell) outbox(o *store.Options) { o.Outbox = b }

// option gives a front the hub, over stores whose events go into the bus.
func (b *bell) option(heartbeat time.Duration, more ...*store.Store) func(*api.Options) {
	return func(o *api.Options) {
		books := o.Stores["Books"].WithOptions(b.outbox)
		store.NewSet([]*store.Store{o.Stores["Authors"], books}, nil)
		o.Stores["Books"] = books
		stores := append([]*store.Store{books}, more...)
		b.hub = sse.New(sse.Options{Bus: b.bus, Stores: stores,
			Identity: []string{"Sessions", "Users"}, EventStreams: config.EventStreams{Clients: 10,
				Heartbeat: cmp.Or(heartbeat, 15*time.Second), Buffer: 16 << 20}})
		b.Cleanup(b.hub.Close)
		o.Events = b.hub
	}
}

// stream is a reply that does not end.
type stream struct {
	*apitest.Front
	*http.Response
	lines *bufio.Reader
}

// listen opens a stream, and waits until it is ready.
func listen(f *apitest.Front, query string, headers ...string) *stream {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	f.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, "GET", f.URL+"/events"+query, nil)
	f.Must(err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.Client().Do(r)
	f.Must(err)
	f.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != 200 {
		f.Fatal(f.Read(resp).Text)
	}
	s := &stream{f, resp, bufio.NewReader(resp.Body)}
	s.until("data: {}")
	return s
}

// until reads up to a line that holds a text, and returns it.
func (s *stream) until(text string) string {
	s.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if strings.Contains(line, text) {
			return line
		}
		if err != nil {
			s.Fatalf("the stream ended before %q: %v", text, err)
		}
	}
}

// rest reads to the end of the stream.
func (s *stream) rest() string {
	s.Helper()
	text, err := io.ReadAll(s.lines)
	s.Must(err)
	return string(text)
}

func TestEventsOverHTTP(t *testing.T) {
	t.Parallel()
	b := newBell(t)
	f := apitest.Start(t, b.option(0))
	s := listen(f, "?store=Books&event=Store.Saved,Store.Deleted")
	for name, want := range map[string]string{
		"Content-Type": "text/event-stream", "Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no",
		"Content-Encoding": "", "Content-Length": "", "X-Content-Type-Options": "nosniff",
	} {
		if got := s.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	f.Create("emma")
	f.Do("DELETE", "/books/emma", "").Want(204)
	first := strings.TrimSpace(strings.TrimPrefix(s.until("id: "), "id: "))
	if got := s.until("event: "); got != "event: Store.Saved\n" {
		t.Error(got)
	}
	if got := s.until("data: "); !strings.Contains(got, `"object":{"uuid":"emma"`) {
		t.Error(got)
	}
	second := strings.TrimSpace(strings.TrimPrefix(s.until("id: "), "id: "))
	if len(first) < 40 || len(first) != len(second) || first == second {
		t.Errorf("the ids are %s and %s", first, second)
	}

	// The header wins over the query, which a browser repeats.
	listen(f, "?lastEventId=0", "Last-Event-ID", first).until("event: Store.Deleted\n")
	listen(f, "?lastEventId=0").until("event: Store.Saved\n")

	r := f.Do("HEAD", "/events?store=Books", "").Want(200).HasHeader("Content-Type", "text/event-stream")
	if r.Text != "" {
		t.Error(r.Text)
	}
	for says, query := range map[string]string{
		`store "Nope" has no event stream`:   "?store=Books,Nope",
		`event "Store.Save" is not streamed`: "?event=Store.Save", `parameter "filters" is unknown`: "?filters=x",
		"name the store whose objects": "?filter=has(title)", "filter: ": "?store=Books&filter=title",
		"filter occurs more than once": "?store=Books&filter=n==1&filter=n==2",
		"fields occurs more than once": "?fields=a&fields=b", "fields: a name is missing": "?fields=a,,b",
		"uuid contains more than 100 names": "?uuid=" + strings.Repeat("a,", 100) + "a",
		`"a/b" is not a uuid`:               "?uuid=a%2Fb", "uuid contains an empty name": "?uuid=",
		"longer than 4096 bytes":                 "?store=Books&filter=" + strings.Repeat("x", 5000),
		`parameter store contains an empty name`: "?store=", `event contains an empty name`: "?event=Store.Saved,,",
		"store contains more than 1000 names": "?store=" + strings.Repeat("Books,", 1000) + "Books",
		"event contains more than 1000 names": "?event=" + strings.Repeat("Store.Saved,", 1000) + "Store.Saved",
		"as it was sent":                      "?lastEventId=x",
		"more than once":                      "?lastEventId=1&lastEventId=1", "percent-encoded": "?store=%zz",
	} {
		f.Do("GET", "/events"+query, "").Want(400).Says(says)
	}
	f.Do("GET", "/events", "", "Last-Event-ID", "-1").Want(400).Says("as it was sent")
	f.Do("GET", "/events", "", "Last-Event-ID", first+"x").Want(400)
	f.Do("POST", "/events", "").Want(405)
	apitest.Start(t).Do("GET", "/events", "").Want(404)
}

// A page of one object receives its events alone, and a page with a filter what enters, stays and leaves.
func TestEventsOfWhatAPageShows(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, newBell(t).option(0))
	one := listen(f, "?uuid=emma&uuid=a,b&fields=title")
	some := listen(f, "?store=Books&filter="+url.QueryEscape(`title == "Emma"`))
	f.Create("persuasion")
	f.Create("emma")
	f.Do("PATCH", "/books/emma", `{"title":"Ema"}`, "Content-Type", "application/merge-patch+json").Want(200)
	f.Do("DELETE", "/books/emma", "").Want(204)
	f.Create("end")
	for _, want := range []string{"event: Store.Saved\n", "event: Store.Updated\n", "event: Store.Deleted\n"} {
		if got := one.until("event: "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		if got := one.until("data: "); !strings.Contains(got, `"uuid":"emma"`) || strings.Contains(got, `"created"`) {
			t.Error(got)
		}
	}
	for _, want := range []string{"event: Store.Saved\n", "event: Store.Saved\n", "event: left\n"} {
		if got := some.until("event: "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := some.until("data: "); !strings.HasPrefix(got, `data: {"store":"Books","uuid":"emma","revision":"`) ||
		strings.Contains(got, "title\":") {
		t.Error(got)
	}
	if got := some.until("data: "); !strings.Contains(got, `"uuid":"end"`) {
		t.Error(got)
	}
	f.Do("HEAD", "/events?store=Books&filter="+url.QueryEscape(`title == "x"`), "").Want(200)
	f.Do("HEAD", "/events?store=Books&filter=title", "").Want(400)
}

// The server's timeouts don't apply to streams.
func TestAStreamOutlastsTheServersDeadlines(t *testing.T) {
	t.Parallel()
	const deadline = 100 * time.Millisecond
	f := apitest.Start(t, newBell(t).option(deadline/4), func(s *http.Server) {
		s.ReadTimeout, s.WriteTimeout = deadline, deadline
		s.ReadHeaderTimeout, s.IdleTimeout = kit.Limit, kit.Limit // a busy machine may exceed them
	})
	s := listen(f, "")
	for range 20 {
		s.until(":\n")
	}
	_, err := f.Books.Save(t.Context(), nil, "emma") // a request has no more than the deadline
	f.Must(err)
	s.until("event: Store.Saved")
}

// The end of an HTTP/1.0 stream is the end of its connection.
func TestEventsOverHTTP10(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, newBell(t).option(0))
	conn := f.Dial()
	_, err := io.WriteString(conn, "GET /events HTTP/1.0\r\n\r\n")
	f.Must(err)
	lines := bufio.NewReader(conn)
	for line := ""; !strings.HasPrefix(line, "id: "); {
		line, err = lines.ReadString('\n')
		f.Must(err)
	}
	f.Create("emma")
	for line := ""; line != "event: Store.Saved\n"; {
		line, err = lines.ReadString('\n')
		f.Must(err)
	}
}

// A server that stops ends its streams at once with the reason, whether or not the
// clients read them.
func TestStreamsDoNotHoldUpAServerThatStops(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, newBell(t).option(0))
	s := listen(f, "")
	deaf := f.Dial()
	_, err := io.WriteString(deaf, "GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
	f.Must(err)
	f.Must(deaf.SetReadBuffer(1 << 10))
	for range 40 { // more than the systems in between keep
		f.Do("POST", "/books", fmt.Sprintf(`{"pad":%q}`, strings.Repeat("x", 200<<10))).Want(201)
		s.until("event: Store.Saved")
	}
	done := make(chan error, 1)
	go func() { done <- f.Config.Shutdown(f.Context()) }()
	var failed error
	if err := kit.Await(20*time.Second, func() error { // less than a write may take
		select {
		case failed = <-done:
			return nil
		default:
			return errors.New("the server has not stopped")
		}
	}); err != nil {
		t.Fatal(err)
	}
	f.Must(failed)
	if text := s.rest(); !strings.Contains(text, "event: dropped\ndata: {\"reason\":\"the server stops\"}\n\n") {
		t.Errorf("%.200q", text)
	}
}

// gateWith starts a front with accounts, and a store whose objects only their
// owners may read.
func gateWith(t *testing.T, heartbeat time.Duration) (*apitest.Front, *store.Store) {
	t.Helper()
	b := newBell(t)
	rules, problems := policy.Compile(policy.Rules{Owner: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	folder, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	var notes *store.Store
	f := apitest.StartLogin(t, 1, func(o *account.Options) {
		o.Sessions, o.Users = o.Sessions.WithOptions(b.outbox), o.Users.WithOptions(b.outbox)
	}, func(o *api.Options) {
		var err error
		notes, err = store.Open(t.Context(), folder, store.Options{Name: "Notes", Policy: rules, Outbox: b})
		if err != nil {
			t.Fatal(err)
		}
		b.option(heartbeat, notes)(o)
	})[0]
	return f, notes
}

// The stream of a session ends with it, wherever the request carries the token and
// however the session ends; it does not continue as an anonymous one.
func TestStreamEndsWithItsSession(t *testing.T) {
	t.Parallel()
	for name, carry := range map[string]func(token string) []string{
		"cookie": func(token string) []string { return []string{"Cookie", "belfry=" + token} },
		"bearer": func(token string) []string { return []string{"Authorization", "Bearer " + token} },
	} {
		for ending, end := range map[string]func(f *apitest.Front, token string){
			"logout": func(f *apitest.Front, token string) {
				f.Do("DELETE", "/auth", "", "Authorization", "Bearer "+token).Want(204)
			},
			"password": func(f *apitest.Front, token string) {
				f.Do("PUT", "/auth/email", `{"password":"a fine password","newPassword":"another password"}`,
					"Authorization", "Bearer "+token).Want(204)
			},
			"disabling": func(f *apitest.Front, token string) {
				var me struct{ UUID string }
				f.Me(token).JSON(&me)
				_, err := f.Auth.Admin.SetDisabled(f.Context(), me.UUID, true)
				f.Must(err)
			},
		} {
			t.Run(name+", "+ending, func(t *testing.T) {
				f, notes := gateWith(t, 0)
				token := f.Register("ada@example.com", "a fine password")
				var me struct{ UUID string }
				f.Me(token).JSON(&me)
				mine, nobodys := listen(f, "?store=Notes,Books", carry(token)...), listen(f, "?store=Notes,Books")
				write := func(uuid, owner string) {
					_, err := notes.Save(f.Context(), object.Object{"user": []byte(`"` + owner + `"`)}, uuid)
					f.Must(err)
				}
				write("others", "bob")
				write("mine", me.UUID)
				if line := mine.until("data: "); !strings.Contains(line, `"uuid":"mine"`) {
					t.Error(line)
				}
				end(f, token)
				write("later", me.UUID)
				f.Create("emma")
				if text := mine.rest(); strings.Contains(text, "later") || strings.Contains(text, "emma") ||
					!strings.Contains(text, `event: dropped`) || !strings.Contains(text, "your session has ended") {
					t.Errorf("%q", text)
				}
				if line := nobodys.until("data: "); !strings.Contains(line, "emma") {
					t.Error(line)
				}
			})
		}
	}
}

func TestAStreamWithABadToken(t *testing.T) {
	t.Parallel()
	f, _ := gateWith(t, 0)
	f.Do("GET", "/events", "", "Authorization", "Bearer nonsense").Want(401)
	f.Do("HEAD", "/events", "", "Authorization", "Bearer nonsense").Want(401)
	listen(f, "", "Cookie", "belfry=nonsense") // anonymous, as for any other request
}

// A long stream is not logged as slow, nor a client that disconnects as an error.
func TestLongStreamIsLoggedAtDebug(t *testing.T) {
	t.Parallel()
	f := apitest.Start(t, newBell(t).option(10*time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, "GET", f.URL+"/events", nil)
	f.Must(err)
	r.Header.Set("X-Request-Id", "the-stream")
	resp, err := f.Client().Do(r)
	f.Must(err)
	began := time.Now()
	lines := bufio.NewReader(resp.Body)
	for time.Since(began) < 1100*time.Millisecond { // longer than a request that is not logged as slow
		_, err := lines.ReadString('\n')
		f.Must(err)
	}
	cancel()
	_, err = io.Copy(io.Discard, lines)
	if !errors.Is(err, context.Canceled) && !errors.Is(err, net.ErrClosed) {
		t.Errorf("the stream ended with %v", err)
	}
	if record := f.Logs.Of("the-stream"); record["level"] != "DEBUG" || record["status"] != 200.0 {
		t.Errorf("%v", record)
	}
}
