// Command prepare builds the programs that tests run, unless the cache has them, and prints where
// they are.
package main

import (
	"flag"
	"fmt"
	"os"

	"belfry/test/kit/programs"
)

func main() {
	set := flag.String("set", "", "test: only the programs of make test")
	flag.Parse()
	if *set != "" && *set != "test" {
		fmt.Fprintf(os.Stderr, "prepare: -set: %q is unknown: there is test\n", *set)
		os.Exit(2)
	}
	if err := programs.All(*set != "test", func(path string) { fmt.Println(path) }); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}
