package model_test

import (
	"context"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/storetest"
	"belfry/test/model"
)

// What holds on this backend holds on others only if it behaves like them.
func TestConformance(t *testing.T) { storetest.RunConformanceTests(t, newHarness) }

func TestConcurrency(t *testing.T) { storetest.RunConcurrencyTests(t, newHarness, false) }

func newHarness(*testing.T) storetest.Harness {
	m := model.NewMemory()
	return storetest.Harness{
		Open:     func(context.Context) (driver.Backend, error) { return m, nil },
		Features: storetest.Features{Reopen: true, Shared: true, ExactCount: true},
	}
}
