package app

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// A bus that replies and accepts no events is reported; writes are accepted.
func TestABusThatAcceptsNoEventsIsNotReady(t *testing.T) {
	url := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	p := newPlace(t, strings.Replace(books, `bus: {listen: ""}`, fmt.Sprintf("bus: {url: %q}", url), 1))
	a := p.start()
	kit.WaitUntil(t, func() error { return a.ready(t.Context()) })
	js := natsserver.JetStream(t, url)
	s, err := js.Stream(t.Context(), bus.StreamEvents)
	if err != nil {
		t.Fatal(err)
	}
	usual := s.CachedInfo().Config
	full := usual
	full.Discard, full.MaxMsgs = jetstream.DiscardNew, 1
	if _, err := js.UpdateStream(t.Context(), full); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		p.want(a, "POST", "/authors", fmt.Sprintf(`{"uuid":"lem-%d"}`, i), http.StatusCreated)
	}
	kit.WaitFor(t, "belfry reports that the bus accepts no events", func() bool {
		err := a.ready(t.Context())
		return errors.Is(err, errs.Unavailable) && strings.Contains(err.Error(), "does not accept events")
	})
	if _, err := js.UpdateStream(t.Context(), usual); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error { return a.ready(t.Context()) })
}
