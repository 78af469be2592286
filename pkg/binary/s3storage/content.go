package s3storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

const (
	pageSize    = 1000               // the maximum of S3
	maxValidity = 7 * 24 * time.Hour // the maximum of S3
)

// Stat implements driver.Storage.
func (s *Storage) Stat(ctx context.Context, hash string) (driver.Info, bool, error) {
	if !driver.ValidHash(hash) {
		return driver.Info{}, false, nil
	}
	head, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String(s.key(hash))})
	switch status := statusOf(err); {
	case err == nil:
		return driver.Info{Hash: hash, Size: aws.ToInt64(head.ContentLength),
			Modified: aws.ToTime(head.LastModified)}, true, nil
	case status < 300 || status >= 500:
		return driver.Info{}, false, s.fail(ctx, err, "asking for "+hash)
	}
	// The response to a HEAD request has no error code: it is unknown whether the
	// content or the bucket does not exist, and why access is denied.
	if err := s.Ping(ctx); err != nil {
		return driver.Info{}, false, err
	}
	if statusOf(err) != http.StatusNotFound {
		return driver.Info{}, false, s.fail(ctx, err, "asking for "+hash)
	}
	return driver.Info{}, false, nil
}

// Open implements driver.Storage.
func (s *Storage) Open(ctx context.Context, hash string, offset, length int64) (io.ReadCloser, error) {
	if !driver.ValidHash(hash) {
		return nil, notFound()
	}
	if length == 0 {
		return s.openNothing(ctx, hash)
	}
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.key(hash))}
	switch {
	case length > 0 && length <= math.MaxInt64-offset:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-%d", offset, offset+length-1))
	case offset > 0:
		in.Range = aws.String(fmt.Sprintf("bytes=%d-", offset))
	}
	out, err := s.client.GetObject(ctx, in)
	switch {
	case err == nil:
		return &reader{s, ctx, out.Body}, nil
	case isAbsent(err):
		return nil, notFound()
	case codeOf(err) == "InvalidRange": // offset is the end
		return http.NoBody, nil
	default:
		return nil, s.fail(ctx, err, "opening "+hash)
	}
}

func (s *Storage) openNothing(ctx context.Context, hash string) (io.ReadCloser, error) {
	_, found, err := s.Stat(ctx, hash)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, notFound()
	}
	return http.NoBody, nil
}

// reader reads a content from the response.
type reader struct {
	s    *Storage
	ctx  context.Context
	body io.ReadCloser
}

func (r *reader) Read(p []byte) (int, error) {
	// Buffered bytes could be read long after the context has ended.
	if err := r.ctx.Err(); err != nil {
		return 0, r.s.failReading(r.ctx, err)
	}
	n, err := r.body.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.s.failReading(r.ctx, err)
	}
	return n, err
}

func (r *reader) Close() error { return r.body.Close() }

// Delete implements driver.Storage.
func (s *Storage) Delete(ctx context.Context, hash string) error {
	if !driver.ValidHash(hash) {
		return nil
	}
	return s.remove(ctx, s.key(hash))
}

// remove removes an object. Removing a missing object is not an error.
func (s *Storage) remove(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: &key})
	if codeOf(err) == "NoSuchKey" {
		return nil
	}
	return s.fail(ctx, err, "removing")
}

// List implements driver.Storage. It skips keys that are not those of contents.
func (s *Storage) List(ctx context.Context, after string, limit int) (contents []driver.Info, next string, err error) {
	pages := s3.NewListObjectsV2Paginator(s.client, &s3.ListObjectsV2Input{
		Bucket: &s.bucket, Prefix: aws.String(s.contents()), StartAfter: aws.String(s.startAfter(after)),
		MaxKeys: aws.Int32(int32(min(limit, pageSize-1) + 1)), // one more, to know whether there is a next page
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, "", s.fail(ctx, err, "listing")
		}
		for _, o := range page.Contents {
			hash, ok := s.hashOf(aws.ToString(o.Key))
			if !ok || hash <= after {
				continue
			}
			if len(contents) == limit {
				return contents, contents[limit-1].Hash, nil
			}
			contents = append(contents,
				driver.Info{Hash: hash, Size: aws.ToInt64(o.Size), Modified: aws.ToTime(o.LastModified)})
		}
	}
	return contents, "", nil
}

// startAfter returns a key after which all hashes are listed that are greater than
// a string. If that is not a hexadecimal string, smaller ones may follow too.
func (s *Storage) startAfter(after string) string {
	digits := after[:len(after)-len(strings.TrimLeft(after, "0123456789abcdef"))]
	if len(digits) < 2 {
		return s.contents() + digits
	}
	return s.key(digits)
}

// hashOf returns the hash of the content with a key.
func (s *Storage) hashOf(key string) (string, bool) {
	hash := key[strings.LastIndexByte(key, '/')+1:]
	return hash, driver.ValidHash(hash) && key == s.key(hash)
}

// Sign implements driver.Signer. The URL expires with the credentials that sign it
// at the latest. Sign does not check whether the content exists.
func (s *Storage) Sign(ctx context.Context, hash string, h driver.SignedHeaders,
	validFor time.Duration) (string, error) {
	if !driver.ValidHash(hash) {
		return "", notFound()
	}
	if validFor < time.Second || validFor > maxValidity {
		return "", errs.New(errs.Internal, "a signed URL can't be valid for %s: the limits are 1s and %s", validFor,
			maxValidity)
	}
	in := &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.key(hash))}
	for field, value := range map[**string]string{
		&in.ResponseContentType:        h.ContentType,
		&in.ResponseContentDisposition: h.ContentDisposition,
		&in.ResponseCacheControl:       h.CacheControl,
	} {
		if value != "" {
			*field = &value
		}
	}
	signed, err := s3.NewPresignClient(s.client).PresignGetObject(ctx, in, s3.WithPresignExpires(validFor))
	if err != nil {
		return "", s.fail(ctx, err, "signing")
	}
	return signed.URL, nil
}
