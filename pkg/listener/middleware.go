package listener

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"
)

// Recover turns a panic of a handler into an error with the stack, so that one
// event does not end the process. It is a transient error, so the event is
// retried. Every listener has Recover around all other middleware.
func Recover() Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) (err error) {
			defer recovered(&err)
			return next(ctx, e)
		}
	}
}

// recovered turns a panic into the error of the function that defers it.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the handler panicked: %v\n%s", p, debug.Stack())
	}
}

// Log logs each attempt: at debug level when it succeeded, at warn when it
// failed. The event's data is not logged.
func Log(log *slog.Logger) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) error {
			began := time.Now()
			err := next(ctx, e)
			level, message := slog.LevelDebug, "event handled"
			if err != nil {
				level, message = slog.LevelWarn, "event failed"
			}
			if log.Enabled(ctx, level) {
				attrs := []slog.Attr{
					slog.String("id", e.ID), slog.String("event", string(e.Event)), slog.String("store", e.Store),
					slog.String("uuid", e.UUID), slog.Int("attempt", e.Attempt),
					slog.Duration("took", time.Since(began)),
				}
				if err != nil {
					attrs = append(attrs, slog.String("error", err.Error()))
				}
				log.LogAttrs(ctx, level, message, attrs...)
			}
			return err
		}
	}
}

// Timeout ends the context of an attempt after a time. Heartbeats continue until
// the handler returns: the event is not redelivered while this process runs.
func Timeout(limit time.Duration) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) error {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return next(ctx, e)
		}
	}
}
