package main

import (
	"slices"
	"testing"
	"testing/fstest"
)

func TestPackagesWithSoakTestsAreFound(t *testing.T) {
	call := &fstest.MapFile{Data: []byte("soak := kit.Soak(t, 3)")}
	got, err := find(fstest.MapFS{
		"test/a/one_test.go": call, "test/a/two_test.go": call, "pkg/b/b_test.go": call,
		"pkg/c/c.go": call, "pkg/d/d_test.go": {Data: []byte("package d")},
	})
	if want := []string{"./pkg/b", "./test/a"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
