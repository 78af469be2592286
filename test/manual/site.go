package main

import "belfry/test/manual/site"

// makeSite writes the documentation site that belfry embeds, in the project at a folder.
func makeSite(root string) error { return site.Write(root) }
