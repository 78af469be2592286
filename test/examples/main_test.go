// Package examples runs the programs in listeners/examples as what they are:
// processes of their own, killed and started again, beside a real belfry.
package examples

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"belfry/test/process"
)

func TestMain(m *testing.M) { process.Main(m) }

var (
	built  sync.Once
	folder string // where the programs are
	failed error
)

// sources is where the examples are.
const sources = "../../listeners/examples"

// program builds the examples in Go beside belfry, whose folder is removed at
// the end, and returns the path of one.
func program(t *testing.T, name string) string {
	t.Helper()
	built.Do(func() {
		folder = filepath.Dir(process.Program(t))
		out, err := exec.Command("go", "build", "-race", "-o", folder+string(filepath.Separator), "belfry/listeners/examples/...").CombinedOutput()
		if err != nil {
			failed = fmt.Errorf("%w\n%s", err, out)
		}
	})
	if failed != nil {
		t.Fatalf("building the examples: %v", failed)
	}
	return filepath.Join(folder, name)
}
