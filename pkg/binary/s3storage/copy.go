package s3storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"golang.org/x/sync/errgroup"

	"belfry/pkg/errs"
)

// copyContent makes a content of its segments. crc is its CRC-32C.
func (s *Storage) copyContent(ctx context.Context, hash string, segments []segment, crc uint32) error {
	if len(segments) == 1 && (len(segments[0].pieces) == 1 || partSums(s.partSums.Load()) == partSumsAbsent) {
		return s.copyOne(ctx, hash, segments[0])
	}
	return s.copyAll(ctx, hash, segments, crc)
}

// copyOne copies a single segment to the key of its content.
func (s *Storage) copyOne(ctx context.Context, hash string, from segment) error {
	out, err := s.client.CopyObject(ctx, &s3.CopyObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.key(hash)), CopySource: aws.String(s.source(from.key)),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	}, s.patiently)
	if err != nil {
		return s.fail(ctx, err, "copying to "+hash)
	}
	sum := ""
	if r := out.CopyObjectResult; r != nil {
		sum = aws.ToString(r.ChecksumSHA256)
	}
	if sum == "" {
		if sum, err = s.sumOf(ctx, hash); err != nil {
			return err
		}
	}
	switch sum {
	case checksum(hash):
		return nil
	case "":
		return s.readBack(ctx, hash)
	default:
		return s.removeDamaged(ctx, hash)
	}
}

// sumOf returns the SHA-256 that the server has computed of a content, or "". MinIO
// returns it there, and not in the response to the copy.
func (s *Storage) sumOf(ctx context.Context, hash string) (string, error) {
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.key(hash)), ChecksumMode: types.ChecksumModeEnabled,
	})
	if statusOf(err) == http.StatusNotFound {
		return "", s.vanished(err)
	}
	if err != nil {
		return "", s.fail(ctx, err, "asking for "+hash)
	}
	if head.ChecksumType == types.ChecksumTypeComposite {
		return "", nil
	}
	return aws.ToString(head.ChecksumSHA256), nil
}

// vanished is the error for a content that does not exist just after it was copied:
// it was deleted meanwhile, or the server loses contents.
func (s *Storage) vanished(cause error) error {
	return s.unavailable(cause, "the storage of binaries is temporarily unavailable: try again later")
}

// partSums is whether the server returns checksums of the parts that it copies.
type partSums int32

const (
	partSumsUnknown partSums = iota
	partSumsPresent
	partSumsAbsent
)

// errNoPartSum means that the server has copied a part without a checksum.
var errNoPartSum = errors.New("the server has returned no checksum of a part that it copied")

// copyAll joins the pieces of segments under the key of their content. Each copy has a CRC-32C.
// The segments have a CRC-32: a server could return that without reading a byte,
// as Versity's gateway does.
//
// A server that computes no checksums of copied parts refuses them where an upload
// has checksums, as MinIO does, or can't complete the upload. A single segment is then
// copied as a whole. Several are joined without checksums, and the content is read back.
func (s *Storage) copyAll(ctx context.Context, hash string, segments []segment, crc uint32) error {
	done := s.use(hash)
	defer done()
	if partSums(s.partSums.Load()) != partSumsAbsent {
		err := s.join(ctx, hash, segments, checksum32(crc))
		status := statusOf(err)
		if !errors.Is(err, errNoPartSum) && status != http.StatusBadRequest && status != http.StatusNotImplemented {
			return err
		}
	}
	if len(segments) == 1 {
		if err := s.copyOne(ctx, hash, segments[0]); err != nil {
			return err
		}
		s.partSums.Store(int32(partSumsAbsent))
		return nil
	}
	if err := s.join(ctx, hash, segments, ""); err != nil {
		return err
	}
	s.partSums.Store(int32(partSumsAbsent))
	return s.readBack(ctx, hash)
}

