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

var _ driver.Variants = (*Storage)(nil)

func (s *Storage) variants() string { return s.prefix + "variants/" }

// variant is the beginning of the keys of a content's variants, with the name of one.
func (s *Storage) variant(hash, name string) string {
	return s.variants() + hash[:2] + "/" + hash + "." + name
}

// PutVariant implements driver.Variants.
func (s *Storage) PutVariant(ctx context.Context, hash, name string, data []byte) error {
	if !driver.ValidHash(hash) || !driver.ValidVariant(name) {
		return errs.New(errs.Internal, "%q of %q is not the name of a variant", name, hash)
	}
	_, err := s.client.PutObject(ctx, &s3.PutObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.variant(hash, name)), Body: bytes.NewReader(data),
		ContentLength: aws.Int64(int64(len(data))), ContentType: aws.String(mimetype),
		ChecksumAlgorithm: types.ChecksumAlgorithmSha256,
	})
	return s.fail(ctx, err, "putting a variant")
}

// Variant implements driver.Variants.
func (s *Storage) Variant(ctx context.Context, hash, name string) ([]byte, error) {
	if !driver.ValidHash(hash) || !driver.ValidVariant(name) {
		return nil, noVariant()
	}
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.variant(hash, name))})
	if isAbsent(err) {
		return nil, noVariant()
	}
	if err != nil {
		return nil, s.fail(ctx, err, "opening a variant")
	}
	defer func() { _ = out.Body.Close() }()
	data, err := io.ReadAll(io.LimitReader(out.Body, driver.MaxVariant))
	if err != nil {
		return nil, s.failReading(ctx, err)
	}
	return data, nil
}

func noVariant() error { return errs.New(errs.NotFound, "there is no such variant of the content") }

// DeleteVariants implements driver.Variants.
func (s *Storage) DeleteVariants(ctx context.Context, hash string) error {
	if !driver.ValidHash(hash) {
		return nil
	}
	return s.eachVariant(ctx, s.variant(hash, ""), "", func(key, _ string) (bool, error) {
		return true, s.remove(ctx, key)
	})
}

// ListVariants implements driver.Variants.
func (s *Storage) ListVariants(ctx context.Context, after string, limit int) (hashes []string, next string, err error) {
	err = s.eachVariant(ctx, s.variants(), s.variantsAfter(after), func(_, hash string) (bool, error) {
		switch {
		case hash <= after || len(hashes) > 0 && hashes[len(hashes)-1] == hash:
		case len(hashes) == limit:
			next = hashes[limit-1]
			return false, nil
		default:
			hashes = append(hashes, hash)
		}
		return true, nil
	})
	return hashes, next, err
}

// variantsAfter is startAfter for the keys of variants.
func (s *Storage) variantsAfter(after string) string {
	return s.variants() + strings.TrimPrefix(s.startAfter(after), s.contents())
}

// eachVariant calls do with the key and the content of each variant whose key has a prefix and is greater than after,
// in their order, until it returns false or an error.
func (s *Storage) eachVariant(ctx context.Context, prefix, after string,
	do func(key, hash string) (bool, error)) error {
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: &prefix}
	if after != "" {
		in.StartAfter = &after
	}
	pages := s3.NewListObjectsV2Paginator(s.client, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return s.fail(ctx, err, "listing variants")
		}
		for _, o := range page.Contents {
			key := aws.ToString(o.Key)
			hash, ok := driver.VariantOf(key[strings.LastIndexByte(key, '/')+1:])
			if !ok || !strings.HasPrefix(key, s.variant(hash, "")) {
				continue
			}
			if more, err := do(key, hash); err != nil || !more {
				return err
			}
		}
	}
	return nil
}
