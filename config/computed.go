package config

import "slices"

// maxComputed is how many computed properties a store has at most: each write evaluates all of them.
const maxComputed = 32

// readComputed reads the expressions of computed properties.
func readComputed(s *section) map[string]string {
	var all map[string]string
	for _, name := range s.keys {
		property, err := parseOwnProperty(name)
		if err != nil {
			s.problem(name, "%v", err)
		}
		expression := ""
		decode(s, name, &expression, parseNonEmpty)
		if all == nil {
			all = map[string]string{}
		}
		if err == nil {
			all[property] = expression
		}
	}
	if len(all) > maxComputed {
		s.doc.problem(s.path, "expected at most %d properties", maxComputed)
	}
	return all
}

// checkComputed refuses computed properties that something else sets, and those of stores whose objects belfry manages.
func (c *Config) checkComputed(st *Store, path string, arrays arrays) {
	if len(st.Computed) > 0 && (slices.Contains(internalStores(), st.Name) || st.Name == c.Authentication.IdentStore) {
		c.doc.problem(path, "is not for a store whose objects belfry manages")
	}
	for _, property := range names(st.Computed) {
		at := join(path, property)
		switch {
		case slices.Contains(st.Reserved, property) || property == "password" && st.Name == c.Authentication.UserStore:
			c.doc.problem(at, "belfry alone sets it; choose another property")
		case arrays[st.Name][property] != "":
			c.doc.problem(at, "is the array of a mapping, which alone writes it; choose another property")
		case property == st.Owner:
			c.doc.problem(at, "is the owner, which the server sets; choose another property")
		case slices.Contains(st.ReadOnly, property):
			c.doc.problem(at, "is in readOnly as well; clients never set a computed property, so remove it there")
		case st.Fields[property].Write != "":
			c.doc.problem(at, "has a write rule, and clients never set a computed property; remove the rule")
		}
	}
}
