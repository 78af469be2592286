package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"belfry/config"
	"belfry/pkg/app/starter"
)

func TestInitWritesWhatServeBeginsWith(t *testing.T) {
	t.Chdir(t.TempDir())
	belfry(t, 2, "config/belfry.yaml: cannot be read: no such file or directory; `belfry init` writes one to begin "+
		"with, --config names another file", "serve")
	belfry(t, 0, "wrote config/belfry.yaml\n", "init")
	belfry(t, 0, "config/belfry.yaml: good: ", "config", "check")
	belfry(t, 1, "belfry: config/belfry.schema.json already exists, and nothing is overwritten", "init")
	for _, template := range starter.Templates() {
		belfry(t, 0, "Next:\n  cd "+template+"\n  belfry serve", "init", "--template", template, template)
		belfry(t, 0, "belfry.yaml: good: ", "config", "check", filepath.Join(template, "config", "belfry.yaml"))
	}
	belfry(t, 2, `--template must be one of "blog","todo","chat","recipes","empty"`, "init",
		"--template", "shop", "shop")
	if err := os.MkdirAll("old", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("old/.gitignore", []byte("/bin/\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	belfry(t, 2, "old/.gitignore is a file: choose a folder", "init", "old/.gitignore")
	belfry(t, 0, "kept  old/.gitignore as it is: add /data/ to it", "init", "old")
}

// The container image names its configuration there.
func TestTheConfigurationOfTheEnvironmentIsChecked(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("BELFRY_CONFIG", "")
	belfry(t, 2, "config/belfry.yaml: cannot be read", "config", "check")
	if err := os.WriteFile("here.yaml", []byte("stores: {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BELFRY_CONFIG", "here.yaml")
	belfry(t, 0, "here.yaml: good: ", "config", "check")
	belfry(t, 2, "other.yaml: cannot be read", "config", "check", "--config", "other.yaml")
	belfry(t, 2, "other.yaml: cannot be read", "config", "check", "other.yaml")
}

func TestTheVersionIsPrinted(t *testing.T) {
	belfry(t, 0, version()+"\n", "version")
	belfry(t, 0, version()+"\n", "--version")
}

func TestTheSchemaIsPrinted(t *testing.T) {
	var out, errOut bytes.Buffer
	if code := run(t.Context(), []string{"config", "schema"}, streams{nil, &out, &errOut}); code != 0 ||
		!bytes.Equal(out.Bytes(), config.Schema()) {
		t.Errorf("exit %d: %s%s", code, out.String(), errOut.String())
	}
}
