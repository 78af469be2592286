package command

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/binary"
	storage "belfry/pkg/binary/driver"
	"belfry/pkg/bus"
	"belfry/pkg/mail"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/object"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/store"
)

// Place is where an operation runs: in a command that has opened the stores, or in the process that serves.
type Place struct {
	Plan *plan.Plan
	Set  *store.Set // nil for an operation without stores

	// Of an operation on the bus, which has nothing else.
	Bus    *bus.Client
	Config *config.Config // nil if flags have named the bus, and nothing else needed it

	Log        *slog.Logger  // of the process that serves; nil in a command
	Served     bool          // by the process that serves
	RecheckFor time.Duration // for how long a difference has to persist: workers may still apply a change

	// Users calls do with the service of accounts, Binaries with the binary services, and Backups with the maker of
	// backups.
	Users    func(ctx context.Context, do func(*account.Service) error) error
	Binaries func(ctx context.Context, do func([]*binary.Service) error) error
	Backups  func(ctx context.Context, do func(context.Context, *Maker) error) error

	Claims func(ctx context.Context) error // completes the claims that an import of objects with unique values needs
	Sender func(name string, m config.Mailer) mail.Sender

	// Current returns the stores that are served now, which a reload replaces. Only runs of the console have it: they
	// leave half of the time to other requests. nil: none.
	Current func() *store.Set
	Uploads *bulk.Uploads // that the console has received; nil: none

	// Of the process that serves.
	Examine func(ctx context.Context) (*Examined, error)
	Reload  func(ctx context.Context) (*Reloaded, error)
}

// placeOf returns the place of a command that has opened the stores of a plan.
func placeOf(p *plan.Plan, set *store.Set) *Place {
	at := &Place{Plan: p, Set: set}
	if p.Shared() {
		at.RecheckFor = DifferenceTimeout
	}
	at.Claims = func(ctx context.Context) error { return open.CompleteClaims(ctx, p, set) }
	at.Users = func(ctx context.Context, do func(*account.Service) error) error {
		if err := at.Claims(ctx); err != nil {
			return err
		}
		users := account.New(p.AuthOptions(set))
		defer users.Close()
		return do(users)
	}
	at.Binaries = func(ctx context.Context, do func([]*binary.Service) error) error {
		storages, err := open.Storages(ctx, p)
		if err != nil {
			return err
		}
		err = fill.Load(ctx, open.RequiredOf(p, set, slog.New(slog.DiscardHandler)))
		if err == nil {
			err = do(open.InOrder(open.Services(p, storages, set, nil, nil, nil)))
		}
		return errors.Join(err, open.CloseStorages(storages))
	}
	at.Backups = func(ctx context.Context, do func(context.Context, *Maker) error) error {
		giving, done := hold.GivingWay(ctx, p.Config.Data)
		defer done()
		err := open.WithRest(giving, p, func(b *bus.Bus, storages map[string]storage.Storage) error {
			return do(giving, &Maker{Plan: p, Set: set, Bus: b, Storages: storages, Backends: p.Opened,
				Log: slog.New(slog.DiscardHandler), Holder: NewHolder(p.Config, object.NewUUID())})
		})
		if err != nil && errors.Is(context.Cause(giving), hold.ErrGaveWay) {
			return hold.ErrGaveWay
		}
		return err
	}
	at.Sender = func(_ string, m config.Mailer) mail.Sender {
		if m.SMTP != nil {
			return mail.NewSMTP(p.SMTPOptions(m.SMTP))
		}
		return mail.NewFolder(m.File.Folder, nil)
	}
	return at
}
