package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
	"belfry/test/kit/natsserver"
)

// degraded returns an error unless a process is ready and degraded by what says so, or by nothing for "".
func degraded(a *App, says string) error {
	all, err := a.wiring.health.Ready(context.Background())
	switch {
	case err != nil:
		return fmt.Errorf("not ready: %w", err)
	case says == "" && len(all) > 0,
		says != "" && !slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, says) }):
		return fmt.Errorf("degraded: %q, want %q", all, says)
	}
	return nil
}

// notReady returns an error unless a process is not ready for a reason.
func notReady(a *App, says string) error {
	if all, err := a.wiring.health.Ready(context.Background()); err == nil || !strings.Contains(err.Error(), says) {
		return fmt.Errorf("ready: %q, %w; want %q", all, err, says)
	}
	return nil
}

// A bus that replies and accepts no events is reported; writes are accepted.
func TestABusThatAcceptsNoEventsIsDegraded(t *testing.T) {
	url := natsserver.Serve(t, &server.Options{JetStream: true, StoreDir: t.TempDir()}).ClientURL()
	p := newPlace(t, strings.Replace(books, `bus: {listen: ""}`, fmt.Sprintf("bus: {url: %q}", url), 1))
	a := p.start()
	kit.WaitUntil(t, func() error { return degraded(a, "") })
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
	kit.WaitUntil(t, func() error { return degraded(a, "does not accept events") })
	if _, err := js.UpdateStream(t.Context(), usual); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error { return degraded(a, "") })
}

// A process that clients send no requests to is ready only if it can do its work.
func TestAWorkerWithoutTheBusIsNotReady(t *testing.T) {
	p := newPlace(t, books)
	a := p.startRoles(mapping.Name, cascade.Name)
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	if err := a.Bus().StopServer(); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error { return notReady(a, "the bus is unavailable") })
	p.want(a, "GET", "/readyz", "", http.StatusServiceUnavailable)
	p.want(a, "GET", "/livez", "", http.StatusOK)
	if err := a.Bus().StartServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	kit.WaitUntil(t, func() error { return degraded(a, "") })
}

// away is a backend that is unavailable while it is switched off.
type away struct {
	driver.Backend
	off *atomic.Bool
}

func (b away) Ping(ctx context.Context) error {
	if b.off.Load() {
		return errs.New(errs.Unavailable, "it is switched off")
	}
	return b.Backend.Ping(ctx)
}

// Whoever takes a front out of the balancer although others of its stores work takes out all of them. What holds no
// store that clients use says nothing about what they can do.
func TestAFrontIsReadyAsLongAsABackendThatClientsUseWorks(t *testing.T) {
	p := newPlace(t, strings.Replace(books,
		"stores:", "metrics: {listen: '127.0.0.1:0'}\nbackends: {default: {}, second: {folder: second}, third: "+
			"{folder: third}}\nstores:\n  Notes: {backend: second, expose: {}}\n  Own: {backend: third}", 1))
	off := map[string]*atomic.Bool{}
	a := p.startWith(nil, func(a *App) {
		for name, b := range a.now().Backends {
			if off[name] == nil {
				off[name] = &atomic.Bool{}
				a.now().Backends[name] = away{b, off[name]}
			}
		}
	})
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	off["second"].Store(true)
	kit.WaitUntil(t, func() error { return degraded(a, "backend second is unavailable") })
	p.want(a, "POST", "/authors", `{}`, http.StatusCreated)
	off["default"].Store(true)
	kit.WaitUntil(t, func() error { return notReady(a, "backend default is unavailable") }) // third alone serves nobody
	off["second"].Store(false)
	kit.WaitUntil(t, func() error { return degraded(a, "backend default is unavailable") })
	off["default"].Store(false)
	kit.WaitUntil(t, func() error { return degraded(a, "") })
	text := p.metrics(a)
	for _, line := range []string{"belfry_ready 1", `belfry_part_up{kind="backend",name="second"} 1`,
		`belfry_part_up{kind="bus",name=""} 1`} {
		if !strings.Contains(text, "\n"+line+"\n") {
			t.Errorf("the metrics lack %s", line)
		}
	}
}

// Only a restart mends a folder that has failed. What is merely unavailable does not end a process.
func TestAProcessThatHasFailedIsNotAlive(t *testing.T) {
	p := newPlace(t, books)
	a := p.start()
	p.want(a, "GET", "/livez", "", http.StatusOK)
	a.lifetime.Fail(errs.New(errs.Unavailable, "backend default has failed"))
	for _, path := range []string{"/livez", "/healthz"} {
		if status, text := p.do(a, "GET", path, ""); status != http.StatusServiceUnavailable ||
			!strings.Contains(text, "not alive: backend default has failed") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}
