package mongostore_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/mongostore"
	"belfry/pkg/store/storetest"
	"belfry/test/backing"
)

// anyServer, in the environment, is the URL of a server to try besides the one
// that the tests start. Databases that are made there are dropped.
const anyServer = "BELFRY_TEST_MONGODB_URL"

// TestConformance gives each test a database of one server.
//
// FerretDB reads, changes and writes a document without a lock, so that of two
// updates which overlap one is lost, whatever its filter. With one connection
// updates follow one another; many goroutines still share it.
func TestConformance(t *testing.T) {
	t.Run("FerretDB", func(t *testing.T) { conformance(t, backing.Mongo(t)+"?maxPoolSize=1", 0) })
	if url := os.Getenv(anyServer); url != "" {
		// Clear waits for no majority, which alone Pending reads of.
		t.Run("another", func(t *testing.T) { conformance(t, url, 2*time.Second) })
	}
}

func conformance(t *testing.T, url string, settle time.Duration) {
	tests := 0
	storetest.RunConformanceTests(t, func(t *testing.T) storetest.Harness {
		tests++
		database := fmt.Sprintf("belfry-test-%d-%d", os.Getpid(), tests)
		t.Cleanup(func() {
			if err := administrator(t, url).Client().Database(database).Drop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		return storetest.Harness{
			Open: func(ctx context.Context) (driver.Backend, error) {
				return mongostore.Open(ctx, mongostore.Options{URL: url, Database: database})
			},
			// Count is exact where no server crashed.
			Features: storetest.Features{Reopen: true, Concurrent: true, ExactCount: true, IndexLag: settle},
		}
	})
}
