package s3storage_test

import (
	"context"
	"encoding/hex"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/google/uuid"

	"belfry/pkg/binary/binarytest"
	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/s3storage"
	"belfry/pkg/errs"
	"belfry/test/backing"
)

func testConformance(t *testing.T, server *backing.S3Server) {
	harness := func(segmentParts int32) func(*testing.T) binarytest.Harness {
		return func(t *testing.T) binarytest.Harness { return newHarness(t, server, segmentParts) }
	}
	t.Run("one segment", func(t *testing.T) { binarytest.RunConformanceTests(t, harness(128)) })
	t.Run("several segments", func(t *testing.T) { binarytest.RunSizeTests(t, harness(1)) })
}

func newHarness(t *testing.T, server *backing.S3Server, segmentParts int32) binarytest.Harness {
	prefix := uuid.NewString() + "/"
	open := func(ctx context.Context) (*s3storage.Storage, error) {
		o := fastRetry(options(server))
		o.Prefix = prefix
		s, err := s3storage.Open(ctx, o)
		if err == nil {
			s.SetSegmentParts(segmentParts)
		}
		return s, err
	}
	return binarytest.Harness{
		Open: func(ctx context.Context) (driver.Storage, error) {
			s, err := open(ctx)
			if err == nil && server.Name == "versitygw" && strings.Contains(t.Name(), "/Concurrent/") {
				return &folderKeeper{Storage: s, server: server, prefix: prefix}, nil
			}
			return s, err
		},
		Abandon: func(ctx context.Context) error {
			other, err := open(ctx)
			if err != nil {
				return err
			}
			staged, err := other.Stage(ctx)
			if err != nil {
				return err
			}
			if _, err := staged.Write(make([]byte, 2*s3storage.PartSize+1)); err != nil {
				return err
			}
			return s3storage.AwaitParts(ctx, staged) // a process that has ended sends none
		},
		Client:   client(server),
		Features: binarytest.Features{Sizes: []int{s3storage.PartSize}},
	}
}

// folderKeeper creates the folders of contents before a commit so that they
// persist. S3 has no folders. The gateway has; it removes one with its last
// content, and a concurrent PUT to it may then fail.
type folderKeeper struct {
	driver.Storage
	server *backing.S3Server
	prefix string
	kept   [256]struct {
		once sync.Once
		err  error
	}
}

func (k *folderKeeper) Stage(ctx context.Context) (driver.Staged, error) {
	staged, err := k.Storage.Stage(ctx)
	return keptStage{staged, k}, err
}

type keptStage struct {
	driver.Staged
	keeper *folderKeeper
}

func (s keptStage) Commit(ctx context.Context, hash string) error {
	first, err := hex.DecodeString(hash[:2])
	if err != nil {
		return err
	}
	folder := &s.keeper.kept[first[0]]
	folder.once.Do(func() {
		_, folder.err = direct(s.keeper.server).PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.keeper.server.Bucket, Key: aws.String(s.keeper.prefix + "contents/" + hash[:2] + "/"),
		})
	})
	if folder.err != nil {
		return folder.err
	}
	// The gateway may also refuse all attempts of a PUT with an internal error while others delete the same content.
	for range 5 {
		if err = s.Staged.Commit(ctx, hash); errs.KindOf(err) != errs.Unavailable {
			break
		}
	}
	return err
}
