// Package app builds a running belfry from a configuration, and the parts of
// it that commands use alone. The order in which things start is written down
// once, in roles.go; they stop in the reverse order.
package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api/objects"
	"belfry/pkg/applied"
	"belfry/pkg/auth"
	"belfry/pkg/binary"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/sse"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/outbox"
)

// App is a belfry that serves.
type App struct {
	config   *config.Config
	log      *slog.Logger
	registry *prometheus.Registry
	plan     *plan
	roles    []string // none: all

	lock     *DataLock
	backends map[string]driver.Backend
	bus      *bus.Bus
	relay    *outbox.Relay
	set      *store.Set
	waiter   *applied.Waiter
	auth     *auth.Service
	storages map[string]storage.Storage
	binaries map[string]*binary.Service
	live     *sse.Hub
	front    front
	lacks    lacks // what listeners do without
	stopping atomic.Bool
	failed   chan error

	stops []stop // in the order of starting
}

// hopeless is how long a stop tries to publish while something is away.
const hopeless = 2 * time.Second

// stop ends one part.
type stop struct {
	name string
	do   func(ctx context.Context) error
}

// Start starts everything that a configuration asks for, and returns once it
// serves: all of it, or what the given roles are for. What has been started is
// stopped again when something fails.
func Start(ctx context.Context, c *config.Config, log *slog.Logger, roles ...string) (*App, error) {
	p, err := compile(c)
	if err == nil {
		err = checkRoles(c, roles)
	}
	if err != nil {
		return nil, err
	}
	a := &App{config: c, log: log, plan: p, roles: roles, registry: prometheus.NewRegistry(), failed: make(chan error, 1)}
	for _, step := range a.steps() {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
		}
	}
	a.warn()
	return a, nil
}

// Stop ends everything in the reverse order of starting: no new requests,
// those in flight are answered, their events published, the workers finish
// what they hold. When ctx ends first, what is left is cut off; nothing that
// was acknowledged is lost by that.
func (a *App) Stop(ctx context.Context) error {
	a.stopping.Store(true)
	var all []error
	for i := len(a.stops) - 1; i >= 0; i-- {
		s := a.stops[i]
		if err := s.do(ctx); err != nil {
			all = append(all, errs.Wrap(err, errs.KindOf(err), "stopping %s", s.name))
		}
	}
	a.stops = nil
	return errors.Join(all...)
}

// Failed tells of an end that nobody asked for: belfry can't go on and is to be
// stopped. The first is told, others follow from it.
func (a *App) Failed() <-chan error { return a.failed }

func (a *App) fail(err error) {
	select {
	case a.failed <- err:
	default:
	}
}

// Bus is the connection to the bus, which fault tests take away.
func (a *App) Bus() *bus.Bus { return a.bus }

// Set is the stores.
func (a *App) Set() *store.Set { return a.set }

// HTTPAddress is where HTTP is served.
func (a *App) HTTPAddress() string { return a.front.listener.Addr().String() }

// Banner says where everything is.
func (a *App) Banner() string {
	var b strings.Builder
	line := func(name, value string) { b.WriteString("  " + name + strings.Repeat(" ", 6-len(name)) + value + "\n") }
	b.WriteString("belfry is ready\n")
	line("HTTP", "http://"+a.HTTPAddress())
	if url := a.bus.ClientURL(); url != "" {
		line("bus", url)
	} else {
		line("bus", "inside this process only (bus.listen is empty)")
	}
	if len(a.roles) > 0 {
		line("roles", strings.Join(a.roles, ", "))
	}
	line("data", a.config.Data)
	return b.String()
}

func (a *App) onStop(name string, do func(ctx context.Context) error) {
	a.stops = append(a.stops, stop{name, do})
}

func (a *App) takeData(context.Context) error {
	lock, err := LockData(a.config.Data, "serve")
	if err != nil {
		return err
	}
	a.lock = lock
	a.onStop("the data folder's lock", func(context.Context) error { lock.Unlock(); return nil })
	return nil
}

func (a *App) openBus(ctx context.Context) error {
	o, err := a.plan.busOptions()
	if err != nil {
		return err
	}
	o.Logger = a.log
	if o.URL == "" {
		server := embeddedBus(a.config)
		server.Logger = a.log
		o.Server = embedded.New(server)
	}
	b, err := bus.Open(ctx, o)
	if err != nil {
		return err
	}
	a.bus = b
	a.onStop("the bus", b.Close)
	return nil
}

func (a *App) startRelay(context.Context) error {
	a.relay = outbox.NewRelay(outbox.Options{Publisher: a.bus, Logger: a.log})
	a.onStop("the relay", a.stopRelay)
	return nil
}

// stopRelay publishes what waits. What can't be published now is no fault of
// the stop: it is safe in its records and follows after the next start. While
// something is known to be away it is not worth the whole time there is.
func (a *App) stopRelay(ctx context.Context) error {
	if a.working(ctx) != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, hopeless)
		defer cancel()
	}
	if err := a.relay.Close(ctx); err != nil {
		a.log.Warn("events are left to the next start", "error", err)
	}
	return nil
}

func (a *App) startWaiter(context.Context) (err error) {
	a.waiter, err = applied.NewWaiter(a.bus.Conn(), a.set.Workers)
	if err == nil {
		a.onStop("waiting", func(context.Context) error { return a.waiter.Close() })
	}
	return err
}

func (a *App) apiObjects() []objects.Options {
	var all []objects.Options
	for _, name := range names(a.config.Stores) {
		e := a.config.Stores[name].Expose
		if e == nil {
			continue
		}
		all = append(all, objects.Options{Store: a.set.Store(name), URL: e.URL, List: e.List, Restrict: objects.Restrict(e.Restrict)})
	}
	return all
}

func readSeed(path string) (string, error) {
	data, err := os.ReadFile(path)
	return strings.TrimSpace(string(data)), err
}

var _ store.Announcer = (*bus.Bus)(nil)
