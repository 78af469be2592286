package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"

	"belfry/pkg/api"
	"belfry/pkg/api/system"
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

// serveMetrics serves the metrics on their own port, from the beginning of the start.
func (a *App) serveMetrics(ctx context.Context) error {
	m := a.now().config.Metrics
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.Listen)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for metrics on %s: free the port, or choose another with --metrics-listen", m.Listen)
	}
	a.metricsAddress = listener.Addr().String()
	metrics := a.now().newMetricsPort()
	a.metricsPort.Store(metrics)
	server := metrics.HTTPServer()
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { a.metricsPort.Load().ServeHTTP(w, r) })
	a.serveBeside("metrics", server, listener, func(err error) {
		a.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server of the metrics has failed"))
	})
	return nil
}

// serveBeside serves a port beside that of HTTP until the stop, which ends its requests.
func (a *App) serveBeside(name string, server *http.Server, listener net.Listener, failed func(error)) {
	done := make(chan struct{})
	var handling sync.RWMutex
	handler := server.Handler
	server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !handling.TryRLock() {
			http.Error(w, "belfry is stopping", http.StatusServiceUnavailable)
			return
		}
		defer handling.RUnlock()
		handler.ServeHTTP(w, r)
	})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
	a.onStop(name, func(context.Context) error {
		err := server.Close()
		<-done
		handling.Lock() // after the last request: a backup that this ends uses what is closed next
		return err
	})
}
