package client

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"belfry/test/chaos/history"
)

// Settle waits until nothing is pending: no request is in flight, no event is unpublished, and every
// worker has handled every event. It returns an error when ctx ends first.
func (p *Pool) Settle(ctx context.Context, l *Log) error {
	var last uint64
	idle := false // the observation before was idle
	for {
		now, err := p.observe(ctx, l)
		if err == nil && idle && now == last {
			return nil
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
func (p *Pool) observe(ctx context.Context, l *Log) (last uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
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
		if n := m["belfry_events_pending"]; n.count < len(history.All()) || n.sum > 0 {
			return 0, fmt.Errorf("%v events of %d stores are not published, says %s", n.sum, n.count, front)
		}
		if flying := m["belfry_http_requests_in_flight"].sum; flying > 1 { // one is that of the metrics
			return 0, fmt.Errorf("%v requests are in flight at %s", flying, front)
		}
	}
	return last, nil
}

// metric is the sum of a metric over its labels, and how many there are.
type metric struct {
	sum   float64
	count int
}

func (p *Pool) metrics(ctx context.Context, front string) (map[string]metric, error) {
	r, err := p.http.send(ctx, http.MethodGet, front+"/metrics", nil, nil)
	if err != nil || r.status != http.StatusOK {
		return nil, statusError(r, err)
	}
	all := map[string]metric{}
	lines := bufio.NewScanner(bytes.NewReader(r.body))
	for lines.Scan() {
		line := lines.Text()
		end := strings.IndexAny(line, "{ ")
		if end < 0 || line[0] == '#' {
			continue
		}
		v, err := strconv.ParseFloat(line[strings.LastIndexByte(line, ' ')+1:], 64)
		if err != nil {
			return nil, err
		}
		m := all[line[:end]]
		all[line[:end]] = metric{m.sum + v, m.count + 1}
	}
	return all, lines.Err()
}
