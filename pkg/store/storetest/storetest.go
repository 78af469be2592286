// Package storetest is the definition of a backend in the form of tests: what
// package driver says in words is tried here. A backend that passes can keep
// belfry's stores.
//
// A backend's own test makes a Harness and hands it over:
//
//	func TestConformance(t *testing.T) {
//		storetest.RunConformanceTests(t, func(t *testing.T) storetest.Harness {
//			folder := t.TempDir()
//			return storetest.Harness{
//				Open:     func(context.Context) (driver.Backend, error) { return filestore.Open(folder, filestore.Options{}) },
//				Features: storetest.Features{Reopen: true, Concurrent: true, ExactCount: true},
//			}
//		})
//	}
package storetest

import (
	"context"
	"testing"
	"time"

	"belfry/pkg/store/driver"
)

// Harness gives a backend to a test. Each has data of its own, empty at first.
type Harness struct {
	// Open opens the backend. It is called again, once the backend it returned
	// before has been closed, to open the same data.
	Open func(ctx context.Context) (driver.Backend, error)

	Features Features
}

// Features say what a backend can be asked.
type Features struct {
	Reopen     bool // data outlives Close
	Concurrent bool // many goroutines at once; false only where a server can't bear it
	ExactCount bool // Count is no estimate

	// IndexLag is how long an index, Scan, Pending and Purge may lag behind a
	// Put; 0 says that they never do. A store that is a driver.Settler must
	// promise no more.
	IndexLag time.Duration
}

// test is one statement about a backend.
type test struct {
	name string
	run  func(w *world)
}

// RunConformanceTests tries all that package driver demands. newHarness is
// called for each test, and cleans up with t.Cleanup.
func RunConformanceTests(t *testing.T, newHarness func(t *testing.T) Harness) {
	groups := []struct {
		name  string
		tests []test
	}{
		{"Put", putTests()},
		{"Tombstone", tombstoneTests()},
		{"Query", queryTests()},
		{"Page", pageTests()},
		{"Index", indexTests()},
		{"Scan", scanTests()},
		{"Pending", pendingTests()},
		{"Purge", purgeTests()},
		{"Limits", limitTests()},
		{"Stores", storesTests()},
		{"Context", contextTests()},
		{"Reopen", reopenTests()},
		{"Concurrent", concurrentTests()},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) { test.run(newWorld(t, newHarness(t))) })
			}
		})
	}
}
