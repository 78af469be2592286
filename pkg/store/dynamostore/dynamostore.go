package dynamostore

import (
	"context"
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

	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// Options say where the tables are. The zero value takes everything from
// where AWS tools find it.
type Options struct {
	Region   string // "": that of the environment or of ~/.aws/config
	Endpoint string // a URL of one's own; "": the region's

	// TablePrefix begins the name of every table; the store's name follows.
	TablePrefix string

	// Credentials give access. nil: the environment, ~/.aws, or the role of
	// the machine, as every AWS tool looks for them.
	Credentials aws.CredentialsProvider

	// Timeout is the most that one request takes; 0 means 10 seconds. Requests
	// that fail in passing are repeated a few times.
	Timeout time.Duration

	// Logger hears of leftovers that can't be removed, and at debug level of
	// what the SDK has to say. nil discards it.
	Logger *slog.Logger
}

const (
	attempts   = 6 // of one request
	minBackoff = 25 * time.Millisecond
	maxBackoff = time.Second
	dialing    = 3 * time.Second
)

// Backend keeps stores in tables.
type Backend struct {
	client  *dynamodb.Client
	creds   aws.CredentialsProvider
	retryer aws.Retryer
	prefix  string
	where   string // for messages
	log     *slog.Logger
	broom   *broom
	now     func() time.Time // of tags

	pageSize int // see pageSize

	life  context.Context // of what goes on behind callers' backs
	end   context.CancelFunc
	tasks sync.WaitGroup
}

var _ driver.Backend = (*Backend)(nil)

// Open prepares the use of DynamoDB. Nothing is asked of it yet, so it need
// not be there; Ping and Open of a store tell. It reports errs.Invalid for a
// setting that can't be.
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
		return nil, errs.Wrap(err, errs.Invalid, "the settings for DynamoDB can't be read; look at ~/.aws/config and the variables AWS_*")
	}
	if cfg.Region == "" {
		return nil, errs.New(errs.Invalid, "DynamoDB needs a region: set region in the backend, or the variable AWS_REGION")
	}
	b.creds, b.where = cfg.Credentials, "DynamoDB in "+cfg.Region
	b.client = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		if opts.Endpoint != "" {
			o.BaseEndpoint = aws.String(opts.Endpoint)
		}
	})
	if opts.Endpoint != "" {
		u, err := url.Parse(opts.Endpoint)
		if err != nil || u.Host == "" {
			return nil, errs.New(errs.Invalid, "the endpoint of DynamoDB is not a URL like https://host:port")
		}
		b.where = "DynamoDB at " + u.Host
	}
	b.life, b.end = context.WithCancel(context.Background())
	b.broom = newBroom(b)
	return b, nil
}

func settings(ctx context.Context, opts Options, retryer aws.Retryer) (aws.Config, error) {
	load := []func(*config.LoadOptions) error{
		config.WithHTTPClient(awshttp.NewBuildableClient().
			WithTimeout(opts.Timeout).
			WithDialerOptions(func(d *net.Dialer) { d.Timeout = dialing }).
			WithTransportOptions(func(t *http.Transport) {
				t.MaxIdleConns, t.MaxIdleConnsPerHost = 512, 512
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

// newRetryer repeats what failed in passing. There is no quota over all
// requests: after an outage the first to ask shall have all its attempts too.
func newRetryer() aws.Retryer {
	return retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.RateLimiter = attempts, ratelimit.None
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) { return backoff(attempt), nil })
		o.Retryables = append(o.Retryables, retry.IsErrorRetryableFunc(cutShort))
	})
}

// Ping reports whether DynamoDB answers and lets the tables be described.
func (b *Backend) Ping(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return canceled(err)
	}
	_, err := b.client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(b.prefix + "ping")})
	if missing := (*types.ResourceNotFoundException)(nil); errors.As(err, &missing) {
		return nil
	}
	return b.fault(ctx, err, b.prefix+"ping")
}

// Close removes the leftovers that are known, for a few seconds at most.
func (b *Backend) Close() error {
	b.broom.close()
	b.end()
	b.tasks.Wait()
	return nil
}
