package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"belfry/config"
	"belfry/internal/memory"
	"belfry/pkg/app"
	"belfry/pkg/app/modeling"
)

type serveCmd struct {
	configuration
	Listen  string   `help:"Address of HTTP, instead of the configured one." env:"BELFRY_LISTEN" placeholder:"HOST:PORT"`
	Metrics string   `name:"metrics-listen" help:"Address of the metrics, instead of the configured one." env:"BELFRY_METRICS_LISTEN" placeholder:"HOST:PORT"`
	Role    []string `help:"Roles of this process, if other processes have the others: ${roles}, separated by commas. Default: all." env:"BELFRY_ROLE" placeholder:"ROLE"`
}

// Run serves until the context ends, and then stops gracefully.
func (c *serveCmd) Run(ctx context.Context, s streams) error {
	ctx, hangups := receiveHangups(ctx)
	defer hangups.stop()
	memory.Tune(memory.Of())       // before the start, whose heap is small: the collector would run five times
	signal.Ignore(syscall.SIGPIPE) // the end of a program that reads the output, as of a log, is not that of belfry
	loaded, err := c.read()
	if err != nil {
		return err
	}
	level := &slog.LevelVar{}
	level.Set(loaded.Log.Level)
	format := &atomic.Pointer[string]{}
	format.Store(&loaded.Log.Format)
	log := switchable(format, level, s.err)
	slog.SetDefault(log) // and so that of package log: libraries that have no other way write their few lines there
	if loaded, err = c.recover(loaded, log); err != nil {
		return err
	}
	began := time.Now()
	a, err := app.Start(ctx, loaded, log, c.Role...)
	if err != nil && errors.Is(err, context.Canceled) && ctx.Err() != nil {
		log.Info("stopped before it was ready", "reason", context.Cause(ctx), "while", err)
		return nil // as after that
	}
	if err != nil {
		return err
	}
	var current atomic.Pointer[config.Config]
	current.Store(loaded)
	a.OnReload(app.Reloading{Read: c.read, Parse: c.parse, Applied: func(now *config.Config) {
		level.Set(now.Log.Level)
		format.Store(&now.Log.Format)
		current.Store(now)
	}})
	person := isForPeople(loaded.Log, s.out)
	firstAdmin, err := a.FirstAdmin(ctx, person)
	if err != nil {
		log.Warn("a link that makes the first admin can't be made; belfry user create ADDRESS --admin makes one",
			"error", err)
	}
	ready := []any{"after", time.Since(began).Round(time.Millisecond)}
	if person {
		fmt.Fprint(s.out, a.Banner(firstAdmin))
	} else {
		ready = append(ready, a.Served(firstAdmin)...)
	}
	log.Info("ready", ready...)
	go memory.ReturnWhenIdle(ctx, func() {
		// With little memory the kernel would take the pages that no process maps first, to cache other files.
		if memory.Of().Process >= plentyOfMemory {
			unmapProgram()
		}
	})

	reason, failed := serveUntil(ctx, a, hangups)
	within, delay := current.Load().ShutdownTimeout, current.Load().ShutdownDelay
	if failed == nil && delay > 0 {
		log.Info("stopping: serving until load balancers notice that /readyz is 503", "reason", reason, "delay", delay)
		failed = a.Withdraw(delay)
	}
	if failed == nil {
		log.Info("stopping", "reason", reason, "within", within)
	} else {
		log.Error("stopping", "error", failed, "within", within)
	}
	stopping := time.Now()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	err = errors.Join(failed, a.Stop(stop))
	took := time.Since(stopping).Round(time.Millisecond)
	if err != nil {
		log.Error("stopped", "after", took, "error", err)
		return err
	}
	log.Info("stopped", "after", took)
	return nil
}

const plentyOfMemory = 1 << 30

// read reads the configuration, and applies the flags to it.
func (c *serveCmd) read() (*config.Config, error) { return c.override(c.configFile.read()) }

// parse is read for a text in place of the file's.
func (c *serveCmd) parse(text []byte) (*config.Config, error) {
	return c.override(c.configFile.parse(text))
}

func (c *serveCmd) override(loaded *config.Config, err error) (*config.Config, error) {
	if err == nil {
		err = loaded.Override(c.Listen, c.Data)
	}
	if err == nil {
		err = loaded.OverrideMetrics(c.Metrics)
	}
	return loaded, err
}

// recover reads the configuration again if it has restored the files of an interrupted change.
func (c *serveCmd) recover(loaded *config.Config, log *slog.Logger) (*config.Config, error) {
	restored, err := modeling.Recover(loaded.Data, log)
	if err != nil || !restored {
		return loaded, err
	}
	return c.read()
}

// serveUntil returns why belfry has to stop: a reason, or what has failed. A reload whose files do not answer does not
// delay that.
func serveUntil(ctx context.Context, a *app.App, h *hangups) (reason, failed error) {
	ctx, cancel := context.WithCancel(ctx)
	var reloading sync.WaitGroup
	defer reloading.Wait()
	defer cancel()
	reloading.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-h.reloads:
				_, _ = a.Reload(ctx) // which logs why it fails
			}
		}
	})
	select {
	case <-ctx.Done():
		return context.Cause(ctx), nil
	case failed = <-a.Failed():
		return nil, failed
	}
}

// isForPeople reports whether a person reads the output, so that it may have text, and a link that gives rights. Other
// programs collect and keep the output of one whose log is JSON, and other people read it.
func isForPeople(l config.Log, out io.Writer) bool {
	return l.Format != "json" || isTerminal(out)
}
