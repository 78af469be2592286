// Package app builds a running belfry from a configuration, and the parts of it that commands use
// alone. roles.go lists the parts in the order in which they start; they stop in the reverse order.
package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/internal/seal"
	"belfry/listeners/mapping/route"
	"belfry/pkg/api"
	"belfry/pkg/api/applied"
	"belfry/pkg/api/console"
	"belfry/pkg/api/files"
	"belfry/pkg/api/objects"
	"belfry/pkg/api/pagememory"
	"belfry/pkg/app/tracing"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/bus/embedded"
	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/missed"
	"belfry/pkg/object"
	"belfry/pkg/operations/backup"
	"belfry/pkg/outbox"
	"belfry/pkg/search"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/idempotent"
	"belfry/pkg/walk"
)

// App is a running belfry.
type App struct {
	log      *slog.Logger
	registry *prometheus.Registry
	asked    *prometheus.Registry // metrics for which backends and the bus are asked
	roles    []string             // none: all

	lock           *DataLock
	backends       map[string]driver.Backend
	bus            *bus.Bus
	relay          *outbox.Relay
	sealer         *seal.Sealer
	pages          *pagememory.Budget // of lists, over HTTP and over the bus
	uploads        *files.Memory      // of uploads in flight
	waiter         *applied.Waiter
	storages       map[string]storage.Storage
	front          front
	secure         secure
	metricsPort    atomic.Pointer[api.Server] // nil: the metrics have no port of their own
	metricsAddress string                     // "": the same
	missing        missingConsumers
	busSettings    busSettings
	missed         *missed.Watch   // nil in a process without the roles mapping, cascade and mail
	tracer         *tracing.Tracer // nil: none
	walkRate       *walk.Rate      // of what passes over all objects in the background
	filler         *fill.Filler
	claims         *fill.Filler     // of unique values
	kept           *idempotent.Kept // for clients of requests with a key
	search         *search.Service  // nil: this process answers no searches
	sharing        *route.Group     // nil: the mapping worker shares no targets
	pace           *mapping.Pace    // of the mapping worker
	overflow       overflow
	mailers        *mailers
	parts          []*part                      // that probes ask
	lastBackup     atomic.Pointer[backup.State] // nil: unknown, or no place is configured
	run            string                       // unique
	began          time.Time
	onFull         func(m *store.Mapping, target string)
	measured       measured
	stopping       context.Context // ends when the stop begins
	stop           context.CancelFunc
	draining       context.Context // ends when no more requests are accepted
	drain          context.CancelFunc
	cut            context.Context // ends when bodies of requests that have not arrived are given up
	cutOff         context.CancelFunc
	failed         chan error
	ended          atomic.Pointer[error] // the first of failed

	mu       sync.RWMutex
	current  *serving
	retiring sync.WaitGroup // what was served before, and is still in use

	changing   sync.Mutex // held by a reload, and by the stop
	reload     Reloading
	lastReload atomic.Pointer[console.Reload] // nil: none was requested

	stops []stop // in the order of starting
}

// unavailableStopTimeout limits how long a stop tries to publish while a backend or the bus is unavailable.
const unavailableStopTimeout = 2 * time.Second

// stop ends one part.
type stop struct {
	name string
	do   func(ctx context.Context) error
}

// Start starts the parts of belfry that a configuration enables, or those of the given roles, and
// returns once it serves. If one fails, it stops those that were started.
func Start(ctx context.Context, c *config.Config, log *slog.Logger, roles ...string) (*App, error) {
	p, err := compileFor(c, roles)
	if err != nil {
		return nil, err
	}
	a := newApp(c, p, log, roles)
	for _, step := range a.current.steps() {
		if err := step(ctx); err != nil {
			return nil, errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
		}
	}
	a.now().warn()
	a.now().reportChanges()
	return a, nil
}

func newApp(c *config.Config, p *plan, log *slog.Logger, roles []string) *App {
	a := &App{
		run: object.NewUUID(), began: time.Now(), log: log, roles: roles, registry: prometheus.NewRegistry(), asked: prometheus.NewRegistry(), failed: make(chan error, 1),
		pages: pagememory.New(store.MaxPageBytes), uploads: files.NewMemory(), kept: idempotent.NewKept(c.Limits.Idempotency, nil),
		walkRate: walk.NewRate(c.FillRate),
	}
	a.mailers = newMailers(a.registry)
	a.stopping, a.stop = context.WithCancel(context.Background())
	a.draining, a.drain = context.WithCancel(context.Background())
	a.cut, a.cutOff = context.WithCancel(context.Background())
	a.current = &serving{App: a, config: c, plan: p}
	return a
}

// Withdraw has load balancers send no more requests, and serves those that they send nevertheless, for a time: /readyz
// is 503. It returns what ends that earlier, as Failed does. Stop has to follow.
func (a *App) Withdraw(d time.Duration) error {
	a.stop()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case err := <-a.failed:
		return err
	}
}

