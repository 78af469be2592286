package mongostore_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/mongostore"
	"belfry/pkg/store/storetest"
	"belfry/test/backing"
)

// TestConformance gives each test a database of one server.
//
// FerretDB reads, changes and writes a document without a lock, so that of two
// updates which overlap one is lost, whatever its filter. With one connection
// updates follow one another; many goroutines still share it.
func TestConformance(t *testing.T) {
	url := backing.Mongo(t) + "?maxPoolSize=1"
	var databases atomic.Int64
	storetest.RunConformanceTests(t, func(*testing.T) storetest.Harness {
		database := fmt.Sprint("conformance", databases.Add(1))
		return storetest.Harness{
			Open: func(ctx context.Context) (driver.Backend, error) {
				return mongostore.Open(ctx, mongostore.Options{URL: url, Database: database})
			},
			// Count is exact where no server crashed.
			Features: storetest.Features{Reopen: true, Concurrent: true, ExactCount: true},
		}
	})
}
