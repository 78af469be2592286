package s3storage

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
)

const (
	mimetype = "application/octet-stream" // readers get the type of the record
	atOnce   = 8                          // concurrent copies and removals of one stage
)

// put puts a content under its key in one request. S3 verifies the hash.
func (s *Storage) put(ctx context.Context, hash string, content *buffer) error {
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.key(hash)),
		Body: content.reader(), ContentLength: aws.Int64(int64(content.size)), ContentType: aws.String(mimetype),
		ChecksumSHA256: aws.String(checksum(hash)),
	})
	return s.fail(ctx, err, "putting "+hash)
}

// checksum returns a hash in the encoding of S3.
func checksum(hash string) string {
	sum, _ := hex.DecodeString(hash) // ValidHash was checked
	return base64.StdEncoding.EncodeToString(sum)
}

// copyOne copies a single segment to the key of its content.
func (s *Storage) copyOne(ctx context.Context, hash string, from segment) error {
	out, err := s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.key(hash)), CopySource: aws.String(s.source(from.key)),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	if err != nil {
		return s.fail(ctx, err, "copying to "+hash)
	}
	// Not every server returns a checksum.
	if r := out.CopyObjectResult; r != nil && r.ChecksumSHA256 != nil && *r.ChecksumSHA256 != checksum(hash) {
		wrong := errs.New(errs.Internal, "%s has copied a content to %s that has another hash", s.where, hash)
		return errors.Join(wrong, s.remove(ctx, s.key(hash)))
	}
	return nil
}

// copyAll joins segments under the key of their content.
func (s *Storage) copyAll(ctx context.Context, hash string, segments []segment) error {
	done := s.use(hash)
	defer done()
	u, err := s.begin(ctx, s.key(hash))
	if err != nil {
		return err
	}
	// The first error starts no more copies, but it does not cancel those in
	// flight: S3 may finish a copy whose request was canceled after the upload has
	// been aborted, and keep that part.
	group, failed := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, from := range segments {
		group.Go(func() error {
			if err := failed.Err(); err != nil {
				return err
			}
			return u.copy(ctx, int32(i+1), from)
		})
	}
	if err = group.Wait(); err == nil {
		err = u.complete(ctx)
	}
	if err != nil {
		aborting, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
		defer cancel()
		_ = u.abort(aborting)
	}
	return err
}

// source is the CopySource of an object. S3 decodes it like a form, in which a plus
// sign is a space.
func (s *Storage) source(key string) string {
	return strings.ReplaceAll(url.QueryEscape(s.bucket+"/"+key), "+", "%20")
}

// removeAll removes objects, all that it can, and returns the first error.
func (s *Storage) removeAll(ctx context.Context, keys []string) error {
	var group errgroup.Group
	group.SetLimit(atOnce)
	for _, key := range keys {
		group.Go(func() error { return s.remove(ctx, key) })
	}
	return group.Wait()
}

// upload is a multipart upload.
type upload struct {
	s       *Storage
	key, id string

	mu    sync.Mutex
	parts []types.CompletedPart
	size  int64
}

func (s *Storage) begin(ctx context.Context, key string) (*upload, error) {
	out, err := s.client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
		Bucket: &s.bucket, Key: &key, ContentType: aws.String(mimetype),
		ChecksumAlgorithm: types.ChecksumAlgorithmCrc32, ChecksumType: types.ChecksumTypeFullObject,
	})
	if err != nil {
		return nil, s.fail(ctx, err, "creating an upload")
	}
	return &upload{s: s, key: key, id: aws.ToString(out.UploadId)}, nil
}

// count returns the number of parts.
func (u *upload) count() int32 { return int32(len(u.parts)) }

// put uploads the next part.
func (u *upload) put(ctx context.Context, part *buffer) error {
	number := u.count() + 1
	out, err := u.s.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.s.bucket, Key: &u.key, UploadId: &u.id, PartNumber: &number,
		Body: part.reader(), ContentLength: aws.Int64(int64(part.size)), ChecksumAlgorithm: types.ChecksumAlgorithmCrc32,
	})
	if err != nil {
		return u.s.fail(ctx, err, fmt.Sprintf("putting part %d", number))
	}
	u.add(types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}, int64(part.size))
	return nil
}

// copy adds an object as a part.
func (u *upload) copy(ctx context.Context, number int32, from segment) error {
	out, err := u.s.client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
		Bucket: &u.s.bucket, Key: &u.key, UploadId: &u.id, PartNumber: &number, CopySource: aws.String(u.s.source(from.key)),
	})
	if err != nil {
		return u.s.fail(ctx, err, fmt.Sprintf("copying part %d", number))
	}
	part := types.CompletedPart{PartNumber: &number}
	if r := out.CopyPartResult; r != nil {
		part.ETag, part.ChecksumCRC32 = r.ETag, r.ChecksumCRC32
	}
	u.add(part, from.size)
	return nil
}

func (u *upload) add(part types.CompletedPart, size int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.parts = append(u.parts, part)
	u.size += size
}

// complete creates the object from the parts.
func (u *upload) complete(ctx context.Context) error {
	slices.SortFunc(u.parts, func(a, b types.CompletedPart) int { return cmp.Compare(*a.PartNumber, *b.PartNumber) })
	_, err := u.s.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: &u.s.bucket, Key: &u.key, UploadId: &u.id, MpuObjectSize: &u.size,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	})
	if codeOf(err) == "NoSuchUpload" && u.completed(ctx) {
		return nil
	}
	return u.s.fail(ctx, err, "completing an upload")
}

// completed reports whether an upload that S3 does not have any more was completed,
// since the response to an earlier attempt may have been lost. An object of this
// size under the key, which is that of a segment or of a content, is the one that
// the upload creates.
func (u *upload) completed(ctx context.Context) bool {
	head, err := u.s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &u.s.bucket, Key: &u.key})
	return err == nil && aws.ToInt64(head.ContentLength) == u.size
}

// abort aborts the upload. It is no error when it does not exist.
func (u *upload) abort(ctx context.Context) error {
	_, err := u.s.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: &u.s.bucket, Key: &u.key, UploadId: &u.id})
	if codeOf(err) == "NoSuchUpload" {
		return nil
	}
	return u.s.fail(ctx, err, "aborting an upload")
}