// Stop stops all parts in the reverse order of starting: belfry accepts no new requests, answers those
// in flight, publishes their events, and the workers finish the events that they hold. If ctx ends first,
// the rest is aborted, which the log says and is no error: what was acknowledged is in its record with its event, what was
// not replied to was not acknowledged, and an event that was not handled is delivered again.
func (a *App) Stop(ctx context.Context) error {
	a.stop()
	a.changing.Lock() // a reload in progress ends first, and none begins
	defer a.changing.Unlock()
	defer a.drain()
	defer a.cutOff()
	var all []error
	for i := len(a.stops) - 1; i >= 0; i-- {
		s := a.stops[i]
		switch err := s.do(ctx); {
		case err == nil:
		case ctx.Err() != nil && errors.Is(err, ctx.Err()):
			a.log.Warn("a part did not end in time, and was aborted; nothing that was acknowledged is lost", "part", s.name, "error", err)
		default:
			all = append(all, errs.Wrap(err, errs.KindOf(err), "stopping %s", s.name))
		}
	}
	a.stops = nil
	return errors.Join(all...)
}

// Failed receives an error after which belfry can't continue and must be stopped. Only the first is
// sent, since others follow from it.
func (a *App) Failed() <-chan error { return a.failed }

func (a *App) fail(err error) {
	a.ended.CompareAndSwap(nil, &err)
	select {
	case a.failed <- err:
	default:
	}
}

// Bus is the connection to the bus.
func (a *App) Bus() *bus.Bus { return a.bus }

// Set returns the stores.
func (a *App) Set() *store.Set { return a.now().set }

// HTTPAddress is the address on which HTTP is served.
func (a *App) HTTPAddress() string { return a.front.listener.Addr().String() }

// Banner is the text for a person with the addresses and the data folder, and how the first admin is made; "" if there is nothing to say
// about that.
func (a *App) Banner(firstAdmin string) string {
	var b strings.Builder
	b.WriteString("belfry is ready\n")
	for _, f := range a.served(firstAdmin) {
		b.WriteString("  " + f.name + strings.Repeat(" ", 8-len(f.name)) + f.value + "\n")
	}
	return b.String()
}

// Served is what Banner says, as attributes of a log record.
func (a *App) Served(firstAdmin string) []any {
	var attributes []any
	for _, f := range a.served(firstAdmin) {
		attributes = append(attributes, slog.String(strings.ToLower(cmp.Or(f.name, "redirect")), f.value))
	}
	return attributes
}

type fact struct{ name, value string }

func (a *App) served(firstAdmin string) []fact {
	scheme := "http://"
	if a.secures() {
		scheme = "https://"
	}
	facts := []fact{{"HTTP", scheme + a.HTTPAddress()}}
	if a.secure.redirect != "" {
		facts = append(facts, fact{"", "http://" + a.secure.redirect + " redirects to it"})
	}
	if a.metricsAddress != "" {
		facts = append(facts, fact{"metrics", "http://" + a.metricsAddress + "/metrics"})
	}
	facts = append(facts, fact{"bus", cmp.Or(a.bus.ClientURL(), "inside this process only (bus.listen is empty)")})
	if len(a.roles) > 0 {
		facts = append(facts, fact{"roles", strings.Join(a.roles, ", ")})
	}
	if firstAdmin != "" {
		facts = append(facts, fact{"admin", firstAdmin})
	}
	return append(facts, fact{"data", a.now().config.Data})
}

func (a *App) onStop(name string, do func(ctx context.Context) error) {
	a.stops = append(a.stops, stop{name, do})
}

func (a *App) openBus(ctx context.Context) error {
	o, err := a.now().plan.busOptions()
	if err != nil {
		return err
	}
	o.Logger = a.log
	if o.URL == "" {
		server := embeddedBus(a.now().config)
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

// stopRelay publishes pending events. Events that can't be published are no error: they stay in their
// records and are published after the next start. While the bus or a backend is unavailable, the stop
// does not use up its whole timeout for them.
func (a *App) stopRelay(ctx context.Context) error {
	if a.dependencies(ctx) != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, unavailableStopTimeout)
		defer cancel()
	}
	if err := a.relay.Close(ctx); err != nil {
		a.log.Warn("events are not published; they stay in their records until the next start", "error", err)
	}
	return nil
}

func (a *App) startWaiter(context.Context) (err error) {
	a.waiter, err = applied.NewWaiter(a.bus.Conn(), a.now().set.Workers) // by the mappings, which no reload changes
	if err == nil {
		a.onStop("waiting", func(context.Context) error { return a.waiter.Close() })
	}
	return err
}

func (a *serving) apiObjects() []objects.Options {
	var all []objects.Options
	for _, name := range names(a.config.Stores) {
		e := a.config.Stores[name].Expose
		if e == nil {
			continue
		}
		all = append(all, objects.Options{
			Store: a.set.Store(name), URL: e.URL, List: e.List, Restrict: objects.Restrict(e.Restrict), Expand: a.expandable(a.set.Store(name)),
		})
	}
	return all
}

// expandable returns the keys of a store's mappings that lead to one store of which clients may get objects, with that store.
func (a *serving) expandable(s *store.Store) map[string]*store.Store {
	all := map[string]*store.Store{}
	for _, m := range s.Maps() {
		target := a.set.Store(m.Target)
		if other, known := all[m.Key]; known && other != target {
			target = nil // it is not known in which one an object is
		}
		if e := a.config.Stores[m.Target].Expose; e == nil || e.Restrict.Get {
			target = nil
		}
		all[m.Key] = target
	}
	maps.DeleteFunc(all, func(_ string, s *store.Store) bool { return s == nil })
	return all
}

func readSeed(path string) (string, error) {
	data, err := os.ReadFile(path)
	return strings.TrimSpace(string(data)), err
}

var _ store.Announcer = (*bus.Bus)(nil)
