package filestore_test

import (
	"context"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/storetest"
	"belfry/test/kit"
)

func newHarness(t *testing.T) storetest.Harness {
	folder := t.TempDir()
	return storetest.Harness{
		Open: func(context.Context) (driver.Backend, error) {
			return filestore.Open(folder, filestore.Options{})
		},
		Features: storetest.Features{Reopen: true, ExactCount: true},
	}
}

func TestConformance(t *testing.T) { storetest.RunConformanceTests(t, newHarness) }

func TestSoakConcurrency(t *testing.T) {
	for run := kit.Soak(t, 1); run.More(); {
		storetest.RunConcurrencyTests(t, newHarness, run.Long())
	}
}
