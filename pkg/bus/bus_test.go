package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

func open(t testing.TB, opts bus.Options) *bus.Bus {
	t.Helper()
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Server == nil && opts.URL == "" {
		opts.Server = embedded.New(embedded.Options{Folder: t.TempDir()})
	}
	b, err := bus.Open(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), kit.Limit)
		defer cancel()
		if err := b.Close(ctx); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

func events(prefix string, n, size int) []bus.Event {
	payload := bytes.Repeat([]byte("x"), size)
	list := make([]bus.Event, n)
	for i := range list {
		id := fmt.Sprintf("%s-%d", prefix, i)
		list[i] = bus.Event{ID: id, Subject: event.Subject(event.StoreSaved, "Users", id), Payload: payload}
	}
	return list
}

func stored(t testing.TB, b *bus.Bus) uint64 {
	t.Helper()
	stream, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Msgs
}

func subjects(t testing.TB, b *bus.Bus) []string {
	t.Helper()
	stream, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	state := stream.CachedInfo().State
	for seq := state.FirstSeq; seq <= state.LastSeq; seq++ {
		m, err := stream.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, m.Subject)
	}
	return list
}

func TestEventsAreStoredInOrder(t *testing.T) {
	for _, n := range []int{1, 2, 499, 500, 501, 1000, 5000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			b := open(t, bus.Options{})
			list := events("e", n, 100)
			if err := b.Publish(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			got := subjects(t, b)
			if len(got) != n {
				t.Fatalf("%d events are stored, want %d", len(got), n)
			}
			for i, e := range list {
				if got[i] != e.Subject {
					t.Fatalf("event %d has subject %s, want %s", i, got[i], e.Subject)
				}
			}
		})
	}
}

