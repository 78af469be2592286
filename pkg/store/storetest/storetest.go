// Package storetest is the conformance suite for backends: it tests what package
// driver documents. A backend that passes can hold belfry's stores.
//
// The test of a backend passes a function that creates a Harness:
//
//	func newHarness(t *testing.T) storetest.Harness {
//		folder := t.TempDir()
//		return storetest.Harness{
//			Open:     func(context.Context) (driver.Backend, error) { return filestore.Open(folder, filestore.Options{}) },
//			Features: storetest.Features{Reopen: true, ExactCount: true},
//		}
//	}
//
//	func TestConformance(t *testing.T) { storetest.RunConformanceTests(t, newHarness) }
//
//	func TestSoakConcurrency(t *testing.T) {
//		for run := kit.Soak(t, 1); run.More(); {
//			storetest.RunConcurrencyTests(t, newHarness, run.Long())
//		}
//	}
package storetest

import (
	"context"
	"testing"
	"time"

	"belfry/pkg/store/driver"
)

// Harness provides a backend to a test. Each harness has its own data, which is
// empty at first.
type Harness struct {
	// Open opens the backend. It is called again after the backend has been
	// closed, to open the same data.
	Open func(ctx context.Context) (driver.Backend, error)

	Features Features
}

// Features describes what the tests can expect of a backend.
type Features struct {
	Reopen     bool // data is kept after Close
	ExactCount bool // Count is not an estimate
	Shared     bool // Open may be called again meanwhile, as another process does that uses the same data

	// IndexLag is the maximum time by which indexes, Scan, Pending and Purge
	// lag behind a Put; 0 means they never lag. The lag that a
	// driver.IndexLagger reports must not be greater.
	IndexLag time.Duration
}

// test tests one statement about a backend.
type test struct {
	name string
	run  func(f *fixture)
}

// group is a list of tests that run under one name.
type group struct {
	name  string
	tests []test
}

// RunConformanceTests tests what package driver documents, except concurrency.
// newHarness is called for each test, several times concurrently, and cleans up
// with t.Cleanup.
func RunConformanceTests(t *testing.T, newHarness func(t *testing.T) Harness) {
	run(t, newHarness, false,
		group{"Put", putTests()},
		group{"Tombstone", tombstoneTests()},
		group{"Query", queryTests()},
		group{"Page", pageTests()},
		group{"Index", indexTests()},
		group{"Online", onlineTests()},
		group{"Scan", scanTests()},
		group{"Many", manyTests()},
		group{"Chunks", chunkTests()},
		group{"Intersect", intersectTests()},
		group{"Pending", pendingTests()},
		group{"Purge", purgeTests()},
		group{"Limits", limitTests()},
		group{"Claims", claimTests()},
		group{"Text", textTests()},
		group{"Stores", storesTests()},
		group{"Context", contextTests()},
		group{"Reopen", reopenTests()})
}

// RunConcurrencyTests tests that the methods of a backend are safe for
// concurrent use. The interleavings are random: repeat it in a soak test, with
// long set, which makes several times as many operations.
func RunConcurrencyTests(t *testing.T, newHarness func(t *testing.T) Harness, long bool) {
	run(t, newHarness, long, group{"Concurrent", concurrentTests()})
}

func run(t *testing.T, newHarness func(t *testing.T) Harness, long bool, groups ...group) {
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(newFixture(t, newHarness(t), long))
				})
			}
		})
	}
}
