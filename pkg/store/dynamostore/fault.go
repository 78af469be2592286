package dynamostore

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"belfry/pkg/errs"
)

// retryAfter is what callers are told when DynamoDB is away or throttles.
const retryAfter = time.Second

func canceled(err error) error {
	return errs.Wrap(err, errs.Canceled, "the request was given up")
}

// throttles says that DynamoDB takes fewer requests than there are.
var throttles = retry.IsErrorThrottles(retry.DefaultThrottles)

// refusals are the codes of errors about who asks.
var refusals = []string{
	"AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignatureException",
	"MissingAuthenticationTokenException", "MissingAuthenticationToken", "ExpiredTokenException", "InvalidClientTokenId", "NotAuthorized",
}

// fault gives an error of a request about a table its kind.
func (b *Backend) fault(ctx context.Context, err error, table string) error {
	var known *errs.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return canceled(errors.Join(ended, err))
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		if _, lack := b.creds.Retrieve(ctx); lack != nil {
			return errs.Wrap(err, errs.Unavailable, "no credentials for %s are to be had: set them as for any AWS tool", b.where)
		}
		return b.away(err, "%s does not answer", b.where)
	}
	switch code := api.ErrorCode(); {
	case throttles.IsErrorThrottle(err) == aws.TrueTernary:
		return b.away(err, "%s throttles the table %s", b.where, table)
	case api.ErrorFault() == smithy.FaultServer || strings.HasPrefix(code, "InternalServer") || strings.HasPrefix(code, "ServiceUnavailable"):
		return b.away(err, "%s fails", b.where)
	case slices.Contains(refusals, code):
		return errs.Wrap(err, errs.Internal, "%s refuses dynamodb:%s on the table %s (%s): give belfry's credentials that right",
			b.where, operation(err), table, code)
	case code == "ResourceNotFoundException":
		return errs.Wrap(err, errs.Internal, "%s has no table %s any more: start belfry again to make it", b.where, table)
	case code == "LimitExceededException":
		return b.away(err, "%s is already changing as many tables as it allows at once", b.where)
	default:
		return errs.Wrap(err, errs.Internal, "%s refuses %s on the table %s", b.where, operation(err), table)
	}
}

func (b *Backend) away(cause error, format string, args ...any) error {
	e := errs.New(errs.Unavailable, format, args...)
	e.Err, e.RetryAfter = cause, retryAfter
	return e
}

// operation is the name of the request that failed.
func operation(err error) string {
	if op := (*smithy.OperationError)(nil); errors.As(err, &op) {
		return op.Operation()
	}
	return "a request"
}

// cutShort says of a reply that ended too early that it is worth another try.
func cutShort(err error) aws.Ternary {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// conditionFailed reports whether DynamoDB looked at the condition of a write
// and made no change.
func conditionFailed(err error) bool {
	failed := (*types.ConditionalCheckFailedException)(nil)
	return errors.As(err, &failed)
}

// tooLarge reports whether an item would have become larger than DynamoDB's
// limit.
func tooLarge(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException" && strings.Contains(api.ErrorMessage(), "Item size")
}

// unmade reports whether a request that failed certainly changed nothing.
func unmade(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && (api.ErrorFault() == smithy.FaultClient || throttles.IsErrorThrottle(err) == aws.TrueTernary)
}

// backoff is how long to wait after an attempt: twice as long as after the one
// before, and not all who wait equally long.
func backoff(attempt int) time.Duration {
	wait := min(minBackoff<<min(attempt, 10), maxBackoff)
	return wait/2 + rand.N(wait/2) //nolint:gosec // no secret
}

// pause waits before another attempt at a request.
func (b *Backend) pause(ctx context.Context, attempt int) error {
	timer := time.NewTimer(backoff(attempt))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return canceled(ctx.Err())
	}
}
