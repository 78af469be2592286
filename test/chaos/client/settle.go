package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"belfry/test/chaos/history"
	"belfry/test/process"
)

// Settle waits until nothing is pending: no request is in flight, no event is unpublished, every worker has handled
// every event, and nothing that is derived from existing objects is being filled. It returns an error when ctx ends first.
func (p *Pool) Settle(ctx context.Context, l *Log) error {
	var last uint64
	idle := false // the observation before was idle
	for limit := 5 * time.Second; ; {
		now, err := p.observe(ctx, l, limit)
		if err == nil && idle && now == last {
			return nil
		}
		if errors.Is(err, context.DeadlineExceeded) {
			limit = min(2*limit, time.Minute) // a reply was lost, or the machine is slow
		}
		idle, last = err == nil, now
		select {
		case <-ctx.Done():
			return fmt.Errorf("work is still pending: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// observe returns the last sequence of the log, and an error while anything is pending. An observation is
// no snapshot: a worker may have written an object and acknowledged the event that caused the write
// between two of its reads. Workers are read first: if they were idle and then no event is pending, their
// last writes have no further effect unless the log has grown.
func (p *Pool) observe(ctx context.Context, l *Log, limit time.Duration) (last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if last, err = l.handled(ctx); err != nil {
		return 0, err
	}
	for _, front := range p.Deployment.Fronts {
		m, err := p.metrics(ctx, front)
		if err != nil {
			return 0, err
		}
		// A process leaves out the stores that it can't read.
		if stores, pending := len(m["belfry_events_pending"]),
			m.Sum("belfry_events_pending"); stores < len(history.All()) || pending > 0 {
			return 0, fmt.Errorf("%v events of %d stores are not published, says %s", pending, stores, front)
		}
		if flying := m.Sum("belfry_http_requests_in_flight"); flying > 1 { // one is that of the metrics
			return 0, fmt.Errorf("%v requests are in flight at %s", flying, front)
		}
	}
	for _, process := range slices.Concat(p.Deployment.Fronts, p.Deployment.Workers) {
		m, err := p.metrics(ctx, process)
		if err != nil {
			return 0, err
		}
		for _, name := range []string{"belfry_mapping_filled", "belfry_computed_filled", "belfry_copies_filled"} {
			if filled, all := m.Sum(name), float64(len(m[name])); filled < all {
				return 0, fmt.Errorf("%s: %v of %v are 1, says %s", name, filled, all, process)
			}
		}
	}
	return last, nil
}

func (p *Pool) metrics(ctx context.Context, front string) (process.Metrics, error) {
	r, err := p.http.send(ctx, http.MethodGet, front+"/metrics",
		http.Header{"Authorization": {"Bearer " + history.MetricsToken}}, nil)
	if err != nil || r.status != http.StatusOK {
		return nil, statusError(r, err)
	}
	return process.ReadMetrics(bytes.NewReader(r.body))
}

// Alerts sums belfry_listener_missed over the fronts. known is false where no front watches the log.
func (p *Pool) Alerts(ctx context.Context) (sum float64, known bool, err error) {
	for _, front := range p.Deployment.Fronts {
		m, err := p.metrics(ctx, front)
		if err != nil {
			return 0, false, err
		}
		sum, known = sum+m.Sum("belfry_listener_missed"), known || len(m["belfry_listener_missed"]) > 0
	}
	return sum, known, nil
}
