package mongostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

// retryAfter is the delay that callers are given when the server is unavailable or
// throttles. The MongoDB driver has then searched for a server for some seconds, or
// retried the command a few times with increasing delays.
const retryAfter = 2 * time.Second

func errCanceled(err error) error {
	return errs.Wrap(err, errs.Canceled, "the request was canceled")
}

// wrapError returns an error of the MongoDB driver with its kind. ctx is the caller's
// context; doing is what failed, as in "MongoDB can't <doing>".
func (b *Backend) wrapError(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return err
	}
	if isEndedByCaller(ctx, err) {
		return errCanceled(err)
	}
	var server mongo.ServerError
	if !errors.As(err, &server) {
		return b.wrapLocalError(doing, err)
	}
	switch {
	case hasCode(server, unauthorizedCodes):
		return errs.New(errs.Internal, "%s can't %s: the user of the backend's URL lacks the permission; "+
			"grant it the role readWrite on the database %s", b.address, doing, b.database.Name())
	case hasCode(server, authFailedCodes), slices.ContainsFunc(statesOf(server), isAuthFailedState):
		return errs.Wrap(err, errs.Internal, "%s refuses the user or the password in the backend's URL", b.address)
	case hasCode(server, throttledCodes) || server.HasErrorLabel(driver.ErrSystemOverloadedError):
		return b.unavailable(err, "%s is overloaded")
	case hasCode(server, tooLargeCodes):
		return errs.Wrap(err, errs.TooLarge, "%s can't %s: it exceeds the maximum size of a document", b.address, doing)
	case rolledBack(err):
		return b.unavailable(err, "%s refuses the command because of concurrent ones")
	case server.HasErrorCode(1), server.HasErrorCode(8):
		return b.unavailable(err, "%s reports an internal failure; its log has the cause")
	case isUnavailable(server) || mongo.IsTimeout(err):
		return b.unavailable(err, "%s is unavailable or does not respond")
	default:
		return errs.Wrap(err, errs.Internal, "%s can't %s", b.address, doing)
	}
}

// wrapLocalError is wrapError for an error that no server reported.
func (b *Backend) wrapLocalError(doing string, err error) error {
	switch {
	case errors.Is(err, mongo.ErrClientDisconnected):
		return errs.New(errs.Unavailable, "the connection to %s has been closed", b.address)
	case errors.Is(err, driver.ErrDocumentTooLarge):
		return errs.Wrap(err, errs.TooLarge, "%s can't %s: it exceeds the maximum size of a document", b.address, doing)
	case errors.As(err, new(mongo.MarshalError)), errors.As(err, new(mongo.InvalidArgumentError)):
		return errs.Wrap(err, errs.Internal, "%s can't %s", b.address, doing)
	default:
		return b.unavailable(err, "%s is unavailable or does not respond")
	}
}

func (b *Backend) unavailable(cause error, what string) error {
	return &errs.Error{Kind: errs.Unavailable, Message: fmt.Sprintf(what, b.address), RetryAfter: retryAfter,
		Err: cause}
}

// isEndedByCaller reports whether the caller's context ended a command. The MongoDB driver gives
// up a little before a deadline that no reply could meet.
func isEndedByCaller(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && mongo.IsTimeout(err) && time.Until(deadline) < grace
}

// grace is more than a round trip takes.
const grace = 500 * time.Millisecond

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
