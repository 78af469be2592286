// Package natsapi lets programs on the bus use stores: save, update, delete,
// exists, get and list, as a service of NATS each (the micro protocol), so that
// `nats micro info` and `nats micro stats` show them.
//
// Who may ask for what is for the permissions of the bus: policies are not
// asked. Everything else holds as over HTTP: schemas, interceptors, limits, and
// what nobody but the server sets or sees.
//
// # Asked twice, done once
//
// A write with an idempotency key takes these steps; see once.go:
//
//  1. the key is noted in the store of requests, with what was asked for and the
//     uuid, the life and the revision that the write is about;
//  2. the write is made; its record tells from then on that it took place (see
//     store.Once);
//  3. the answer is noted beside the key;
//  4. the answer is sent.
//
// Whoever asks again, after whatever crash, gets the answer if there is one.
// Otherwise the record tells whether there is anything left to do.
//
// # Load
//
// Requests of a store are answered side by side, so many at once; some more
// wait, and beyond that 503 is the answer, at once.
package natsapi

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Defaults of Options.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultMaxInFlight = 64
	DefaultMaxQueued   = 1024

	DefaultTakeoverDelay = 3 * time.Second
)

const flushTimeout = 5 * time.Second

// mostBytes is what the requests of one store hold in memory at most.
const maxQueuedBytes = 64 << 20

// Options say which stores to serve where. Conn, Stores and Requests are
// required.
type Options struct {
	Conn        *nats.Conn
	Stores      []*store.Store
	Requests    *store.Store // opened with RequestsOptions
	Version     string       // semantic; "0.0.0" when empty
	Logger      *slog.Logger // nil: slog.Default
	Registry    prometheus.Registerer
	Timeout     time.Duration    // of one request; 0: DefaultTimeout
	MaxInFlight int              // requests of a store at once; 0: DefaultWorking
	MaxQueued   int              // and more of them that wait; 0: DefaultWaiting
	Now         func() time.Time // nil: time.Now

	// Patience is how long another server is given for its answer before this one
	// makes the same request; 0: DefaultPatience. The write is one all the same.
	TakeoverDelay time.Duration

	// Tombstones is how long the mark of a deletion is kept; 0: for ever.
	TombstoneRetention time.Duration
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	opts     Options
	instance string // of this server, never another's
	metrics  *metrics
	locks    *store.KeyLock // by recordOf
	services []*service
	ctx      context.Context
	cancel   context.CancelFunc
	inFlight sync.WaitGroup
}

// Start answers requests from now on.
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
	if o.TakeoverDelay == 0 {
		o.TakeoverDelay = DefaultTakeoverDelay
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Server{opts: o, instance: nuid.Next(), locks: store.NewKeyLock(), metrics: newMetrics(o.Registry)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for _, st := range o.Stores {
		v := newService(s, st)
		s.services = append(s.services, v)
		if err := v.subscribe(); err != nil {
			s.cancel()
			v.unsubscribe()
			return nil, errors.Join(errs.Wrap(err, errs.Unavailable, "the bus takes no service for store %s", st.Name()), s.Stop(s.ctx))
		}
	}
	return s, nil
}

// Stop takes no more requests, and returns once those in hand are answered;
// when ctx ends first, they are given up.
func (s *Server) Stop(ctx context.Context) error {
	defer s.cancel()
	var closing []<-chan struct{}
	for _, v := range s.services {
		closing = append(closing, v.unsubscribe()...)
	}
	for _, closed := range closing {
		select {
		case <-closed:
		case <-ctx.Done():
			return errUnanswered(ctx)
		}
	}
	done := make(chan struct{})
	go func() {
		s.inFlight.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.cancel()
		return errUnanswered(ctx)
	}
	if !s.opts.Conn.IsConnected() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	return errs.Wrap(s.opts.Conn.FlushWithContext(ctx), errs.Unavailable, "the last answers may not have been sent")
}

func errUnanswered(ctx context.Context) error {
	return errs.Wrap(ctx.Err(), errs.Canceled, "requests over the bus are left without an answer")
}
