package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"time"

	"golang.org/x/term"

	"belfry/config"
	"belfry/pkg/app"
	"belfry/pkg/logctx"
)

type serveCmd struct {
	configuration
	Listen  string   `help:"Address of HTTP, instead of the configured one." env:"BELFRY_LISTEN" placeholder:"HOST:PORT"`
	Metrics string   `name:"metrics-listen" help:"Address of the metrics, instead of the configured one." env:"BELFRY_METRICS_LISTEN" placeholder:"HOST:PORT"`
	Role    []string `help:"Roles of this process, if other processes have the others: front, mapping, cascade, mail, sweep, separated by commas. Default: all." env:"BELFRY_ROLE" placeholder:"ROLE,..."`
}

// Run serves until the context ends, and then stops gracefully.
func (c *serveCmd) Run(ctx context.Context, s streams) error {
	loaded, err := c.load(c.Listen)
	if err == nil {
		err = loaded.OverrideMetrics(c.Metrics)
	}
	if err != nil {
		return err
	}
	log := logger(loaded.Log, s.err)
	began := time.Now()
	a, err := app.Start(ctx, loaded, log, c.Role...)
	if err != nil {
		return err
	}
	firstAdmin, err := a.FirstAdmin(ctx, printsLinks(loaded.Log, s.out))
	if err != nil {
		log.Warn("a link that makes the first admin can't be made; belfry user create ADDRESS --admin makes one", "error", err)
	}
	fmt.Fprint(s.out, a.Banner(firstAdmin))
	log.Info("ready", "after", time.Since(began).Round(time.Millisecond))
	debug.FreeOSMemory() // that the start needed
	tuneCollector()

	var failed error
	select {
	case <-ctx.Done():
		log.Info("stopping", "reason", context.Cause(ctx), "within", loaded.ShutdownTimeout)
	case failed = <-a.Failed():
		log.Error("stopping", "error", failed, "within", loaded.ShutdownTimeout)
	}
	stopping := time.Now()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), loaded.ShutdownTimeout)
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

// printsLinks reports whether the output may have a link that gives rights: a person reads it. What a program writes as
// JSON is collected, kept and read by others, and its output with it.
func printsLinks(l config.Log, out io.Writer) bool {
	f, ok := out.(*os.File)
	return l.Format != "json" || ok && term.IsTerminal(int(f.Fd()))
}

func logger(l config.Log, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if l.Format == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(logctx.NewHandler(handler))
}
