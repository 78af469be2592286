package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/api"
	"belfry/pkg/errs"
)

// front serves HTTP from the beginning of the start: until belfry is ready it replies that it is starting,
// and what it waits for.
type front struct {
	served   *current
	startup  *startup
	secure   *secure
	log      *slog.Logger
	lifetime *lifetime

	server   *http.Server
	starting atomic.Pointer[api.Server] // serves until belfry is ready; then nil
	done     chan struct{}
}

// ServeHTTP serves a request with one configuration from its beginning to its end.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if starting := f.starting.Load(); starting != nil {
		starting.ServeHTTP(w, r)
		return
	}
	now, done := f.served.use()
	defer done()
	now.handler.ServeHTTP(w, r)
}

// waits returns what the start waits for; nil once requests are served.
func (f *front) waits() error {
	if f.starting.Load() == nil {
		return nil
	}
	return f.startup.err()
}

// listenPart is the part that listens for HTTP and replies that belfry is starting.
func (f *front) listenPart() servedPart {
	return servedPart{Name: "HTTP while starting", Start: f.listen, Stop: func(context.Context) error {
		if f.server == nil {
			return nil
		}
		_ = f.server.Close() // has been shut down already if belfry served
		<-f.done
		return nil
	}}
}

func (f *front) listen(ctx context.Context, first *generation) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", first.config.Listen)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for HTTP on %s: free the port, or choose another with --listen", first.config.Listen)
	}
	first.address, f.done = listener.Addr().String(), make(chan struct{})
	starting := api.New(api.Options{
		Closed: f.startup.err, Registry: prometheus.NewRegistry(), Logger: f.log, Hosts: first.hosts(), Base: first.base(),
	})
	f.starting.Store(starting)
	f.server = starting.HTTPServer()
	f.server.Handler = f
	go func() {
		defer close(f.done)
		if err := f.server.Serve(securing{listener, f.secure}); !errors.Is(err, http.ErrServerClosed) {
			f.lifetime.fail(errs.Wrap(err, errs.Unavailable, "the HTTP server has failed"))
		}
	}()
	return nil
}

// servePart is the part that serves requests.
func (f *front) servePart() servedPart {
	return servedPart{
		Name: "HTTP",
		Start: func(context.Context, *generation) error {
			f.server.RegisterOnShutdown(f.lifetime.drain)
			f.starting.Store(nil)
			return nil
		},
		Stop: func(ctx context.Context) error {
			patience := time.AfterFunc(bodyPatience(ctx), f.lifetime.cutOff)
			defer patience.Stop()
			err := f.server.Shutdown(ctx)
			if err != nil {
				err = errors.Join(err, f.server.Close())
			}
			<-f.done
			return err
		},
	}
}

// maxBodyPatience is how long a stop waits for bodies of requests that are still arriving; another time in tests.
var maxBodyPatience = 5 * time.Second

// bodyPatience returns how long a stop waits for bodies: at most a quarter of its time, so that the rest is for what has arrived.
func bodyPatience(ctx context.Context) time.Duration {
	deadline, limited := ctx.Deadline()
	if !limited {
		return maxBodyPatience
	}
	return min(maxBodyPatience, time.Until(deadline)/4)
}
