// Package front has the parts of a process that serve HTTP: the listener, which replies from the beginning of the
// start, TLS with its certificates and redirects, the port of metrics, and the sending of traces.
package front

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
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
)

// HTTP serves HTTP from the beginning of the start: until belfry is ready, the replies say that it is starting, and
// what it waits for.
type HTTP struct {
	Served   *serving.Current
	Startup  *serving.Startup
	TLS      *TLS
	Log      *slog.Logger
	Lifetime *serving.Lifetime

	server   *http.Server
	starting atomic.Pointer[api.Server] // serves until belfry is ready; then nil
	done     chan struct{}
}

// ServeHTTP serves a request with one configuration from its beginning to its end.
func (f *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if starting := f.starting.Load(); starting != nil {
		starting.ServeHTTP(w, r)
		return
	}
	c := &requestContext{Context: r.Context()}
	f.Served.UseThenRead(&c.use)
	defer c.use.Done()
	c.use.Generation.Handler.ServeHTTP(w, r.WithContext(c))
}

// requestContext is the context of a request with its use of a generation: one allocation for both.
type requestContext struct {
	context.Context
	use serving.Using
}

// Value implements context.Context.
func (c *requestContext) Value(key any) any {
	if _, ok := key.(httpkit.ReadsKey); ok {
		return &c.use
	}
	return c.Context.Value(key)
}

// Waits returns the cause of the start's wait; nil once requests are served.
func (f *HTTP) Waits() error {
	if f.starting.Load() == nil {
		return nil
	}
	return f.Startup.Err()
}

// ListenPart is the part that listens for HTTP and replies that belfry is starting.
func (f *HTTP) ListenPart() serving.Part {
	return serving.Part{Name: "HTTP while starting", Start: f.listen, Stop: func(context.Context) error {
		if f.server == nil {
			return nil
		}
		_ = f.server.Close() // already shut down if belfry served
		<-f.done
		return nil
	}}
}

func (f *HTTP) listen(ctx context.Context, first *serving.Generation) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", first.Config.Listen)
	if err != nil {
		return errs.Wrap(err, errs.Unavailable,
			"can't listen for HTTP on %s: free the port, or choose another with --listen", first.Config.Listen)
	}
	first.Address, f.done = listener.Addr().String(), make(chan struct{})
	starting := api.New(api.Options{
		Closed: f.Startup.Err, Registry: prometheus.NewRegistry(), Logger: f.Log, Hosts: first.Hosts(),
		Base: first.Base(),
	})
	f.starting.Store(starting)
	f.server = starting.HTTPServer()
	f.server.Handler = f
	go func() {
		defer close(f.done)
		if err := f.server.Serve(securing{listener, f.TLS}); !errors.Is(err, http.ErrServerClosed) {
			f.Lifetime.Fail(errs.Wrap(err, errs.Unavailable, "the HTTP server has failed"))
		}
	}()
	return nil
}

// ServePart is the part that serves requests.
func (f *HTTP) ServePart() serving.Part {
	return serving.Part{
		Name: "HTTP",
		Start: func(context.Context, *serving.Generation) error {
			f.server.RegisterOnShutdown(f.Lifetime.Drain)
			f.starting.Store(nil)
			return nil
		},
		Stop: func(ctx context.Context) error {
			patience := time.AfterFunc(bodyPatience(ctx), f.Lifetime.CutOff)
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

// MaxBodyPatience is how long a stop waits for bodies of requests that are still arriving; it differs in tests.
var MaxBodyPatience = 5 * time.Second

// bodyPatience returns how long a stop waits for bodies: at most a quarter of its time, so that the rest remains for
// complete requests.
func bodyPatience(ctx context.Context) time.Duration {
	deadline, limited := ctx.Deadline()
	if !limited {
		return MaxBodyPatience
	}
	return min(MaxBodyPatience, time.Until(deadline)/4)
}
