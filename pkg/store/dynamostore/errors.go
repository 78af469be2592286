package dynamostore

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
)

// retryAfter is the delay that callers are given when DynamoDB is unavailable or
// throttles.
const retryAfter = time.Second

func errCanceled(err error) error {
	return errs.Wrap(err, errs.Canceled, "the request was canceled")
}

// throttles recognizes throttling errors.
var throttles = retry.IsErrorThrottles(retry.DefaultThrottles)

// accessErrors are the codes of authentication and authorization errors.
var accessErrors = []string{
	"AccessDeniedException", "UnrecognizedClientException", "InvalidSignatureException", "IncompleteSignatureException",
	"MissingAuthenticationTokenException", "MissingAuthenticationToken", "ExpiredTokenException",
	"InvalidClientTokenId", "NotAuthorized",
}

// conflictErrors are the codes of writes that were refused because of another request for
// the same item, such as a transaction of somebody else. They changed nothing. The SDK
// does not retry the first two.
var conflictErrors = []string{"TransactionConflictException", "ReplicatedWriteConflictException",
	"TransactionInProgressException"}

// conflicts makes these errors retryable.
func conflicts(err error) aws.Ternary {
	var api smithy.APIError
	if errors.As(err, &api) && slices.Contains(conflictErrors, api.ErrorCode()) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// serverFailed reports whether DynamoDB, or a proxy before it, failed to execute a
// request that it does not refuse: by the SDK's model, by the status of the reply, or by a
// code of other services that speak the protocol.
func serverFailed(api smithy.APIError, err error) bool {
	var reply interface{ HTTPStatusCode() int }
	if errors.As(err,
		&reply) && (reply.HTTPStatusCode() >= http.StatusInternalServerError ||
		reply.HTTPStatusCode() == http.StatusRequestTimeout) {
		return true
	}
	code := api.ErrorCode()
	return api.ErrorFault() == smithy.FaultServer ||
		slices.ContainsFunc(failedCodes, func(prefix string) bool { return strings.HasPrefix(code, prefix) })
}

// failedCodes begin the codes of a server's failures.
var failedCodes = []string{"InternalServer", "InternalFailure", "ServiceUnavailable", "RequestTimeout"}

// wrapError returns the error of a request for a table with its kind.
func (b *Backend) wrapError(ctx context.Context, err error, table string) error {
	var known *errs.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	if ended := ctx.Err(); ended != nil {
		return errCanceled(errors.Join(ended, err))
	}
	var api smithy.APIError
	if !errors.As(err, &api) {
		if _, lack := b.creds.Retrieve(ctx); lack != nil {
			return errs.Wrap(err, errs.Unavailable, "no credentials for %s were found: set them as for any AWS tool",
				b.where)
		}
		return b.unavailable(err, "%s does not respond", b.where)
	}
	switch code := api.ErrorCode(); {
	case code == "LimitExceededException": // the SDK counts it as throttling
		return b.unavailable(err, "%s is already changing as many tables as it allows at once", b.where)
	case slices.Contains(conflictErrors, code):
		return b.unavailable(err, "%s refuses %s on the table %s because of a concurrent one", b.where, operation(err),
			table)
	case throttles.IsErrorThrottle(err) == aws.TrueTernary:
		return b.unavailable(err, "%s throttles the table %s", b.where, table)
	case serverFailed(api, err):
		return b.unavailable(err, "%s fails", b.where)
	case slices.Contains(accessErrors, code):
		return errs.Wrap(err, errs.Internal,
			"%s refuses dynamodb:%s on the table %s (%s): give belfry's credentials that right",
			b.where, operation(err), table, code)
	case code == "ResourceNotFoundException":
		return errs.Wrap(err, errs.Internal, "%s no longer has a table %s: restart belfry to create it", b.where, table)
	case code == "ItemCollectionSizeLimitExceededException":
		return errs.Wrap(err, errs.Internal,
			"%s can't store more in a partition of the table %s: drop its local secondary indexes, "+
				"which limit a partition to 10 GB", b.where, table)
	default:
		return errs.Wrap(err, errs.Internal, "%s refuses %s on the table %s", b.where, operation(err), table)
	}
}

func (b *Backend) unavailable(cause error, format string, args ...any) error {
	e := errs.New(errs.Unavailable, format, args...)
	e.Err, e.RetryAfter = cause, retryAfter
	return e
}

// operation returns the name of the operation that failed.
func operation(err error) string {
	if op := (*smithy.OperationError)(nil); errors.As(err, &op) {
		return op.Operation()
	}
	return "a request"
}

// retryTruncated makes truncated replies retryable.
func retryTruncated(err error) aws.Ternary {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// conditionFailed reports whether the condition of a write was not met.
func conditionFailed(err error) bool {
	failed := (*types.ConditionalCheckFailedException)(nil)
	return errors.As(err, &failed)
}

// conflictingItem returns the item that did not meet the condition of a write, if the request asked
// for it and the server supports that.
func conflictingItem(err error) item {
	if failed := (*types.ConditionalCheckFailedException)(nil); errors.As(err, &failed) && len(failed.Item) > 0 {
		return failed.Item
	}
	return nil
}

// tooLarge reports whether an item would have exceeded DynamoDB's size limit.
func tooLarge(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "ValidationException" &&
		strings.Contains(api.ErrorMessage(), "Item size")
}

// isCertainlyUnwritten reports whether a failed request certainly changed nothing.
func isCertainlyUnwritten(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) &&
		(api.ErrorFault() == smithy.FaultClient || throttles.IsErrorThrottle(err) == aws.TrueTernary)
}

// waitToRetry waits before another attempt at a request.
func waitToRetry(ctx context.Context, attempt int) error {
	if err := backoff.Sleep(ctx, backoff.Delay(attempt, minBackoff, maxBackoff)); err != nil {
		return errCanceled(err)
	}
	return nil
}
