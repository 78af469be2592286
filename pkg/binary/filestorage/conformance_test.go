package filestorage_test

import (
	"context"
	"testing"

	"belfry/pkg/binary/binarytest"
	"belfry/pkg/binary/driver"
	"belfry/pkg/binary/filestorage"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	binarytest.RunConformanceTests(t, func(t *testing.T) binarytest.Harness {
		folder := t.TempDir()
		return binarytest.Harness{
			Open:    func(context.Context) (driver.Storage, error) { return filestorage.Open(folder) },
			Abandon: func(ctx context.Context) error { return abandon(ctx, folder) },
		}
	})
}

// abandon leaves a stage, as a killed process does.
func abandon(ctx context.Context, folder string) error {
	s, err := filestorage.Open(folder)
	if err != nil {
		return err
	}
	staged, err := s.Stage(ctx)
	if err == nil {
		_, err = staged.Write([]byte("half a conte"))
	}
	return err
}
