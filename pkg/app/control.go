package app

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/app/command"
	"belfry/pkg/app/open"
	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/mail"
)

// backups are those of the serving process. Each has a lease of its own.
func (a *App) backups() *command.Maker {
	now := a.now()
	return &command.Maker{Plan: now.plan, Set: now.set, Bus: a.bus, Storages: a.now().storages, Backends: a.now().backends, Log: a.log, Holder: command.NewHolder(now.config, a.run)}
}

// startControl serves requests of commands that need the data folder while this process holds it. A
// process that can read the folder's lock file may make them.
func (a *App) startControl(ctx context.Context) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return errs.Wrap(err, errs.Unavailable, "can't listen for control requests")
	}
	token := rand.Text()
	mux := http.NewServeMux()
	for _, o := range command.Operations() {
		mux.HandleFunc(o.Route(), o.Handle(a.log, a.place))
	}
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	server := &http.Server{Handler: guarded(token, mux), ReadHeaderTimeout: 5 * time.Second}
	port := serveBeside(server, listener, func(err error) { a.log.Error("the control server has failed", "error", err) })
	a.onStop("control", func(context.Context) error { return port.close() })
	return a.lock.Publish("http://"+listener.Addr().String(), token)
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

// place is this process, as operations of commands and of the console run in it.
func (a *App) place() *command.Place {
	now := a.now()
	return &command.Place{
		Plan: now.plan, Set: now.set, Log: a.log, Served: true, RecheckFor: command.DifferenceTimeout,
		Users:    a.withUsers,
		Binaries: func(_ context.Context, do func([]*binary.Service) error) error { return do(open.InOrder(now.binaries)) },
		Backups: func(ctx context.Context, do func(context.Context, *command.Maker) error) error {
			err := do(ctx, a.backups())
			if err != nil && ctx.Err() == nil {
				a.log.Error("a backup that a command requested has failed", "error", err)
			}
			return err
		},
		Claims:  func(context.Context) error { return nil },
		Sender:  func(name string, _ config.Mailer) mail.Sender { return now.sender(name) },
		Examine: a.examine, Reload: a.controlReload,
	}
}

// withUsers calls do with the service of accounts.
func (a *App) withUsers(_ context.Context, do func(*account.Service) error) error {
	now, done := a.use()
	defer done()
	if now.auth != nil {
		return do(now.auth)
	}
	// A process without the roles that log in and send mails.
	o := now.plan.AuthOptions(now.set)
	o.Passwords.Registry, o.Passwords.Log = a.registry, a.log
	users := account.New(o)
	defer users.Close()
	return do(users)
}