func TestRepeatedPublishIsDeduplicated(t *testing.T) {
	b := open(t, bus.Options{})
	list := events("e", 300, 100)
	for _, part := range [][]bus.Event{list[:1], list[:5], list[:200], list, list} {
		if err := b.Publish(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(t, b); n != 300 {
		t.Errorf("%d events are stored, want each of 300 once", n)
	}
}

func TestBatchIsLimitedInBytes(t *testing.T) {
	b := open(t, bus.Options{})
	if err := b.Publish(t.Context(), events("big", 30, 900<<10)); err != nil {
		t.Fatal(err)
	}
	if n := stored(t, b); n != 30 {
		t.Errorf("%d events are stored, want 30", n)
	}
}

func TestRejectedEventsDoNotAffectOthers(t *testing.T) {
	b := open(t, bus.Options{})
	list := events("e", 20, 100)
	list[3].Payload = make([]byte, 1<<20)
	list[5].Subject = "Store.Saved"
	list[7].Subject = "events.1.Store.Saved.Users.a b"
	list[9].Subject = "events.1.Store.Saved.Users.>"
	list[11].ID = ""
	err := b.Publish(t.Context(), list)
	var refused *bus.RejectedError
	if !errors.As(err, &refused) {
		t.Fatalf("got %v, want *RejectedError", err)
	}
	if len(refused.Events) != 5 {
		t.Errorf("rejected %v, want 5 events", refused.Events)
	}
	if n := stored(t, b); n != 15 {
		t.Errorf("%d events are stored, want the other 15", n)
	}
}

func TestAStreamWithoutBatchesStillTakesEvents(t *testing.T) {
	b := open(t, bus.Options{})
	change(t, b, func(c *jetstream.StreamConfig) { c.AllowBatchPublish = false })
	list := events("e", 700, 100)
	for range 2 {
		if err := b.Publish(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	if !b.BatchesOff() {
		t.Error("the stream accepted a batch: the test proves nothing")
	}
	got := subjects(t, b)
	if len(got) != 700 || got[0] != list[0].Subject || got[699] != list[699].Subject {
		t.Errorf("%d events are stored, want 700 in their order", len(got))
	}
}

func TestDeletedStreamIsCreatedAgain(t *testing.T) {
	b := open(t, bus.Options{})
	if err := b.JetStream().DeleteStream(t.Context(), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), events("e", 1, 10)); !errors.Is(err, errs.Unavailable) {
		t.Fatalf("without a stream publish reports %v, want Unavailable", err)
	}
	eventually(t, func() bool { return b.Publish(t.Context(), events("e", 1, 10)) == nil })
}

func TestEventsSurviveARestart(t *testing.T) {
	b := open(t,
		bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir(),
			Listen: fmt.Sprint("127.0.0.1:", kit.FreePort(t))})})
	url := b.ClientURL()
	if err := b.Publish(t.Context(), events("before", 50, 100)); err != nil {
		t.Fatal(err)
	}
	if err := b.StopServer(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return b.Ready(t.Context()) != nil })
	if err := b.Publish(t.Context(), events("during", 50, 100)); !errors.Is(err, errs.Unavailable) {
		t.Errorf("while the server is stopped publish reports %v, want Unavailable", err)
	}
	if b.HasInterest(event.StoreSaved) {
		t.Error("a stopped bus reports interest")
	}
	if err := b.StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if b.ClientURL() != url {
		t.Errorf("the restarted bus has URL %s, want %s", b.ClientURL(), url)
	}
	for _, name := range []string{"during", "before"} {
		if err := b.Publish(t.Context(), events(name, 50, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(t, b); n != 100 {
		t.Errorf("%d events are stored, want 100", n)
	}
}

// The state of the old connection must not be taken for that of the new one.
func TestBusIsReadyOnceTheServerHasRestarted(t *testing.T) {
	b := open(t, bus.Options{})
	for round := range 20 {
		if err := b.StopServer(); err != nil {
			t.Fatal(err)
		}
		if err := b.Publish(t.Context(), events(fmt.Sprint("during", round), 1, 10)); !errors.Is(err,
			errs.Unavailable) || b.Ready(t.Context()) == nil {
			t.Fatalf("without a server publish reports %v, want Unavailable", err)
		}
		if err := b.StartServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := b.Publish(t.Context(), events(fmt.Sprint("after", round), 1, 10)); err != nil {
			t.Fatal(err)
		}
	}
	if n := stored(t, b); n != 20 {
		t.Errorf("%d events are stored, want those of 20 rounds", n)
	}
}

func TestErrorNamesTheAddressInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = bus.Open(t.Context(), bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: l.Addr().String()}),
		Logger: slog.New(slog.DiscardHandler),
	})
	if !errors.Is(err, errs.Unavailable) || !strings.Contains(err.Error(), l.Addr().String()+": free the port") {
		t.Errorf("got %v, want Unavailable naming %s and what to do", err, l.Addr())
	}
}

func TestInvalidOptionsAreRejected(t *testing.T) {
	for name, opts := range map[string]bus.Options{
		"neither":           {},
		"both":              {Server: embedded.New(embedded.Options{Folder: "x"}), URL: "nats://127.0.0.1:1"},
		"no folder":         {Server: embedded.New(embedded.Options{})},
		"credentials":       {Server: embedded.New(embedded.Options{Folder: "x"}), Auth: bus.Auth{Credentials: "x"}},
		"address":           {Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "nowhere"})},
		"port out of range": {Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:70000"})},
		"nkey":              {URL: "nats://127.0.0.1:1", Auth: bus.Auth{NKeySeed: "nonsense"}},
	} {
		t.Run(name, func(t *testing.T) {
			opts.Logger = slog.New(slog.DiscardHandler)
			if _, err := bus.Open(t.Context(), opts); !errors.Is(err, errs.Invalid) {
				t.Errorf("got %v, want Invalid", err)
			}
		})
	}
}

