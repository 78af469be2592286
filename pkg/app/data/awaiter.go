package data

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/operations/backup"
)

// Awaiter makes a start wait for resources that recover by themselves. In the meantime the log and the replies of HTTP
// name them.
type Awaiter struct {
	Startup *serving.Startup
	Log     *slog.Logger
}

// The first and the longest delay between attempts to open a store whose backend is unavailable.
const (
	startRetryMin = 250 * time.Millisecond
	startRetryMax = 10 * time.Second
)

// Await calls open until its backend is available. It does not wait for a folder, which does not recover by itself.
func (a Awaiter) Await(ctx context.Context, c *config.Config, backend string, open func() error) error {
	said := ""
	for delays := backoff.New(startRetryMin, startRetryMax); ; {
		err := open()
		if err == nil {
			a.Startup.Resume()
			if said != "" {
				a.Log.Info("the backend is available", "backend", backend)
			}
			return nil
		}
		if !errors.Is(err, errs.Unavailable) || c.Backends[backend].Type == "file" {
			return err
		}
		a.Startup.Wait("backend " + backend)
		if text := err.Error(); text != said {
			said = text
			a.Log.Warn("a backend is unavailable; retrying", "backend", backend, "error", err)
		}
		if delays.Wait(ctx) != nil {
			return err
		}
	}
}

// spaceInterval is the interval at which a write is retried while the disk is full at the start.
const spaceInterval = 500 * time.Millisecond

// space returns the function that is called while the disk of a backend is full at the start: belfry waits for
// space until ctx ends.
func (a Awaiter) space(ctx context.Context, backend string) func(error) error {
	var once sync.Once
	return func(full error) error {
		once.Do(func() {
			a.Startup.Wait("space on the disk of backend " + backend)
			a.Log.Error("the disk of a backend is full; belfry starts once there is space", "backend", backend,
				"error", full)
		})
		if err := backoff.Sleep(ctx, spaceInterval); err != nil {
			return errors.Join(err, full)
		}
		return nil
	}
}

// RestoreCheck is the part that fails if the stores have a part of a backup. It waits for their backend.
func RestoreCheck(wait Awaiter) serving.Part {
	return serving.Part{Name: "the check of a restore",
		Start: func(ctx context.Context, first *serving.Generation) error {
			var state backup.State
			err := wait.Await(ctx, first.Config, first.Config.Stores[config.PositionStore].Backend, func() (err error) {
				state, err = open.BackupStates(first.Set).Get(ctx)
				return err
			})
			if err != nil {
				return err
			}
			return hold.ErrIncomplete(state)
		}}
}
