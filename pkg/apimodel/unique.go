package apimodel

import "strings"

// Uniqueness describes the unique values of a store; "" for none.
func (s *Store) Uniqueness() string {
	var all []string
	for _, properties := range s.Unique {
		one := "`" + strings.Join(properties, "` and `") + "`"
		if len(properties) > 1 {
			one += " together"
		}
		all = append(all, one)
	}
	if all == nil {
		return ""
	}
	return " No two objects have the same " + strings.Join(all, ", or the same ") + ": 409 with the type `taken`, whose `errors` name them."
}
