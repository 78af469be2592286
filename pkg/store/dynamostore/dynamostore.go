package dynamostore

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/logging"

	"belfry/internal/backoff"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Options configures a Backend. The zero value uses the environment and the shared
// AWS configuration.
type Options struct {
	Region   string // "": from the environment or ~/.aws/config
	Endpoint string // "": the region's

	// TablePrefix is the prefix of the name of each table; the store's name follows.
	TablePrefix string

	// Credentials nil means the default AWS credential chain: the environment,
	// ~/.aws, or the role of the machine.
	Credentials aws.CredentialsProvider

	// Timeout bounds a request; 0 means 10 seconds. Transient errors are retried
	// a few times.
	Timeout time.Duration

	// RootCAs verify the certificate of the server, with those of AWS_CA_BUNDLE. nil means those of the system.
	RootCAs *x509.CertPool

	// Logger receives failed removals of obsolete items, and at debug level the
	// log of the SDK. nil discards them.
	Logger *slog.Logger
}

const (
	maxAttempts = 6 // of one request
	minBackoff  = 25 * time.Millisecond
	maxBackoff  = time.Second
	dialTimeout = 3 * time.Second
)

// Backend is a driver.Backend that keeps each store in a table.
type Backend struct {
	client  client
	creds   aws.CredentialsProvider
	retryer aws.Retryer
	prefix  string
	where   string // for messages
	log     *slog.Logger
	cleaner *cleaner
	now     func() time.Time // of tags

	pageSize int      // see pageSize
	memories sync.Map // of tables: *memory by name

	ctx    context.Context // of background tasks
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

var _ driver.Backend = (*Backend)(nil)

// Open creates a Backend. It sends no request, so DynamoDB need not be reachable;
// use Ping for that. It reports errs.Invalid for invalid options.
func Open(ctx context.Context, opts Options) (*Backend, error) {
	if opts.Timeout == 0 {
		opts.Timeout = 10 * time.Second
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	b := &Backend{prefix: opts.TablePrefix, log: opts.Logger, now: time.Now, pageSize: pageSize}
	b.retryer = newRetryer()
	cfg, err := settings(ctx, opts, b.retryer)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid,
			"the settings for DynamoDB can't be read: check ~/.aws/config and the variables AWS_*")
	}
	if cfg.Region == "" {
		return nil, errs.New(errs.Invalid,
			"DynamoDB needs a region: set region in the backend, or the variable AWS_REGION")
	}
	b.creds, b.where = cfg.Credentials, "DynamoDB in "+cfg.Region
	b.client = newClient(dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.HTTPClient = singleWriteClient{o.HTTPClient}
		if opts.Endpoint != "" {
			o.BaseEndpoint = aws.String(opts.Endpoint)
		}
	}))
	if opts.Endpoint != "" {
		u, err := url.Parse(opts.Endpoint)
		if err != nil || u.Host == "" {
			return nil, errs.New(errs.Invalid, "the endpoint of DynamoDB is not a URL like https://host:port")
		}
		b.where = "DynamoDB at " + u.Host
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	b.cleaner = newCleaner(b)
	return b, nil
}

func settings(ctx context.Context, opts Options, retryer aws.Retryer) (aws.Config, error) {
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(awshttp.NewBuildableClient().
			WithTimeout(opts.Timeout).
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialTimeout }).
			WithTransportOptions(func(t *http.Transport) {
				t.MaxIdleConns, t.MaxIdleConnsPerHost = 512, 512
				t.WriteBufferSize = writeBuffer
				t.TLSClientConfig.RootCAs = opts.RootCAs
			})),
		config.WithRetryer(func() aws.Retryer { return retryer }),
		config.WithLogger(logging.LoggerFunc(func(_ logging.Classification, format string, args ...any) {
			opts.Logger.Debug("aws: " + fmt.Sprintf(format, args...))
		})),
	}
	if opts.Region != "" {
		load = append(load, config.WithRegion(opts.Region))
	}
	if opts.Credentials != nil {
		load = append(load, config.WithCredentialsProvider(opts.Credentials))
	}
	return config.LoadDefaultConfig(ctx, load...)
}

// newRetryer retries transient errors. It has no quota across requests: after an
// outage the first requests get all their attempts too.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.RateLimiter = maxAttempts, ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return backoff.Delay(attempt, minBackoff, maxBackoff), nil
		})
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(retryTruncated),
			retry.IsErrorRetryableFunc(conflicts))
	})
}

// Ping reports whether DynamoDB answers and the credentials may describe tables.
func (b *Backend) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return errCanceled(err)
	}
	_, err := b.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(b.prefix + "ping")})
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return nil
	}
	return b.wrapError(ctx, err, b.prefix+"ping")
}

// Close removes queued garbage, for a few seconds at most.
func (b *Backend) Close() error {
	b.cleaner.close()
	b.cancel()
	b.tasks.Wait()
	return nil
}
