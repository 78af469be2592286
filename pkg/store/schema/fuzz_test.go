package schema_test

import (
	"errors"
	"path/filepath"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/schema"
)

// FuzzSchema: for any schema and document there is a result or a
// refusal, with formats asserted and without, never a panic (which would be an Internal error) and never a hang.
func FuzzSchema(f *testing.F) {
	for _, folder := range []string{"draft2020-12", "draft2019-09", "draft7"} {
		files, err := filepath.Glob(filepath.Join("testdata", "suite", "tests", folder, "*.json"))
		if err != nil || len(files) == 0 {
			f.Fatalf("no cases: %v", err)
		}
		for _, file := range files {
			for _, group := range readSuite(f, file) {
				f.Add([]byte(group.Schema), []byte(group.Tests[0].Data))
			}
		}
	}
	f.Add([]byte(bookSchema), []byte(book))
	f.Fuzz(func(t *testing.T, text, doc []byte) {
		for _, options := range [][]schema.Option{nil, {schema.Formats}} {
			s, err := schema.Compile("fuzz.json", text, options...)
			if err != nil {
				var refused *schema.RefusedError
				if !errors.As(err, &refused) {
					t.Fatalf("not a refusal: %v", err)
				}
				continue
			}
			if err := s.Validate(t.Context(), doc); err != nil && errs.KindOf(err) == errs.Internal {
				t.Fatal(err)
			}
		}
	})
}
