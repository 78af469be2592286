package browser

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/backing"
)

// What the console embeds of others is made of the packages that tools/console pins, and of nothing else.
func TestTheAssetsOfOthersAreThoseOfTheirPackages(t *testing.T) {
	made := t.TempDir()
	out, err := exec.CommandContext(t.Context(), "make", "-C", filepath.Join("..", ".."), "copied-assets",
		"PACKED="+backing.NPM(t, "tools/console"), "ASSETS="+made).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := os.ReadDir(made)
	if err != nil || len(files) < 8 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		committed := filepath.Join("..", "..", "pkg", "api", "console", "assets", file.Name())
		if !bytes.Equal(content(t, committed), content(t, filepath.Join(made, file.Name()))) {
			t.Errorf("%s is another file: run make console-assets", file.Name())
		}
	}
}

// content is what a file has, which may be compressed: other versions of gzip compress in other ways.
func content(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(name, ".gz") {
		return data
	}
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if data, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	return data
}
