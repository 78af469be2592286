// Package floors holds the house together: imports go downward only, every
// package says what it is for, and a file has one subject.
package floors

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/test/kit/gotest"
)

// floors from the ground up: a package may import those on floors below its
// own, and those it is listed beside in its row of neighbours. A package that
// no row names has no place yet: give it one.
var floors = [][]string{
	{"belfry/pkg/errs", "belfry/internal/ratelimit", "belfry/internal/gunzip", "belfry/internal/memory",
		"belfry/internal/backoff", "belfry/internal/ordered", "belfry/internal/logctx", "belfry/internal/schedule",
		"belfry/internal/prom", "belfry/internal/smallfile", "belfry/internal/stopper",
		"belfry/internal/count", "belfry/internal/nearest", "belfry/internal/baseurl", "belfry/internal/mediatype",
		"belfry/internal/contrast",
		"belfry/pkg/store/schema/format", "belfry/pkg/account/weak/dictionaries"},
	{"belfry/pkg/app/part", "belfry/pkg/app/port", "belfry/pkg/app/probe", "belfry/pkg/app/tracing",
		"belfry/internal/seal", "belfry/internal/thumbnail", "belfry/internal/logbuffer", "belfry/pkg/app/certificate", "belfry/pkg/pagememory",
		"belfry/pkg/store/schema/schematest", "belfry/pkg/object", "belfry/pkg/mail", "belfry/pkg/api/console/manual",
		"belfry/pkg/account/weak", "belfry/pkg/account/places", "belfry/pkg/problem", "belfry/pkg/wire",
		"belfry/pkg/walk"},
	{"belfry/config/value", "belfry/config/yamltext"},
	{"belfry/config/decode", "belfry/pkg/texts"},
	{"belfry/config", "belfry/config/edit", "belfry/pkg/event", "belfry/pkg/client", "belfry/pkg/account/secret",
		"belfry/pkg/account/method/about"},
	{"belfry/pkg/app/starter", "belfry/pkg/account/oauth", "belfry/pkg/store/schema", "belfry/pkg/store/policy",
		"belfry/pkg/store/driver", "belfry/pkg/binary/driver", "belfry/pkg/bus", "belfry/pkg/interceptor"},
	{"belfry/pkg/computed", "belfry/pkg/store/chunk"},
	{
		"belfry/pkg/bus/embedded", "belfry/pkg/apimodel", "belfry/pkg/store/query", "belfry/pkg/store/access",
		"belfry/pkg/store/aggregate", "belfry/pkg/store/storetest", "belfry/pkg/store/filestore", "belfry/pkg/store/mongostore",
		"belfry/pkg/store/dynamostore",
		"belfry/pkg/binary/binarytest", "belfry/pkg/binary/filestorage", "belfry/pkg/binary/s3storage",
	},
	{"belfry/pkg/store", "belfry/pkg/outbox", "belfry/pkg/listener", "belfry/pkg/bus/eventlog"},
	{"belfry/pkg/store/idempotent", "belfry/pkg/account/record"},
	{"belfry/pkg/account/guess"},
	{"belfry/pkg/account/sessions"},
	{"belfry/pkg/account/once", "belfry/pkg/account/method", "belfry/pkg/account/flow/applications"},
	{"belfry/pkg/account/post"},
	{"belfry/pkg/account/notices", "belfry/pkg/account/users", "belfry/pkg/account/method/passwords",
		"belfry/pkg/account/method/recoverycodes", "belfry/pkg/account/method/test"},
	{"belfry/pkg/account/flow/changes", "belfry/pkg/account/flow/enrollment"},
	{"belfry/pkg/account/flow/links"},
	{"belfry/pkg/account/method/mails", "belfry/pkg/account/method/passkeys", "belfry/pkg/account/method/totp",
		"belfry/pkg/account/method/providers"},
	{"belfry/pkg/account/flow/recovery", "belfry/pkg/account/flow/addresses", "belfry/pkg/account/flow/deletion",
		"belfry/pkg/account/keys"},
	{"belfry/pkg/account/flow/logins", "belfry/pkg/account/admin", "belfry/pkg/account/exports"},
	{"belfry/pkg/account/flow/stepup", "belfry/pkg/account/flow/registration", "belfry/pkg/account/flow/firstadmin"},
	{"belfry/pkg/listener/metrics", "belfry/pkg/listener/tracing", "belfry/pkg/api/applied", "belfry/pkg/mapping",
		"belfry/pkg/mapping/aggregates",
		"belfry/pkg/listener/deadletter", "belfry/pkg/listener/replay", "belfry/pkg/missed", "belfry/pkg/intercept",
		"belfry/pkg/api/sse", "belfry/pkg/account", "belfry/pkg/binary", "belfry/listeners/mapping/route"},
	{"belfry/listeners/rounds"},
	{"belfry/listeners/mapping", "belfry/listeners/aggregate", "belfry/listeners/copies", "belfry/listeners/cascade",
		"belfry/pkg/mapping/verify", "belfry/pkg/mapping/fill",
		"belfry/pkg/account/export", "belfry/pkg/account/profile", "belfry/pkg/search", "belfry/listeners/mail", "belfry/listeners/sweep",
		"belfry/pkg/httpkit", "belfry/pkg/api/console/form", "belfry/pkg/operations/importer", "belfry/pkg/operations/migrate",
		"belfry/pkg/operations/backup", "belfry/pkg/operations/doctor"},
	{"belfry/pkg/op", "belfry/pkg/operations/table"},
	{"belfry/pkg/operations/bulk"},
	{"belfry/pkg/apidoc/openapi", "belfry/pkg/apidoc/asyncapi", "belfry/pkg/natsapi", "belfry/pkg/api/login",
		"belfry/pkg/api/objects", "belfry/pkg/api/files", "belfry/pkg/api/events", "belfry/pkg/api/pages",
		"belfry/pkg/api/static", "belfry/pkg/api/system"},
	{"belfry/pkg/api/console"},
	{"belfry/pkg/api"},
	{"belfry/pkg/app/plan", "belfry/pkg/api/apitest", "belfry/pkg/api/modeltest"},
	{"belfry/pkg/app/hold", "belfry/pkg/app/serving"},
	{"belfry/pkg/app/open", "belfry/pkg/app/indexing"},
	{"belfry/pkg/app/command", "belfry/pkg/app/messaging"},
	{"belfry/pkg/app/examine", "belfry/pkg/app/data", "belfry/pkg/app/workers", "belfry/pkg/app/mailers",
		"belfry/pkg/app/backups"},
	{"belfry/pkg/app/accounts", "belfry/pkg/app/health", "belfry/pkg/app/holders", "belfry/pkg/app/roster",
		"belfry/pkg/app/modeling",
		"belfry/pkg/app/front"},
	{"belfry/pkg/app/routes", "belfry/pkg/app/views", "belfry/pkg/app/control"},
	{"belfry/pkg/app"},
	{"belfry/cmd/belfry/early", "belfry/cmd/belfry/early/collector"},
	{
		"belfry/cmd/belfry",
		"belfry/listeners/examples/audit", "belfry/listeners/examples/webhook", "belfry/listeners/examples/thumbnail",
		"belfry/listeners/examples/welcome",
	},
}