func TestEmbeddedServerRequiresThePassword(t *testing.T) {
	b := open(t, bus.Options{
		Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0"}),
		Auth:   bus.Auth{User: "front", Password: "secret"},
	})
	if err := b.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(b.ClientURL()); !errors.Is(err, nats.ErrAuthorization) {
		t.Errorf("a client without credentials gets %v, want an authorization error", err)
	}
	c, err := connect(b.ClientURL(), nats.UserInfo("front", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}

func TestHasInterestFollowsSubscriptions(t *testing.T) {
	b := open(t, bus.Options{Server: embedded.New(embedded.Options{Folder: t.TempDir(), Listen: "127.0.0.1:0"})})
	if b.HasInterest(event.StoreGet) {
		t.Error("interest before the first subscription")
	}
	c, err := connect(b.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s, err := c.SubscribeSync("Store.*")
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return b.HasInterest(event.StoreGet) })
	b.Live(event.StoreGet, []byte("hello"))
	m, err := natsserver.Next(s)
	if err != nil || m.Subject != "Store.Get" || string(m.Data) != "hello" {
		t.Errorf("received %v, %v", m, err)
	}
	if err := s.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool { return !b.HasInterest(event.StoreGet) })
}

func TestLiveEventsAreNotStored(t *testing.T) {
	b := open(t, bus.Options{})
	if _, err := natsserver.Request(b.Conn(), string(event.StoreSaved), nil); !errors.Is(err, nats.ErrNoResponders) {
		t.Errorf("a request on Store.Saved gets %v, want no responders", err)
	}
	b.Live(event.StoreSaved, []byte("{}"))
	if n := stored(t, b); n != 0 {
		t.Errorf("%d events are stored, want none", n)
	}
}

func TestLimitsAreAppliedAndUpdated(t *testing.T) {
	folder := t.TempDir()
	limited := func(l bus.Limits) jetstream.StreamConfig {
		b, err := bus.Open(t.Context(), bus.Options{Server: embedded.New(embedded.Options{Folder: folder}), Events: l,
			Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close(t.Context())
		stream, err := b.JetStream().Stream(t.Context(), bus.StreamEvents)
		if err != nil {
			t.Fatal(err)
		}
		return stream.CachedInfo().Config
	}
	if c, d := limited(bus.Limits{}), bus.DefaultLimits(); c.MaxAge != d.MaxAge || c.MaxBytes != d.MaxBytes ||
		c.MaxMsgs != d.MaxMessages {
		t.Errorf("without limits the stream has %v, %d, %d", c.MaxAge, c.MaxBytes, c.MaxMsgs)
	}
	if c := limited(bus.Limits{MaxAge: time.Hour, MaxBytes: 1 << 20, MaxMessages: 10}); c.MaxAge != time.Hour ||
		c.MaxBytes != 1<<20 || c.MaxMsgs != 10 {
		t.Errorf("with limits the stream has %v, %d, %d", c.MaxAge, c.MaxBytes, c.MaxMsgs)
	}
	if c := limited(bus.Limits{MaxAge: -1, MaxBytes: -1, MaxMessages: -1}); c.MaxAge != 0 || c.MaxBytes != -1 ||
		c.MaxMsgs != -1 {
		t.Errorf("without bounds the stream has %v, %d, %d", c.MaxAge, c.MaxBytes, c.MaxMsgs)
	}
}

func TestOldestEventsAreRemovedFirst(t *testing.T) {
	b := open(t, bus.Options{Events: bus.Limits{MaxMessages: 10}})
	list := events("e", 25, 10)
	if err := b.Publish(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	if got := subjects(t, b); len(got) != 10 || got[0] != list[15].Subject {
		t.Errorf("%d events are kept, the first is %s", len(got), got[0])
	}
}

// eventually waits until a condition holds.
func eventually(t testing.TB, ok func() bool) {
	t.Helper()
	kit.WaitFor(t, "the condition", ok)
}

// connect connects with a plain NATS client.
func connect(url string, options ...nats.Option) (*nats.Conn, error) {
	return nats.Connect(url, append(options, nats.Timeout(kit.Limit))...)
}
