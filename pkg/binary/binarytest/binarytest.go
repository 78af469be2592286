// Package binarytest is the definition of a storage for contents in the form of
// tests: what package driver says in words is tried here. A storage that passes
// can keep belfry's binaries.
//
// A storage's own test makes a Harness and hands it over:
//
//	func TestConformance(t *testing.T) {
//		binarytest.RunConformanceTests(t, func(t *testing.T) binarytest.Harness {
//			folder := t.TempDir()
//			return binarytest.Harness{
//				Open: func(context.Context) (driver.Storage, error) { return filestorage.Open(folder) },
//			}
//		})
//	}
package binarytest

import (
	"context"
	"net/http"
	"testing"
	"time"

	"belfry/pkg/binary/driver"
)

// Harness gives a storage to a test. Each has contents of its own, none at first.
type Harness struct {
	// Open opens the storage. It is called again, once the storage it returned
	// before has been closed, to open the same contents.
	Open func(ctx context.Context) (driver.Storage, error)

	// Abandon leaves a stage behind in the same place, with bytes written to it
	// and nothing committed, as a process does that is killed. It is called
	// while what Open returned is open. Nil where a test can't have that; then
	// the storage tests RemoveAbandoned in its own way.
	Abandon func(ctx context.Context) error

	// Client fetches what a driver.Signer signs; nil is http.DefaultClient.
	Client *http.Client

	Features Features
}

// Features say what a storage can be asked.
type Features struct {
	// Settle is how long List and RemoveAbandoned may lag behind; 0 says they never do.
	Settle time.Duration

	// Sizes are those of contents at which the storage changes its ways, such
	// as the end of the first part; they are tried with their neighbours.
	Sizes []int
}

// test is one statement about a storage.
type test struct {
	name string
	run  func(f *fixture)
}

// RunConformanceTests tries all that package driver demands. newHarness is
// called for each test, and cleans up with t.Cleanup.
func RunConformanceTests(t *testing.T, newHarness func(t *testing.T) Harness) {
	groups := []struct {
		name  string
		tests []test
	}{
		{"Stage", stageTests()},
		{"Commit", commitTests()},
		{"Open", openTests()},
		{"Delete", deleteTests()},
		{"List", listTests()},
		{"RemoveAbandoned", tidyTests()},
		{"Names", nameTests()},
		{"Context", contextTests()},
		{"Reopen", reopenTests()},
		{"Concurrent", concurrentTests()},
		{"Sign", signTests()},
	}
	for _, group := range groups {
		t.Run(group.name, func(t *testing.T) {
			for _, test := range group.tests {
				t.Run(test.name, func(t *testing.T) {
					t.Parallel()
					test.run(newFixture(t, newHarness(t)))
				})
			}
		})
	}
}
