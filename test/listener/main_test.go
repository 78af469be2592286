// Package listener tests what listeners promise when they are processes that are killed, stopped and
// started again. The processes are this test binary in another role.
package listener

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"testing"
	"time"

	"belfry/pkg/listener"
)

// The environment of a child: its role, and the file in which it records what it receives.
const (
	envRole = "BELFRY_TEST_ROLE"
	envFile = "BELFRY_TEST_FILE"
)

// poison is the id of the event that ends the process that handles it.
const poison = "poison"

func TestMain(m *testing.M) {
	role := os.Getenv(envRole)
	if role == "" {
		os.Exit(m.Run())
	}
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})))
	spec, known := roles()[role]
	if !known {
		panic("no role " + role)
	}
	spec.Name, spec.Start = "child", listener.StartAll()
	listener.Main(spec)
}

// roles are the listeners that children run.
func roles() map[string]listener.Spec {
	record := recordIn(os.Getenv(envFile))
	deadly := func(_ context.Context, e *listener.Event) error {
		if e.ID == poison {
			os.Exit(3)
		}
		time.Sleep(5 * time.Millisecond) // the poison message ends the process while others are in flight
		record(e)
		return nil
	}
	return map[string]listener.Spec{
		"plain": {Concurrency: 4, AckWait: 500 * time.Millisecond,
			Handler: func(_ context.Context, e *listener.Event) error {
				record(e)
				return nil
			}},
		"batch": {BatchSize: 20, AckWait: 500 * time.Millisecond,
			Batch: func(_ context.Context, all []*listener.Event) []error {
				for _, e := range all {
					record(e)
				}
				return nil
			}},
		// Longer than a process stalls on a busy machine.
		"ordered": {Ordered: true, AckWait: 5 * time.Second, Handler: func(_ context.Context, e *listener.Event) error {
			if e.Attempt == 1 && e.Sequence%7 == 0 {
				return errors.New("not now")
			}
			record(e)
			return nil
		}},
		"deadly":           {MaxAttempts: 1, AckWait: 300 * time.Millisecond, Handler: deadly},
		"deadly, many":     {MaxAttempts: 1, AckWait: 300 * time.Millisecond, Concurrency: 8, Handler: deadly},
		"deadly, in order": {MaxAttempts: 1, AckWait: 300 * time.Millisecond, Ordered: true, Handler: deadly},
		"slow": {Drain: 20 * time.Second, Handler: func(ctx context.Context, e *listener.Event) error {
			record(e)
			time.Sleep(300 * time.Millisecond)
			if ctx.Err() == nil {
				record(e)
			}
			return ctx.Err()
		}},
		"endless": {Drain: 100 * time.Millisecond, Handler: func(_ context.Context, e *listener.Event) error {
			record(e)
			select {}
		}},
		"impossible": {},
	}
}

// recordIn returns a function that writes a line for each event to a file, without a buffer in the process.
func recordIn(path string) func(*listener.Event) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	return func(e *listener.Event) {
		line := fmt.Sprintf("%s %s %s\n", e.ID, e.UUID, strconv.FormatUint(e.Revision, 10))
		if _, err := f.WriteString(line); err != nil {
			panic(err)
		}
	}
}
