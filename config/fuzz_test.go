package config

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// FuzzParse checks that any input gives either a complete configuration or
// problems of one line each.
func FuzzParse(f *testing.F) {
	for _, file := range []string{"belfry.yaml", "testdata/full.yaml"} {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, text := range []string{
		"", "{}", "stores: [a]", "a: &a [*a]", "<<: {a: b}", "--- a\n--- b", "? [a]\n: b", "x: ${A:-b}${C",
		"\ufeff{\"listen\": 1}", "stores: {A: {map: {A: {key: k, target: t}}}}", bomb(),
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("belfry.yaml", data, environment)
		if err == nil {
			if c.Listen == "" || c.BaseURL == "" || c.Stores["Sessions"] == nil || c.Mailers["default"].Type == "" {
				t.Errorf("incomplete: %+v", c)
			}
			return
		}
		var problems Problems
		if !errors.As(err, &problems) || len(problems) == 0 {
			t.Fatalf("got a %T", err)
		}
		for _, p := range problems {
			if p.Message == "" || strings.ContainsAny(p.Error(), "\n\r") {
				t.Errorf("not a line: %q", p.Error())
			}
		}
	})
}
