package app

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api"
	"belfry/pkg/errs"
)

// front is HTTP from the first moment on: while belfry starts it tells that,
// and what for it waits.
type front struct {
	listener net.Listener
	server   *http.Server
	api      atomic.Pointer[api.Server]
	waiting  atomic.Pointer[errs.Error] // what the start waits for
	done     chan struct{}
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) { f.api.Load().ServeHTTP(w, r) }

// listen takes the address of HTTP and answers that belfry is starting.
func (a *App) listen(ctx context.Context) error {
	f := &a.front
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", a.config.Listen)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for HTTP on %s: free the port, or choose another with --listen", a.config.Listen)
	}
	f.listener, f.done = listener, make(chan struct{})
	f.waiting.Store(errs.New(errs.Unavailable, "belfry is starting"))
	starting := api.New(api.Options{
		Closed: func() error { return f.waiting.Load() }, Ready: func(context.Context) error { return f.waiting.Load() },
		Registry: prometheus.NewRegistry(), Logger: a.log,
	})
	f.api.Store(starting)
	f.server = starting.HTTPServer()
	f.server.Handler = f
	go func() {
		defer close(f.done)
		if err := f.server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			a.fail(errs.Wrap(err, errs.Unavailable, "HTTP has ended"))
		}
	}()
	a.onStop("HTTP while starting", func(context.Context) error {
		_ = f.server.Close() // has been shut down already if belfry served
		<-f.done
		return nil
	})
	return nil
}

// serveHTTP lets requests in. A process that is no front tells of its health
// alone.
func (a *App) serveHTTP(context.Context) error {
	f := &a.front
	o := api.Options{Ready: a.ready, Registry: a.registry, Logger: a.log}
	if a.has(roleFront) {
		documents, err := a.documents()
		if err != nil {
			return err
		}
		o.Login, o.Objects, o.Files, o.Events = a.apiLogin(), a.apiObjects(), a.apiFiles(), a.live
		o.Waiter, o.Proxies, o.Documents = a.waiter, a.config.Proxies, documents
	}
	serving := api.New(o)
	a.watch()
	f.server.RegisterOnShutdown(serving.Drain)
	f.api.Store(serving)
	a.onStop("HTTP", func(ctx context.Context) error {
		err := f.server.Shutdown(ctx)
		if err != nil {
			err = errors.Join(err, f.server.Close())
		}
		<-f.done
		return err
	})
	return nil
}
