package mongostore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver"

	"belfry/pkg/errs"
)

// retryAfter is what a caller of a server that is away or throttles is told to
// wait. The driver has then looked for it during some seconds, or repeated the
// act by itself, with growing delay, a few times.
const retryAfter = 2 * time.Second

// Codes of MongoDB's errors, by what they mean to a caller. What none of them
// names is a fault of ours or of the server.
var (
	// unauthorized: its message holds the command, objects and all.
	unauthorized = []int{13}

	unknownUser = []int{18, 11}

	throttled = []int{
		462,   // IngressRequestRateLimitExceeded
		16500, // TooManyRequests, of services that speak the protocol
	}

	tooLarge = []int{10334, 17419, 17420}

	// away: the server is starting, stopping, changing its role, out of
	// something or out of time.
	away = []int{
		6, 7, 89, 9001, // host, network
		91, 94, 189, 10058, 10107, 11600, 11602, 13435, 13436, // starting, stopping, not the primary
		24, 50, 202, 262, // time
		43, 175, 237, 11601, // interrupted
		46, 112, // locks, write conflicts
		63, 150, 13388, // routing
		64, 100, 133, 134, // no majority
		146, 365, 14031, // memory, disk
	}
)

func canceled(err error) error {
	return errs.Wrap(err, errs.Canceled, "the request was given up")
}

// fail gives an error of the driver's its kind. ctx is the caller's context,
// and doing what could not be done, as in "the collection Books can't <doing>".
func (b *Backend) fail(ctx context.Context, doing string, err error) error {
	if err == nil {
		return nil
	}
	var known *errs.Error
	if errors.As(err, &known) {
		return err
	}
	if ended(ctx, err) {
		return canceled(err)
	}
	var server mongo.ServerError
	if !errors.As(err, &server) {
		return b.local(doing, err)
	}
	has := func(codes []int) bool { return slices.ContainsFunc(codes, server.HasErrorCode) }
	switch {
	case has(unauthorized):
		return errs.New(errs.Internal, "%s can't %s: the user of the backend's URL has no right to; "+
			"give it the role readWrite on the database %s", b.place, doing, b.database.Name())
	case has(unknownUser):
		return errs.Wrap(err, errs.Internal, "%s refuses the user or the password of the backend's URL", b.place)
	case has(throttled) || server.HasErrorLabel(driver.ErrSystemOverloadedError):
		return b.unavailable(err, "%s has too much to do")
	case has(tooLarge):
		return errs.Wrap(err, errs.TooLarge, "%s can't %s: it is larger than a document may be", b.place, doing)
	case has(away) || server.HasErrorLabel("NetworkError") || server.HasErrorLabel("RetryableWriteError") || mongo.IsTimeout(err):
		return b.unavailable(err, "%s is away or does not answer")
	default:
		return errs.Wrap(err, errs.Internal, "%s can't %s", b.place, doing)
	}
}

// local is fail for an error that no server reported.
func (b *Backend) local(doing string, err error) error {
	switch {
	case errors.Is(err, mongo.ErrClientDisconnected):
		return errs.New(errs.Unavailable, "the connection to %s has been closed", b.place)
	case errors.Is(err, driver.ErrDocumentTooLarge):
		return errs.Wrap(err, errs.TooLarge, "%s can't %s: it is larger than a document may be", b.place, doing)
	case errors.As(err, new(mongo.MarshalError)), errors.As(err, new(mongo.InvalidArgumentError)):
		return errs.Wrap(err, errs.Internal, "%s can't %s", b.place, doing)
	default:
		return b.unavailable(err, "%s is away or does not answer")
	}
}

func (b *Backend) unavailable(cause error, what string) error {
	return &errs.Error{Kind: errs.Unavailable, Message: fmt.Sprintf(what, b.place), RetryAfter: retryAfter, Err: cause}
}

// ended reports whether it was the caller's own context that ended an act. The
// driver gives up a little before a deadline that no reply could keep.
func ended(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return true
	}
	deadline, ok := ctx.Deadline()
	return ok && mongo.IsTimeout(err) && time.Until(deadline) < grace
}

// grace is more than a round trip takes.
const grace = 500 * time.Millisecond
