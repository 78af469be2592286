package modeling

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belfry/config"
	"belfry/config/edit"
	"belfry/pkg/errs"
)

// Each of the two guards of paths refuses what the other one would let through: one knows the keys that name files, the
// other one the files that the whole configuration names.
func TestBothGuardsOfPaths(t *testing.T) {
	const key = "stores.Books.schema"
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "books.json"), []byte(`{"type": "object"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	parse := func(text string) *config.Config {
		c, err := config.Parse(filepath.Join(folder, "belfry.yaml"), []byte(text),
			func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before, now := parse("stores: {Books: {}}\n"), parse("stores: {Books: {schema: books.json}}\n")
	for name, err := range map[string]error{
		"by its key":    checkLeaves([]string{"stores", "Books", "schema"}, edit.Plain("books.json"), nil),
		"by its effect": checkPaths(before, now, nil),
	} {
		if errs.KindOf(err) != errs.Denied || !strings.Contains(err.Error(), key+" names a file or a folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"written for the change": checkPaths(before, now, []string{filepath.Join(folder, "books.json")}),
		"named before":           checkPaths(now, now, nil),
		"as it was":              checkLeaves([]string{"stores", "Books", "schema"}, edit.Plain("a"), edit.Plain("a")),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
