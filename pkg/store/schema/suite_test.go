package schema_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/schema"
	"belfry/test/kit"
)

// suiteGroup is a schema of the official suite and the documents to validate by it.
type suiteGroup struct {
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Tests       []suiteCase     `json:"tests"`
}

type suiteCase struct {
	Description string          `json:"description"`
	Data        json.RawMessage `json:"data"`
	Valid       bool            `json:"valid"`
}

// suiteCount is what became of a part's cases.
type suiteCount struct {
	cases, right, refused, wrong int
	refusedBy                    map[string]int // by the keyword refused first
}

// suiteParts are the folders of a draft. Where the suite asserts formats, so does the schema.
var suiteParts = []struct {
	name, folder string
	asserts      func(file string) bool
}{
	{"required", "", func(string) bool { return false }},
	{"optional", "optional",
		func(file string) bool { return file == "content.json" || file == "format-assertion.json" }},
	{"formats", filepath.Join("optional", "format"), func(string) bool { return true }},
}

// TestSuite validates every case of the official suite, required or optional. A case is validated
// correctly or its schema is refused; anything else fails. The documentation has the figures. To test another
// revision of the suite, name its folder in BELFRY_SCHEMA_SUITE: there the floors are the same share of the cases.
func TestSuite(t *testing.T) {
	folder := os.Getenv("BELFRY_SCHEMA_SUITE")
	kept := folder == ""
	if kept {
		folder = filepath.Join("testdata", "suite")
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "rules.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, draft := range []struct {
		name, folder, uri string
		cases, atLeast    [3]int // of each part, the kept revision's cases, and those to be validated correctly
	}{
		{"2020-12", "draft2020-12", "https://json-schema.org/draft/2020-12/schema", [3]int{1299, 162, 764},
			[3]int{1250, 111, 757}},
		{"2019-09", "draft2019-09", "https://json-schema.org/draft/2019-09/schema", [3]int{1259, 158, 757},
			[3]int{1223, 109, 750}},
		{"draft-07", "draft7", "http://json-schema.org/draft-07/schema#", [3]int{927, 118, 676}, [3]int{904, 116, 669}},
	} {
		for i, part := range suiteParts {
			t.Run(filepath.Join(draft.folder, part.name), func(t *testing.T) {
				count := suiteCount{refusedBy: map[string]int{}}
				for _, file := range suiteFiles(t, filepath.Join(folder, "tests", draft.folder, part.folder)) {
					var options []schema.Option
					if part.asserts(filepath.Base(file)) {
						options = []schema.Option{schema.Formats}
					}
					for _, group := range readSuite(t, file) {
						count.run(t, filepath.Base(file), withSchema(t, group, draft.uri), options)
					}
				}
				t.Logf("%d cases, %d right, %d refused", count.cases, count.right, count.refused)
				for _, keyword := range slices.Sorted(maps.Keys(count.refusedBy)) {
					t.Logf("  refused for %s: %d", keyword, count.refusedBy[keyword])
				}
				if count.right*draft.cases[i] < draft.atLeast[i]*count.cases {
					t.Errorf("%d of %d validated right, want at least %d of %d", count.right, count.cases,
						draft.atLeast[i], draft.cases[i])
				}
				if !kept {
					return
				}
				if count.cases != draft.cases[i] {
					t.Errorf("found %d cases, want all %d", count.cases, draft.cases[i])
				}
				if row := fmt.Sprintf("| %s | %s | %d | %d | %d | %d |\n", draft.name, part.name, count.cases,
					count.right, count.refused, count.wrong); !strings.Contains(string(page), row) {
					t.Errorf("docs/rules.md lacks the row %s", row)
				}
			})
		}
	}
}

func (c *suiteCount) run(t *testing.T, file string, group suiteGroup, options []schema.Option) {
	c.cases += len(group.Tests)
	s, err := schema.Compile(file, group.Schema, options...)
	var refused *schema.RefusedError
	switch {
	case errors.As(err, &refused):
		c.refused += len(group.Tests)
		c.refusedBy[refused.Refusals[0].Keyword] += len(group.Tests)
		return
	case err != nil:
		t.Errorf("%s: %s: %v", file, group.Description, err)
		return
	}
	for _, test := range group.Tests {
		if err := validateInTime(t, s, test.Data); verdict(err) == fmt.Sprint(test.Valid) {
			c.right++
		} else {
			c.wrong++
			t.Errorf("%s: %s: %s: got %v, want valid=%v", file, group.Description, test.Description, err, test.Valid)
		}
	}
}

// verdict is "true", "false", or the reason that there is neither.
func verdict(err error) string {
	var e *errs.Error
	switch {
	case err == nil:
		return "true"
	case errors.As(err, &e) && e.Kind == errs.Invalid && len(e.Fields) > 0:
		return "false"
	default:
		return err.Error()
	}
}

// validateInTime ends the test when Validate does not.
func validateInTime(t *testing.T, s *schema.Schema, doc []byte) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Limit)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- s.Validate(ctx, doc) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		t.Fatal("Validate does not return")
		return nil
	}
}

// withSchema declares the draft of a schema that leaves it to its folder.
func withSchema(t *testing.T, group suiteGroup, uri string) suiteGroup {
	t.Helper()
	var members map[string]json.RawMessage
	if json.Unmarshal(group.Schema, &members) != nil || members["$schema"] != nil {
		return group
	}
	declared, err := json.Marshal(uri)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.TrimPrefix(strings.TrimSpace(string(group.Schema)), "{")
	if len(members) > 0 {
		body = "," + body
	}
	group.Schema = json.RawMessage(`{"$schema":` + string(declared) + body)
	return group
}

func suiteFiles(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", folder, err)
	}
	return files
}

func readSuite(t testing.TB, file string) []suiteGroup {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var groups []suiteGroup
	if err := json.Unmarshal(data, &groups); err != nil {
		t.Fatal(err)
	}
	return groups
}
