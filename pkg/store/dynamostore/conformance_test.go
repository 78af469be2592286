package dynamostore_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/pkg/store/storetest"
	"belfry/test/backing"
	"belfry/test/kit"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	eachServer(t, storetest.RunConformanceTests)
}

func TestSoakConcurrency(t *testing.T) {
	t.Parallel()
	for run := kit.Soak(t, 1); run.More(); {
		eachServer(t, func(t *testing.T, newHarness func(*testing.T) storetest.Harness) {
			storetest.RunConcurrencyTests(t, newHarness, run.Long())
		})
	}
}

// eachServer runs a suite against both servers, with tables for each test.
func eachServer(t *testing.T, run func(*testing.T, func(*testing.T) storetest.Harness)) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			var backends atomic.Int64
			run(t, func(*testing.T) storetest.Harness {
				opts := options(server.URL)
				opts.TablePrefix = fmt.Sprintf("b%d_", backends.Add(1))
				return storetest.Harness{
					Open: func(ctx context.Context) (driver.Backend, error) {
						b, err := dynamostore.Open(ctx, opts)
						return lowercase{b}, err
					},
					Features: storetest.Features{Reopen: true},
				}
			})
		})
	}
}

// servers are two independent implementations, so that a mistake of one is not
// taken for the behavior of DynamoDB.
var servers = map[string]func(testing.TB) *backing.Dynamo{
	"dynalite": backing.Dynalite,
	"dynoxide": backing.Dynoxide,
}

// lowercase keeps the names of stores apart without capital letters: dynoxide
// takes tables whose names differ in case alone for one, which DynamoDB does
// not.
type lowercase struct{ driver.Backend }

func (l lowercase) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	var name strings.Builder
	for _, c := range spec.Name {
		if unicode.IsUpper(c) {
			name.WriteByte('~')
		}
		name.WriteRune(unicode.ToLower(c))
	}
	spec.Name = name.String()
	return l.Backend.Open(ctx, spec)
}

// options depend on nothing that the machine has set.
func options(url string) dynamostore.Options {
	return dynamostore.Options{
		Region:      "eu-central-1",
		Endpoint:    url,
		TablePrefix: "belfry_",
		Credentials: credentials.NewStaticCredentialsProvider("belfry", "secret", ""),
	}
}
