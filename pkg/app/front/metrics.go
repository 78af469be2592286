package front

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
	"belfry/pkg/app/port"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
)

// MetricsPort serves the metrics on a port of their own, from the beginning of the start.
type MetricsPort struct {
	Metrics prometheus.Gatherer
	Log     *slog.Logger
	Fail    func(error)

	port   *port.Port // nil: the metrics have no port of their own
	serves atomic.Pointer[api.Server]
}

// Part returns the functions that start, reload and stop it.
func (m *MetricsPort) Part() serving.Part {
	return serving.Part{Name: "metrics", Start: m.start, Reload: m.reload,
		Stop: func(context.Context) error { return m.port.Close() }}
}

func (m *MetricsPort) start(ctx context.Context, first *serving.Generation) (err error) {
	m.port, err = m.listen(ctx, first)
	first.MetricsAddress = m.port.Address()
	return err
}

// listen opens the port of a configuration; nil without one.
func (m *MetricsPort) listen(ctx context.Context, g *serving.Generation) (*port.Port, error) {
	at := g.Config.Metrics.Listen
	if at == "" {
		return nil, nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", at)
	if m.port.Overlaps(at, err) {
		return nil, errs.Wrap(err, errs.Unavailable, "metrics.listen: belfry listens for metrics on %s now, which "+
			"overlaps with %s: reload with another port, or without metrics.listen, first, or restart belfry",
			m.port.Address(), at)
	}
	if err != nil {
		return nil, errs.Wrap(err, errs.Unavailable,
			"can't listen for metrics on %s: free the port, or choose another with --metrics-listen", at)
	}
	serves := m.server(g)
	m.serves.CompareAndSwap(nil, serves)
	server := serves.HTTPServer()
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.serves.Load().ServeHTTP(w, r) })
	return port.Serve(server, listener, func(err error) {
		m.Fail(errs.Wrap(err, errs.Unavailable, "the HTTP server of the metrics has failed"))
	}), nil
}

func (m *MetricsPort) reload(ctx context.Context, before, next *serving.Generation) (part.Change, error) {
	if before.Config.Metrics.Listen == next.Config.Metrics.Listen {
		next.MetricsAddress = m.port.Address()
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
	next.MetricsAddress = opened.Address()
	return part.Change{
		Apply: func() {
			m.port = opened
			former.Withdraw()
			m.serves.Store(m.server(next))
		},
		Cancel: func() { _ = opened.Close() },
		Retire: func(context.Context) { _ = former.Close() },
	}, nil
}

// server returns the server of the port for a configuration.
func (m *MetricsPort) server(g *serving.Generation) *api.Server {
	return api.NewMetrics(system.NewMetrics(m.Metrics, string(g.Config.Metrics.Token)), g.Hosts(), m.Log)
}
