package dynamostore_test

import (
	"context"
	"fmt"
	"os"
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

// anyServer is the environment variable with the endpoint of another server to test,
// for instance DynamoDB Local. The tests leave their tables there.
const anyServer = "BELFRY_TEST_DYNAMODB_URL"

func TestConformance(t *testing.T) {
	t.Parallel()
	eachServer(t, storetest.RunConformanceTests)
}

func TestSoakConcurrency(t *testing.T) {
	t.Parallel()
	for run := kit.Soak(t, 1); run.More(); {
		suite := func(t *testing.T, newHarness func(*testing.T) storetest.Harness) {
			storetest.RunConcurrencyTests(t, newHarness, run.Long())
		}
		if run.Long() {
			eachServer(t, suite)
		} else { // dynalite takes twenty times as long
			t.Run("dynoxide", func(t *testing.T) { suite(t, onServer(t, backing.Dynoxide)) })
		}
	}
}

// eachServer runs a suite against both servers and, where the environment names it, another one.
func eachServer(t *testing.T, run func(*testing.T, func(*testing.T) storetest.Harness)) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) { run(t, onServer(t, start)) })
	}
	if url := os.Getenv(anyServer); url != "" {
		t.Run("another", func(t *testing.T) {
			run(t, harness(url, func(b driver.Backend) driver.Backend { return b }))
		})
	}
}

func onServer(t *testing.T, start func(testing.TB) *backing.Dynamo) func(*testing.T) storetest.Harness {
	return harness(start(t).URL, func(b driver.Backend) driver.Backend { return lowercase{b} })
}

// prefixes counts the table prefixes of this process.
var prefixes atomic.Int64

// harness gives each test tables of its own.
func harness(url string, wrap func(driver.Backend) driver.Backend) func(t *testing.T) storetest.Harness {
	return func(*testing.T) storetest.Harness {
		opts := options(url)
		opts.TablePrefix = fmt.Sprintf("b%d-%d_", os.Getpid(), prefixes.Add(1))
		return storetest.Harness{
			Open: func(ctx context.Context) (driver.Backend, error) {
				b, err := dynamostore.Open(ctx, opts)
				return wrap(b), err
			},
			Features: storetest.Features{Reopen: true, Shared: true},
		}
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

func (l lowercase) Stores(ctx context.Context) ([]string, error) {
	all, err := l.Backend.Stores(ctx)
	for i, name := range all {
		var b strings.Builder
		upper := false
		for _, c := range name {
			switch {
			case c == '~':
				upper = true
				continue
			case upper:
				c, upper = unicode.ToUpper(c), false
			}
			b.WriteRune(c)
		}
		all[i] = b.String()
	}
	return all, err
}

// options depend on nothing that the machine has set. On a busy machine a reply may take longer than the
// default of Timeout, after which the outcome of a write is unknown.
func options(url string) dynamostore.Options {
	return dynamostore.Options{
		Region:      "eu-central-1",
		Endpoint:    url,
		TablePrefix: "belfry_",
		Credentials: credentials.NewStaticCredentialsProvider("belfry", "secret", ""),
		Timeout:     kit.Limit,
	}
}
