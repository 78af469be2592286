package views

import (
	"testing"

	"belfry/pkg/search"
	"belfry/pkg/walk"
)

// TestTheConsoleSaysWhichIndexAnswers: one that is built anew may take hours, and answers as the former one does until
// then.
func TestTheConsoleSaysWhichIndexAnswers(t *testing.T) {
	for want, of := range map[string]search.Status{
		"is being built; 7 objects read": {Status: walk.Status{Counts: walk.Counts{Done: 7}}},
		"9 objects, 1 event behind the log": {Ready: true, Objects: 9, Behind: 1,
			Status: walk.Status{Counts: walk.Counts{Done: 7}}},
		"9 objects, 0 events behind the log; a former one, in use until a new one is built; 7 " +
			"objects read": {Ready: true, Former: true, Objects: 9, Status: walk.Status{Counts: walk.Counts{Done: 7}}},
	} {
		if got := saysOfIndex(of); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
}
