package main

import "slices"

// growthPoint is how much longer an operation takes with many objects than with few. A file of -json has all of a run.
type growthPoint struct {
	Part      string  `json:"part"`      // growth
	Backend   string  `json:"backend"`   // file
	Operation string  `json:"operation"` // as it is printed
	Objects   int     `json:"objects"`   // in the store
	Beside    int     `json:"beside"`    // objects in the store that it is compared with
	Times     float64 `json:"times"`     // as long as there: the median of the rounds
	Least     float64 `json:"least"`     // of a round
	Most      float64 `json:"most"`      // of a round
}

// growthOf is an operation whose rates with many objects have these ratios to those with few, one for each round.
func growthOf(operation string, objects int, ratios []float64) growthPoint {
	return growthPoint{
		Part: "growth", Backend: "file", Operation: operation, Objects: objects, Beside: growthSmall,
		Times: 1 / median(ratios), Least: 1 / slices.Max(ratios), Most: 1 / slices.Min(ratios),
	}
}
