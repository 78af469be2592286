// Command manual makes the site of the documentation that belfry serves, and checks the words of its pages.
package main

import (
	"fmt"
	"os"
)

const usage = `usage: manual COMMAND

  lint [-stats] [-worst N] [FILE...]  check the words of pages, all of them without a FILE
  site [-draft]                       write the site that belfry embeds, from docs
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%s", usage)
	}
	switch args[0] {
	case "lint":
		return lint(args[1:], os.Stdout)
	case "site":
		return makeSite(".", args[1:])
	}
	return fmt.Errorf("no command %s\n%s", args[0], usage)
}
