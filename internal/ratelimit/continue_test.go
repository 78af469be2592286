package ratelimit

import "testing"

func TestLimitsThatAreTheSameContinue(t *testing.T) {
	t.Parallel()
	var none *Clients
	c := none.Continue(5)
	if c == nil || c.PerSecond() != 5 || c.Continue(5) != c || c.Continue(0) != nil || none.Continue(0) != nil {
		t.Error(c)
	}
	if other := c.Continue(6); other == c || other.PerSecond() != 6 {
		t.Error(other)
	}
}
