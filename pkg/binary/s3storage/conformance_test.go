package s3storage_test

import (
	"context"
	"testing"

	"github.com/google/uuid"

	"belfry/pkg/binary/binarytest"
	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/s3storage"
	"belfry/test/backing"
)

func TestConformance(t *testing.T) {
	server := backing.S3(t)
	for name, run := range map[string]struct {
		segmentParts int32
		sizes        []int
	}{
		"one segment":      {128, []int{s3storage.PartSize}},
		"several segments": {2, []int{4 * s3storage.PartSize}},
	} {
		t.Run(name, func(t *testing.T) {
			binarytest.RunConformanceTests(t, func(*testing.T) binarytest.Harness {
				prefix := uuid.NewString() + "/"
				open := func(ctx context.Context) (*s3storage.Storage, error) {
					o := options(server)
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
