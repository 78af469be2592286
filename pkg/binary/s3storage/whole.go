package s3storage

import (
	"bytes"
	"context"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// putWhole stores a small object. doing is for the error.
func (s *Storage) putWhole(ctx context.Context, key string, data []byte, doing string) error {
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(data),
		ContentLength: aws.Int64(int64(len(data))), ContentType: aws.String(mimetype),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	return s.fail(ctx, err, doing)
}

// readWhole reads an object of at most so many bytes. absent is the error without one.
func (s *Storage) readWhole(ctx context.Context, key string, most int64, absent error, doing string) ([]byte, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key})
	if isAbsent(err) {
		return nil, absent
	}
	if err != nil {
		return nil, s.fail(ctx, err, doing)
	}
	defer func() { _ = out.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(out.Body, most))
	if err != nil {
		return nil, s.failReading(ctx, err)
	}
	return data, nil
}

// eachKey calls do with each key that has a prefix and is greater than after, in their order, until it returns false or
// an error.
func (s *Storage) eachKey(ctx context.Context, prefix, after string, do func(key string) (bool, error)) error {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix}
	if after != "" {
		in.StartAfter = &after
	}
	pages := s3.NewListObjectsV2Paginator(s.client, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return s.fail(ctx, err, "listing")
		}
		for _, o := range page.Contents {
			if more, err := do(aws.ToString(o.Key)); err != nil || !more {
				return err
			}
		}
	}
	return nil
}
