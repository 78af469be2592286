package listener

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts and times the attempts of a listener by event and outcome. It
// may be asked for again for the same listener.
func Metrics(registry prometheus.Registerer, listener string) Middleware {
	took := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:        "belfry_listener_attempt_seconds",
		Help:        "Time of a listener's attempts at an event.",
		ConstLabels: prometheus.Labels{"listener": listener},
		Buckets:     prometheus.ExponentialBuckets(0.0005, 4, 10),
	}, []string{"event", "outcome"})
	var there prometheus.AlreadyRegisteredError
	switch err := registry.Register(took); {
	case errors.As(err, &there):
		took = there.ExistingCollector.(*prometheus.HistogramVec) //nolint:forcetypeassert // it is equal
	case err != nil:
		panic(err) // another metric has the name
	}
	return func(next Handler) Handler {
		return func(ctx context.Context, e *Event) error {
			began := time.Now()
			err := next(ctx, e)
			outcome := "done"
			switch {
			case IsPermanent(err):
				outcome = "permanent"
			case err != nil:
				outcome = "failed"
			}
			took.WithLabelValues(string(e.Event), outcome).Observe(time.Since(began).Seconds())
			return err
		}
	}
}
