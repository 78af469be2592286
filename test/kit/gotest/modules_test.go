package gotest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestModulesAreThoseThatImportBelfry(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{
		"go.mod":                        "module belfry\n",
		"tools/go.mod":                  "module belfry/tools\n",
		"test/a/go.mod":                 "module belfry/test/a\n\nreplace belfry => ../..\n",
		"listeners/b/go.mod":            "module belfry/listeners/b\n\nreplace belfry => ../..\n",
		"web/node_modules/other/go.mod": "module other\n\nreplace belfry => ../..\n",
	} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := Modules(root)
	if got := fmt.Sprint(all); err != nil ||
		got != "[{belfry .} {belfry/listeners/b listeners/b} {belfry/test/a test/a}]" {
		t.Errorf("%s, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(root, "test/a/go.mod"), []byte("module a\n\nreplace belfry => ../..\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Modules(root); err == nil || !strings.Contains(err.Error(), "expected module belfry/test/a") {
		t.Error(err)
	}
}

func TestPatternsAreDividedByModule(t *testing.T) {
	modules := []Module{{"belfry", "."}, {"belfry/bench", "bench"}, {"belfry/test/chaos", "test/chaos"}}
	for pattern, want := range map[string]string{
		"./...":                ". ./..., bench ./..., test/chaos ./...",
		"./test/...":           ". ./test/..., test/chaos ./...",
		"./test/chaos":         "test/chaos ./.",
		"./test/chaos/...":     "test/chaos ./...",
		"./test/chaos/check":   "test/chaos ./check",
		"test/chaos/run/...":   "test/chaos ./run/...",
		"./test/chaosless/...": ". ./test/chaosless/...",
		"./bench/load":         "bench ./load",
		".":                    ". ./.",
	} {
		var got []string
		for _, p := range Parts(modules, pattern) {
			got = append(got, p.Folder+" "+strings.Join(p.Patterns, " "))
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
	for _, c := range []struct {
		pattern, folder string
		want            bool
	}{{"./...", "a/b", true}, {"./a/...", "a", true}, {"./a/...", "a/b", true}, {"./a/...", "ab", false},
		{"./a", "a", true}, {"./a", "a/b", false}} {
		if Match(c.pattern, c.folder) != c.want {
			t.Errorf("%s and %s: %v", c.pattern, c.folder, !c.want)
		}
	}
}
