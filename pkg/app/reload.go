package app

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/natsapi"
)

// Reloading is how a process reads its configuration again.
type Reloading struct {
	// Read reads the configuration, with the flags of the process.
	Read func() (*config.Config, error)

	// Applied is called with a configuration that is in use from now on; may be nil.
	Applied func(*config.Config)
}

// Reloaded is what a reload did.
type Reloaded struct {
	File    string   `json:"file"`              // the configuration
	Changed []string `json:"changed,omitempty"` // keys that changed, and keys of files whose content did; none: nothing was done
	Missing []string `json:"missing,omitempty"` // indexes that only a restart makes, as Books.user; lists work without them, and take longer
	Refused []string `json:"refused,omitempty"` // problems because of which nothing was changed
}

// OnReload says how the configuration is read again. Without it there is no reload.
func (a *App) OnReload(r Reloading) {
	a.changing.Lock()
	defer a.changing.Unlock()
	a.reload = r
}

// Reload is what a process does on SIGHUP: it reads the configuration again, and serves with it if all of it is valid
// and can change while belfry runs. Otherwise nothing changes, and the error is config.Problems that name each key.
// Requests in flight end with the configuration with which they began.
func (a *App) Reload(ctx context.Context) (*Reloaded, error) { return a.reloadBy(ctx, "SIGHUP") }

// reloadBy is Reload, and remembers by what.
func (a *App) reloadBy(ctx context.Context, by string) (r *Reloaded, err error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	began := time.Now()
	defer func() { a.lastReload.Store(lastReload(r, err, began, by)) }()
	switch {
	case a.stopping.Err() != nil:
		return nil, errs.New(errs.Unavailable, "belfry is stopping")
	case a.reload.Read == nil:
		return nil, errs.New(errs.Unavailable, "belfry is starting: try again")
	}
	r, err = a.reloadNow(ctx)
	switch {
	case err != nil:
		a.log.Error("the configuration is not reloaded; belfry serves with the one before", "file", a.now().config.File(), "error", err)
	case len(r.Changed) == 0:
		a.log.Info("the configuration is reloaded; nothing has changed", "file", r.File)
	default:
		a.log.Info("the configuration is reloaded", "file", r.File, "changed", strings.Join(r.Changed, ", "), "after", time.Since(began).Round(time.Millisecond))
		a.now().warn()
		a.now().warnOfTrust(r.Changed)
		if len(r.Missing) > 0 {
			a.log.Warn("lists read more than they need until the next start, which makes the indexes of new rules", "indexes", strings.Join(r.Missing, ", "))
		}
	}
	return r, err
}

// lastReload is what the console shows of a reload.
func lastReload(r *Reloaded, err error, at time.Time, by string) *console.Reload {
	last := &console.Reload{At: at, By: by}
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		last.Refused = problems.Error()
	case err != nil:
		last.Refused = saysOf(err)
	default:
		last.Changed, last.Missing = r.Changed, r.Missing
	}
	return last
}

func (a *App) reloadNow(ctx context.Context) (*Reloaded, error) {
	c, p, err := a.readAgain(ctx)
	if err != nil {
		return nil, err
	}
	before := a.now()
	if problems := fixed(before.config, c); len(problems) > 0 {
		return nil, problems
	}
	r := &Reloaded{File: c.File(), Changed: a.changedSince(c, p)}
	if len(r.Changed) == 0 {
		r.Changed = a.secure.renew(p) // no stream has to end for that
		return r, nil
	}
	next := &serving{App: a, config: c, plan: p}
	if r.Missing, err = next.rebuild(before); err != nil {
		return nil, err
	}
	// Operations over the bus begin on the same connection before those of the configuration before end, so that
	// none finds nobody. After that nothing fails.
	if a.has(roleFront) {
		if err := next.newOperations(before.operations); err != nil {
			next.close()
			return nil, err
		}
	}
	a.replace(next)
	a.retire(before, next)
	if err := before.retireOperations(context.WithoutCancel(ctx)); err != nil {
		a.log.Warn("for some seconds requests over the bus may meet the configuration before", "error", err)
	}
	r.Changed = append(r.Changed, a.secure.renew(p)...)
	if a.metricsAddress != "" {
		a.metricsPort.Store(next.newMetricsPort())
	}
	a.walkRate.Set(c.FillRate)
	if o, err := p.busOptions(); err == nil {
		a.bus.SetAuth(o.Auth)
	}
	if a.search != nil {
		a.search.Reload(next.searched())
	}
	if a.reload.Applied != nil {
		a.reload.Applied(c)
	}
	a.endOperations(context.WithoutCancel(ctx), before)
	return r, nil
}

