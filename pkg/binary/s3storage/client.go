package s3storage

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go/logging"

	"belfry/pkg/errs"
)

const (
	idleTimeout = time.Minute
	attempts    = 4
	patience    = 10 // idle timeouts, for a copy
	maxBackoff  = 2 * time.Second
	connections = 100 // kept when idle
)

// connect creates the client.
func (s *Storage) connect(ctx context.Context, o Options) error {
	cfg, err := o.config(ctx)
	if err != nil {
		return err
	}
	s.transport = o.transport(cfg.HTTPClient, o.IdleTimeout)
	s.patient = o.transport(cfg.HTTPClient, patience*o.IdleTimeout)
	s.client = s3.NewFromConfig(cfg, func(c *s3.Options) {
		if o.Endpoint != "" {
			c.BaseEndpoint = &o.Endpoint
		}
		s.where = fmt.Sprintf("the bucket %q in the region %s of AWS", o.Bucket, c.Region)
		if c.BaseEndpoint != nil {
			// Other servers than AWS rarely have a host name for each bucket.
			c.UsePathStyle = true
			s.where = fmt.Sprintf("the bucket %q at %s", o.Bucket, *c.BaseEndpoint)
		}
		c.HTTPClient = &http.Client{Transport: s.transport, CheckRedirect: noRedirect}
		c.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff = attempts, o.backoff
			// Two requests for one key conflicted.
			r.Retryables = append(r.Retryables,
				retry.RetryableHTTPStatusCode{Codes: map[int]struct{}{http.StatusConflict: {}}})
		})
		c.Logger = logging.Nop{}
		c.DisableLogOutputChecksumValidationSkipped = true
	})
	return nil
}

// config returns the region and the credentials.
func (o *Options) config(ctx context.Context) (aws.Config, error) {
	// AWS_CA_BUNDLE works only with the client of the SDK, and adds to the authorities that this has.
	client := awshttp.NewBuildableClient().
		WithTransportOptions(func(t *http.Transport) { t.TLSClientConfig.RootCAs = o.RootCAs })
	cfg := aws.Config{
		Region: o.Region, HTTPClient: client,
		Credentials:                credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, ""),
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenSupported,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenSupported,
	}
	if o.AccessKey == "" {
		var err error
		cfg, err = config.LoadDefaultConfig(ctx, config.WithHTTPClient(client), config.WithRegion(o.Region))
		if err != nil {
			return cfg, errs.Wrap(err, errs.Invalid,
				"the AWS configuration of this machine can't be used for the bucket %q", o.Bucket)
		}
	}
	if cfg.Region == "" && o.Endpoint != "" {
		cfg.Region = "us-east-1"
	}
	if cfg.Region == "" {
		return cfg, errs.New(errs.Invalid, "the region of the bucket %q is unknown: configure it, or set AWS_REGION",
			o.Bucket)
	}
	return cfg, nil
}

// patiently gives a request more time: that of a copy or of a completion, during
// which the server sends nothing.
func (s *Storage) patiently(c *s3.Options) {
	c.HTTPClient = &http.Client{Transport: s.patient, CheckRedirect: noRedirect}
}

// transport makes a transport with an idle timeout from that of the SDK.
func (o *Options) transport(client aws.HTTPClient, idle time.Duration) *http.Transport {
	t := awshttp.NewBuildableClient().GetTransport()
	if c, ok := client.(*awshttp.BuildableClient); ok {
		t = c.GetTransport()
	}
	dialer := &net.Dialer{Timeout: o.IdleTimeout}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &idleConn{conn, idle}, nil
	}
	t.TLSHandshakeTimeout = o.IdleTimeout
	t.MaxIdleConnsPerHost = connections
	// With HTTP/2 all transfers would share one connection and slow each other.
	t.ForceAttemptHTTP2 = false
	return t
}

func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// idleConn is a connection that fails when no byte moves for a time. A write
// extends the deadline of the pending read too, since the HTTP client reads from
// the beginning.
type idleConn struct {
	net.Conn
	timeout time.Duration
}

func (c *idleConn) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *idleConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
