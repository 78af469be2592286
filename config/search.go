package config

import "belfry/config/decode"

// Search selects the text in which lists search for words.
type Search struct {
	// none: the store has no index of its text
	Fields []string `key:"fields" list:"names" is:"textField" required:"the properties whose text is searched"`
	// of the text, whose words are found by their stems; "" for words as they are
	Language string `key:"language" is:"one ar cjk da de en es fi fr hu it nl no pt ro ru sv tr"`
	// results are ranked by how rare their words are in all texts, including those that the caller may not read
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
