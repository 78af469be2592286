// Package examples runs the programs in listeners/examples as what they are:
// processes of their own, killed and started again, beside a real belfry.
package examples

import (
	"path/filepath"
	"testing"

	"belfry/test/kit/programs"
	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

// sources is where the examples are.
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
