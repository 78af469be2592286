package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rates measures creates and gets, the limit and belfry in turn, in many short
// rounds, so that both see the same noise.
func (b *bench) rates(ctx context.Context, rounds, requests int) (err error) {
	var servers [2]*server // limit, belfry
	for i, serve := range []func(context.Context) (*server, error){b.serveLimit, b.serve} {
		s, err := serve(ctx)
		if err != nil {
			return err
		}
		servers[i] = s
		defer func() { err = errors.Join(err, s.stop()) }()
		if _, err := closedLoop(s.base, connections, requests, create("/items", "warm")); err != nil {
			return err
		}
	}
	creates := &comparison{name: "create, its event published", goal: 0.75}
	chosen := &comparison{name: "create with a uuid that the client chooses, its event published", goal: 0.75}
	gets := &comparison{name: "get", goal: 0.85}
	err = b.profiled(ctx, servers[1], "rates", profileSeconds, func() error {
		for round := range rounds {
			run := fmt.Sprintf("r%d", round)
			for i, c := range []struct {
				of  *comparison
				one func(c *client, i int) error
			}{{creates, createAny("/items")}, {chosen, create("/items", run)}} {
				if err := c.of.measure(servers, func(s *server) (result, error) {
					return timed(func() (result, error) {
						r, err := closedLoop(s.base, connections, requests, c.one)
						if err == nil {
							// A create is complete when its event is published.
							err = published(s, (2*round+i+2)*requests)
						}
						return r, err
					})
				}); err != nil {
					return err
				}
			}
			if err := gets.measure(servers, func(s *server) (result, error) {
				return closedLoop(s.base, connections, requests, get(run, requests))
			}); err != nil {
				return err
			}
		}
		return nil
	})
	creates.print()
	chosen.print()
	gets.print()
	if err != nil {
		return err
	}
	return b.limitRates(ctx, rounds, requests)
}

// timed is a run whose time is that of all that run does.
func timed(run func() (result, error)) (result, error) {
	began := time.Now()
	r, err := run()
	r.took = time.Since(began)
	return r, err
}

const profileSeconds = 20

// comparison compares belfry with the limit over several rounds.
type comparison struct {
	name   string
	names  [2]string // of the servers; none: limit, belfry
	goal   float64   // 0: none
	size   float64   // MB of a request; 0: the rate is in requests
	ratios []float64
	of     [2]turns
}

// turns are what one server did in all rounds.
type turns struct {
	rates     []float64
	latencies []time.Duration
	cpu       time.Duration
	requests  int
}

func (o *turns) add(t turn) {
	o.rates = append(o.rates, t.rate())
	o.latencies = append(o.latencies, t.latencies...)
	o.cpu += t.cpu
	o.requests += t.requests
}

// line describes the turns, with rates in units of so many requests.
func (o *turns) line(unit string, size float64) string {
	slices.Sort(o.latencies)
	return fmt.Sprintf("%7.0f%s (median of %d rounds, %.0f to %.0f)  p50 %s, p99 %s  %.0f µs of processor a request",
		size*median(o.rates), unit, len(o.rates), size*slices.Min(o.rates), size*slices.Max(o.rates),
		short(percentile(o.latencies, 0.5)), short(percentile(o.latencies, 0.99)), micros(o.cpu, o.requests))
}

func (c *comparison) measure(servers [2]*server, one func(s *server) (result, error)) error {
	var turns [2]turn
	for i, s := range servers {
		var err error
		if turns[i], err = takeTurn(s, one); err != nil {
			return err
		}
	}
	c.add(turns)
	return nil
}

// turn is one server's part of a round.
type turn struct {
	result
	cpu time.Duration
}

func takeTurn(s *server, one func(s *server) (result, error)) (turn, error) {
	before := s.cpu()
	r, err := one(s)
	return turn{r, s.cpu() - before}, err
}

// add adds a round.
func (c *comparison) add(turns [2]turn) {
	for i, t := range turns {
		c.of[i].add(t)
	}
	c.ratios = append(c.ratios, turns[1].rate()/turns[0].rate())
}

