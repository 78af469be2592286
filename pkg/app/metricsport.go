package app

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api"
	"belfry/pkg/api/system"
	"belfry/pkg/app/part"
	"belfry/pkg/errs"
)

// metricsPort serves the metrics on a port of their own, from the beginning of the start.
type metricsPort struct {
	metrics prometheus.Gatherer
	log     *slog.Logger
	fail    func(error)

	port   *port // nil: the metrics have no port of their own
	serves atomic.Pointer[api.Server]
}

// part is the part of a process.
func (m *metricsPort) part() servedPart {
	return servedPart{Name: "metrics", Start: m.start, Reload: m.reload, Stop: func(context.Context) error { return m.port.close() }}
}

func (m *metricsPort) start(ctx context.Context, first *generation) (err error) {
	m.port, err = m.listen(ctx, first)
	first.metricsAddress = m.port.at()
	return err
}

// listen opens the port of a configuration; nil where it has none.
func (m *metricsPort) listen(ctx context.Context, g *generation) (*port, error) {
	at := g.config.Metrics.Listen
	if at == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable, "can't listen for metrics on %s: free the port, or choose another with --metrics-listen", at)
	}
	serves := m.server(g)
	m.serves.CompareAndSwap(nil, serves)
	server := serves.HTTPServer()
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serves.Load().ServeHTTP(w, r) })
	return servePort(server, listener, func(err error) {
		m.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server of the metrics has failed"))
	}), nil
}

func (m *metricsPort) reload(ctx context.Context, before, next *generation) (part.Change, error) {
	if before.config.Metrics.Listen == next.config.Metrics.Listen {
		next.metricsAddress = m.port.at()
		if m.port == nil {
			return part.Change{}, nil
		}
		return part.Change{Apply: func() { m.serves.Store(m.server(next)) }}, nil
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
			m.serves.Store(m.server(next))
		},
		Cancel: func() { _ = opened.close() },
		Retire: func(context.Context) { _ = former.close() },
	}, nil
}

// server returns what the port serves with a configuration.
func (m *metricsPort) server(g *generation) *api.Server {
	return api.NewMetrics(system.NewMetrics(m.metrics, string(g.config.Metrics.Token)), g.hosts(), m.log)
}
