package listener

import (
	"context"
	"log/slog"
	"time"
)

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
					slog.String("uuid", e.UUID), slog.Int("attempt", e.Attempt), slog.Duration("took", time.Since(began)),
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
