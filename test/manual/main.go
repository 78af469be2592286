// Command manual makes and checks the documentation:
//
//	go run ./test/manual site    write the site that belfry embeds, from docs
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("which of these: site")
	}
	switch args[0] {
	case "site":
		return makeSite(".")
	}
	return fmt.Errorf("no command %s", args[0])
}
