// Command soak runs every soak test of the project with the race detector, one after the other, for an
// equal share of a given time. It continues after a failure, and fails at the end: each failure has the
// seed that repeats it.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belfry/test/kit/gotest"
)

func main() {
	total := flag.Duration("duration", 10*time.Minute, "how long all tests run together")
	seed := flag.Uint64("seed", 0, "the seed of each test's first round; 0: a random one")
	only := flag.String("test", "", "run only tests whose name contains this")
	flag.Parse()
	gotest.Main("soak", func(ctx context.Context) error { return soak(ctx, *total, *seed, *only) })
}

func soak(ctx context.Context, total time.Duration, seed uint64, only string) error {
	if err := gotest.Positive("-duration", total); err != nil {
		return err
	}
	for seed == 0 {
		seed = rand.Uint64()
	}
	packages, err := find(os.DirFS("."))
	if err != nil {
		return err
	}
	tests, err := gotest.List(ctx, "TestSoak", only, []string{"-race"}, packages...)
	if err != nil {
		return err
	}
	each := (total / time.Duration(len(tests))).Round(time.Second)
	fmt.Printf("%d tests, %s each, seed %d\n", len(tests), each, seed)
	var failed []error
	for _, t := range tests {
		err := gotest.Run(ctx, os.Stdout, t.Folder, "-race", "-vet=off", "-timeout", (each + 30*time.Minute).String(),
			"-run", "^"+t.Name+"$", t.Package, "-soak.duration="+each.String(), fmt.Sprintf("-soak.seed=%d", seed))
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("%s %s failed at seed %d", t.Package, t.Name, seed))
		}
	}
	return errors.Join(failed...)
}

// find returns the packages, as ./folder, whose tests call kit.Soak.
func find(root fs.FS) ([]string, error) {
	var packages []string
	err := fs.WalkDir(root, ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := fs.ReadFile(root, path)
		if bytes.Contains(text, []byte("kit.Soak(")) {
			packages = append(packages, "./"+filepath.ToSlash(filepath.Dir(path)))
		}
		return err
	})
	slices.Sort(packages)
	return slices.Compact(packages), err
}
