package apimodel

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"belfry/config"
	"belfry/internal/ordered"
	"belfry/pkg/store/schema/format"
)

// The example of each format has it, in every draft, and one with a length that it does not have is no example.
func TestExamplesHaveTheirFormats(t *testing.T) {
	for _, name := range format.Names() {
		s, ok := text(ordered.Of("type", "string", "format", name))
		if example, isText := s.(string); !ok || !isText || formatted[name] != example ||
			!format.Of(name, true)(example) || !format.Of(name, false)(example) {
			t.Errorf("%s: %v is no example", name, s)
		}
		if s, ok := text(ordered.Of("type", "string", "format", name, "minLength", ordered.Number("100"))); ok {
			t.Errorf("%s: %v is too short", name, s)
		}
		if s, ok := text(ordered.Of("type", "string", "format", name, "maxLength", ordered.Number("2"))); ok {
			t.Errorf("%s: %v is too long", name, s)
		}
	}
	for name := range formatted {
		if !slices.Contains(format.Names(), name) {
			t.Errorf("%s is no format", name)
		}
	}
}

// Strings of other formats are text of the length that the schema wants.
func TestExamplesOfTextHaveALength(t *testing.T) {
	for _, c := range []struct {
		least, most int
		want        string
	}{{0, 10, "text"}, {0, 2, "te"}, {6, 7, "text te"}, {0, 0, ""}} {
		s, ok := text(ordered.Of("type", "string", "format", "color", "minLength",
			ordered.Number(strconv.Itoa(c.least)), "maxLength", ordered.Number(strconv.Itoa(c.most))))
		if s != c.want || !ok {
			t.Errorf("%d to %d: %q, %v", c.least, c.most, s, ok)
		}
	}
}

// A store that checks formats has no example that it refuses, whether belfry or the schema file made it.
func TestExamplesAreJudgedByFormats(t *testing.T) {
	all := &ordered.Object{}
	for _, name := range format.Names() {
		all.Set("of "+name, ordered.Of("type", "string", "format", name))
	}
	every, err := ordered.Of("type", "object", "properties", all).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	const given = `{"type":"object","required":["at"],"properties":{"at":{"type":"string","format":"date","examples":["%s"]}}}`
	for _, c := range []struct {
		schema  string
		formats bool
		members int // of the example
	}{
		{string(every), true, len(format.Names())},
		{fmt.Sprintf(given, "2026-11-21"), true, 1},
		{fmt.Sprintf(given, "tomorrow"), true, 0},
		{fmt.Sprintf(given, "tomorrow"), false, 1},
	} {
		file := filepath.Join(t.TempDir(), "it.json")
		if err := os.WriteFile(file, []byte(c.schema), 0o600); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("stores: {It: {expose: {}, schema: %q, formats: %v}}", file, c.formats)
		parsed, err := config.Parse("it.yaml", []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		contract, err := Of(parsed, nil, "1", "http://localhost")
		if err != nil {
			t.Fatal(err)
		}
		if it := contract.Store("It"); it.NewExample.Len() != c.members {
			t.Errorf("%s with formats: %v: the example has %d members: %v", c.schema, c.formats, it.NewExample.Len(),
				it.NewExample)
		}
	}
}
