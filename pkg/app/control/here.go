package control

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/app/backups"
	"belfry/pkg/app/command"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/open"
	"belfry/pkg/app/serving"
	"belfry/pkg/binary"
	"belfry/pkg/mail"
)

// Here is this process as the place of operations, for commands and for the console.
type Here struct {
	Served  *serving.Current
	Log     *slog.Logger
	Metrics prometheus.Registerer
	Backups *backups.Schedule
	Mailers *mailers.Mailers
	Self    *Self
	Reload  func(ctx context.Context) (*command.Reloaded, error)
}

// Serving is Place of what this process serves now, which stays so until done: work that began with a configuration
// ends with it, and what a later one fills has the work's writes.
func (h *Here) Serving(reads bool) (at *command.Place, done func()) {
	use := h.Served.Use
	if reads {
		use = h.Served.Read
	}
	now, done := use()
	return h.Place(now), done
}

// Place returns this process with its current generation.
func (h *Here) Place(g *serving.Generation) *command.Place {
	return &command.Place{
		Plan: g.Plan, Set: g.Set, Log: h.Log, Served: true, RecheckFor: command.DifferenceTimeout,
		Users: h.users,
		Binaries: func(_ context.Context, do func([]*binary.Service) error) error {
			return do(open.InOrder(g.Binaries))
		},
		Backups: func(ctx context.Context, do func(context.Context, *command.Maker) error) error {
			err := do(ctx, h.Backups.Maker())
			if err != nil && ctx.Err() == nil {
				h.Log.Error("a backup that a command requested has failed", "error", err)
			}
			return err
		},
		Claims:  func(context.Context) error { return nil },
		Sender:  func(name string, _ config.Mailer) mail.Sender { return h.Mailers.Sender(g, name) },
		Examine: h.Self.examine, Reload: h.Reload,
	}
}

// users calls do with the service of accounts.
func (h *Here) users(_ context.Context, do func(*account.Service) error) error {
	now, done := h.Served.Use()
	defer done()
	if now.Auth != nil {
		return do(now.Auth)
	}
	// The process lacks the roles that log in and send mails.
	o := now.Plan.AuthOptions(now.Set)
	o.Passwords.Registry, o.Passwords.Log = h.Metrics, h.Log
	users := account.New(o)
	defer users.Close()
	return do(users)
}
