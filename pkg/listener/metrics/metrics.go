// Package metrics counts and times a listener's attempts for Prometheus. It is
// apart from package listener so that a listener without metrics does not contain
// the Prometheus client.
package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/pkg/listener"
)

// Middleware observes the histogram belfry_listener_attempt_seconds, by event and
// outcome (done, failed, permanent). Several calls for the same registry and
// listener share it. It panics when the registry has another metric of that name.
func Middleware(registry prometheus.Registerer, name string) listener.Middleware {
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:        "belfry_listener_attempt_seconds",
		Help:        "Time of a listener's attempts at an event.",
		ConstLabels: prometheus.Labels{"listener": name},
		Buckets:     prometheus.ExponentialBuckets(0.0005, 4, 10),
	}, []string{"event", "outcome"})
	var registered prometheus.AlreadyRegisteredError
	switch err := registry.Register(seconds); {
	case errors.As(err, &registered):
		seconds = registered.ExistingCollector.(*prometheus.HistogramVec) //nolint:forcetypeassert // it is equal
	case err != nil:
		panic(err)
	}
	return func(next listener.Handler) listener.Handler {
		return func(ctx context.Context, e *listener.Event) error {
			began := time.Now()
			err := next(ctx, e)
			outcome := "done"
			switch {
			case listener.IsPermanent(err):
				outcome = "permanent"
			case err != nil:
				outcome = "failed"
			}
			seconds.WithLabelValues(string(e.Event), outcome).Observe(time.Since(began).Seconds())
			return err
		}
	}
}
