package history

import "strings"

// The last release has neither references nor what is derived by them, nor aggregates. Its tests have clients, checks
// and a configuration without these.

var released bool // set before the first client

// Release restricts all stores to what the last release has, and returns the configuration with these. It is called
// before anything else.
func Release() (configuration string) {
	released = true
	text := strings.NewReplacer(smallAggregates, "", ratings, "", shelves, "").Replace(Stores)
	var kept []string
	for line := range strings.Lines(text) {
		if word := strings.TrimSpace(line); !strings.HasPrefix(word, "references:") && !strings.HasPrefix(word, "copies:") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

func releasedStores() (all []Store) {
	for _, s := range stores() {
		s.Required, s.Cleared, s.Clears, s.Copies, s.Aggregates = false, "", "", nil, nil
		if s.Name != Ratings && s.Name != Shelves && s.Name != Boxes && s.Name != Lids {
			all = append(all, s)
		}
	}
	return all
}

// Workers returns the listeners that keep what is derived from objects, which belfry repairs after a loss of the log.
func Workers() []string {
	if released {
		return []string{"mapping", "cascade"}
	}
	return []string{"mapping", "cascade", "copy", "aggregate"}
}
