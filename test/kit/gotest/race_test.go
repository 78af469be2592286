package gotest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A package that uses sync/atomic has to be instrumented; go list fails for one that there isn't.
func TestUninstrumentedPackagesPublishNothingByAtomics(t *testing.T) {
	atomics := regexp.MustCompile(`"sync/atomic"|\bsync\.(Map|Once)`)
	const root = "../../.."
	modules, err := Modules(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range uninstrumented {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-f",
			`{{$dir := .Dir}}{{range .GoFiles}}{{$dir}}/{{.}}{{"\n"}}{{end}}`, name)
		if folder, own := strings.CutPrefix(name, "belfry/"); own {
			cmd.Dir = filepath.Join(root, within(modules, folder).Folder)
		}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, file := range strings.Fields(string(out)) {
			text, err := os.ReadFile(filepath.FromSlash(file))
			if err != nil {
				t.Fatal(err)
			}
			if used := atomics.Find(text); used != nil {
				t.Errorf("%s uses %s in %s", name, used, filepath.Base(file))
			}
		}
	}
}
