package gotest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// A package that uses sync/atomic has to be instrumented; go list fails for one that there isn't.
func TestUninstrumentedPackagesUseNoAtomics(t *testing.T) {
	for _, name := range uninstrumented {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-f", `{{join .Imports "\n"}}`, name)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if slices.Contains(strings.Fields(string(out)), "sync/atomic") {
			t.Errorf("%s uses sync/atomic", name)
		}
	}
}
