package prom

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

func TestACounterContinues(t *testing.T) {
	r := prometheus.NewRegistry()
	first := Register(r, prometheus.NewCounter(prometheus.CounterOpts{Name: "rings", Help: "x"}))
	first.Inc()
	second := Register(r, prometheus.NewCounter(prometheus.CounterOpts{Name: "rings", Help: "x"}))
	second.Inc()
	all, err := r.Gather()
	if err != nil || len(all) != 1 || all[0].GetMetric()[0].GetCounter().GetValue() != 2 {
		t.Errorf("%v, %v", all, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a gauge took the name of a counter")
		}
	}()
	Register(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "rings", Help: "x"}, nil))
}

func TestAValueIsThatOfTheCurrentPart(t *testing.T) {
	r := prometheus.NewRegistry()
	for n := range 2 {
		Replace(r, prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "part", Help: "x"},
			func() float64 { return float64(n) }))
	}
	all, err := r.Gather()
	if err != nil || len(all) != 1 || all[0].GetMetric()[0].GetGauge().GetValue() != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

func TestValuesAreComputedAtEachScrape(t *testing.T) {
	r, n := prometheus.NewRegistry(), 0
	now := prometheus.NewDesc("now", "x", []string{"bell"}, nil)
	total := prometheus.NewDesc("total", "x", nil, nil)
	r.MustRegister(Computed(func(ctx context.Context, values Values) {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("a value may take forever")
		}
		n++
		values.Gauge(now, OneIf(n == 2), "a")
		values.Counter(total, float64(n))
	}, now, total))
	for i, want := range []float64{0, 1} {
		all, err := r.Gather()
		if err != nil || len(all) != 2 || all[0].GetMetric()[0].GetGauge().GetValue() != want ||
			all[1].GetMetric()[0].GetCounter().GetValue() != float64(i+1) {
			t.Errorf("%v, %v, want %v", all, err, want)
		}
	}
}
