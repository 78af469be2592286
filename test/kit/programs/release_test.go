package programs

import (
	"strings"
	"testing"
)

// TestAReleaseThatTheCloneLacks: a shallow clone does not have its commit.
func TestAReleaseThatTheCloneLacks(t *testing.T) {
	root, err := projectRoot()
	if err != nil {
		t.Fatal(err)
	}
	err = checkOut(t.Context(), root, strings.Repeat("0", 39)+"1", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "fetch --unshallow") {
		t.Errorf("the error is %v", err)
	}
}
