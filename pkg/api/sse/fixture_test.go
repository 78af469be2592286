package sse_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/pkg/api/sse"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// fixture has stores whose events go into a bus, and a Hub that streams them.
type fixture struct {
	*testing.T
	bus     *bus.Bus
	folder  string // of the bus
	backend driver.Backend
	stores  map[string]*store.Store
	logged  *kit.Tail
	hub     *sse.Hub
	opts    sse.Options
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{T: t, stores: map[string]*store.Store{}, logged: &kit.Tail{}}
	w.opts.Logger = slog.New(slog.NewTextHandler(w.logged, nil))
	w.folder = t.TempDir()
	b, err := bus.Open(t.Context(),
		bus.Options{Server: embedded.New(embedded.Options{Folder: w.folder}), Logger: slog.New(slog.DiscardHandler)})
	w.must(err)
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	w.bus = b
	folder, err := filestore.Open(t.TempDir(), filestore.Options{})
	w.must(err)
	t.Cleanup(func() { _ = folder.Close() })
	w.backend = folder
	return w
}

func (w *fixture) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// open opens a store; rules of nil are none.
func (w *fixture) open(name string, rules *policy.Rules, private ...string) *store.Store {
	w.Helper()
	o := store.Options{Name: name, Private: private, Outbox: w, ClientUUIDs: true}
	if rules != nil {
		p, problems := policy.Compile(*rules)
		if len(problems) > 0 {
			w.Fatal(problems)
		}
		o.Policy = p
	}
	s, err := store.Open(w.Context(), w.backend, o)
	w.must(err)
	w.stores[name] = s
	return s
}

// Committed publishes at once, as a relay does a little later.
func (w *fixture) Committed(_ string, p driver.Pending) {
	w.must(w.bus.Publish(context.Background(), []bus.Event{{ID: p.ID, Subject: p.Subject, Payload: p.Payload}}))
	e, err := event.Decode(p.Payload)
	w.must(err)
	w.bus.Live(e.Event, p.Payload)
}

// start makes the hub, of the stores that are open.
func (w *fixture) start(change ...func(*sse.Options)) *fixture {
	w.Helper()
	o := w.opts
	o.EventStreams = config.EventStreams{Clients: 10_000, Heartbeat: 15 * time.Second, Buffer: 16 << 20}
	o.Bus, o.Sealer = w.bus, sealer
	for _, name := range []string{"Books", "Notes", "Users"} {
		if s := w.stores[name]; s != nil {
			o.Stores = append(o.Stores, s)
		}
	}
	for _, c := range change {
		c(&o)
	}
	w.hub = sse.New(o)
	w.Cleanup(w.hub.Close)
	return w
}

func (w *fixture) save(name, uuid, body string) {
	w.Helper()
	o, err := object.Parse([]byte(body))
	w.must(err)
	s := w.stores[name]
	if exists, err := s.Exists(w.Context(), uuid); err != nil || !exists {
		w.must(err)
		_, err = s.Save(w.Context(), o, uuid)
		w.must(err)
		return
	}
	_, err = s.Update(w.Context(), o, store.UpdateOptions{UUID: uuid})
	w.must(err)
}

func (w *fixture) delete(name, uuid string) {
	w.Helper()
	w.must(w.stores[name].Delete(w.Context(), uuid, 0))
}

// publish puts into the log what no store has written.
func (w *fixture) publish(subject, payload string) {
	w.Helper()
	w.must(w.bus.Publish(w.Context(), []bus.Event{{ID: object.NewUUID(), Subject: subject, Payload: []byte(payload)}}))
}

// message is one of a stream.
type message struct {
	id, event string
	data      map[string]any
}

// what is a message in short: event and uuid, or event and reason.
func (m message) what() string {
	if m.data["uuid"] != nil {
		return fmt.Sprint(m.event, " ", m.data["store"], " ", m.data["uuid"])
	}
	return m.event
}

// testClient is a client of the Hub.
type testClient struct {
	*fixture
	cancel func()
	done   chan struct{}
	stop   chan struct{}

	mu       sync.Mutex
	messages []message
	last     string   // position of the last id
	ids      []string // as they were sent
	beats    int
	begun    bool
	err      error
	viewer   *sse.Viewer
	identify error
	asked    int // who it is
	hold     chan struct{}
	held     int // messages that hold has kept waiting
}

func anonymous() *sse.Viewer { return &sse.Viewer{} }

func user(uuid string) *sse.Viewer {
	return &sse.Viewer{User: object.Object{"uuid": json.RawMessage(strconv.Quote(uuid))}, Key: uuid, UUID: uuid,
		Session: "session-of-" + uuid}
}

// sealer seals the ids of all hubs.
var sealer = func() *seal.Sealer {
	s, err := seal.New(bytes.Repeat([]byte{42}, seal.KeySize))
	if err != nil {
		panic(err)
	}
	return s
}()

// after is a position of the log, for connect.
func after(position string) string {
	if position == "0" {
		return position
	}
	return "after " + position
}