// drivers import what they drive, the driver's contract, chunks of arrays and errors.
var drivers = map[string][]string{
	"belfry/pkg/store/filestore": {"belfry/pkg/store/driver", "belfry/pkg/store/chunk", "belfry/pkg/errs"},
	"belfry/pkg/store/mongostore": {"belfry/pkg/store/driver", "belfry/pkg/store/chunk", "belfry/pkg/errs",
		"belfry/internal/backoff"},
	"belfry/pkg/store/dynamostore": {"belfry/pkg/store/driver", "belfry/pkg/store/chunk", "belfry/pkg/errs",
		"belfry/internal/backoff"},
	"belfry/pkg/binary/filestorage": {"belfry/pkg/binary/driver", "belfry/pkg/errs"},
	"belfry/pkg/binary/s3storage":   {"belfry/pkg/binary/driver", "belfry/pkg/errs"},
}

// public is what other programs import, see docs/reference/compatibility.md.
var public = []string{
	"belfry/pkg/errs", "belfry/pkg/event", "belfry/pkg/listener", "belfry/pkg/listener/metrics",
	"belfry/pkg/listener/tracing", "belfry/pkg/client", "belfry/pkg/interceptor",
}

// serverSide are modules that no program of others may contain: a listener of 15
// lines would be as large as belfry.
var serverSide = []string{
	"github.com/nats-io/nats-server/", "github.com/cockroachdb/pebble", "github.com/aws/", "go.mongodb.org/",
	"cel.dev/", "github.com/labstack/", "github.com/prometheus/", "go.opentelemetry.io/otel/sdk",
	"go.opentelemetry.io/otel/exporters/", "google.golang.org/grpc",
}

