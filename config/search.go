package config

// maxSearchFields is how many properties of a store are searched at most: each has an index of its own.
const maxSearchFields = 8

// Search is what lists find objects by the words of.
type Search struct {
	Fields   []string // none: the store has no index of its text
	Language string   // of the text; "" for words as they are
	Shared   bool     // what is found is ranked by how rare its words are in all texts, whoever may read these
}

// What decides the order of what is found, where the rule of lists depends on the object.
const (
	statisticsOwn    = "own"
	statisticsShared = "shared"
)

// searchLanguages are those whose words are found by their stems.
func searchLanguages() []string {
	return []string{"ar", "cjk", "da", "de", "en", "es", "fi", "fr", "hu", "it", "nl", "no", "pt", "ro", "ru", "sv", "tr"}
}

func readSearch(s *section) Search {
	var search Search
	if len(s.keys) == 0 {
		return search
	}
	s.require("fields", "the properties whose text is searched")
	search.Fields = s.properties("fields", parseTextField)
	switch n := len(search.Fields); {
	case n > maxSearchFields:
		s.problem("fields", "expected at most %d properties", maxSearchFields)
	case n == 0 && s.has("fields"):
		s.problem("fields", "expected at least one property")
	}
	decode(s, "language", &search.Language, oneOf(searchLanguages()...))
	statistics := statisticsOwn
	decode(s, "statistics", &statistics, oneOf(statisticsOwn, statisticsShared))
	search.Shared = statistics == statisticsShared
	s.rejectUnknown()
	return search
}

// parseTextField accepts a property, or one of the object in it.
func parseTextField(text string) (string, error) { return text, checkNested(text, parseOwnProperty) }

// checkSearch refuses properties whose text must not be found.
func (c *Config) checkSearch(st *Store, path string) {
	if len(st.Search.Fields) > 0 && (Internal(st.Name) || st.Name == c.Authentication.IdentStore) {
		c.doc.problem(path, "is not for a store whose objects belfry manages")
	}
	for _, field := range st.Search.Fields {
		if property := topProperty(field); st.NeverRead(property) {
			at := path + ".fields"
			c.doc.problem(at, "%s is private in %s; what is found would reveal its text", c.doc.display(at, property), st.Name)
		}
	}
}
