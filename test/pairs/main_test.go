package pairs

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// servers are started by the first world that needs them.
var servers struct {
	mongo  func() *backing.MongoServer
	dynamo func() *backing.Dynamo
}

// TestMain runs the worlds in parallel: they wait more than they compute.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": backing.AccessKey, "AWS_SECRET_ACCESS_KEY": backing.SecretKey, "AWS_REGION": "us-east-1",
	} {
		if err := os.Setenv(name, value); err != nil {
			panic(err)
		}
	}
	if err := flag.Set("test.parallel", strconv.Itoa(max(len(backends), runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	process.Main(hosted{m})
}

// hosted runs tests beside their servers.
type hosted struct{ *testing.M }

func (m hosted) Run() (code int) {
	err := backing.WithHost(context.Background(), func(h *backing.Host) error {
		servers.mongo = sync.OnceValue(func() *backing.MongoServer { return backing.StartMongo(h) })
		servers.dynamo = sync.OnceValue(func() *backing.Dynamo { return backing.Dynoxide(h) })
		code = m.M.Run()
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

// backends are a new place of each kind, as a backend of a configuration.
var backends = map[string]func(name string) string{
	"file": func(name string) string { return fmt.Sprintf("{type: file, folder: ./%s}", name) },
	"MongoDB": func(name string) string {
		return fmt.Sprintf("{type: mongodb, database: %s, url: '%s?timeoutMS=%d'}", name, servers.mongo().URL,
			kit.Limit.Milliseconds())
	},
	"DynamoDB": func(name string) string {
		return fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: '%s', tablePrefix: %s_}",
			servers.dynamo().URL, name)
	},
}
