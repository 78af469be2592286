// Command suite builds the tests of packages with the race detector, and then runs them, several
// packages at once, in the order of its arguments. It does what go test does in one step, and reports how
// much of the time is the build, and how much CPU time each package takes with the processes that it
// starts. It fails when a test fails or doesn't build.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belfry/test/kit/gotest"
	"belfry/test/kit/programs"
)

func main() {
	atOnce := flag.Int("p", 4, "how many packages are tested at once")
	count := flag.Int("count", 1, "how many times everything is run")
	timeout := flag.Duration("timeout", 90*time.Minute, "how long the tests of a package may take")
	set := flag.String("set",
		"", "run the tests of this set alone: "+setTest+", or "+setRest+
			", those that test/suite/rest lists; none: all tests")
	folder := flag.String("folder", ".cache",
		"where the tests are built, which takes some gigabytes; what a suite that was killed left there is removed")
	output := flag.String("output", "", "a folder for the whole output of each package, with the time of each test")
	flag.Usage = func() {
		_, _ = fmt.Fprintln(flag.CommandLine.Output(), "usage: suite [flags] packages")
		flag.PrintDefaults()
	}
	flag.Parse()
	gotest.Main("suite", func(ctx context.Context) error {
		return suite(ctx, os.Stdout, options{*set, *folder, *output, *atOnce, *count, *timeout}, flag.Args())
	})
}

// options are the flags of the command.
type options struct {
	set, folder, output string
	atOnce, count       int
	timeout             time.Duration
}

func suite(ctx context.Context, out io.Writer, o options, patterns []string) error {
	if o.atOnce < 1 {
		return errors.New("-p: expected 1 or more")
	}
	if o.count < 1 {
		return errors.New("-count: expected 1 or more")
	}
	if err := gotest.Positive("-timeout", o.timeout); err != nil {
		return err
	}
	rest, err := parseRest(restText)
	if err != nil {
		return fmt.Errorf("test/suite/rest: %w", err)
	}
	all, err := list(ctx, patterns)
	if err != nil {
		return err
	}
	if err := keepOutput(o.output, all); err != nil {
		return err
	}
	if all, err = choose(o.set, all, rest, parsePlain(plainText)); err != nil {
		return err
	}
	if len(all) == 0 {
		return fmt.Errorf("the set %s has no test of %s", o.set, strings.Join(patterns, " "))
	}
	folder, err := makeFolder(o.folder)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	start := time.Now()
	spent, err := build(ctx, folder, all)
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "Built the tests of %d packages in %s, CPU time %s\n", len(all), seconds(time.Since(start)),
		seconds(spent))
	if o.set == setTest {
		if err := os.Setenv(programs.Prepared, "1"); err != nil {
			return err
		}
	}
	remove, err := useMemory(out)
	if err != nil {
		return err
	}
	defer remove()
	var failed error
	for range o.count {
		failed = errors.Join(failed, runAll(ctx, out, all, o.atOnce, o.timeout))
		if ctx.Err() != nil {
			break
		}
	}
	return failed
}

// makeFolder makes an empty folder for the tests that are built.
func makeFolder(within string) (string, error) {
	within, err := filepath.Abs(within)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(within, "belfry-suite")
	if err := os.RemoveAll(folder); err != nil {
		return "", err
	}
	return folder, os.MkdirAll(folder, 0o700)
}

// target is a package with tests.
type target struct {
	path   string // of its import
	module string // the folder of its module
	folder string // in which its tests run
	tests  bool   // it has some
	binary string
	args   []string // of the binary
	must   []string // the names of tests that have to run
	output string   // the file for the whole output; "": none
	plain  bool     // it is built without the race detector
}

// list returns the packages with tests that patterns match, in their order: of all modules of the project, whose root
// is the working folder.
func list(ctx context.Context, patterns []string) ([]*target, error) {
	known, err := packages(ctx)
	if err != nil {
		return nil, err
	}
	var all []*target
	for _, pattern := range patterns {
		matched := false
		for _, t := range known {
			if !gotest.Match(pattern, strings.TrimPrefix(strings.TrimPrefix(t.path, "belfry"), "/")) {
				continue
			}
			matched = true
			if t.tests && !slices.Contains(all, t) {
				all = append(all, t)
			}
		}
		if !matched {
			return nil, fmt.Errorf("%s matches no package", pattern)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no package of %s has tests", strings.Join(patterns, " "))
	}
	return all, nil
}

// packages returns all packages of the project.
func packages(ctx context.Context) (all []*target, err error) {
	modules, err := gotest.Modules(".")
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		cmd := exec.CommandContext(ctx, "go", "list", "-f",
			"{{.ImportPath}}\t{{.Dir}}\t{{if or .TestGoFiles .XTestGoFiles}}tests{{end}}", "./...")
		cmd.Dir, cmd.Stderr = m.Folder, os.Stderr
		listed, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("listing the packages of %s: %w", m.Path, err)
		}
		for line := range strings.Lines(string(listed)) {
			words := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
			all = append(all, &target{path: words[0], folder: words[1], tests: words[2] != "", module: m.Folder})
		}
	}
	return all, nil
}

// keepOutput names a file in a folder for the output of each package.
func keepOutput(folder string, all []*target) error {
	if folder == "" {
		return nil
	}
	for _, t := range all {
		t.output = filepath.Join(folder, strings.ReplaceAll(t.path, "/", "_")+".log")
	}
	return os.MkdirAll(folder, 0o755)
}

// batches divides packages so that those of a batch are of one module and built with the same flags, and the last
// elements of their paths are distinct: go test -c names the binaries after them.
func batches(all []*target) (out [][]*target) {
	for _, t := range all {
		at := slices.IndexFunc(out, func(batch []*target) bool {
			return batch[0].module == t.module && batch[0].plain == t.plain &&
				!slices.ContainsFunc(batch,
					func(other *target) bool { return path.Base(other.path) == path.Base(t.path) })
		})
		if at < 0 {
			at = len(out)
			out = append(out, nil)
		}
		out[at] = append(out[at], t)
	}
	return out
}

// build builds the tests of packages into a folder, and returns the CPU time.
func build(ctx context.Context, folder string, all []*target) (spent time.Duration, err error) {
	for i, batch := range batches(all) {
		into := filepath.Join(folder, fmt.Sprint(i)) + string(filepath.Separator)
		// What debuggers read is left out, as in go test; stacks have their lines nevertheless.
		args, env := append([]string{"test", "-c"}, gotest.Race()...), os.Environ()
		if batch[0].plain { // as make build does, many of whose packages it shares
			args, env = []string{"test", "-c", "-trimpath"}, append(env, "CGO_ENABLED=0")
		}
		args = append(args, "-vet=off", "-ldflags=-s -w", "-o", into)
		for _, t := range batch {
			t.binary = filepath.Join(into, path.Base(t.path)+".test")
			args = append(args, t.path)
		}
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = batch[0].module, env, os.Stderr, os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		if err := cmd.Run(); err != nil {
			return 0, fmt.Errorf("building the tests: %w", err)
		}
		spent += cpu(cmd.ProcessState)
	}
	return spent, nil
}

// cpu is the CPU time of a process that ended, with its children.
func cpu(p *os.ProcessState) time.Duration { return p.UserTime() + p.SystemTime() }
