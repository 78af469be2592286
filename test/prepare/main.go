// Command prepare builds the programs that tests run, unless the cache has them, and prints where
// they are.
package main

import (
	"fmt"
	"os"

	"belfry/test/kit/programs"
)

func main() {
	if err := programs.All(func(path string) { fmt.Println(path) }); err != nil {
		fmt.Fprintln(os.Stderr, "prepare:", err)
		os.Exit(1)
	}
}
