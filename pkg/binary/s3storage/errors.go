package s3storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"belfry/pkg/errs"
)

// retryAfter is when a client should repeat a request that failed all attempts.
const retryAfter = 5 * time.Second

// transient are the error codes with a status below 500 of transient errors.
var transient = map[string]bool{
	"RequestTimeout": true,
	"NoSuchUpload":   true, // another process removed the stage: the upload can be repeated
	"NoSuchKey":      true, // or a segment of it
	"QuotaExceeded":  true,
	"ExpiredToken":   true, // temporary credentials are refreshed

	"XMinioAdminBucketQuotaExceeded": true, // MinIO
}

// hints are remedies for permanent errors.
var hints = map[string]string{
	"NoSuchBucket":                 "does not exist: create it, or correct the configuration",
	"InvalidAccessKeyId":           "does not know the access key: check the credentials",
	"SignatureDoesNotMatch":        "does not accept the secret key: check the credentials",
	"InvalidToken":                 "does not accept the session token: check the credentials",
	"InvalidClientTokenId":         "does not know the access key: check the credentials",
	"XAdminUserNotFound":           "does not know the access key: check the credentials", // Versity's gateway
	"AccessDenied":                 "denies access: the credentials lack a permission",
	"Forbidden":                    "denies access: the credentials lack a permission",
	"AccountProblem":               "refuses everything: there is a problem with the account",
	"RequestTimeTooSkewed":         "refuses the request: correct the clock of this machine",
	"PermanentRedirect":            "is in another region or at another endpoint: correct the configuration",
	"MovedPermanently":             "is in another region or at another endpoint: correct the configuration",
	"AuthorizationHeaderMalformed": "is in another region: correct the configuration",
	"InvalidRegion":                "is in another region: correct the configuration", // MinIO
	"InvalidBucketName":            "has a name that no bucket can have: correct the configuration",
}

// fail gives an error of the SDK a kind. Such errors contain no secrets.
func (s *Storage) fail(ctx context.Context, err error, act string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errs.Wrap(err, errs.Canceled, "the request was canceled")
	}
	cause := fmt.Errorf("%s: %w", act, err)
	code, status := codeOf(err), statusOf(err)
	switch {
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusConflict || transient[code]:
		return s.unavailable(cause, "the storage of binaries is temporarily unavailable: try again later")
	case code == "EntityTooLarge":
		return errs.Wrap(cause, errs.TooLarge, "the binary is larger than the limit of the storage")
	case hints[code] != "":
		return errs.Wrap(cause, errs.Internal, "%s %s", s.where, hints[code])
	case status != 0:
		return errs.Wrap(cause, errs.Internal, "%s refused the request", s.where)
	default:
		return s.unavailable(cause, "the storage of binaries can't be reached: try again later")
	}
}

// unavailable returns an error whose message is for clients. It does not name the
// bucket.
func (s *Storage) unavailable(cause error, message string) error {
	return &errs.Error{Kind: errs.Unavailable, Message: message, RetryAfter: retryAfter,
		Err: fmt.Errorf("%s: %w", s.where, cause)}
}

// failReading is fail for an error in the body of a response.
func (s *Storage) failReading(ctx context.Context, err error) error {
	var network net.Error
	if ctx.Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &network) {
		return errs.Wrap(err, errs.Internal, "%s returned a damaged content", s.where)
	}
	return s.fail(ctx, err, "reading")
}

// codeOf returns the S3 error code of an error, or "".
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// statusOf returns the HTTP status of an error, or 0 without a response.
func statusOf(err error) int {
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) && reply.Response != nil && reply.Response.Response != nil {
		return reply.HTTPStatusCode()
	}
	return 0
}

// isAbsent reports whether an error means that the object does not exist.
func isAbsent(err error) bool {
	var key *types.NoSuchKey
	return errors.As(err, &key)
}

func notFound() error { return errs.New(errs.NotFound, "the content of the binary does not exist") }
