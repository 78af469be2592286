package kit

import "testing"

func TestNoPortIsGivenTwice(t *testing.T) {
	given := map[int]bool{}
	for range 500 {
		port := FreePort(t)
		if given[port] {
			t.Fatalf("%d is given twice", port)
		}
		given[port] = true
	}
}
