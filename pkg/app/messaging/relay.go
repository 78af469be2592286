package messaging

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/internal/count"
	"belfry/internal/prom"
	"belfry/pkg/app/open"
	"belfry/pkg/app/serving"
	"belfry/pkg/outbox"
)

// Relay publishes events of records.
type Relay struct {
	Log         *slog.Logger
	Metrics     prometheus.Registerer
	Unavailable func(ctx context.Context) error // while a backend or the bus is

	outbox *outbox.Relay // nil until it is started
}

// Part returns the functions that start, reload and stop it.
func (r *Relay) Part() serving.Part {
	return serving.Part{Name: "the relay", Stop: r.stop, Check: r.stuck,
		Start: func(_ context.Context, first *serving.Generation) error {
			r.outbox = outbox.NewRelay(outbox.Options{Publisher: first.Bus, Logger: r.Log})
			first.Relay = r.outbox
			r.Metrics.MustRegister(r.collector())
			return nil
		}}
}

// stop publishes pending events. Events that can't be published are not an error: they stay in their records and are
// published after the next start. While the bus or a backend is unavailable, the stop does not use up its whole timeout
// for them.
func (r *Relay) stop(ctx context.Context) error {
	if r.Unavailable(ctx) != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, open.UnavailableStopTimeout)
		defer cancel()
	}
	if err := r.outbox.Close(ctx); err != nil {
		r.Log.Warn("events are not published; they stay in their records until the next start", "error", err)
	}
	return nil
}

// stuck reports that the bus permanently refuses events. Later events are published, so the outbox works.
func (r *Relay) stuck() []string {
	s := r.outbox.Stats()
	if s.Stuck == 0 {
		return nil
	}
	return []string{"the bus refuses " + count.Of(s.Stuck, "event") +
		" for good, which will not reach any listener before it accepts them; they stay in their records. " +
		"The latest: " + s.Reason}
}

var (
	sentDesc   = prometheus.NewDesc("belfry_events_published_total", "Events published.", nil, nil)
	failedDesc = prometheus.NewDesc("belfry_events_failures_total", "Failed attempts to publish.", nil, nil)
	stuckDesc  = prometheus.NewDesc("belfry_events_refused",
		"Events in records that the bus refuses for good, as of the last sweep.", nil, nil)
)

// collector are the metrics of publishing.
func (r *Relay) collector() prometheus.Collector {
	return prom.Computed(func(_ context.Context, values prom.Values) {
		s := r.outbox.Stats()
		values.Counter(sentDesc, float64(s.Published))
		values.Counter(failedDesc, float64(s.Failures))
		values.Gauge(stuckDesc, float64(s.Stuck))
	}, sentDesc, failedDesc, stuckDesc)
}
