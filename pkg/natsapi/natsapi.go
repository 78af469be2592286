// Package natsapi serves stores over the bus: save, update, delete, exists, get
// and list, each store as a NATS service (the micro protocol), so that `nats micro
// info` and `nats micro stats` show them.
//
// The permissions of the bus authorize requests; policies are not evaluated.
// Everything else holds as over HTTP: schemas, interceptors, limits, and fields
// that only the server sets or sees.
//
// A write with an idempotency key has one effect and one reply: see package idempotent.
//
// # Load
//
// Requests of a store are handled concurrently up to MaxInFlight. Up to MaxQueued
// more wait; further ones get 503 at once. Each client is limited too (limits.go).
package natsapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"belfry/config"
	"belfry/internal/prom"
	"belfry/pkg/apimodel"
	"belfry/pkg/errs"
	"belfry/pkg/op"
	"belfry/pkg/pagememory"
	"belfry/pkg/store"
	"belfry/pkg/store/idempotent"
)

// Defaults of Options.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultMaxInFlight = 64
	DefaultMaxQueued   = 1024
)

const flushTimeout = 5 * time.Second

// maxQueuedBytes limits the memory of the requests of one store.
const maxQueuedBytes = 64 << 20

// Options configure a Server. Conn, Stores and Requests are required.
type Options struct {
	Conn        *nats.Conn
	Stores      []*store.Store
	Set         *op.Set      // has the requests to the stores; nil: those of Operations, of which no documents are made
	Requests    *store.Store // of package idempotent
	Version     string       // semantic; "0.0.0" when empty
	Logger      *slog.Logger // nil: slog.Default
	Registry    prometheus.Registerer
	Timeout     time.Duration      // of one request; 0: DefaultTimeout
	MaxInFlight int                // requests of a store handled at once; 0: DefaultMaxInFlight
	MaxQueued   int                // further requests of a store that wait; 0: DefaultMaxQueued
	Limits      config.BusRates    // of each client
	Pages       *pagememory.Budget // the memory of lists in flight; nil: one of its own
	// which the new one replaces at Begin, and whose limits continue where they are the same; nil: none
	Previous *Server
	Now      func() time.Time // nil: time.Now

	Tracing trace.TracerProvider // makes a span of each request; nil: none

	TakeoverDelay      time.Duration // see idempotent.Options
	TombstoneRetention time.Duration // see idempotent.Options
}

// Server handles requests. It is safe for concurrent use.
type Server struct {
	opts     Options
	metrics  *metrics
	keyed    *idempotent.Executor
	tracer   trace.Tracer // nil: none
	limits   limits
	services []*service
	ctx      context.Context
	cancel   context.CancelFunc
	inFlight sync.WaitGroup

	mu      sync.RWMutex // held while a request is accepted
	handler *Server      // of the requests that arrive: this server or another one; nil: none
}

