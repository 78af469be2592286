package main

import "testing"

func TestGrowthIsTheInverseOfTheRatiosOfRates(t *testing.T) {
	got := growthOf("get", 100_000, []float64{0.5, 0.8, 2})
	if want := (growthPoint{"growth", "file", "get", 100_000, growthSmall, 1.25, 0.5, 2}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
