// Package examples runs the programs in listeners/examples as processes that are
// killed and restarted, with a real belfry.
package examples

import (
	"path/filepath"
	"testing"

	"belfry/test/kit/programs"
	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

// sources is the folder of the examples.
const sources = "../../listeners/examples"

// program returns the path of an example in Go, built with the race detector.
func program(t *testing.T, name string) string {
	t.Helper()
	folder, err := programs.Examples()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, name)
}
