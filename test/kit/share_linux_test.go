package kit

import "testing"

func TestShareOf(t *testing.T) {
	for loadavg, want := range map[string]float64{
		"0.20 0.18 0.12 1/80 11206\n":     1,
		"2.00 2.00 2.00 2/80 11206\n":     1,
		"30.00 30.00 30.00 40/80 11206\n": 0.05,
		"":                                1,
		"0.20 0.18 0.12 x/80 11206\n":     1,
	} {
		if got := shareOf(loadavg, 2); got != want {
			t.Errorf("%q: %v, want %v", loadavg, got, want)
		}
	}
}
