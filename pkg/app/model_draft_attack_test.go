package app

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
)

// said is a value as JSON.
func said(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// A draft that no form makes reads no file either: not by a schema that refers to one, and not by a path in any form.
func TestNoDraftOfTheModelReadsFiles(t *testing.T) {
	a, _ := newAttack(t)
	file := a.path("secret.txt")
	if err := os.Mkdir(a.path("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	a.write("folder/recipe.json", `{"type": "object"}`)
	files := a.files()
	var drafts []*console.ModelDraft
	for _, ref := range []string{file, "file://" + file, "secret.txt", "./secret.txt", "link.txt", "../secret.txt", "#/none",
		"http://127.0.0.1:1/x", "${file:" + file + "}", "recipe.json#/properties/title"} {
		for _, keyword := range []string{"$ref", "$dynamicRef", "$schema"} {
			schema, _ := json.Marshal(map[string]any{"type": "object", keyword: ref, "properties": map[string]any{
				"title": map[string]string{keyword: ref}, "text": map[string]string{}}})
			drafts = append(drafts, &console.ModelDraft{Schemas: map[string]json.RawMessage{"Recipes": schema}})
		}
	}
	for _, path := range []string{file, a.path("link.txt"), "link.txt", "./recipe.json", "folder/../recipe.json",
		"folder/recipe.json", "recipe.json\x00", "${file:" + file + "}", "~/secret.txt"} {
		value, _ := json.Marshal(path)
		for key, value := range map[string]string{"stores/Recipes/schema": string(value), "stores/Cooks/schema": string(value),
			"stores/New": `{"schema": ` + string(value) + `}`, "mailers/new": `{"type": "file", "folder": ` + string(value) + `}`,
			"authentication/providers/apple/privateKeyFile": string(value)} {
			if path == "./recipe.json" && key == "stores/Recipes/schema" {
				continue // what it names already
			}
			drafts = append(drafts, a.set(key, value))
		}
	}
	for _, d := range drafts {
		d.Base = a.base()
		p, err := a.editor().Propose(t.Context(), d)
		if err == nil && len(p.Problems) == 0 {
			t.Errorf("%s is proposed", said(d))
			continue
		}
		if text := said(p) + errs.Messages(err); strings.Contains(text, secretFile) {
			t.Errorf("%s: %s", said(d), text)
		}
	}
	if now := a.files(); !mapsEqual(now, files) {
		t.Error("something was written")
	}
}
