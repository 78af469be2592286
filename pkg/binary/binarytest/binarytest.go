// Package binarytest is the conformance suite of package driver: a storage that
// passes it can store belfry's binaries. The test of a storage provides a Harness:
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

// Harness provides an empty storage for one test.
type Harness struct {
	// Open opens the storage. It is called again, after the previous storage has
	// been closed, to open the same contents.
	Open func(ctx context.Context) (driver.Storage, error)

	// Abandon creates a stage with some bytes and without Commit, in the same place,
	// as a process does that is killed. It is called while the storage is open. Nil
	// when that is impossible; the storage then tests RemoveAbandoned itself.
	Abandon func(ctx context.Context) error

	// Client requests signed URLs; nil is http.DefaultClient.
	Client *http.Client

	Features Features
}

// Features describe the optional abilities of a storage.
type Features struct {
	// ListLag is how long List and RemoveAbandoned may lag; 0: they are strongly
	// consistent.
	ListLag time.Duration

	// Sizes are sizes of contents at which the storage switches to another method,
	// such as the size of a part. The suite uses them and the sizes next to them.
	Sizes []int
}

// test is one requirement on a storage.
type test struct {
	name string
	run  func(f *fixture)
}

// group is the tests of one subject.
type group struct {
	name  string
	tests []test
}

// RunConformanceTests tests all requirements of package driver, in parallel.
// newHarness is called for each test, and cleans up with t.Cleanup.
func RunConformanceTests(t *testing.T, newHarness func(t *testing.T) Harness) {
	run(t, newHarness,
		group{"Stage", stageTests()},
		group{"Commit", commitTests()},
		group{"Open", openTests()},
		group{"Delete", deleteTests()},
		group{"List", listTests()},
		group{"RemoveAbandoned", removeTests()},
		group{"Names", nameTests()},
		group{"Context", contextTests()},
		group{"Concurrent", concurrentTests()},
		group{"Sign", signTests()},
		group{"Documents", documentTests()},
		group{"Variants", variantTests()},
		group{"Sizes", sizeTests()},
	)
}

// RunSizeTests runs those of the conformance tests that depend on the sizes of
// contents. They suffice for another configuration of a storage that affects large
// contents only.
func RunSizeTests(t *testing.T, newHarness func(t *testing.T) Harness) {
	run(t, newHarness, group{"Sizes", sizeTests()})
}

func run(t *testing.T, newHarness func(t *testing.T) Harness, groups ...group) {
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
