package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestKeysAreRotatedAndNotShown(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "belfry.yaml")
	if err := os.WriteFile(file, []byte("data: data\nbus: {events: {maxAge: 48h}}\nstores:\n  Books: {expose: {}}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(folder, "data", "stores", "default"), 0o700); err != nil {
		t.Fatal(err)
	}
	belfry(t, 2, "--keep: -1s is negative", "seal-keys", "rotate", "--keep=-1s", "-c", file)
	belfry(t, 0, "FROM", "seal-keys", "list", "-c", file)
	var out bytes.Buffer
	if code := run(t.Context(), []string{"seal-keys", "rotate", "-c", file},
		streams{strings.NewReader(""), &out, &out}); code != 0 {
		t.Fatal(out.String())
	}
	if !regexp.MustCompile(`^FROM +UNTIL +CURRENT\n- +\S+Z +true\n\S+Z +- +false\n$`).MatchString(out.String()) {
		t.Error(out.String())
	}
	belfry(t, 0, `"current":true`, "seal-keys", "rotate", "--keep", "1h", "--json", "-c", file)
}
