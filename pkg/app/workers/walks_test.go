package workers

import (
	"fmt"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/walk"
)

// What is repaired is not complete, although arrays count as filled meanwhile.
func TestWalksHaveMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := &Walks{Metrics: registry, Of: []func() []walk.Status{
		func() []walk.Status {
			return []walk.Status{
				{Kind: walk.Mapping, Name: "A in B.as", Filled: true, Repairing: true, Total: 9,
					Counts: walk.Counts{Done: 4, Failed: 1}},
				{Kind: walk.Unique, Name: "A"},
			}
		},
		func() []walk.Status { return []walk.Status{{Kind: walk.Search, Name: "A", Filled: true}} },
	}}
	if err := w.Part().Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		name   string
		values map[string]float64
	}{
		{"belfry_walk_complete", map[string]float64{"mapping A in B.as": 0, "unique A": 0, "search A": 1}},
		{"belfry_walk_done_objects", map[string]float64{"mapping A in B.as": 4, "unique A": 0, "search A": 0}},
		{"belfry_walk_failed_objects", map[string]float64{"mapping A in B.as": 1, "unique A": 0, "search A": 0}},
		{"belfry_walk_objects", map[string]float64{"mapping A in B.as": 9, "unique A": 0, "search A": 0}},
	} {
		got := map[string]float64{}
		for _, m := range families[i].Metric {
			got[m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m.GetGauge().GetValue()
		}
		if families[i].GetName() != want.name || fmt.Sprint(got) != fmt.Sprint(want.values) {
			t.Errorf("%s is %v, expected %s to be %v", families[i].GetName(), got, want.name, want.values)
		}
	}
}
