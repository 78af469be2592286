package app

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/listeners/mapping"
	"belfry/pkg/app/messaging"
	"belfry/pkg/bus"
	"belfry/pkg/listener"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// checkBusOften has a belfry that starts compare the settings of its bus more often.
func checkBusOften(t *testing.T) {
	every := messaging.CheckInterval
	messaging.CheckInterval = 50 * time.Millisecond
	t.Cleanup(func() { messaging.CheckInterval = every })
}

// A log that may lose events is reported at the start and while belfry runs, until it is as belfry needs it; requests
// are served.
func TestABusThatKeepsNoPromiseIsDegraded(t *testing.T) {
	checkBusOften(t)
	url := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	js := natsserver.JetStream(t, url)
	config := bus.StreamConfigs(bus.Limits{})[0]
	config.Storage = jetstream.MemoryStorage
	if _, err := js.CreateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	p := newPlace(t, strings.Replace(books, `bus: {listen: ""}`, fmt.Sprintf("bus: {url: %q}", url), 1)+
		"metrics: {listen: '127.0.0.1:0'}\n")
	a := p.start()
	const storage = "stream EVENTS has another storage than belfry needs: what it has is lost when its server restarts"
	kit.WaitUntil(t, func() error { return degraded(a, storage) })
	p.want(a, "POST", "/authors", `{}`, http.StatusCreated)
	if text := p.metrics(a); !strings.Contains(text, "\nbelfry_bus_shortcomings 1\n") {
		t.Errorf("the metrics lack it:\n%s", text)
	}

	s, err := js.Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	consumers := s.CachedInfo().State.Consumers
	if err := js.DeleteStream(t.Context(), bus.StreamEvents); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() (err error) {
		p.want(a, "POST", "/authors", `{}`, http.StatusCreated) // belfry creates the stream when it finds none
		if s, err = js.Stream(t.Context(), bus.StreamEvents); err != nil {
			return err // until then its settings are no fault
		}
		// The server reads the settings of a stream while it makes a consumer, beside an update of them: a race of its
		// own.
		if n := s.CachedInfo().State.Consumers; n < consumers {
			return fmt.Errorf("%d of %d consumers", n, consumers)
		}
		return degraded(a, "")
	})
	changed := s.CachedInfo().Config
	changed.Retention = jetstream.InterestPolicy
	if _, err := js.UpdateStream(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error { return degraded(a, "stream EVENTS has another retention than belfry needs") })
}

// Nothing shows that a listener is paused but what belfry says: its events wait.
func TestAPausedListenerIsDegraded(t *testing.T) {
	checkBusOften(t)
	p := newPlace(t, books)
	a := p.start()
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	js := a.Bus().JetStream()
	if _, err := listener.Setup(t.Context(), a.Bus(), listener.Spec{Name: "tea"}, false); err != nil {
		t.Fatal(err)
	}
	for consumer, says := range map[string]string{
		mapping.Name: "consumer mapping of stream EVENTS has another pause_until than belfry needs: it is paused",
		"tea":        "listener tea is paused and receives nothing",
	} {
		// A worker that is still being started may put its consumer once more, without the pause.
		kit.WaitUntil(t, func() error {
			if _, err := js.PauseConsumer(t.Context(), bus.StreamEvents, consumer,
				time.Now().Add(time.Hour)); err != nil {
				return err
			}
			listed, err := messaging.Listeners(t.Context(), a.Bus())
			if err != nil {
				return err
			}
			for _, l := range listed {
				if (l.Name == consumer) == l.PausedUntil.IsZero() {
					return fmt.Errorf("with %s paused, %s is paused until %s", consumer, l.Name, l.PausedUntil)
				}
			}
			return degraded(a, says)
		})
		if _, err := js.ResumeConsumer(t.Context(), bus.StreamEvents, consumer); err != nil {
			t.Fatal(err)
		}
		kit.WaitUntil(t, func() error { return degraded(a, "") })
	}
}

// What the bus never accepts reaches no listener: requests and other events go on, and somebody has to know.
func TestEventsThatTheBusRefusesAreDegraded(t *testing.T) {
	url := natsserver.Serve(t,
		&server.Options{JetStream: true, StoreDir: t.TempDir(), MaxPayload: 16 << 10}).ClientURL()
	p := newPlace(t, strings.Replace(books, `bus: {listen: ""}`, fmt.Sprintf("bus: {url: %q}", url), 1)+"metrics: {listen: '127.0.0.1:0'}\n")
	a := p.start()
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	for range 2 {
		p.want(a, "POST", "/authors", fmt.Sprintf(`{"name":%q}`, strings.Repeat("x", 20<<10)), http.StatusCreated)
	}
	kit.WaitUntil(t, func() error { return degraded(a, "the bus refuses 2 events for good") })
	if err := degraded(a, "more than the bus accepts (16384)"); err != nil {
		t.Error(err)
	}
	if text := p.metrics(a); !strings.Contains(text, "\nbelfry_events_refused 2\n") ||
		!strings.Contains(text, "\nbelfry_ready 1\n") {
		t.Error("the metrics lack it")
	}
}
