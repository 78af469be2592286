package listener

import (
	"context"
	"time"
)

// Timeout ends the context of an attempt after a time. The event is kept alive
// all the while: another process gets it only when this one is gone.
func Timeout(limit time.Duration) Middleware {
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) error {
			ctx, cancel := context.WithTimeout(ctx, limit)
			defer cancel()
			return next(ctx, e)
		}
	}
}