func (c *comparison) print() {
	if len(c.ratios) == 0 {
		return
	}
	fmt.Printf("%s:\n", c.name)
	unit, size := "/s", 1.0
	if c.size > 0 {
		unit, size = " MB/s", c.size
	}
	if c.names == [2]string{} {
		c.names = [2]string{"limit", "belfry"}
	}
	for i, name := range c.names {
		fmt.Printf("  %-7s %s\n", name, c.of[i].line(unit, size))
	}
	ratio := median(c.ratios)
	fmt.Printf("  ratio   %.0f %% (median of the rounds, %.0f to %.0f", 100*ratio, 100*slices.Min(c.ratios),
		100*slices.Max(c.ratios))
	if c.goal > 0 {
		fmt.Printf("; goal %.0f %%): %s\n", 100*c.goal, verdict(ratio >= c.goal))
	} else {
		fmt.Println(")")
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// published waits until belfry has published this many events since it started,
// or, with 0, until no record has pending events.
func published(s *server, events int) error {
	if s.name == "limit" {
		return nil
	}
	return pollUntil(s, metricsPath, func(body []byte) bool {
		pending, total := 0.0, 0.0
		for line := range strings.Lines(string(body)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			n, _ := strconv.ParseFloat(value, 64)
			switch {
			case strings.HasPrefix(name, "belfry_events_pending{"):
				pending += n
			case name == "belfry_events_published_total":
				total = n
			}
		}
		return events > 0 && total >= float64(events) || events == 0 && pending == 0
	})
}

const metricsPath = "/metrics"

// pollUntil polls a path until the body is right, for two minutes at most.
func pollUntil(s *server, path string, right func(body []byte) bool) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().
		Before(deadline); time.Sleep(max(s.pause, 2*time.Millisecond)) {
		req, err := http.NewRequest(http.MethodGet, s.base+path, nil)
		if err != nil {
			return err
		}
		if path == metricsPath {
			req.Header.Set("Authorization", "Bearer the-metrics-of-load")
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(res.Body)
		if err = errors.Join(err, res.Body.Close()); err != nil {
			return err
		}
		if right(body) {
			return nil
		}
	}
	return fmt.Errorf("GET %s is not right after two minutes", path)
}

const manyChildren = 10_000

// oneParent creates many children into one parent, and deletes the parent.
func (b *bench) oneParent(ctx context.Context) (err error) {
	s, err := b.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err := closedLoop(s.base, 1, 1, create("/parents", "p")); err != nil {
		return err
	}
	child := func(path, run string) func(c *client, i int) error {
		return func(c *client, i int) error {
			return expect(c, 201, "POST", path, object(fmt.Sprintf("%s-%08d", run, i), `"parent":"p-00000000",`))
		}
	}
	if _, err := closedLoop(s.base, connections, manyChildren, child("/loose", "warm")); err != nil {
		return err
	}
	loose, err := closedLoop(s.base, connections, manyChildren, child("/loose", "run"))
	if err != nil {
		return err
	}
	if err := published(s, 0); err != nil {
		return err
	}
	began := time.Now()
	if _, err := closedLoop(s.base, connections, manyChildren, child("/children", "c")); err != nil {
		return err
	}
	replied := time.Since(began)
	if err := pollUntil(s, "/parents/p-00000000",
		func(body []byte) bool { return entries(body) == manyChildren }); err != nil {
		return err
	}
	took := time.Since(began)
	ratio := took.Seconds() / loose.took.Seconds()
	fmt.Printf("%d children without a mapping: %s; into one parent: replies %s, all entries, without duplicates, %s: "+
		"%.1f times (goal 3): %s\n",
		manyChildren, short(loose.took), short(replied), short(took), ratio, verdict(ratio <= 3))
	return b.cascade(s)
}

func (b *bench) cascade(s *server) error {
	began := time.Now()
	if _, err := closedLoop(s.base, 1, 1, func(c *client, _ int) error {
		return expect(c, 204, "DELETE", "/parents/p-00000000", nil)
	}); err != nil {
		return err
	}
	gone, err := closedLoop(s.base, 1, manyChildren, func(c *client, i int) error {
		for {
			status, err := c.do("GET", fmt.Sprintf("/children/c-%08d", i), nil)
			if err != nil || status == 404 {
				return err
			}
			if time.Since(began) > 2*time.Minute {
				return fmt.Errorf("child %d is still there after two minutes", i)
			}
		}
	})
	fmt.Printf("deleting that parent: all %d children deleted after %s\n", gone.requests, short(time.Since(began)))
	return err
}

// entries counts the distinct entries of a parent.
func entries(body []byte) int {
	var parent struct {
		Children []struct{ UUID string }
	}
	if json.Unmarshal(body, &parent) != nil {
		return -1
	}
	seen := map[string]bool{}
	for _, c := range parent.Children {
		seen[c.UUID] = true
	}
	if len(seen) != len(parent.Children) {
		return -1
	}
	return len(seen)
}

// memory measures the start time and the resident memory.
func (b *bench) memory(ctx context.Context, million int) (err error) {
	s, err := b.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	fmt.Printf("ready %s after the start (goal 300ms): %s\n", short(s.ready), verdict(s.ready <= 300*time.Millisecond))
	time.Sleep(3 * time.Second)
	idle := s.resident()
	fmt.Printf("resident when idle: %d MB (goal 60): %s\n", idle>>20, verdict(idle <= 60<<20))
	if million == 0 {
		return nil
	}
	r, err := closedLoop(s.base, connections, million, create("/items", "m"))
	if err != nil {
		return err
	}
	if err := published(s, 0); err != nil {
		return err
	}
	peak := s.status("VmHWM")
	time.Sleep(10 * time.Second)
	fmt.Printf("after %d creates (%.0f/s, p99 %s): resident %d MB, at most %d MB\n",
		million, r.rate(), short(r.percentile(0.99)), s.resident()>>20, peak>>20)
	return nil
}

func short(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d >= 100*time.Millisecond:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(10 * time.Microsecond).String()
	}
}

func micros(d time.Duration, n int) float64 { return float64(d.Microseconds()) / float64(n) }