// Start subscribes to the subjects of the stores and handles requests. Where the bus is there, a request that is sent
// after Start has returned is answered.
func Start(o Options) (*Server, error) {
	if o.Version == "" {
		o.Version = "0.0.0"
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Registry == nil {
		o.Registry = prometheus.NewRegistry()
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxInFlight == 0 {
		o.MaxInFlight = DefaultMaxInFlight
	}
	if o.MaxQueued == 0 {
		o.MaxQueued = DefaultMaxQueued
	}
	if o.Pages == nil {
		o.Pages = pagememory.New(store.MaxPageBytes)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Set == nil {
		o.Set = setOf(o.Stores)
	}
	var before limits
	previous := o.Previous
	if previous != nil {
		before = previous.limits
		o.Previous = nil // or each would keep all those before it, with their stores
	}
	s := &Server{opts: o, limits: newLimits(o.Limits, before), metrics: newMetrics(o.Registry),
		keyed: idempotent.New(idempotent.Options{
			Requests: o.Requests, Now: o.Now, TakeoverDelay: o.TakeoverDelay, TombstoneRetention: o.TombstoneRetention,
		})}
	s.pass(cmp.Or(previous, s))
	if o.Tracing != nil {
		s.tracer = o.Tracing.Tracer("belfry/pkg/natsapi")
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, st := range o.Stores {
		v := newService(s, st)
		s.services = append(s.services, v)
		if err := v.subscribe(); err != nil {
			s.cancel()
			return nil, errors.Join(errs.Wrap(err, errs.Unavailable, "natsapi: subscribing for store %s failed",
				st.Name()), s.Stop(s.ctx))
		}
	}
	if err := s.flush(s.ctx); err != nil { // the client subscribes again once it is connected again
		o.Logger.Warn("The bus does not confirm the subscriptions for requests to stores", "error", err)
	}
	return s, nil
}

// setOf are the requests to stores of which no configuration says anything.
func setOf(stores []*store.Store) *op.Set {
	k, all := &apimodel.Contract{}, map[string]*store.Store{}
	for _, s := range stores {
		k.Stores, all[s.Name()] = append(k.Stores, &apimodel.Store{Name: s.Name(), Bus: true}), s
	}
	set := op.NewSet(k)
	Operations(set, all)
	return set
}

// Stop accepts no more requests and returns when those in flight have their
// replies. When ctx ends first, it cancels them.
func (s *Server) Stop(ctx context.Context) error {
	defer s.cancel()
	s.unsubscribe()
	for _, v := range s.services {
		for _, closed := range v.closed {
			select {
			case <-closed:
			case <-ctx.Done():
				return errUnanswered(ctx)
			}
		}
	}
	if err := s.Wait(ctx); err != nil {
		s.cancel()
		return err
	}
	s.pass(nil) // or what keeps this server keeps all those after it
	return errs.Wrap(s.flush(ctx), errs.Unavailable,
		"natsapi: flushing the last replies failed; they may not have been sent")
}

// Begin has a server with a Previous one handle the requests that arrive. Until then the previous one handles them.
func (s *Server) Begin() { s.pass(s) }

// Retire accepts no more requests: next, which has begun, handles them; nil: they are refused. Wait waits for those
// that were accepted.
//
// The subscriptions for what next serves stay until Stop, and what arrives on them is for next. The bus selects the
// receivers of a message some time before it delivers it. If all of them have unsubscribed in between, the client
// learns that nobody serves the store.
func (s *Server) Retire(ctx context.Context, next *Server) error {
	s.pass(next)
	for _, v := range s.services {
		v.unsubscribe(&v.controls)
		if next.service(v.store.Name()) == nil {
			v.unsubscribe(&v.requests)
		}
	}
	return errs.Wrap(s.flush(ctx), errs.Unavailable, "natsapi: the bus does not confirm the end of subscriptions")
}

// service returns the service of a store; nil: it has no such service.
func (s *Server) service(store string) *service {
	if s == nil {
		return nil
	}
	if i := slices.IndexFunc(s.services, func(v *service) bool { return v.store.Name() == store }); i >= 0 {
		return s.services[i]
	}
	return nil
}

// pass has the requests that arrive from now on handled by a server.
func (s *Server) pass(handler *Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handler = handler
}

// Wait returns when the requests that a retired server has accepted have their replies, or ctx ends.
func (s *Server) Wait(ctx context.Context) error {
	if s == nil {
		return nil
	}
	done := make(chan struct{})
	go func() {
		s.inFlight.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return errUnanswered(ctx)
	}
}

func (s *Server) unsubscribe() {
	for _, v := range s.services {
		v.unsubscribe(&v.controls)
		v.unsubscribe(&v.requests)
	}
}

// flush returns once the bus has all that was sent, or there is no connection, and so nothing arrives.
func (s *Server) flush(ctx context.Context) error {
	if !s.opts.Conn.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	return s.opts.Conn.FlushWithContext(ctx)
}

func errUnanswered(ctx context.Context) error {
	return errs.Wrap(ctx.Err(), errs.Canceled, "natsapi: stopped before every request had its reply")
}

// metrics count requests by store, operation and status.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(registry prometheus.Registerer) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "belfry_bus_requests_total",
			Help: "Completed requests over the bus, by store, operation and status.",
		}, []string{"store", "op", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "belfry_bus_request_duration_seconds",
			Help:    "Time from a request's arrival over the bus to its reply, by store and operation.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"store", "op"}),
	}
	m.requests, m.duration = prom.Register(registry, m.requests), prom.Register(registry, m.duration)
	return m
}

// count counts a reply; status 0 is success.
func (m *metrics) count(store, op string, status int, took time.Duration) {
	m.requests.WithLabelValues(store, op, strconv.Itoa(max(status, 200))).Inc()
	m.duration.WithLabelValues(store, op).Observe(took.Seconds())
}
