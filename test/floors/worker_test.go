package floors

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// uncheckedWriters may write objects without the checks of store.Store: they
// maintain what belfry itself owns. No package that acts for clients is one of
// them, except for records that clients never reach.
var uncheckedWriters = []string{
	"belfry/pkg/api/apitest",        // plays the mapping worker in tests of HTTP
	"belfry/pkg/operations/backup",  // records of a backup
	"belfry/pkg/mapping",            // arrays
	"belfry/pkg/mapping/aggregates", // aggregates
	"belfry/pkg/operations/migrate", // records of another backend
	"belfry/pkg/store/idempotent",   // the store of idempotency keys
}

func TestOnlyWorkersWriteWithoutChecks(t *testing.T) {
	for _, p := range packages(t) {
		if strings.HasPrefix(p.ImportPath, "belfry/test/") || p.ImportPath == "belfry/pkg/store" {
			continue
		}
		for _, name := range p.GoFiles {
			data, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(data), "store.NewWorker(") && !slices.Contains(uncheckedWriters, p.ImportPath) {
				t.Errorf("%s/%s makes a store.Worker, whose writes are not checked", p.ImportPath, name)
			}
		}
	}
}
