package fill

import (
	"testing"
	"time"
)

// A Filler that a later reload replaces may still read stores without objects when the state lacks their works already.
func TestAWorkThatWasRemovedIsNotSkipped(t *testing.T) {
	if (&state{}).skip("unique of Books", "isbn", time.Now()) {
		t.Error("the state has changed")
	}
}
