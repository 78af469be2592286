package s3storage

import (
	"cmp"
	"context"
	"crypto/x509"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// Options configure a storage.
type Options struct {
	Bucket string

	// Region is the region of the bucket. "" is that of the environment or the
	// shared configuration of AWS, and us-east-1 with an Endpoint.
	Region string

	// Endpoint is the URL of another server than AWS; "" is AWS, unless the
	// environment has another one.
	Endpoint string

	// Prefix is the prefix of every key. That of a folder ends with a slash.
	Prefix string

	// AccessKey and SecretKey are the credentials. Without them the default chain
	// of AWS applies: environment, shared files, the role of the machine.
	AccessKey, SecretKey string

	// RootCAs verify the certificate of the server, with those of AWS_CA_BUNDLE. nil means those of the system.
	RootCAs *x509.CertPool

	// IdleTimeout closes a connection on which no byte moves; 0 means one minute. A
	// server that copies responds only at the end of a copy: it has ten times as long.
	IdleTimeout time.Duration

	backoff time.Duration // the maximum between attempts; 0 means 2 s
}

const (
	partSize     = 5 << 20        // the minimum of S3
	pieceParts   = 128            // of a piece, which is copied as one part
	segmentParts = 7 * pieceParts // S3 copies at most 5 GB at once
	maxPieces    = 8192           // the parts of a copy; the limit of S3 is 10,000
	maxSize      = maxPieces * pieceParts * partSize

	maxPrefix = 800 // the limit of S3 for a key is 1,024 bytes
)

// Storage stores contents in a bucket.
type Storage struct {
	client    *s3.Client
	transport *http.Transport
	patient   *http.Transport // of requests that the server needs long for
	bucket    string
	prefix    string
	where     string // for messages
	chunks    *chunks

	own *budget // of stages that have no other

	pieceParts, segmentParts int32
	partSums                 atomic.Int32 // a partSums

	mu    sync.Mutex
	using map[string]int // stages and copies in progress, which RemoveAbandoned ignores
}

var (
	_ driver.Storage = (*Storage)(nil)
	_ driver.Signer  = (*Storage)(nil)

	_ driver.Buffering = (*Storage)(nil)
)

// Open returns a storage. It sends no request; Ping does.
func Open(ctx context.Context, o Options) (*Storage, error) {
	switch {
	case o.Bucket == "":
		return nil, errs.New(errs.Invalid, "the bucket for binaries has no name")
	case len(o.Prefix) > maxPrefix:
		return nil, errs.New(errs.Invalid, "the prefix of the bucket %q has %d bytes; use at most %d", o.Bucket,
			len(o.Prefix), maxPrefix)
	case (o.AccessKey == "") != (o.SecretKey == ""):
		return nil, errs.New(errs.Invalid, "give the bucket %q both an access key and a secret key, or neither",
			o.Bucket)
	}
	o.IdleTimeout = cmp.Or(o.IdleTimeout, idleTimeout)
	o.backoff = cmp.Or(o.backoff, maxBackoff)
	s := &Storage{
		bucket: o.Bucket, prefix: o.Prefix,
		chunks: newChunks(), own: &budget{free: ownBudget}, using: map[string]int{},
		pieceParts: pieceParts, segmentParts: segmentParts,
	}
	if err := s.connect(ctx, o); err != nil {
		return nil, err
	}
	return s, nil
}

// Ping implements driver.Storage.
func (s *Storage) Ping(ctx context.Context) error {
	_, err := s.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &s.bucket})
	if status := statusOf(err); status < 300 || status >= 500 {
		return s.fail(ctx, err, "asking")
	}
	// The response to a HEAD request has no error code; that to a GET request has.
	_, err = s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{
		Bucket: &s.bucket, Prefix: aws.String(s.contents()), MaxKeys: aws.Int32(1),
	})
	return s.fail(ctx, err, "listing")
}

// Close implements driver.Storage.
func (s *Storage) Close() error {
	s.transport.CloseIdleConnections()
	s.patient.CloseIdleConnections()
	return nil
}

func (s *Storage) contents() string { return s.prefix + "contents/" }

func (s *Storage) stages() string { return s.prefix + "tmp/" }

// key is the key of a content.
func (s *Storage) key(hash string) string { return s.contents() + hash[:2] + "/" + hash }

// use makes RemoveAbandoned ignore a stage or copy until done is called.
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
