package metrics_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/listener/metrics"
)

func TestMetricsCountByEventAndOutcome(t *testing.T) {
	registry := prometheus.NewRegistry()
	e := &listener.Event{Envelope: event.Envelope{ID: "e1", Event: event.StoreSaved, Store: "Books", UUID: "u"}}
	returns := func(err error) listener.Handler {
		return func(context.Context, *listener.Event) error { return err }
	}
	observe := metrics.Middleware(registry, "audit")
	for _, err := range []error{nil, nil, errors.New("not now"), listener.Permanent(errors.New("never"))} {
		_ = observe(returns(err))(t.Context(), e)
	}
	_ = metrics.Middleware(registry, "audit")(returns(nil))(t.Context(), e) // a second consumer of the same listener
	_ = metrics.Middleware(registry, "other")(returns(nil))(t.Context(), e)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, m := range families[0].GetMetric() {
		labels := []string{}
		for _, l := range m.GetLabel() {
			labels = append(labels, l.GetValue())
		}
		got[strings.Join(labels, " ")] = m.GetHistogram().GetSampleCount()
	}
	want := map[string]uint64{
		"Store.Saved audit done": 3, "Store.Saved audit failed": 1, "Store.Saved audit permanent": 1,
		"Store.Saved other done": 1,
	}
	for labels, n := range want {
		if got[labels] != n {
			t.Errorf("%s: %d, want %d (of %v)", labels, got[labels], n, got)
		}
	}
}
