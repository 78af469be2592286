package s3storage_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"belfry/pkg/binary/binarytest"
	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/s3storage"
	"belfry/test/backing"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	server := backing.S3(t)
	for name, run := range map[string]struct {
		segmentParts int32
		sizes        []int
	}{
		"one segment":      {128, []int{s3storage.PartSize}},
		"several segments": {1, []int{2 * s3storage.PartSize}},
	} {
		t.Run(name, func(t *testing.T) {
			binarytest.RunConformanceTests(t, func(t *testing.T) binarytest.Harness {
				prefix := uuid.NewString() + "/"
				if strings.Contains(t.Name(), "/Concurrent/") {
					keepFolders(t, server, prefix)
				}
				open := func(ctx context.Context) (*s3storage.Storage, error) {
					o := fastRetry(options(server))
					o.Prefix = prefix
					s, err := s3storage.Open(ctx, o)
					if err == nil {
						s.SetSegmentParts(run.segmentParts)
					}
					return s, err
				}
				return binarytest.Harness{
					Open: func(ctx context.Context) (driver.Storage, error) { return open(ctx) },
					Abandon: func(ctx context.Context) error {
						other, err := open(ctx)
						if err != nil {
							return err
						}
						staged, err := other.Stage(ctx)
						if err != nil {
							return err
						}
						_, err = staged.Write(make([]byte, 3*s3storage.PartSize+1))
						return err
					},
					Client:   client(server),
					Features: binarytest.Features{Sizes: run.sizes},
				}
			})
		})
	}
}

// keepFolders creates the folders of contents so that they persist. S3 has no
// folders. The gateway has; it removes one with its last content, and a concurrent
// PUT to it may then fail.
func keepFolders(t *testing.T, server *backing.S3Server, prefix string) {
	t.Helper()
	bucket := direct(server)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for i := range 256 {
		key := fmt.Sprintf("%scontents/%02x/", prefix, i)
		group.Go(func() error {
			_, err := bucket.PutObject(ctx, &s3.PutObjectInput{Bucket: &server.Bucket, Key: aws.String(key)})
			return err
		})
	}
	must(t, group.Wait())
}
