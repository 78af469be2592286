package texts

import (
	"slices"
	"strings"
	"testing"
)

// Each embedded text is there in both languages, with the same placeholders. Those of methods are in their packages.
func TestTheEmbeddedLanguagesHaveTheSameTexts(t *testing.T) {
	var none *Catalog
	english, german := none.Of("en"), none.Of("de")
	for _, id := range english.IDs() {
		if !german.Own(id) {
			t.Errorf("there is no German %s", id)
		}
		if a, b := english.texts[id].names(), german.texts[id].names(); !slices.Equal(a, b) {
			t.Errorf("%s has the placeholders %v in English and %v in German", id, a, b)
		}
	}
	for _, id := range german.IDs() {
		if !english.Own(id) && !strings.HasPrefix(id, "method.") {
			t.Errorf("there is no English %s", id)
		}
	}
}
