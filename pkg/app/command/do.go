package command

import (
	"context"
	"os"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// do is Operation.Do.
func (u *Untyped) do(ctx context.Context, c *config.Config, in any, report func(any)) (out any, err error) {
	if u.served != "" {
		return u.askServer(ctx, c.Data, in, report)
	}
	if u.check != nil {
		if err := u.check(c, in); err != nil {
			return nil, err
		}
	}
	p, err := plan.Compile(c)
	if err == nil && !u.storeless && !u.own && (u.creates == nil || !u.creates(in)) {
		err = open.HasData(p)
	}
	if err != nil {
		return nil, err
	}
	direct := func(set *store.Set) (err error) {
		out, err = u.run(ctx, placeOf(p, set), in, report)
		return err
	}
	served := func(h hold.Holder) (err error) {
		out, err = u.ask(ctx, h, in, report)
		return err
	}
	switch {
	case u.own:
		err = direct(nil)
	case u.storeless:
		err = withoutStores(p.Config.Data, direct, served)
	default:
		err = open.WithStores(ctx, p, u.name, direct, served)
	}
	return out, err
}

// withoutStores is open.WithStores for an operation without stores.
func withoutStores(folder string, direct func(*store.Set) error, served func(hold.Holder) error) error {
	h, err := hold.HolderOf(folder)
	switch {
	case err != nil:
		return err
	case h != nil && h.Control != "":
		return served(*h)
	}
	return direct(nil)
}

// askServer requests the operation from the process that serves a data folder.
func (u *Untyped) askServer(ctx context.Context, folder string, in any, report func(any)) (any, error) {
	if _, err := os.Stat(folder); err != nil {
		return nil, errs.New(errs.Invalid, "there is no data folder %s; check --config and --data", folder)
	}
	h, err := hold.HolderOf(folder)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, errs.New(errs.Unavailable, "no belfry serves the data folder %s: %s", folder, u.served)
	case h.Control == "":
		return nil, errs.New(errs.Unavailable,
			"the data folder %s is in use by %s, which does not serve; if it is starting or stopping, try again",
			folder, h)
	}
	return u.ask(ctx, *h, in, report)
}
