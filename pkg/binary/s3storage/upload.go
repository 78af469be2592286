package s3storage

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"
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

// checksum32 returns a CRC-32 or CRC-32C in the encoding of S3.
func checksum32(crc uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, crc))
}

// checksum returns a hash in the encoding of S3.
func checksum(hash string) string {
	sum, _ := hex.DecodeString(hash) // ValidHash was checked
	return base64.StdEncoding.EncodeToString(sum)
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

	whole string // the CRC-32C of the object, encoded; "": S3 does not compare it

	begun  int32   // parts that were numbered, by the goroutine of the stage
	pieces []piece // of these parts

	mu    sync.Mutex
	parts []types.CompletedPart
	size  int64
}

// begin begins an upload whose parts, and the object that they become, have a
// checksum, unless the algorithm is "".
func (s *Storage) begin(ctx context.Context, key string, algorithm types.ChecksumAlgorithm) (*upload, error) {
	in := &s3.CreateMultipartUploadInput{Bucket: &s.bucket, Key: &key, ContentType: aws.String(mimetype)}
	if algorithm != "" {
		in.ChecksumAlgorithm, in.ChecksumType = algorithm, types.ChecksumTypeFullObject
	}
	out, err := s.client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return nil, s.fail(ctx, err, "creating an upload")
	}
	return &upload{s: s, key: key, id: aws.ToString(out.UploadId)}, nil
}

// next numbers a part.
func (u *upload) next(b *buffer) *part {
	if u.begun%u.s.pieceParts == 0 {
		u.pieces = append(u.pieces, piece{offset: int64(u.begun) * partSize})
	}
	u.begun++
	last := &u.pieces[len(u.pieces)-1]
	last.size += int64(b.size)
	last.crc = b.crc(last.crc, castagnoli)
	return &part{upload: u, number: u.begun, buffer: b}
}

// put uploads a part. It is safe for concurrent use.
func (u *upload) put(ctx context.Context, number int32, b *buffer) error {
	out, err := u.s.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: &u.s.bucket, Key: &u.key, UploadId: &u.id, PartNumber: &number,
		Body: b.reader(), ContentLength: aws.Int64(int64(b.size)),
		// Without it, the SDK appends a checksum to the body, which costs servers more.
		ChecksumCRC32: aws.String(checksum32(b.crc(0, crc32.IEEETable))),
	})
	if err != nil {
		return u.s.fail(ctx, err, fmt.Sprintf("putting part %d", number))
	}
	u.add(types.CompletedPart{PartNumber: &number, ETag: out.ETag, ChecksumCRC32: out.ChecksumCRC32}, int64(b.size))
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
	in := &s3.CompleteMultipartUploadInput{
		Bucket: &u.s.bucket, Key: &u.key, UploadId: &u.id, MpuObjectSize: &u.size,
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	}
	if u.whole != "" {
		in.ChecksumCRC32C, in.ChecksumType = &u.whole, types.ChecksumTypeFullObject
	}
	_, err := u.s.client.CompleteMultipartUpload(ctx, in, u.s.patiently)
	if codeOf(err) == "NoSuchUpload" && u.completed(ctx) {
		return nil
	}
	return u.s.fail(ctx, err, "completing an upload")
}

// completed reports whether an upload that S3 no longer has was completed, since the
// response to an earlier attempt may have been lost. Only this upload creates an object
// of this size under its key, the key of a segment or of a content.
func (u *upload) completed(ctx context.Context) bool {
	head, err := u.s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &u.s.bucket, Key: &u.key})
	return err == nil && aws.ToInt64(head.ContentLength) == u.size
}

// abort aborts the upload. It is not an error when it does not exist.
func (u *upload) abort(ctx context.Context) error {
	_, err := u.s.client.AbortMultipartUpload(ctx,
		&s3.AbortMultipartUploadInput{Bucket: &u.s.bucket, Key: &u.key, UploadId: &u.id})
	if codeOf(err) == "NoSuchUpload" {
		return nil
	}
	return u.s.fail(ctx, err, "aborting an upload")
}
