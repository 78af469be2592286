package main

import (
	"flag"

	"belfry/test/manual/site"
)

// makeSite writes the documentation site that belfry embeds, in the project at a folder.
func makeSite(root string, args []string) error {
	f := flag.NewFlagSet("site", flag.ContinueOnError)
	draft := f.Bool("draft", false, "write the site although links lead nowhere")
	if err := f.Parse(args); err != nil {
		return err
	}
	return site.Write(root, *draft)
}