// join creates a content from its segments. whole is its CRC-32C, or "" for copies
// without checksums; errNoPartSum when the server returns none.
func (s *Storage) join(ctx context.Context, hash string, segments []segment, whole string) error {
	algorithm := types.ChecksumAlgorithmCrc32c
	if whole == "" {
		algorithm = ""
	}
	u, err := s.begin(ctx, s.key(hash), algorithm)
	if err != nil {
		return err
	}
	u.whole = whole
	if err = u.copyAll(ctx, segments); err == nil {
		err = u.complete(ctx)
	}
	if err != nil {
		aborting, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTimeout)
		defer cancel()
		_ = u.abort(aborting)
	}
	return err
}

// source is a piece that is copied, and where it is.
type source struct {
	piece
	key   string
	whole bool // it is all of its segment
}

func sources(segments []segment) (all []source) {
	for _, from := range segments {
		for _, p := range from.pieces {
			all = append(all, source{p, from.key, len(from.pieces) == 1})
		}
	}
	return all
}

// copyAll copies pieces, several at once. While it is not known whether the
// server returns checksums, only the first one is copied.
//
// The first error starts no more copies, but it does not cancel those in flight:
// S3 may finish a copy whose request was canceled after the upload has been
// aborted, and keep that part.
func (u *upload) copyAll(ctx context.Context, segments []segment) error {
	all, first := sources(segments), 0
	if u.whole != "" && partSums(u.s.partSums.Load()) == partSumsUnknown {
		if err := u.copy(ctx, 1, all[0]); err != nil {
			return err
		}
		u.s.partSums.CompareAndSwap(int32(partSumsUnknown), int32(partSumsPresent))
		first = 1
	}
	group, failed := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, from := range all[first:] {
		group.Go(func() error {
			if err := failed.Err(); err != nil {
				return err
			}
			return u.copy(ctx, int32(first+i+1), from)
		})
	}
	return group.Wait()
}

// copy adds a piece as a part, and compares its checksum.
func (u *upload) copy(ctx context.Context, number int32, from source) error {
	in := &s3.UploadPartCopyInput{
		Bucket: &u.s.bucket, Key: &u.key, UploadId: &u.id, PartNumber: &number,
		CopySource: aws.String(u.s.source(from.key)),
	}
	if !from.whole {
		in.CopySourceRange = aws.String(fmt.Sprintf("bytes=%d-%d", from.offset, from.offset+from.size-1))
	}
	out, err := u.s.client.UploadPartCopy(ctx, in, u.s.patiently)
	if err != nil {
		return u.s.fail(ctx, err, fmt.Sprintf("copying part %d", number))
	}
	part := types.CompletedPart{PartNumber: &number}
	if r := out.CopyPartResult; r != nil {
		part.ETag, part.ChecksumCRC32C = r.ETag, r.ChecksumCRC32C
	}
	switch {
	case u.whole == "":
		part.ChecksumCRC32C = nil
	case part.ChecksumCRC32C == nil:
		return errNoPartSum
	case *part.ChecksumCRC32C != checksum32(from.crc):
		return errs.New(errs.Internal, "%s has copied a part of %s that has another checksum", u.s.where, u.key)
	}
	u.add(part, from.size)
	return nil
}

// readBack reads a content that the server has copied without returning a
// checksum of it, and removes it when it has another hash.
func (s *Storage) readBack(ctx context.Context, hash string) error {
	r, err := s.Open(ctx, hash, 0, -1)
	if errors.Is(err, errs.NotFound) {
		return s.vanished(err)
	}
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, r); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != hash {
		return s.removeDamaged(ctx, hash)
	}
	return nil
}

// removeDamaged removes a content that the server has copied wrongly.
func (s *Storage) removeDamaged(ctx context.Context, hash string) error {
	wrong := errs.New(errs.Internal, "%s has copied a content to %s that has another hash", s.where, hash)
	return errors.Join(wrong, s.remove(ctx, s.key(hash)))
}

// source is the CopySource of an object. S3 decodes it like a form, in which a plus
// sign is a space.
func (s *Storage) source(key string) string {
	return strings.ReplaceAll(url.QueryEscape(s.bucket+"/"+key), "+", "%20")
}
