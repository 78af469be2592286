package mongostore

import (
	"context"
	"time"

	"belfry/internal/backoff"
)

// A command that the server rolled back because of a concurrent one is repeated: MongoDB
// does that itself, servers on PostgreSQL end a deadlock by failing one of its commands.
// The delays let the other commands end.
const (
	conflictAttempts = 8
	conflictMin      = 5 * time.Millisecond
	conflictMax      = 500 * time.Millisecond
)

// retryRolledBack executes a command until the server does not roll it back, or a few
// times. It returns the error of the last attempt.
func retryRolledBack(ctx context.Context, command func() error) error {
	for attempt := 1; ; attempt++ {
		err := command()
		if !rolledBack(err) || attempt == conflictAttempts {
			return err
		}
		if backoff.Sleep(ctx, backoff.Delay(attempt, conflictMin, conflictMax)) != nil {
			return err
		}
	}
}
