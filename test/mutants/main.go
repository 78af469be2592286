// Command mutants takes guards out of the code, one at a time, and runs the tests that must fail
// then. A mutant that survives has found a guard that no test holds. The sources stay as they are: go
// test reads the changed file through an overlay.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"belfry/test/kit/gotest"
)

const listFile = "test/mutants/list"

func main() {
	only := flag.String("only", "", "run only mutants whose name or file contains this")
	verbose := flag.Bool("v", false, "print the output of each test")
	flag.Parse()
	gotest.Main("mutants", func(ctx context.Context) error { return run(ctx, *only, *verbose) })
}

func run(ctx context.Context, only string, verbose bool) error {
	text, err := os.ReadFile(listFile)
	if err != nil {
		return err
	}
	all, err := parse(string(text))
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	modules, err := gotest.Modules(root)
	if err != nil {
		return err
	}
	var wrong []error
	n := 0
	for _, m := range all {
		if !strings.Contains(m.name, only) && !strings.Contains(m.file, only) {
			continue
		}
		n++
		start := time.Now()
		out, err := m.try(ctx, root, modules)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		verdict := "killed"
		if err != nil {
			verdict = err.Error()
			wrong = append(wrong, fmt.Errorf("line %d: %s: %w", m.line, m.name, err))
		}
		fmt.Printf("%-9s %5.1fs  %s\n", verdict, time.Since(start).Seconds(), m.name)
		if verbose || errors.Is(err, errBroken) {
			fmt.Println(out)
		}
	}
	if n == 0 {
		return fmt.Errorf("no mutant has %q in its name or file", only)
	}
	fmt.Printf("%d mutants, %d not killed\n", n, len(wrong))
	return errors.Join(wrong...)
}

var (
	errSurvived = errors.New("survived")
	errBroken   = errors.New("broken") // the changed code doesn't compile
)

// limit is for the tests of one mutant, many of which then wait for what never happens.
const limit = 3 * time.Minute

// try runs the tests of a mutant. It returns nil if they fail.
func (m mutant) try(ctx context.Context, root string, modules []gotest.Module) (output string, err error) {
	module, test, err := m.within(modules)
	if err != nil {
		return "", err
	}
	folder, err := os.MkdirTemp("", "belfry-mutant-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	original := filepath.Join(root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	changed, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	copied, overlay := filepath.Join(folder, "mutant.go"), filepath.Join(folder, "overlay.json")
	mapping, err := json.Marshal(map[string]any{"Replace": map[string]string{original: copied}})
	if err != nil {
		return "", err
	}
	if err := errors.Join(os.WriteFile(copied, []byte(changed), 0o600),
		os.WriteFile(overlay, mapping, 0o600)); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, limit+10*time.Minute) // to build
	defer cancel()
	args := append([]string{"test", "-vet=off", "-failfast", "-timeout", limit.String()}, test...)
	cmd := exec.CommandContext(ctx, "go", args...)
	// In the environment it also applies to the programs that tests build and start.
	cmd.Env = append(os.Environ(), strings.TrimSpace("GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay))
	cmd.Dir, cmd.WaitDelay = filepath.Join(root, filepath.FromSlash(module)), 10*time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
		return string(out), errBroken
	case err == nil:
		return string(out), errSurvived
	}
	return string(out), nil
}
