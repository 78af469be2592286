package app

import (
	"context"
	"errors"
	"strings"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/probe"
	"belfry/pkg/errs"
	"belfry/pkg/operations/doctor"
)

// Reloading has the functions with which a process reads its configuration again.
type Reloading struct {
	// Read reads the configuration, with the flags of the process.
	Read func() (*config.Config, error)

	// Parse is Read for a text in place of the file's; nil: admins do not change the configuration.
	Parse func(text []byte) (*config.Config, error)

	// Applied is called with a configuration that is in use from now on; may be nil.
	Applied func(*config.Config)
}

// OnReload sets how the configuration is read again. Without it there is no reload.
func (a *App) OnReload(r Reloading) {
	a.reload.Store(&r)
}

// parse is Reloading.Parse.
func (a *App) parse(text []byte) (*config.Config, error) {
	r := a.reload.Load()
	if r == nil || r.Parse == nil {
		return nil, errs.New(errs.Unavailable, "this process does not read its configuration again")
	}
	return r.Parse(text)
}

// reloadEdited is Reload after an admin has changed the files.
func (a *App) reloadEdited(ctx context.Context) error {
	_, err := a.reloadBy(ctx, "an admin in the console")
	return err
}

// Reload reads the configuration again, as on SIGHUP, and serves with it if all of it is valid and can change while
// belfry runs. Otherwise nothing changes, and the error is config.Problems that name each key. Requests in flight end
// with the configuration with which they began.
func (a *App) Reload(ctx context.Context) (*command.Reloaded, error) {
	return a.reloadBy(ctx, "SIGHUP")
}

// reloadBy is Reload, and records the trigger.
func (a *App) reloadBy(ctx context.Context, by string) (r *command.Reloaded, err error) {
	a.changing.Lock()
	defer a.changing.Unlock()
	began := time.Now()
	defer func() { a.lastReload.Store(lastReload(r, err, began, by)) }()
	switch {
	case a.lifetime.Stopping.Err() != nil:
		return nil, errs.New(errs.Unavailable, "belfry is stopping")
	case a.reload.Load() == nil:
		return nil, errs.New(errs.Unavailable, "belfry is starting: try again")
	}
	r, err = a.reloadNow(ctx)
	switch {
	case err != nil:
		a.log.Error("the configuration is not reloaded; belfry serves with the previous one",
			"file", a.now().Config.File(), "error", err)
	case len(r.Changed) == 0:
		a.log.Info("the configuration is reloaded; nothing has changed", "file", r.File)
	default:
		a.log.Info("the configuration is reloaded", "file", r.File, "changed", strings.Join(r.Changed, ", "),
			"after", time.Since(began).Round(time.Millisecond))
		warn(a.now(), doubtsOf(a.now().Config), a.roles, a.log)
		warnOfTrust(a.now(), a.log, r.Changed)
		if len(r.Building) > 0 {
			a.log.Info("indexes are being built in the background; lists that need one are refused until it "+
				"is complete", "indexes", strings.Join(r.Building, ", "))
		}
	}
	return r, err
}

// lastReload is a reload for the console.
func lastReload(r *command.Reloaded, err error, at time.Time, by string) *console.Reload {
	last := &console.Reload{At: at, By: by}
	var problems config.Problems
	switch {
	case errors.As(err, &problems):
		last.Refused = problems.Error()
	case err != nil:
		last.Refused = probe.Says(err)
	default:
		last.Changed, last.Building = r.Changed, r.Building
	}
	return last
}

func (a *App) reloadNow(ctx context.Context) (*command.Reloaded, error) {
	c, p, err := a.readAgain(ctx)
	if err != nil {
		return nil, err
	}
	before := a.now()
	if problems := config.Refusals(before.Config, c); len(problems) > 0 {
		return nil, problems
	}
	r := &command.Reloaded{File: c.File(), Changed: a.changedSince(c, p)}
	if len(r.Changed) == 0 {
		r.Changed = a.wiring.tls.Renew(p) // this ends no stream
		return r, nil
	}
	next := before.Next(c, p)
	settle, retire, err := a.parts.Reload(ctx, before, next, func() { a.served.Replace(next) })
	if err != nil {
		return nil, err
	}
	a.served.Retire(before, settle, retire)
	r.Building = next.Building
	r.Changed = append(r.Changed, a.wiring.tls.Renew(p)...)
	if applied := a.reload.Load().Applied; applied != nil {
		applied(c)
	}
	return r, nil
}

// changedSince returns the keys and files in which a newly read configuration differs from the served one.
func (a *App) changedSince(c *config.Config, p *plan.Plan) []string {
	before := a.now()
	return append(config.Changed(before.Config, c), before.Plan.Files.Changed(p.Files)...)
}

// readAgain reads and compiles the configuration. Reading a file may hang, for example on a network file system, or in
// a pipe. A caller waits no longer than ctx, and a stop does not wait.
func (a *App) readAgain(ctx context.Context) (*config.Config, *plan.Plan, error) {
	type result struct {
		config *config.Config
		plan   *plan.Plan
		err    error
	}
	read := make(chan result, 1)
	go func() {
		var r result
		if r.config, r.err = a.reload.Load().Read(); r.err == nil {
			r.plan, r.err = plan.CompileFor(r.config, a.roles)
		}
		read <- r
	}()
	select {
	case r := <-read:
		return r.config, r.plan, r.err
	case <-ctx.Done():
		return nil, nil, errs.Wrap(context.Cause(ctx), errs.Canceled,
			"the configuration could not be read completely in time")
	case <-a.lifetime.Stopping.Done():
		return nil, nil, errs.New(errs.Unavailable, "belfry is stopping")
	}
}

// controlReload is Reload for a command. Problems of the configuration are part of the reply.
func (a *App) controlReload(ctx context.Context) (*command.Reloaded, error) {
	r, err := a.reloadBy(ctx, "belfry reload")
	var problems config.Problems
	if err != nil && !errors.As(err, &problems) {
		return nil, errs.Wrap(err, errs.KindOf(err),
			"the configuration is not reloaded, and belfry serves with the previous one")
	}
	if err == nil {
		return r, nil
	}
	r = &command.Reloaded{File: a.now().Config.File()}
	for _, p := range problems {
		r.Refused = append(r.Refused, p.Error())
	}
	return r, nil
}

// outdated reports whether the files have a different configuration than this process serves.
func (a *App) outdated(ctx context.Context) []doctor.Finding {
	if a.reload.Load() == nil {
		return nil
	}
	c, p, err := a.readAgain(ctx)
	if err != nil {
		return []doctor.Finding{{Level: doctor.Problem, Name: "configuration.broken",
			Subject: a.now().Config.File(),
			Says: "the file has changed since belfry read it, and belfry would not start with it: " +
				examine.MessageOf(err), Do: "correct the file before belfry is restarted"}}
	}
	if keys := a.changedSince(c, p); len(keys) > 0 {
		return []doctor.Finding{{Level: doctor.Warning, Name: "configuration.outdated", Subject: c.File(),
			Says: "belfry still serves the previous configuration: since then " + strings.Join(keys, ", ") + " changed",
			Do:   "run `belfry reload`"}}
	}
	return nil
}
