package app

import (
	"context"
	"strings"
	"sync"
	"time"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

const (
	readyWithin   = 2 * time.Second
	watchInterval = time.Second
)

// ready reports what keeps this process from serving well. Writes are accepted
// while the bus is away, and still somebody should know.
func (a *App) ready(ctx context.Context) error {
	if a.stopping.Load() {
		return errs.New(errs.Unavailable, "belfry is stopping")
	}
	if err := a.working(ctx); err != nil {
		return err
	}
	return a.lacks.err()
}

// lacks are the consumers that listeners do without, by name.
type lacks struct {
	mu   sync.Mutex
	lack map[string]error
}

// note notes why a listener has no consumer, or, with nil, that it has.
func (l *lacks) note(consumer string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lack == nil {
		l.lack = map[string]error{}
	}
	if err == nil {
		delete(l.lack, consumer)
		return
	}
	l.lack[consumer] = err
}

func (l *lacks) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, consumer := range names(l.lack) {
		return bus.Unavailable(l.lack[consumer], "a listener of belfry's can't listen")
	}
	return nil
}

// working reports what belfry needs and does not have.
func (a *App) working(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for _, name := range names(a.backends) {
		if err := a.backends[name].Ping(ctx); err != nil {
			return errs.Wrap(err, errs.Unavailable, "backend %s is away", name)
		}
	}
	for _, name := range names(a.storages) {
		if err := a.storages[name].Ping(ctx); err != nil {
			return errs.Wrap(err, errs.Unavailable, "the storage of binaries.%s is away", name)
		}
	}
	if err := a.bus.Ready(ctx); err != nil {
		return err
	}
	if a.relay.Stats().Unavailable {
		return errs.New(errs.Unavailable, "the bus does not take events; they wait in their records")
	}
	return nil
}

// startWatch looks after the backends that can't come back by themselves: a
// folder that failed, because its disk is full for instance, serves again only
// when belfry starts again. To end is what lets whoever looks after the process
// do that.
func (a *App) startWatch(context.Context) error {
	a.every(watchInterval, "the watch", func(ctx context.Context) bool {
		err := a.lostFolder(ctx)
		if err == nil || ctx.Err() != nil {
			return true
		}
		a.fail(err)
		return false
	})
	return nil
}

// lostFolder is the error of a backend whose folder has failed.
func (a *App) lostFolder(ctx context.Context) error {
	for _, name := range names(a.backends) {
		if a.config.Backends[name].Type != "file" {
			continue
		}
		if err := a.backends[name].Ping(ctx); err != nil {
			return errs.Wrap(err, errs.Unavailable, "backend %s has failed", name)
		}
	}
	return nil
}

// warn tells what is configured and easily overlooked.
func (a *App) warn() {
	for _, name := range names(a.plan.open) {
		a.log.Warn("a store is open to everyone: it has no policy for these operations",
			"store", name, "operations", strings.Join(a.plan.open[name], ", "))
	}
	if open := a.openOverBus(); len(open) > 0 {
		a.log.Warn("whoever reaches the bus may do everything with these stores: no policy is asked there, and bus.listen asks nobody for a password",
			"stores", strings.Join(open, ", "), "listen", a.config.Bus.Listen)
	}
	if e := a.config.Authentication.Email; e != nil {
		if m := a.config.Mailers[e.Mailer]; m.File != nil {
			a.log.Warn("mails are written into a folder, not sent: the mailer is of type file", "mailer", e.Mailer, "folder", m.File.Folder)
		}
	}
}
