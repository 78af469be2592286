package filestorage

import (
	"context"
	"errors"
	"io/fs"
	"slices"

	"belfry/pkg/binary/driver"
	"belfry/pkg/errs"
)

// documents is the folder of documents. No shard has a name of this length.
const documents = "documents"

var _ driver.Documents = (*Storage)(nil)

// PutDocument implements driver.Documents. The document gets its name when it is
// complete and synced.
func (s *Storage) PutDocument(ctx context.Context, name string, data []byte) error {
	if !driver.ValidDocument(name) {
		return errs.New(errs.Internal, "%q is not the name of a document", name)
	}
	staged, err := s.stageWhole(ctx, data)
	if err != nil {
		return err
	}
	defer staged.Discard()
	if err := s.root.Mkdir(documents, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return s.unwritable(err)
	}
	if err := s.root.Rename(staged.name, join(documents, name)); err != nil {
		return s.unwritable(err)
	}
	if err := s.syncFolder(documents); err != nil {
		return err
	}
	return s.syncFolder(".")
}

// Document implements driver.Documents.
func (s *Storage) Document(ctx context.Context, name string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !driver.ValidDocument(name) {
		return nil, noDocument(name)
	}
	return s.readWhole(join(documents, name), driver.MaxDocument, noDocument(name))
}

func noDocument(name string) error {
	return errs.New(errs.NotFound, "there is no document %q", name)
}

// DocumentNames implements driver.Documents.
func (s *Storage) DocumentNames(ctx context.Context) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(s.root.FS(), documents)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, unreadable(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.Type().IsRegular() && driver.ValidDocument(entry.Name()) {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// DeleteDocument implements driver.Documents.
func (s *Storage) DeleteDocument(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil || !driver.ValidDocument(name) {
		return err
	}
	err := s.root.Remove(join(documents, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return s.unwritable(err)
	}
	return s.syncFolder(documents)
}
