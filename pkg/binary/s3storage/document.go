package s3storage

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

var _ driver.Documents = (*Storage)(nil)

func (s *Storage) documents() string { return s.prefix + "documents/" }

// PutDocument implements driver.Documents.
func (s *Storage) PutDocument(ctx context.Context, name string, data []byte) error {
	if !driver.ValidDocument(name) {
		return errs.New(errs.Internal, "%q is not the name of a document", name)
	}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.documents() + name), Body: bytes.NewReader(data),
		ContentLength: aws.Int64(int64(len(data))), ContentType: aws.String(mimetype),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	return s.fail(ctx, err, "putting "+name)
}

// Document implements driver.Documents.
func (s *Storage) Document(ctx context.Context, name string) ([]byte, error) {
	if !driver.ValidDocument(name) {
		return nil, noDocument(name)
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.documents() + name)})
	if isAbsent(err) {
		return nil, noDocument(name)
	}
	if err != nil {
		return nil, s.fail(ctx, err, "opening "+name)
	}
	defer func() { _ = out.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(out.Body, driver.MaxDocument))
	if err != nil {
		return nil, s.failReading(ctx, err)
	}
	return data, nil
}

func noDocument(name string) error {
	return errs.New(errs.NotFound, "there is no document %q", name)
}

// DocumentNames implements driver.Documents.
func (s *Storage) DocumentNames(ctx context.Context) ([]string, error) {
	var names []string
	pages := s3.NewListObjectsV2Paginator(s.client,
		&s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.documents())})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, s.fail(ctx, err, "listing")
		}
		for _, o := range page.Contents {
			if name := strings.TrimPrefix(aws.ToString(o.Key), s.documents()); driver.ValidDocument(name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// DeleteDocument implements driver.Documents.
func (s *Storage) DeleteDocument(ctx context.Context, name string) error {
	if !driver.ValidDocument(name) {
		return nil
	}
	return s.remove(ctx, s.documents()+name)
}
