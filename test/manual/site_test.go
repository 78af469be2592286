package main

import (
	"testing"

	"belfry/test/manual/site"
)

func TestTheSiteIsUpToDate(t *testing.T) {
	const root = "../.."
	files, err := site.Build(root, false)
	if err != nil {
		t.Fatal(err)
	}
	stale, err := site.Stale(root, files)
	if err != nil {
		t.Fatal(err)
	}
	if len(stale) > 0 {
		t.Errorf("%d files of %s are out of date: run `make manual` (%q)", len(stale), site.Folder, stale)
	}
}
