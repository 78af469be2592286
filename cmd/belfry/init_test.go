package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"belfry/config"
	"belfry/pkg/starter"
)

func TestInitWritesWhatServeBeginsWith(t *testing.T) {
	t.Chdir(t.TempDir())
	belfry(t, 2, "config/belfry.yaml: cannot be read: no such file or directory; `belfry init` writes one to begin with, --config names another file", "serve")
	belfry(t, 0, "wrote config/belfry.yaml\n", "init")
	belfry(t, 0, "config/belfry.yaml: good: ", "config", "check")
	belfry(t, 1, "belfry: config/belfry.schema.json exists already, and nothing is overwritten", "init")
	for _, template := range starter.Templates() {
		belfry(t, 0, "Next:\n  cd "+template+"\n  belfry serve", "init", "--template", template, template)
		belfry(t, 0, "belfry.yaml: good: ", "config", "check", filepath.Join(template, "config", "belfry.yaml"))
	}
	belfry(t, 2, `--template must be one of "blog","todo","chat"`, "init", "--template", "shop", "shop")
	if err := os.MkdirAll("old", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("old/.gitignore", []byte("/bin/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	belfry(t, 0, "kept  old/.gitignore as it is: add /data/ to it", "init", "old")
}

func TestTheSchemaIsPrinted(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"config", "schema"}, streams{nil, &out, &errOut}); code != 0 || !bytes.Equal(out.Bytes(), config.Schema()) {
		t.Errorf("exit %d: %s%s", code, out.String(), errOut.String())
	}
}
