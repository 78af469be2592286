package mongostore_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/mongostore"
	"belfry/pkg/store/storetest"
	"belfry/test/backing"
	"belfry/test/kit"
)

// anyServer is the environment variable with the URL of another server to test.
// The tests drop the databases that they create there.
const anyServer = "BELFRY_TEST_MONGODB_URL"

func TestConformance(t *testing.T) { eachServer(t, storetest.RunConformanceTests) }

func TestSoakConcurrency(t *testing.T) {
	for run := kit.Soak(t, 1); run.More(); {
		eachServer(t, func(t *testing.T, newHarness func(*testing.T) storetest.Harness) {
			storetest.RunConcurrencyTests(t, newHarness, run.Long())
		})
		if run.Long() {
			server := backing.MongoOnPostgres(t, backing.StartPostgres(t))
			storetest.RunConcurrencyTests(t, harness(patiently(server.URL), 0), true)
		}
	}
}

// eachServer runs a suite against FerretDB and, where the environment names it,
// another server.
func eachServer(t *testing.T, run func(*testing.T, func(*testing.T) storetest.Harness)) {
	t.Run("FerretDB", func(t *testing.T) { run(t, harness(patiently(backing.Mongo(t)), 0)) })
	if url := os.Getenv(anyServer); url != "" {
		// Clear does not wait for a majority, but Pending reads with majority read concern.
		t.Run("another", func(t *testing.T) { run(t, harness(url, 2*time.Second)) })
	}
}

// patiently is the URL of a server whose replies may take any time: after a timeout the outcome of a write is unknown.
func patiently(url string) string {
	return fmt.Sprintf("%s?timeoutMS=%d", url, kit.Limit.Milliseconds())
}

// databases counts those of this process.
var databases atomic.Int64

// harness gives each test its own database of a server.
func harness(url string, lag time.Duration) func(t *testing.T) storetest.Harness {
	return func(t *testing.T) storetest.Harness {
		database := fmt.Sprintf("belfry-test-%d-%d", os.Getpid(), databases.Add(1))
		t.Cleanup(func() {
			if err := administrator(t,
				url).Client().Database(database).Drop(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
		return storetest.Harness{
			Open: func(ctx context.Context) (driver.Backend, error) {
				return mongostore.Open(ctx, mongostore.Options{URL: url, Database: database})
			},
			// Count is exact unless the server crashed.
			Features: storetest.Features{Reopen: true, Shared: true, ExactCount: true, IndexLag: lag},
		}
	}
}
