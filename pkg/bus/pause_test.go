package bus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// The request is made during the pause. A plain resume would leave its event where it is until the request expires.
func TestAResumedConsumerDeliversToARequestThatWaits(t *testing.T) {
	url := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	js := natsserver.JetStream(t, url)
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "c", AckPolicy: jetstream.AckExplicitPolicy})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.PauseConsumer(t.Context(), "S", "c", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	// A request as listeners make them. That of Fetch has heartbeats, at which the server looks for events.
	reply := js.Conn().NewInbox()
	messages, err := js.Conn().SubscribeSync(reply)
	if err != nil {
		t.Fatal(err)
	}
	request := fmt.Appendf(nil, `{"batch":1,"expires":%d}`, 3*time.Minute)
	err = js.Conn().PublishRequest(jetstream.DefaultAPIPrefix+"CONSUMER.MSG.NEXT.S.c", reply, request)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Publish(t.Context(), "s", nil); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() bool {
		info, err := c.Info(t.Context())
		return err == nil && info.Paused && info.NumWaiting == 1 && info.NumPending == 1
	})
	if err := bus.Resume(t.Context(), js, "S", "c"); err != nil {
		t.Fatal(err)
	}
	if m, err := messages.NextMsg(kit.Limit); err != nil || m.Subject != "s" && m.Reply == "" {
		t.Errorf("the request has expired without an event: %+v, %v", m, err)
	}
	eventually(t, func() bool {
		info, err := c.Info(t.Context())
		return err == nil && !info.Paused
	})
}

func TestAConsumerThatPushesIsResumed(t *testing.T) {
	url := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	js := natsserver.JetStream(t, url)
	s, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.CreatePushConsumer(t.Context(), jetstream.ConsumerConfig{Durable: "c", DeliverSubject: "to"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.PauseConsumer(t.Context(), "S", "c", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := bus.Resume(t.Context(), js, "S", "c"); err != nil {
		t.Fatal(err)
	}
	if info, err := c.Info(t.Context()); err != nil || info.Paused {
		t.Errorf("%+v, %v", info, err)
	}
}
