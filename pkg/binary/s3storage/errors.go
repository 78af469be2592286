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

// retryAfter is when it is worth trying again that which failed four times.
const retryAfter = 5 * time.Second

// passing are codes below status 500 of what may be otherwise soon.
var passing = map[string]bool{
	"RequestTimeout": true,
	"NoSuchUpload":   true, // a stage was tidied up: the whole content may be tried again
	"NoSuchKey":      true, // the same of a segment
	"QuotaExceeded":  true,
	"ExpiredToken":   true, // temporary credentials are fetched anew
}

// hints say what to do about a code that does not pass.
var hints = map[string]string{
	"NoSuchBucket":                 "is not there: make it, or correct the configuration",
	"InvalidAccessKeyId":           "does not know the access key: check the credentials",
	"SignatureDoesNotMatch":        "does not accept the secret key: check the credentials",
	"InvalidToken":                 "does not accept the session token: check the credentials",
	"InvalidClientTokenId":         "does not know the access key: check the credentials",
	"XAdminUserNotFound":           "does not know the access key: check the credentials", // Versity's gateway
	"AccessDenied":                 "refuses this: the credentials lack a right",
	"Forbidden":                    "refuses this: the credentials lack a right",
	"AccountProblem":               "refuses everything: there is a problem with the account",
	"RequestTimeTooSkewed":         "refuses this: set the clock of this machine",
	"PermanentRedirect":            "is in another region or at another endpoint: correct the configuration",
	"MovedPermanently":             "is in another region or at another endpoint: correct the configuration",
	"AuthorizationHeaderMalformed": "is in another region: correct the configuration",
	"InvalidBucketName":            "has a name that no bucket can have: correct the configuration",
}

// fail gives what went wrong its kind. The SDK's errors hold no secret.
func (s *Storage) fail(ctx context.Context, err error, act string) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return errs.Wrap(err, errs.Canceled, "the request was given up")
	}
	cause := fmt.Errorf("%s: %w", act, err)
	code, status := codeOf(err), statusOf(err)
	switch {
	case status >= 500 || status == http.StatusTooManyRequests || status == http.StatusConflict || passing[code]:
		return s.unavailable(cause, "the storage of binaries can't do this at present; try again later")
	case code == "EntityTooLarge":
		return errs.Wrap(cause, errs.TooLarge, "this is larger than the storage of binaries takes")
	case hints[code] != "":
		return errs.Wrap(cause, errs.Internal, "%s %s", s.where, hints[code])
	case status != 0:
		return errs.Wrap(cause, errs.Internal, "%s refuses this", s.where)
	default:
		return s.unavailable(cause, "the storage of binaries can't be reached; try again later")
	}
}

// unavailable makes an error of which the message is told to clients, who need
// not know where binaries are kept.
func (s *Storage) unavailable(cause error, message string) error {
	return &errs.Error{Kind: errs.Unavailable, Message: message, RetryAfter: retryAfter, Err: fmt.Errorf("%s: %w", s.where, cause)}
}

// failReading is fail for what broke off while a content was read.
func (s *Storage) failReading(ctx context.Context, err error) error {
	var network net.Error
	if ctx.Err() == nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.As(err, &network) {
		return errs.Wrap(err, errs.Internal, "%s does not give what was put there", s.where)
	}
	return s.fail(ctx, err, "reading")
}

// codeOf is S3's code of an error, or "".
func codeOf(err error) string {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode()
	}
	return ""
}

// statusOf is the status of the reply that is an error, or 0 without a reply.
func statusOf(err error) int {
	var reply *smithyhttp.ResponseError
	if errors.As(err, &reply) && reply.Response != nil && reply.Response.Response != nil {
		return reply.HTTPStatusCode()
	}
	return 0
}

// isAbsent reports whether an error says that there is no such object.
func isAbsent(err error) bool {
	var key *types.NoSuchKey
	return errors.As(err, &key)
}

func notFound() error { return errs.New(errs.NotFound, "there is no such binary") }