// ofTests are modules that only tests use.
var ofTests = []string{"github.com/santhosh-tekuri/jsonschema", "github.com/getkin/kin-openapi", "github.com/chromedp/",
	"github.com/prometheus/prometheus/", "github.com/yuin/goldmark"}

type pkg struct {
	ImportPath string
	Dir        string
	Doc        string
	GoFiles    []string
	Imports    []string
}

// root is the folder of the project.
const root = "../.."

// modules returns the modules of the project.
func modules(t *testing.T) []gotest.Module {
	t.Helper()
	all, err := gotest.Modules(root)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// packages returns the packages of all modules.
func packages(t *testing.T) (all []pkg) {
	t.Helper()
	for _, m := range modules(t) {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Dir,Doc,GoFiles,Imports", "./...")
		cmd.Dir = filepath.Join(root, m.Folder)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go list in %s: %v", m.Folder, err)
		}
		for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
			var p pkg
			if err := dec.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			all = append(all, p)
		}
	}
	return all
}

func floorOf(path string) int {
	return slices.IndexFunc(floors, func(row []string) bool { return slices.Contains(row, path) })
}

func TestImportsGoDownward(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "belfry/test/") || strings.HasPrefix(p.ImportPath, "belfry/bench/") {
			continue
		}
		floor := floorOf(p.ImportPath)
		if floor < 0 {
			t.Errorf("%s is on no floor: list it in floors", p.ImportPath)
		}
		for _, imported := range p.Imports {
			if !strings.HasPrefix(imported, "belfry/") {
				continue
			}
			if below := floorOf(imported); below >= floor {
				t.Errorf("%s (floor %d) imports %s (floor %d): imports go downward only", p.ImportPath, floor, imported,
					below)
			}
			if allowed, ok := drivers[p.ImportPath]; ok && !slices.Contains(allowed, imported) {
				t.Errorf("driver %s imports %s: a driver imports its SDK, driver, chunk, errs and backoff", p.ImportPath,
					imported)
			}
			if strings.HasPrefix(p.ImportPath, "belfry/listeners/examples/") && !slices.Contains(public, imported) {
				t.Errorf("the example %s imports %s, which is belfry's own", p.ImportPath, imported)
			}
		}
	}
}

func TestPublicPackagesContainNoServer(t *testing.T) {
	for _, path := range public {
		if path == "belfry/pkg/listener/metrics" {
			continue // its subject is Prometheus
		}
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", path).Output()
		if err != nil {
			t.Fatalf("go list -deps %s: %v", path, err)
		}
		for dependency := range strings.Lines(string(out)) {
			for _, module := range serverSide {
				if strings.HasPrefix(dependency, module) {
					t.Errorf("%s depends on %s", path, strings.TrimSpace(dependency))
				}
			}
			if strings.TrimSpace(dependency) == "belfry/pkg/bus/embedded" ||
				strings.TrimSpace(dependency) == "belfry/pkg/store" {
				t.Errorf("%s depends on %s", path, strings.TrimSpace(dependency))
			}
		}
	}
}

func TestBelfryContainsNoModuleOfTests(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "belfry/cmd/belfry").Output()
	if err != nil {
		t.Fatalf("go list -deps: %v", err)
	}
	for dependency := range strings.Lines(string(out)) {
		for _, module := range ofTests {
			if strings.HasPrefix(dependency, module) {
				t.Errorf("belfry depends on %s", strings.TrimSpace(dependency))
			}
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, p := range packages(t) {
		if len(p.GoFiles) > 0 && p.Doc == "" {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}

func TestFilesAreShort(t *testing.T) {
	const most = 400
	for _, p := range packages(t) {
		for _, name := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(string(data), "\n"); lines > most {
				t.Errorf("%s/%s has %d lines, over %d: it has more than one subject", p.ImportPath, name, lines, most)
			}
		}
	}
}
