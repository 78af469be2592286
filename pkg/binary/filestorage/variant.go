package filestorage

import (
	"context"
	"errors"
	"io/fs"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

var _ driver.Variants = (*Storage)(nil)

// variant is the path of a variant: beside the content.
func variant(hash, name string) string { return path(hash) + "." + name }

// PutVariant implements driver.Variants. The variant gets its name when it is complete and synced. Its folder is not
// synced: after a power failure it may be missing.
func (s *Storage) PutVariant(ctx context.Context, hash, name string, data []byte) error {
	if !driver.ValidHash(hash) || !driver.ValidVariant(name) {
		return errs.New(errs.Internal, "%q of %q is not the name of a variant", name, hash)
	}
	staged, err := s.stageWhole(ctx, data)
	if err != nil {
		return err
	}
	defer staged.Discard()
	if err := s.makeShard(shard(hash)); err != nil {
		return err
	}
	return s.unwritable(s.root.Rename(staged.name, variant(hash, name)))
}

// Variant implements driver.Variants.
func (s *Storage) Variant(ctx context.Context, hash, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !driver.ValidHash(hash) || !driver.ValidVariant(name) {
		return nil, noVariant()
	}
	return s.readWhole(variant(hash, name), driver.MaxVariant, noVariant())
}

func noVariant() error { return errs.New(errs.NotFound, "there is no such variant of the content") }

// DeleteVariants implements driver.Variants.
func (s *Storage) DeleteVariants(ctx context.Context, hash string) error {
	if err := ctx.Err(); err != nil || !driver.ValidHash(hash) {
		return err
	}
	entries, err := fs.ReadDir(s.root.FS(), shard(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unreadable(err)
	}
	for _, entry := range entries {
		of, ok := driver.VariantOf(entry.Name())
		if !ok || of != hash || !entry.Type().IsRegular() {
			continue
		}
		if err := s.root.Remove(join(shard(hash), entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return s.unwritable(err)
		}
	}
	return nil
}

// ListVariants implements driver.Variants.
func (s *Storage) ListVariants(ctx context.Context, after string, limit int) (hashes []string, next string, err error) {
	l := lister{ctx: ctx, files: s.root.FS(), after: after, most: limit + 1, variants: true}
	if err := l.walk(".", 2); err != nil {
		return nil, "", err
	}
	for _, found := range l.found {
		hashes = append(hashes, found.Hash)
	}
	if len(hashes) > limit {
		return hashes[:limit], hashes[limit-1], nil
	}
	return hashes, "", nil
}
