package bus_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// external starts a server as a cluster's.
func external(t *testing.T, port int, configure func(*server.Options)) *server.Server {
	t.Helper()
	opts := &server.Options{Port: port, JetStream: true, StoreDir: t.TempDir()}
	if configure != nil {
		configure(opts)
	}
	return natsserver.Serve(t, opts)
}

func TestConnectingIsRetriedWhileTheUserIsRejected(t *testing.T) {
	var lines logged
	p := kit.FreePort(t)
	s := external(t, p, func(o *server.Options) { o.Username, o.Password = "front", "yesterday's" })
	b := open(t, bus.Options{
		URL: s.ClientURL(), Auth: bus.Auth{User: "front", Password: "today's"},
		Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	eventually(t, func() bool {
		err := b.Ready(t.Context())
		attempts, counting := s.Varz(nil)
		return err != nil && strings.Contains(err.Error(), "rejects the user") && counting == nil &&
			attempts.TotalConnections > 6
	})
	if n := lines.count("the server rejects the user"); n != 1 || strings.Contains(lines.String(), "today's") {
		t.Errorf("the rejection was logged %d times; want once, without the password:\n%s", n, &lines)
	}
	s.Shutdown()
	s.WaitForShutdown()
	external(t, p, func(o *server.Options) { o.Username, o.Password = "front", "today's" })
	eventually(t, func() bool { return b.Publish(t.Context(), events("e", 1, 10)) == nil })
}

func TestForgedRepliesOnTheInboxAreIgnored(t *testing.T) {
	b := open(t, bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0"})})
	c, err := connect(b.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Subscribe("events.>", func(m *nats.Msg) {
		for _, answer := range []string{"", "null", "{", "[]", `"x"`, `{"stream":5}`, `{"stream":"DEAD","seq":1}`,
			`{"stream":"","error":{"code":503}}`, `{"type":"ack"}`} {
			_ = m.Respond([]byte(answer))
			_ = c.Publish(m.Reply+".", []byte(answer))
		}
	}); err != nil {
		t.Fatal(err)
	}
	if err := c.FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	for round := range 20 {
		if err := b.Publish(t.Context(), events(fmt.Sprint("e", round), 100, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(t, b); n != 2000 {
		t.Errorf("%d events are stored, want 2000", n)
	}
	if b.BatchesOff() {
		t.Error("a forged reply disabled the batches")
	}
}

func TestPublishDoesNotBufferWhileTheServerIsStopped(t *testing.T) {
	b := open(t, bus.Options{})
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return b.Ready(t.Context()) != nil })
	for range 50 {
		if err := b.Publish(t.Context(), events("e", 100, 1000)); !errors.Is(err, errs.Unavailable) {
			t.Fatalf("publish reports %v, want Unavailable", err)
		}
	}
	// The batch in flight when the connection broke may be buffered, once.
	if n, err := b.Conn().Buffered(); err != nil || n > 500_000 {
		t.Errorf("%d bytes wait for the connection, %v", n, err)
	}
}

func TestConcurrentPublish(t *testing.T) {
	defer bus.SetPublishTimeout(kit.Limit)()
	b := open(t, bus.Options{})
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for _, n := range []int{1, 499, 500, 501, 777} {
				if err := b.Publish(t.Context(), events(fmt.Sprintf("e%d-%d", w, n), n, 50)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := stored(t, b); n != 8*(1+499+500+501+777) {
		t.Errorf("%d events are stored", n)
	}
	if b.BatchesOff() {
		t.Error("batches are disabled")
	}
}

func TestPayloadsAroundTheLimitAreStoredOrRejected(t *testing.T) {
	b := open(t, bus.Options{})
	list := events("e", 8, 0)
	limit := int(b.Conn().MaxPayload())
	for i := range list {
		list[i].Payload = make([]byte, limit-300+i*50)
	}
	err := b.Publish(t.Context(), list)
	var refused *bus.RejectedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want *RejectedError", err)
	}
	if n := stored(t, b); int(n)+len(refused.Events) != len(list) || n == 0 {
		t.Errorf("of %d events %d are stored and %d rejected", len(list), n, len(refused.Events))
	}
}

// The stream rejects an event in the middle of a batch when an administrator has
// lowered its maximum message size.
func TestEventRejectedByTheStreamDoesNotAffectItsBatch(t *testing.T) {
	b := open(t, bus.Options{})
	change(t, b, func(c *jetstream.StreamConfig) { c.MaxMsgSize = 1000 })
	list := events("e", 300, 100)
	for _, i := range []int{0, 150, 299} {
		list[i].Payload = make([]byte, 2000)
	}
	err := b.Publish(t.Context(), list)
	var refused *bus.RejectedError
	if !errors.As(err, &refused) || len(refused.Events) != 3 {
		t.Fatalf("got %v, want three rejected", err)
	}
	got := subjects(t, b)
	if len(got) != 297 {
		t.Fatalf("%d events are stored, want 297", len(got))
	}
	if got[0] != list[1].Subject || got[296] != list[298].Subject {
		t.Error("the events are out of order")
	}
}

// change updates stream EVENTS as an administrator would.
func change(t *testing.T, b *bus.Bus, how func(*jetstream.StreamConfig)) {
	t.Helper()
	stream, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	how(&config)
	if _, err := b.JetStream().UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
}

func TestRoleWithoutUpdatePermissionUsesTheStreamsAsTheyAre(t *testing.T) {
	url := production(t)
	prepare(t, url)
	var lines logged
	worker := open(t, bus.Options{
		URL: url, Auth: bus.Auth{User: "worker", Password: password("worker")},
		Events: bus.Limits{MaxMessages: 5}, Logger: slog.New(slog.NewTextHandler(&lines, nil)),
	})
	eventually(t, func() bool { return worker.Ready(t.Context()) == nil })
	if lines.count("max_msgs 1000000 instead of 5") != 1 || lines.count("belfry bus setup") != 1 {
		t.Errorf("the log does not say what differs and what to do:\n%s", lines.String())
	}
	if err := worker.Publish(t.Context(), events("e", 10, 10)); err != nil {
		t.Fatal(err)
	}
	if n := stored(t, worker); n != 10 {
		t.Errorf("%d events are stored, want 10", n)
	}
}

func TestRepeatedErrorIsLoggedOnce(t *testing.T) {
	var lines logged
	url := production(t)
	prepare(t, url)
	b := as(t, url, "front", slog.New(slog.NewTextHandler(&lines, nil)))
	for range 1000 {
		b.Live("Forbidden", []byte("{}"))
	}
	if err := b.Publish(t.Context(), events("e", 1, 10)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return lines.count("Forbidden") > 0 })
	if err := b.Conn().FlushTimeout(kit.Limit); err != nil {
		t.Fatal(err)
	}
	if n := lines.count("level=WARN"); n > 2 {
		t.Errorf("%d warnings about the same", n)
	}
}
