package app

import (
	"context"
	"errors"
	"sync"
	"time"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/listener"
)

const (
	narrowTimeout  = 10 * time.Second
	narrowRetryMin = time.Second
	narrowRetryMax = time.Minute
)

// startNarrowing narrows consumers of the log, once, that would receive events about the security of accounts although they
// don't name them: those of an earlier release, and of programs in other languages. Without the permission it logs which they are.
func (a *App) startNarrowing(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for delays := backoff.New(narrowRetryMin, narrowRetryMax); ctx.Err() == nil; {
			limited, done := context.WithTimeout(ctx, narrowTimeout)
			found, err := listener.NarrowConsumers(limited, a.bus, false)
			done()
			for _, d := range found {
				if d.State == bus.Updated {
					a.log.Info("a consumer was narrowed: events about the security of accounts have to be named", "consumer", d.What, "change", d.Detail)
				}
			}
			if errors.Is(err, bus.ErrPermissionDenied) {
				if len(found) > 0 {
					a.log.Warn("a listener may receive events about the security of accounts that it does not name", "error", err)
				}
				return
			}
			if err == nil {
				return
			}
			_ = delays.Wait(ctx)
		}
	})
	a.onStop("the narrowing of consumers", func(context.Context) error {
		cancel()
		running.Wait()
		return nil
	})
	return nil
}
