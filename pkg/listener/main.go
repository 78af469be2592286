package listener

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"belfry/pkg/errs"
)

// The exit codes of Main.
const (
	exitDone   = 0 // it was stopped by a signal, and finished the events in flight
	exitFailed = 1 // the listener failed, or events in flight took too long
	exitUsage  = 2 // the environment or the spec can't work
)

const closeTimeout = 5 * time.Second

// Main is the main function of a program of listeners: it connects as the
// environment says (see Connect), runs the listeners until SIGTERM or Ctrl-C,
// finishes the events in flight, and exits. A second signal ends the process at
// once. It logs to slog.Default.
func Main(specs ...Spec) {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release)
	os.Exit(run(ctx, slog.Default(), specs))
}

// run runs listeners until ctx ends, and returns the exit code.
func run(ctx context.Context, log *slog.Logger, specs []Spec) int {
	err := connectAndRun(ctx, log, specs)
	if err == nil {
		return exitDone
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errs.Invalid) {
		return exitUsage
	}
	return exitFailed
}

func connectAndRun(ctx context.Context, log *slog.Logger, specs []Spec) error {
	if len(specs) == 0 {
		return errs.New(errs.Invalid, "there is no listener to run")
	}
	for _, spec := range specs {
		if err := spec.validate(); err != nil {
			return err
		}
	}
	b, err := Connect(ctx, specs[0].Name, log)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // no event was received yet
	case err != nil:
		return err
	}
	log.Info("listening", "listeners", names(specs), "bus", address(b.ClientURL()))
	err = runAll(ctx, b, log, specs)
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return errors.Join(err, b.Close(bounded))
}

// runAll runs listeners concurrently. When one fails they all stop.
func runAll(ctx context.Context, b Bus, log *slog.Logger, specs []Spec) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make([]error, len(specs))
	var running sync.WaitGroup
	for i, spec := range specs {
		running.Go(func() {
			defer cancel()
			all[i] = Run(ctx, b, log, spec)
		})
	}
	running.Wait()
	return errors.Join(all...)
}

func names(specs []Spec) []string {
	all := make([]string, len(specs))
	for i, spec := range specs {
		all[i] = spec.Name
	}
	return all
}
