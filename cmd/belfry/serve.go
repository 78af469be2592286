package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

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
	fmt.Fprint(s.out, a.Banner())
	log.Info("ready", "after", time.Since(began).Round(time.Millisecond))
	debug.FreeOSMemory() // that the start needed
	tuneCollector()

	var failed error
	select {
	case <-ctx.Done():
		log.Info("stopping", "within", loaded.ShutdownTimeout)
	case failed = <-a.Failed():
		log.Error("stopping", "error", failed)
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), loaded.ShutdownTimeout)
	defer cancel()
	err = errors.Join(failed, a.Stop(stop))
	if err == nil {
		log.Info("stopped")
	}
	return err
}

func logger(l config.Log, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.Level}
	var handler slog.Handler = slog.NewTextHandler(w, options)
	if l.Format == "json" {
		handler = slog.NewJSONHandler(w, options)
	}
	return slog.New(logctx.NewHandler(handler))
}
