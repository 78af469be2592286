package config

import "belfry/config/decode"

// Search is what lists find objects by the words of.
type Search struct {
	// none: the store has no index of its text
	Fields []string `key:"fields" list:"names" is:"textField" required:"the properties whose text is searched"`
	// of the text, whose words are found by their stems; "" for words as they are
	Language string `key:"language" is:"one ar cjk da de en es fi fr hu it nl no pt ro ru sv tr"`
	// what is found is ranked by how rare its words are in all texts, whoever may read these
	Shared bool `key:"statistics" is:"either own shared"`
}

// Validate refuses too many properties, and none.
func (x *Search) Validate(s *decode.Section) {
	switch n := len(x.Fields); {
	case n > maxSearchFields:
		s.Problem("fields", "expected at most %d properties", maxSearchFields)
	case n == 0 && s.Has("fields"):
		s.Problem("fields", "expected at least one property")
	}
}
