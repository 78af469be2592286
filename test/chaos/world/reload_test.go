package world_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"belfry/test/chaos/history"
	"belfry/test/chaos/world"
	"belfry/test/process"
)

// Each change of a model has an effect on the stores of the clients, and is valid by itself and beside all others.
func TestModelsOfReloadsAreValid(t *testing.T) {
	stores := strings.ReplaceAll(history.Stores, world.Storage, "type: FileStorage")
	all := stores
	for i, m := range world.Models {
		one := strings.Replace(stores, m[0], m[1], 1)
		if one == stores {
			t.Errorf("change %d has no effect: %q is not there", i, m[0])
		}
		check(t, fmt.Sprint("change ", i), one)
		all = strings.Replace(all, m[0], m[1], 1)
	}
	check(t, "all changes", all)
}

func check(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "belfry.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(process.Commands(t), "config", "check", "--config", path).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s\n%s", name, err, out, text)
	}
}