// changedSince returns the keys and files by which a configuration that was read again differs from the one that is served.
func (a *App) changedSince(c *config.Config, p *plan) []string {
	before := a.now()
	return append(config.Changed(before.config, c), before.plan.files.changed(p.files)...)
}

// readAgain reads and compiles the configuration. Files may be where nothing answers, such as a file system of the
// network, or a pipe; whoever waits for them does not wait longer than ctx, and a stop not at all.
func (a *App) readAgain(ctx context.Context) (*config.Config, *plan, error) {
	type result struct {
		config *config.Config
		plan   *plan
		err    error
	}
	read := make(chan result, 1)
	go func() {
		var r result
		if r.config, r.err = a.reload.Read(); r.err == nil {
			r.plan, r.err = compileFor(r.config, a.roles)
		}
		read <- r
	}()
	select {
	case r := <-read:
		return r.config, r.plan, r.err
	case <-ctx.Done():
		return nil, nil, errs.Wrap(context.Cause(ctx), errs.Canceled, "the configuration could not be read completely until then")
	case <-a.stopping.Done():
		return nil, nil, errs.New(errs.Unavailable, "belfry is stopping")
	}
}

// retireTimeout is how long requests over the bus that a reload finds in flight may take.
const retireTimeout = natsapi.DefaultTimeout + 5*time.Second

// endOperations ends what served requests over the bus, once those in flight have their replies.
func (a *App) endOperations(ctx context.Context, before *serving) {
	a.retiring.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, retireTimeout)
		defer cancel()
		if err := before.stopOperations(ctx); err != nil {
			a.log.Warn("requests over the bus that the reload found in flight have no reply", "error", err)
		}
	})
}

// controlReload is Reload for a command. What is wrong with the configuration is part of the reply.
func (a *App) controlReload(ctx context.Context, _ struct{}) (*Reloaded, error) {
	r, err := a.reloadBy(ctx, "belfry reload")
	var problems config.Problems
	if !errors.As(err, &problems) {
		return r, err
	}
	r = &Reloaded{File: a.now().config.File()}
	for _, p := range problems {
		r.Refused = append(r.Refused, p.Error())
	}
	return r, nil
}

// Reload has the process that serves a data folder read its configuration again. Errors: Invalid when that refuses
// it, with its problems; Unavailable when nobody serves.
func Reload(ctx context.Context, folder string) (*Reloaded, error) {
	if _, err := os.Stat(folder); err != nil {
		return nil, errs.New(errs.Invalid, "there is no data folder %s; check --config and --data", folder)
	}
	h, err := holderOf(folder)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, errs.New(errs.Unavailable, "no belfry serves the data folder %s: nothing is to be reloaded", folder)
	case h.Control == "":
		return nil, errs.New(errs.Unavailable, "the data folder %s is in use by %s, which does not serve; if it is starting or stopping, try again", folder, h)
	}
	r, err := ask[Reloaded](ctx, *h, "/reload", struct{}{})
	if err == nil && len(r.Refused) > 0 {
		return nil, errs.New(errs.Invalid, "%s has not reloaded its configuration, and serves with the one before:\n%s", h, strings.Join(r.Refused, "\n"))
	}
	return r, err
}
