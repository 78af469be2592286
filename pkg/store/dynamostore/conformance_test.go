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
)

func TestConformance(t *testing.T) {
	t.Parallel()
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			server := start(t)
			var backends atomic.Int64
			storetest.RunConformanceTests(t, func(*testing.T) storetest.Harness {
				opts := options(server.URL)
				opts.TablePrefix = fmt.Sprintf("b%d_", backends.Add(1))
				return storetest.Harness{
					Open: func(ctx context.Context) (driver.Backend, error) {
						b, err := dynamostore.Open(ctx, opts)
						return lowercase{b}, err
					},
					Features: storetest.Features{Reopen: true, Concurrent: true},
				}
			})
		})
	}
}

// servers are two that know nothing of each other, so that no mistake of one
// is taken for DynamoDB's way.
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
