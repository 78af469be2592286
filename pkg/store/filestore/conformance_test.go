package filestore_test

import (
	"context"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/storetest"
)

func TestConformance(t *testing.T) {
	storetest.RunConformanceTests(t, func(t *testing.T) storetest.Harness {
		folder := t.TempDir()
		return storetest.Harness{
			Open: func(context.Context) (driver.Backend, error) {
				return filestore.Open(folder, filestore.Options{})
			},
			Features: storetest.Features{Reopen: true, Concurrent: true, ExactCount: true},
		}
	})
}
