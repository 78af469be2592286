// Package outside builds programs as others do, in modules of their own.
package outside

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// maxListener is the greatest size of a small listener in bytes: docs/reference/compatibility.md says about 10 MB.
const maxListener = 12_000_000

// What docs/guides/listeners.md shows is copied by people: its go.mod, its program and its commands.
func TestAListenerOutsideOfTheTreeIsBuiltWithTheLinesOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/guides/listeners.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind, begins string) string {
		t.Helper()
		for _, m := range regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
			if strings.HasPrefix(m[1], begins) {
				return m[1]
			}
		}
		t.Fatalf("docs/guides/listeners.md has no block that begins with %q", begins)
		return ""
	}
	parent := t.TempDir()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(checkout, filepath.Join(parent, "belfry")); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(parent, "welcome")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go.mod": block("text", "module "),
		"main.go": block("go", "package main")} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(string(page), "`go mod tidy && go run .`") {
		t.Error("docs/guides/listeners.md has other commands")
	}
	for _, args := range [][]string{{"mod", "tidy"}, {"build", "-trimpath", "-ldflags=-s -w", "-o", "welcome", "."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "GOFLAGS=", "GOWORK=off", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	info, err := os.Stat(filepath.Join(folder, "welcome"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes", info.Size())
	if info.Size() > maxListener {
		t.Errorf("a listener has %d bytes, more than %d", info.Size(), maxListener)
	}

	// It runs: what is wrong with the environment is said.
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "welcome"))
	cmd.Env = append(os.Environ(), "BELFRY_BUS_URL=://nowhere")
	out, err := cmd.CombinedOutput()
	if err == nil || cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "BELFRY_BUS_URL") {
		t.Errorf("with a wrong environment: %v\n%s", err, out)
	}
}
