package dictionaries_test

import (
	"testing"

	"github.com/trustelem/zxcvbn"

	"belfry/pkg/account/weak/dictionaries"
)

// The library finds no word of its lists before they are loaded, and all of them afterwards.
func TestTheWordsAreLoadedWhenTheyAreNeeded(t *testing.T) {
	words := []struct{ word, list string }{
		{"password", "passwords"}, {"trustno1", "passwords"}, {"elizabeth", "female_names"}, {"PASSWORD", "passwords"},
	}
	found := func(word string) (list string) {
		for _, m := range zxcvbn.PasswordStrength(word, nil).Sequence {
			if m.Pattern == "dictionary" {
				list = m.DictionaryName
			}
		}
		return list
	}
	for _, w := range words {
		if list := found(w.word); list != "" {
			t.Errorf("%s is found before the words are loaded, in %s", w.word, list)
		}
	}
	for range 2 {
		dictionaries.Load()
		for _, w := range words {
			if list := found(w.word); list != w.list {
				t.Errorf("%s is found in %q, not in %s", w.word, list, w.list)
			}
		}
	}
}
