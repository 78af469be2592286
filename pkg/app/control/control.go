// Package control serves requests of commands to the process that holds the data folder, and this process's findings
// about itself for the doctor.
package control

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"belfry/pkg/app/command"
	"belfry/pkg/app/data"
	"belfry/pkg/app/port"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
)

// Control serves requests of commands that need the data folder while this process holds it. A
// process that can read the folder's lock file may make them.
type Control struct {
	Served *serving.Current
	Log    *slog.Logger
	Folder *data.Folder
	Here   *Here

	port *port.Port
}

// Part returns the functions that start and stop it.
func (c *Control) Part() serving.Part {
	return serving.Part{Name: "control", Start: c.start, Stop: func(context.Context) error { return c.port.Close() }}
}

func (c *Control) start(ctx context.Context, _ *serving.Generation) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for control requests")
	}
	token := rand.Text()
	server := &http.Server{Handler: guarded(token, c.mux()), ReadHeaderTimeout: 5 * time.Second}
	c.port = port.Serve(server, listener,
		func(err error) { c.Log.Error("the control server has failed", "error", err) })
	return c.Folder.Publish("http://"+listener.Addr().String(), token)
}

func (c *Control) mux() *http.ServeMux {
	mux := http.NewServeMux()
	for _, o := range command.Operations {
		if route := o.Route(); route != "" {
			mux.HandleFunc(route, o.Handle(c.Log, c.Here.Serving))
		}
	}
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	return mux
}

func guarded(token string, next http.Handler) http.Handler {
	want := []byte("Bearer " + token)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "the request needs the token of the data folder's lock file", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
