package app

import (
	"context"
	"errors"
	"net"
	"net/http"

	"belfry/pkg/api"
	"belfry/pkg/api/system"
	"belfry/pkg/errs"
)

// publicMetrics returns the metrics on the port of HTTP: with a token alone, unless the process serves no
// clients there. It is nil for none.
func (a *App) publicMetrics() *system.Metrics {
	m := a.config.Metrics
	if m.Token == "" && (a.has(roleFront) || m.Listen != "") {
		return nil
	}
	return system.NewMetrics(a.metrics(), string(m.Token))
}

// serveMetrics serves the metrics on their own port, from the beginning of the start.
func (a *App) serveMetrics(ctx context.Context) error {
	m := a.config.Metrics
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.Listen)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for metrics on %s: free the port, or choose another with --metrics-listen", m.Listen)
	}
	a.metricsAddress = listener.Addr().String()
	server := api.NewMetrics(system.NewMetrics(a.metrics(), string(m.Token)), a.hosts(), a.log).HTTPServer()
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server of the metrics has failed"))
		}
	}()
	a.onStop("metrics", func(context.Context) error {
		err := server.Close()
		<-done
		return err
	})
	return nil
}
