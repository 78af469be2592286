// Package prom registers metrics: of parts that are made again while the process runs, and values that are computed at
// each scrape.
package prom

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register adds a collector to a registry, and returns it; or the one of the same name that
// was added before, which then continues: a part that replaces another continues its counters.
// It panics where the name belongs to a collector of another kind.
func Register[C prometheus.Collector](r prometheus.Registerer, c C) C {
	err := r.Register(c)
	var known prometheus.AlreadyRegisteredError
	if errors.As(err, &known) {
		if same, ok := known.ExistingCollector.(C); ok {
			return same
		}
	}
	if err != nil {
		panic(err)
	}
	return c
}

// Replace adds a collector in place of the one of the same name, if there is one: for values
// that are those of the part that is current.
func Replace(r prometheus.Registerer, c prometheus.Collector) {
	r.Unregister(c)
	r.MustRegister(c)
}
