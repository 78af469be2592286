package s3storage

import (
	"cmp"
	"context"
	"crypto/x509"
	"net/http"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// Options say where contents are kept.
type Options struct {
	Bucket string

	// Region is the bucket's; "" asks the environment and the shared
	// configuration of AWS, and is us-east-1 at an Endpoint.
	Region string

	// Endpoint is the URL of a server that is not AWS; "" is AWS, unless the
	// environment names another.
	Endpoint string

	// Prefix begins every key, as it is: a folder's ends with a slash.
	Prefix string

	// AccessKey and SecretKey give access. Without them it is found the way
	// every AWS tool finds it: environment, shared files, the machine's role.
	// With them nothing of that is looked at.
	AccessKey, SecretKey string

	// RootCAs may vouch for the server. nil means the system's, and what
	// AWS_CA_BUNDLE names.
	RootCAs *x509.CertPool

	// IdleTimeout is how long a connection may be silent; 0 means one minute. A
	// server that answers a copy of 640 MiB only when it is done needs as long.
	IdleTimeout time.Duration

	backoff time.Duration // the longest between attempts; 0 means 2 s
}

const (
	partSize     = 5 << 20 // the least that S3 takes
	segmentParts = 128
	maxSegments  = 8192 // the parts of a copy; S3 takes 10,000
	maxSize      = maxSegments * segmentParts * partSize

	maxPrefix = 800 // S3 takes 1,024 bytes as a key
)

// Storage keeps contents in a bucket.
type Storage struct {
	client    *s3.Client
	transport *http.Transport
	bucket    string
	prefix    string
	where     string // for messages
	chunks    *chunks

	segmentParts int32

	mu    sync.Mutex
	using map[string]int // stages and copies of this Storage, which RemoveAbandoned leaves alone
}

var (
	_ driver.Storage = (*Storage)(nil)
	_ driver.Signer  = (*Storage)(nil)
)

// Open returns a storage. It does not ask the bucket; Ping does.
func Open(ctx context.Context, o Options) (*Storage, error) {
	switch {
	case o.Bucket == "":
		return nil, errs.New(errs.Invalid, "name the bucket that binaries are kept in")
	case len(o.Prefix) > maxPrefix:
		return nil, errs.New(errs.Invalid, "the prefix of the bucket %q has %d bytes; use at most %d", o.Bucket, len(o.Prefix), maxPrefix)
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return nil, errs.New(errs.Invalid, "give the bucket %q both an access key and a secret key, or neither", o.Bucket)
	}
	o.IdleTimeout = cmp.Or(o.IdleTimeout, idleTimeout)
	o.backoff = cmp.Or(o.backoff, maxBackoff)
	s := &Storage{
		bucket: o.Bucket, prefix: o.Prefix,
		chunks: newChunks(), segmentParts: segmentParts, using: map[string]int{},
	}
	if err := s.connect(ctx, o); err != nil {
		return nil, err
	}
	return s, nil
}

// Ping reports whether the bucket answers and may be used.
func (s *Storage) Ping(ctx context.Context) error {
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.bucket})
	if status := statusOf(err); status < 300 || status >= 500 {
		return s.fail(ctx, err, "asking")
	}
	// The reply to a HEAD has no place for a reason; that to a GET has.
	_, err = s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &s.bucket, Prefix: aws.String(s.contents()), MaxKeys: aws.Int32(1),
	})
	return s.fail(ctx, err, "listing")
}

// Close ends all use.
func (s *Storage) Close() error {
	s.transport.CloseIdleConnections()
	return nil
}

func (s *Storage) contents() string { return s.prefix + "contents/" }

func (s *Storage) stages() string { return s.prefix + "tmp/" }

// key is where a content is.
func (s *Storage) key(hash string) string { return s.contents() + hash[:2] + "/" + hash }

// use has RemoveAbandoned leave alone what has a name, until done.
func (s *Storage) use(name string) (done func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.using[name]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.using[name]--; s.using[name] == 0 {
			delete(s.using, name)
		}
	}
}

func (s *Storage) inUse(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.using[name] > 0
}
