package process

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/test/kit"
)

// Metric sums a metric of a server over its labels.
func (s *Server) Metric(name string) (float64, error) {
	all, err := s.scrape()
	if err == nil && len(all[name]) == 0 {
		err = fmt.Errorf("no metric %s", name)
	}
	return all.Sum(name), err
}

// Metrics holds the values of a server by name, one for each set of labels.
type Metrics map[string][]float64

// Sum is the sum of a metric over its labels.
func (m Metrics) Sum(name string) (sum float64) {
	for _, v := range m[name] {
		sum += v
	}
	return sum
}

// scraper asks for metrics as they are: a compressed page costs the server more than the
// metrics themselves.
var scraper = &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}}

// scrape reads all metrics.
func (s *Server) scrape() (Metrics, error) {
	res, err := scraper.Get(s.Metrics)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	return ReadMetrics(res.Body)
}

// ReadMetrics reads all metrics of a page in Prometheus' text format.
func ReadMetrics(page io.Reader) (Metrics, error) {
	all := Metrics{}
	lines := bufio.NewScanner(page)
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
		all[line[:end]] = append(all[line[:end]], v)
	}
	return all, lines.Err()
}

// Idle waits until every event is published and every worker has handled all.
func (s *Server) Idle() error {
	var first Metrics
	return kit.Await(2*time.Minute, func() error {
		second, err := s.scrape()
		if err != nil {
			return err
		}
		err = atRest(first, second)
		first = second
		return err
	})
}

// Filled waits until the arrays of all mappings are filled from the objects that there were before them. A belfry does
// so when it starts for the first time, too, and writes arrays beside the workers meanwhile.
func (s *Server) Filled() error {
	const filled = "belfry_mapping_filled" // 1 for each mapping that is
	return kit.Await(2*time.Minute, func() error {
		all, err := s.scrape()
		if err == nil && (len(all[filled]) == 0 || slices.Contains(all[filled], 0)) {
			err = fmt.Errorf("%s is %v", filled, all[filled])
		}
		return err
	})
}

// The metrics of pending work. A server omits a metric that it can't determine.
const (
	eventsPending   = "belfry_events_pending" // in each store
	eventsPublished = "belfry_events_published_total"
	listenerPending = "belfry_listener_pending" // by mapping, and by cascade
	workers         = 2
)

// atRest reports the pending work according to two successive scrapes. A scrape is
// no snapshot. If the workers were idle in the first one and no event is pending in
// the second, then their last writes have no further effect, unless an event was
// published in between.
func atRest(first, second Metrics) error {
	if len(first[listenerPending]) < workers || len(second[listenerPending]) < workers ||
		len(second[eventsPending]) == 0 {
		return errors.New("a metric is missing")
	}
	for name, n := range map[string]float64{
		listenerPending: first.Sum(listenerPending), eventsPending: second.Sum(eventsPending),
		eventsPublished + " since a moment ago": second.Sum(eventsPublished) - first.Sum(eventsPublished),
	} {
		if n != 0 {
			return fmt.Errorf("%s is %v", name, n)
		}
	}
	return nil
}
