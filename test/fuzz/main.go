// Command fuzz runs every fuzz target of the project, one after the other, for
// a given time each, and stops at the first finding. The input that fails is
// then in the target's testdata folder, where every later test run tries it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"belfry/test/kit/gotest"
)

func main() {
	each := flag.Duration("time", 20*time.Second, "how long each target runs")
	only := flag.String("target", "", "run only targets whose name contains this")
	flag.Parse()
	gotest.Main("fuzz", func(ctx context.Context) error { return fuzz(ctx, *each, *only) })
}

func fuzz(ctx context.Context, each time.Duration, only string) error {
	if err := gotest.Positive("-time", each); err != nil {
		return err
	}
	targets, err := gotest.List(ctx, "Fuzz", only, nil, "./...")
	if err != nil {
		return err
	}
	for _, t := range targets {
		fmt.Println(t.Package, t.Name)
		if err := gotest.Run(ctx, os.Stdout, t.Folder, "-run", "^$", "-fuzz", "^"+t.Name+"$", "-fuzztime",
			each.String(), t.Package); err != nil {
			return fmt.Errorf("%s %s: %w", t.Package, t.Name, err)
		}
	}
	fmt.Printf("%d targets, no finding\n", len(targets))
	return nil
}
