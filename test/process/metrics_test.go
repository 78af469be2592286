package process

import "testing"

// A worker may write an object and acknowledge the event that caused the write
// between two scrapes.
func TestAtRest(t *testing.T) {
	page := func(events, published float64, listeners ...float64) Metrics {
		return Metrics{eventsPending: {0, events}, eventsPublished: {published}, listenerPending: listeners}
	}
	for name, c := range map[string]struct {
		first, second Metrics
		rest          bool
	}{
		"nothing is pending":                   {page(0, 7, 0, 0), page(0, 7, 0, 0), true},
		"a worker is at work":                  {page(0, 7, 0, 1), page(0, 7, 0, 0), false},
		"it has written and is done":           {page(0, 7, 0, 0), page(1, 7, 0, 0), false},
		"and what it has written is published": {page(0, 7, 0, 0), page(0, 8, 1, 0), false},
		"published, and handled":               {page(0, 7, 0, 0), page(0, 8, 0, 0), false},
		"events were published before both":    {page(1, 7, 0, 0), page(0, 7, 0, 0), true},
		"a worker has no consumer yet":         {page(0, 7, 0), page(0, 7, 0), false},
		"a worker has no metric afterwards":    {page(0, 7, 0, 0), page(0, 7, 0), false},
		"the stores could not be counted at all": {page(0, 7, 0, 0),
			Metrics{eventsPublished: {7}, listenerPending: {0, 0}}, false},
	} {
		if err := atRest(c.first, c.second); (err == nil) != c.rest {
			t.Errorf("%s: %v", name, err)
		}
	}
}
