package listener

import (
	"context"
	"time"
)

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
