package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	"belfry/pkg/api"
	"belfry/pkg/api/system"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
)

// publicMetrics returns the metrics on the port of HTTP: with a token alone, unless the process serves no
// clients there. It is nil for none.
func (a *serving) publicMetrics() *system.Metrics {
	m := a.config.Metrics
	if m.Token == "" && (a.has(plan.RoleFront) || m.Listen != "") {
		return nil
	}
	return system.NewMetrics(a.metrics(), string(m.Token))
}

// newMetricsPort makes what the port of the metrics serves.
func (a *serving) newMetricsPort() *api.Server {
	return api.NewMetrics(system.NewMetrics(a.metrics(), string(a.config.Metrics.Token)), a.hosts(), a.log)
}

// metricsPort serves the metrics on a port of their own, from the beginning of the start.
type metricsPort struct {
	app    *App
	port   *beside // nil: the metrics have no port of their own
	serves atomic.Pointer[api.Server]
}

func (m *metricsPort) part() part.Part[*serving] {
	return part.Part[*serving]{Name: "metrics", Start: m.start, Reload: m.reload, Stop: func(context.Context) error { return m.port.close() }}
}

func (m *metricsPort) start(ctx context.Context, first *serving) (err error) {
	m.port, err = m.listen(ctx, first)
	first.metricsAddress = m.port.at()
	return err
}

// listen opens the port of a configuration; nil where it has none.
func (m *metricsPort) listen(ctx context.Context, g *serving) (*beside, error) {
	at := g.config.Metrics.Listen
	if at == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "can't listen for metrics on %s: free the port, or choose another with --metrics-listen", at)
	}
	serves := g.newMetricsPort()
	m.serves.CompareAndSwap(nil, serves)
	server := serves.HTTPServer()
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serves.Load().ServeHTTP(w, r) })
	return serveBeside(server, listener, func(err error) {
		m.app.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server of the metrics has failed"))
	}), nil
}

func (m *metricsPort) reload(ctx context.Context, before, next *serving) (part.Change, error) {
	if before.config.Metrics.Listen == next.config.Metrics.Listen {
		next.metricsAddress = m.port.at()
		if m.port == nil {
			return part.Change{}, nil
		}
		return part.Change{Apply: func() { m.serves.Store(next.newMetricsPort()) }}, nil
	}
	opened, err := m.listen(ctx, next)
	if err != nil {
		return part.Change{}, err
	}
	former := m.port
	next.metricsAddress = opened.at()
	return part.Change{
		Apply: func() {
			m.port = opened
			m.serves.Store(next.newMetricsPort())
		},
		Cancel: func() { _ = opened.close() },
		Retire: func(context.Context) { _ = former.close() },
	}, nil
}

// beside serves a port beside that of HTTP.
type beside struct {
	listener net.Listener
	server   *http.Server
	done     chan struct{}
	handling sync.RWMutex
}

func serveBeside(server *http.Server, listener net.Listener, failed func(error)) *beside {
	b := &beside{listener: listener, server: server, done: make(chan struct{})}
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !b.handling.TryRLock() {
			http.Error(w, "belfry is stopping", http.StatusServiceUnavailable)
			return
		}
		defer b.handling.RUnlock()
		handler.ServeHTTP(w, r)
	})
	go func() {
		defer close(b.done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
	return b
}

// at is the address of the port; "" for none.
func (b *beside) at() string {
	if b == nil {
		return ""
	}
	return b.listener.Addr().String()
}

// close ends the port and its requests. b may be nil.
func (b *beside) close() error {
	if b == nil {
		return nil
	}
	err := b.server.Close()
	<-b.done
	b.handling.Lock() // after the last request: a backup that this ends uses what is closed next
	return err
}
