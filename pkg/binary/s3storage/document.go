package s3storage

import (
	"context"
	"strings"

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
	return s.putWhole(ctx, s.documents()+name, data, "putting "+name)
}

// Document implements driver.Documents.
func (s *Storage) Document(ctx context.Context, name string) ([]byte, error) {
	if !driver.ValidDocument(name) {
		return nil, noDocument(name)
	}
	return s.readWhole(ctx, s.documents()+name, driver.MaxDocument, noDocument(name), "opening "+name)
}

func noDocument(name string) error {
	return errs.New(errs.NotFound, "there is no document %q", name)
}

// DocumentNames implements driver.Documents.
func (s *Storage) DocumentNames(ctx context.Context) ([]string, error) {
	var names []string
	err := s.eachKey(ctx, s.documents(), "", func(key string) (bool, error) {
		if name := strings.TrimPrefix(key, s.documents()); driver.ValidDocument(name) {
			names = append(names, name)
		}
		return true, nil
	})
	return names, err
}

// DeleteDocument implements driver.Documents.
func (s *Storage) DeleteDocument(ctx context.Context, name string) error {
	if !driver.ValidDocument(name) {
		return nil
	}
	return s.remove(ctx, s.documents()+name)
}