// id is the id at a position of the log: with the mark of the event that is there, if there is one.
func (w *fixture) id(position string) string {
	w.Helper()
	n, err := strconv.ParseUint(position, 10, 64)
	w.must(err)
	state, err := eventlog.GetState(w.Context(), w.bus.JetStream())
	w.must(err)
	mark := uint64(0)
	page, _, err := eventlog.Page(w.Context(), w.bus.Conn(), n, eventlog.Limit{Events: 1, Bytes: 1})
	w.must(err)
	if len(page) > 0 && page[0].Sequence == n {
		mark = page[0].Mark()
	}
	return sealID(n, state.Mark(), mark)
}

func sealID(sequence, log, event uint64) string {
	content := binary.BigEndian.AppendUint64(nil, sequence)
	content = binary.BigEndian.AppendUint64(content, log)
	return sealer.Seal("events", binary.BigEndian.AppendUint64(content, event))
}

// position is the position of an id in the log.
func position(t testing.TB, id string) string {
	content, ok := sealer.Open("events", id)
	if !ok || len(content) != 24 && len(content) != 40 {
		t.Errorf("%q is not a sealed id", id)
		return ""
	}
	return strconv.FormatUint(binary.BigEndian.Uint64(content), 10)
}

// listen connects a client, and waits until its stream has begun.
func (w *fixture) listen(want sse.Subscription, viewer *sse.Viewer) *testClient {
	w.Helper()
	e := w.connect(want, viewer)
	kit.WaitUntil(w, func() error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.last == "" && e.err == nil {
			return errors.New("the stream has not begun")
		}
		return nil
	})
	return e
}

// connect connects a client.
func (w *fixture) connect(want sse.Subscription, viewer *sse.Viewer) *testClient {
	if position, ok := strings.CutPrefix(want.After, "after "); ok {
		want.After = w.id(position)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &testClient{fixture: w, cancel: cancel, done: make(chan struct{}), stop: make(chan struct{}), viewer: viewer}
	go func() {
		defer close(e.done)
		err := w.hub.Serve(ctx, sse.Client{Subscription: want, Address: "192.0.2.1", Begin: e.begin, Send: e.send,
			Identify: e.who, Stop: e.stop})
		e.mu.Lock()
		defer e.mu.Unlock()
		e.err = err
	}()
	w.Cleanup(e.leave)
	return e
}

func (e *testClient) leave() {
	e.cancel()
	e.mu.Lock()
	if e.hold != nil {
		close(e.hold)
		e.hold = nil
	}
	e.mu.Unlock()
	<-e.done
}

func (e *testClient) begin() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.begun = true
}

func (e *testClient) who(context.Context) (*sse.Viewer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked++
	return e.viewer, e.identify
}

// becomes changes the result of the client's authentication.
func (e *testClient) becomes(v *sse.Viewer, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.viewer, e.identify = v, err
}

func (e *testClient) send(data []byte) error {
	e.mu.Lock()
	hold := e.hold
	if hold != nil {
		e.held++
	}
	e.mu.Unlock()
	if hold != nil {
		<-hold
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !bytes.HasSuffix(data, []byte("\n\n")) {
		e.Errorf("a frame does not end: %q", data)
	}
	for block := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte("\n\n")), []byte("\n\n")) {
		e.take(string(block))
	}
	return nil
}

func (e *testClient) take(block string) {
	m := message{}
	for line := range strings.SplitSeq(block, "\n") {
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case field == "id":
			m.id = position(e, value)
			e.last, e.ids = m.id, append(e.ids, value)
		case field == "event":
			m.event = value
		case field == "data":
			if err := json.Unmarshal([]byte(value), &m.data); err != nil {
				e.Errorf("data is not JSON: %q", value)
			}
		case line == ":":
			e.beats++
		case field != "retry":
			e.Errorf("not a line of a stream: %q", line)
		}
	}
	if m.event != "" && m.event != "ready" {
		e.messages = append(e.messages, m)
	}
}

func (e *testClient) received() []message {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]message(nil), e.messages...)
}

func (e *testClient) lastID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.last
}

func (e *testClient) heartbeats() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.beats
}

// receives waits until the client has received exactly these messages.
func (e *testClient) receives(want ...string) {
	e.Helper()
	kit.WaitUntil(e, func() error {
		var got []string
		for _, m := range e.received() {
			got = append(got, m.what())
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			return fmt.Errorf("received\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

// ends waits for the end of the stream, and returns its reason.
func (e *testClient) ends() string {
	e.Helper()
	<-e.done
	all := e.received()
	if len(all) == 0 || all[len(all)-1].event != "dropped" {
		return ""
	}
	return all[len(all)-1].data["reason"].(string)
}

// refused waits for the error of a stream that was refused.
func (e *testClient) refused() error {
	<-e.done
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.begun || e.err == nil {
		e.Fatalf("the stream has begun, or ended without an error: %v", e.err)
	}
	return e.err
}

func kind(t testing.TB, err error, want errs.Kind, says string) {
	t.Helper()
	if (err == nil || errs.KindOf(err) != want) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v; want %s that says %q", err, want, says)
	}
}
