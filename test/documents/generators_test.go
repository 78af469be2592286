package documents

import (
	"context"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/test/backing"
	"belfry/test/kit/programs"
)

// runIn runs a program in a folder, with variables of the environment as well.
func runIn(t *testing.T, folder string, env []string, name string, args ...string) {
	t.Helper()
	// What Go generators make is large, and the first build is one of all they import.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, tail(out))
	}
}

// tail is the end of an output: generators say much before what is wrong.
func tail(out []byte) []byte { return out[max(0, len(out)-4000):] }

// write writes the OpenAPI document of a configuration into a folder, in 3.1 and in 3.0.
func write(t *testing.T, folder string, c *config.Config) {
	t.Helper()
	for name, document := range map[string]func(*config.Config) ([]byte, error){"openapi.json": plan.OpenAPI,
		"openapi30.json": plan.OpenAPI30} {
		text, err := document(c)
		if err == nil {
			err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// goGenerators generates the clients of the documents in a folder, of which oapi-codegen takes that in 3.1 and ogen
// that in 3.0. Options are those of ogen, which makes 400,000 lines of the largest document without any.
func goGenerators(t *testing.T, folder string, options ...string) {
	t.Helper()
	tools, err := programs.Tools("clients")
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range []string{"oapi", "ogen"} {
		if err := os.MkdirAll(filepath.Join(folder, client, "api"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	runIn(t, folder, nil, filepath.Join(tools, "oapi-codegen"), "-generate", "types,client", "-package", "api", "-o",
		"oapi/api/api.go", "openapi.json")
	runIn(t, folder, nil, filepath.Join(tools, "ogen"),
		append(options, "--target", "ogen/api", "--package", "api", "--clean", "openapi30.json")...)
}

// parse parses what was generated: names and literals that are none of Go's are found without a compiler, which needs
// minutes for it.
func parse(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*", "api", "*.go"))
	if err != nil || len(files) < 5 {
		t.Fatalf("generated: %v, %v", files, err)
	}
	set := token.NewFileSet()
	for _, file := range files {
		if _, err := parser.ParseFile(set, file, nil, parser.AllErrors); err != nil {
			t.Error(err)
		}
	}
}

// Clients that generators make of a document create, list, change and upload, and decode problems.
func TestGeneratedClientsWork(t *testing.T) {
	const file = "testdata/small.yaml"
	s := serve(t, file)
	t.Run("go", func(t *testing.T) {
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS("../servers/clients")); err != nil {
			t.Fatal(err)
		}
		write(t, folder, load(t, file))
		goGenerators(t, folder, "--config", "ogen.yml")
		// -trimpath: the compiler's cache knows what was built in another folder.
		runIn(t, folder, []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off"}, "go", "build", "-trimpath",
			"-o", "bin"+string(filepath.Separator), "./oapi", "./ogen")
		for _, client := range []string{"oapi", "ogen"} {
			runIn(t, folder, nil, filepath.Join(folder, "bin", client), s.URL)
		}
	})
	t.Run("typescript", func(t *testing.T) {
		installed := backing.NPM(t, "test/servers/generators")
		folder := t.TempDir()
		if err := os.CopyFS(folder, os.DirFS("../servers/generators")); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Join(installed, "node_modules"),
			filepath.Join(folder, "node_modules")); err != nil {
			t.Fatal(err)
		}
		write(t, folder, load(t, file))
		env := []string{"BELFRY=" + s.URL}
		program := func(name string) string { return filepath.Join(folder, "node_modules", ".bin", name) }
		runIn(t, folder, env, program("openapi-typescript"), "openapi.json", "-o", "fetch/schema.ts")
		runIn(t, folder, env, program("openapi-ts"), "-i", "openapi.json", "-o", "hey")
		runIn(t, folder, env, program("orval"), "--config", "orval.config.mjs")
		types, err := os.ReadFile(filepath.Join(folder, "fetch", "schema.ts"))
		if err != nil {
			t.Fatal(err)
		}
		// Of openapi-typescript's own there are webhooks and $defs; any other is an object that can have nothing.
		if n := strings.Count(string(types), "Record<string, never>"); n != 2 {
			t.Errorf("%d types are objects without properties", n)
		}
		runIn(t, folder, env, program("tsc"))
		for _, client := range []string{"fetch", "hey", "orval"} {
			runIn(t, folder, env, program("esbuild"), client+".ts", "--bundle", "--format=esm", "--platform=node",
				"--outfile=out/"+client+".mjs", "--log-level=warning")
			runIn(t, folder, env, "node", "out/"+client+".mjs")
		}
	})
}

// The generators of Go take the document of every shipped configuration, and of one with every feature.
func TestGeneratorsTakeEveryDocument(t *testing.T) {
	files, err := filepath.Glob("../../config/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("configurations: %v, %v", files, err)
	}
	client := filepath.Join(t.TempDir(), "client.yml")
	if err := os.WriteFile(client, []byte("generator: {features: {disable_all: true, enable: [paths/client]}}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, file := range append(files, "../../config/testdata/full.yaml", everything) {
		c := load(t, file)
		text, err := plan.OpenAPI(c)
		if err != nil {
			t.Fatal(err)
		}
		if known[string(text)] {
			continue // configurations that differ in their backend have one document
		}
		known[string(text)] = true
		t.Run(filepath.Base(file), func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder, c)
			options := []string{"--config", client}
			if file == everything {
				options = nil // as docs/reference/api-documents.md has it: with the server as well
			}
			goGenerators(t, folder, options...)
			parse(t, folder)
		})
	}
}
