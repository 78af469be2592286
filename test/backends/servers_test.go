package backends

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/mongostore"
	"belfry/test/backing"
	"belfry/test/kit"
	"belfry/test/process"
)

// servers are those of the package: each is started by the first test that needs it, and serves all of them, which have
// databases, tables and keys of their own. A test that ends its server, or whose server is to be slow, starts another
// one.
var servers struct {
	mongo              func() *backing.MongoServer
	dynalite, dynoxide func() *backing.Dynamo
	s3                 func() *backing.S3Server
}

// environment is what every belfry of the package gets: the credentials that every server of AWS's protocols accepts,
// and for the shipped configurations a free port.
var environment = map[string]string{
	"AWS_ACCESS_KEY_ID": backing.AccessKey, "AWS_SECRET_ACCESS_KEY": backing.SecretKey, "AWS_REGION": "us-east-1",
	"BELFRY_BUS_LISTEN": "127.0.0.1:0",
}

// TestMain runs more tests in parallel than there are processors: they wait more than they compute.
func TestMain(m *testing.M) {
	for name, value := range environment {
		setenv(name, value)
	}
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
	process.Main(hosted{m})
}

// setenv sets a variable that no test changes any more.
func setenv(name, value string) {
	if err := os.Setenv(name, value); err != nil {
		panic(err)
	}
}

// hosted runs tests beside their servers.
type hosted struct{ *testing.M }

func (m hosted) Run() (code int) {
	err := backing.WithHost(context.Background(), func(h *backing.Host) error {
		servers.mongo = sync.OnceValue(func() *backing.MongoServer { return backing.StartMongo(h) })
		servers.dynalite = sync.OnceValue(func() *backing.Dynamo { return backing.Dynalite(h) })
		servers.dynoxide = sync.OnceValue(func() *backing.Dynamo { return backing.Dynoxide(h) })
		servers.s3 = sync.OnceValue(func() *backing.S3Server {
			s := backing.S3(h)
			setenv("AWS_CA_BUNDLE", s.CAFile)
			return s
		})
		code = m.M.Run()
		return nil
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	return code
}

var taken atomic.Int64

// place returns a name that no other test of the package has: of a database, or the beginning of those of tables and
// keys.
func place() string { return fmt.Sprintf("t%d", taken.Add(1)) }

// places returns for each kind of backend what makes a new place there, and opens it: again and again, as several
// processes or one after a restart do. A folder has to be closed before.
func places() map[string]func(*testing.T) (open func() (driver.Backend, error)) {
	onDynamo := func(server func() *backing.Dynamo) func(*testing.T) func() (driver.Backend, error) {
		return func(t *testing.T) func() (driver.Backend, error) {
			o := dynamostore.Options{Region: "eu-central-1", Endpoint: server().URL, TablePrefix: place() + "_",
				Timeout: kit.Limit}
			return func() (driver.Backend, error) { return dynamostore.Open(t.Context(), o) }
		}
	}
	return map[string]func(*testing.T) func() (driver.Backend, error){
		"files": func(t *testing.T) func() (driver.Backend, error) {
			folder := t.TempDir()
			return func() (driver.Backend, error) { return filestore.Open(folder, filestore.Options{}) }
		},
		"FerretDB": func(t *testing.T) func() (driver.Backend, error) {
			o := mongostore.Options{URL: patiently(servers.mongo().URL), Database: place()}
			return func() (driver.Backend, error) { return mongostore.Open(t.Context(), o) }
		},
		"dynalite": onDynamo(servers.dynalite), "dynoxide": onDynamo(servers.dynoxide),
	}
}

// mongo is a new database as a backend of a configuration.
func mongo() string { return mongoDatabase(place()) }

func mongoDatabase(name string) string {
	return fmt.Sprintf("{type: mongodb, database: %s, url: '%s'}", name, patiently(servers.mongo().URL))
}

// patiently is the URL of a MongoDB whose commands may take long: beside other work one may wait for those of all other
// tests.
func patiently(url string) string {
	return fmt.Sprintf("%s?timeoutMS=%d", url, kit.Limit.Milliseconds())
}

// dynamo has new tables as a backend of a configuration.
func dynamo(s *backing.Dynamo) string {
	return fmt.Sprintf("{type: dynamodb, region: eu-central-1, endpoint: '%s', tablePrefix: %s_}", s.URL, place())
}

// bucket is the settings of a place in a bucket, without its prefix.
func bucket(endpoint string) string {
	s := servers.s3()
	if endpoint == "" {
		endpoint = s.Endpoint
	}
	return fmt.Sprintf("bucket: %s, region: %s, endpoint: '%s'", s.Bucket, s.Region, endpoint)
}

// contents is the settings of a binary service with a new place in the bucket.
func contents() string { return fmt.Sprintf("type: S3Storage, %s, prefix: %s/", bucket(""), place()) }
