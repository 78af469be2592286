package s3storage

import (
	"context"
	"strings"

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
	return s.putWhole(ctx, s.variant(hash, name), data, "putting a variant")
}

// Variant implements driver.Variants.
func (s *Storage) Variant(ctx context.Context, hash, name string) ([]byte, error) {
	if !driver.ValidHash(hash) || !driver.ValidVariant(name) {
		return nil, noVariant()
	}
	return s.readWhole(ctx, s.variant(hash, name), driver.MaxVariant, noVariant(), "opening a variant")
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
	return s.eachKey(ctx, prefix, after, func(key string) (bool, error) {
		hash, ok := driver.VariantOf(key[strings.LastIndexByte(key, '/')+1:])
		if !ok || !strings.HasPrefix(key, s.variant(hash, "")) {
			return true, nil
		}
		return do(key, hash)
	})
}
