package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// rates measures creates and gets, belfry and the limit in turn.
func (b *bench) rates(ctx context.Context, rounds, requests int) error {
	var creates, gets []float64
	for round := range rounds {
		limit, err := b.measure(ctx, b.serveLimit, requests)
		if err != nil {
			return err
		}
		ours, err := b.measure(ctx, b.serve, requests)
		if err != nil {
			return err
		}
		creates = append(creates, ours.create.rate()/limit.create.rate())
		gets = append(gets, ours.get.rate()/limit.get.rate())
		fmt.Printf("round %d            limit/s   p99       belfry/s  p99       ratio  processor µs a request: limit, belfry\n", round+1)
		line := func(name string, l, o result, ratio float64, lcpu, ocpu time.Duration) {
			fmt.Printf("  %-15s %8.0f  %-9s %8.0f  %-9s %4.0f %%  %.0f, %.0f\n", name, l.rate(), short(l.percentile(0.99)),
				o.rate(), short(o.percentile(0.99)), 100*ratio, micros(lcpu, l.requests), micros(ocpu, o.requests))
		}
		line("create", limit.create, ours.create, creates[round], limit.createCPU, ours.createCPU)
		line("get", limit.get, ours.get, gets[round], limit.getCPU, ours.getCPU)
	}
	slices.Sort(creates)
	slices.Sort(gets)
	create, get := creates[len(creates)/2], gets[len(gets)/2]
	fmt.Printf("create, its event published: %.0f %% of the limit (goal 60 %%): %s\n", 100*create, verdict(create >= 0.60))
	fmt.Printf("get: %.0f %% of the limit (goal 85 %%): %s\n", 100*get, verdict(get >= 0.85))
	return nil
}

type rates struct {
	create, get       result
	createCPU, getCPU time.Duration
}

func (b *bench) measure(ctx context.Context, serve func(context.Context) (*server, error), requests int) (r rates, err error) {
	s, err := serve(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err = closedLoop(s.base, connections, requests/10, create("/items", "warm")); err != nil {
		return r, err
	}
	before := s.cpu()
	began := time.Now()
	err = b.profiled(ctx, s, "create", 5, func() (err error) {
		r.create, err = closedLoop(s.base, connections, requests, create("/items", "run"))
		return err
	})
	if err != nil {
		return r, err
	}
	// A create counts when its event is on the bus as well.
	if err = published(s); err != nil {
		return r, err
	}
	r.create.took = time.Since(began)
	r.createCPU = s.cpu() - before
	before = s.cpu()
	err = b.profiled(ctx, s, "get", 2, func() (err error) {
		r.get, err = closedLoop(s.base, connections, requests, get("/items", "run", requests))
		return err
	})
	r.getCPU = s.cpu() - before
	return r, err
}

// published waits until belfry has published every event.
func published(s *server) error {
	if s.name == "limit" {
		return nil
	}
	return until(s, "/metrics", func(body []byte) bool {
		for line := range strings.Lines(string(body)) {
			if strings.HasPrefix(line, "belfry_events_pending{") && !strings.HasSuffix(strings.TrimSpace(line), " 0") {
				return false
			}
		}
		return bytes.Contains(body, []byte("belfry_events_pending{"))
	})
}

// until asks again and again until the answer is right, for two minutes at
// most.
func until(s *server, path string, right func(body []byte) bool) error {
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		res, err := http.Get(s.base + path)
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

// Of the lag's load.
const (
	lagRate    = 2000 // creates a second
	lagTime    = 10 * time.Second
	lagParents = 200
	lagSample  = 20 // one of so many creates is followed
	lagPoll    = 500 * time.Microsecond
)

// lag measures how long after the reply an entry is seen in its target.
func (b *bench) lag(ctx context.Context) (err error) {
	s, err := b.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err := closedLoop(s.base, connections, lagParents, create("/parents", "p")); err != nil {
		return err
	}
	var mu sync.Mutex
	var lags, late []time.Duration
	total := int(lagRate * lagTime.Seconds())
	began := time.Now()
	one := func(c *client, i int) error {
		due := began.Add(time.Duration(i) * time.Second / lagRate)
		time.Sleep(time.Until(due))
		parent := fmt.Sprintf("p-%08d", i%lagParents)
		uuid := fmt.Sprintf("c-%08d", i)
		behind := time.Since(due)
		if err := expect(c, 201, "POST", "/children", object(uuid, `"parent":"`+parent+`",`)); err != nil {
			return err
		}
		replied := time.Now()
		if i%lagSample != 0 {
			return nil
		}
		for entry := []byte(`{"uuid":"` + uuid + `"`); ; {
			if err := expect(c, 200, "GET", "/parents/"+parent, nil); err != nil {
				return err
			}
			if bytes.Contains(c.body, entry) {
				break
			}
			time.Sleep(lagPoll)
			if time.Since(replied) > time.Minute {
				return fmt.Errorf("no entry of %s in %s after a minute", uuid, parent)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		lags, late = append(lags, time.Since(replied)), append(late, behind)
		return nil
	}
	err = b.profiled(ctx, s, "lag", int(lagTime.Seconds()), func() error {
		_, err := closedLoop(s.base, connections, total, one)
		return err
	})
	if err != nil {
		return err
	}
	rate := float64(total) / time.Since(began).Seconds()
	slices.Sort(lags)
	slices.Sort(late)
	p50, p99 := percentile(lags, 0.5), percentile(lags, 0.99)
	fmt.Printf("mapping lag at %.0f creates/s over %d parents, %d samples: p50 %s (goal 5ms): %s, p99 %s (goal 50ms): %s; the generator was behind by p99 %s\n",
		rate, lagParents, len(lags), short(p50), verdict(p50 <= 5*time.Millisecond), short(p99), verdict(p99 <= 50*time.Millisecond), short(percentile(late, 0.99)))
	return nil
}

const crowd = 10_000

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
	if _, err := closedLoop(s.base, connections, crowd, child("/loose", "warm")); err != nil {
		return err
	}
	loose, err := closedLoop(s.base, connections, crowd, child("/loose", "run"))
	if err != nil {
		return err
	}
	if err := published(s); err != nil {
		return err
	}
	began := time.Now()
	if _, err := closedLoop(s.base, connections, crowd, child("/children", "c")); err != nil {
		return err
	}
	replied := time.Since(began)
	if err := until(s, "/parents/p-00000000", func(body []byte) bool { return entries(body) == crowd }); err != nil {
		return err
	}
	took := time.Since(began)
	ratio := took.Seconds() / loose.took.Seconds()
	fmt.Printf("%d children without a mapping: %s; into one parent: replies %s, all entries, none double %s: %.1f times (goal 3): %s\n",
		crowd, short(loose.took), short(replied), short(took), ratio, verdict(ratio <= 3))
	return b.cascade(s)
}

func (b *bench) cascade(s *server) error {
	began := time.Now()
	if _, err := closedLoop(s.base, 1, 1, func(c *client, _ int) error {
		return expect(c, 204, "DELETE", "/parents/p-00000000", nil)
	}); err != nil {
		return err
	}
	gone, err := closedLoop(s.base, 1, crowd, func(c *client, i int) error {
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
	fmt.Printf("deleting that parent: all %d children gone after %s\n", gone.requests, short(time.Since(began)))
	return err
}

// entries counts the different entries of a parent.
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

// memory measures the start and what stays resident.
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
	if err := published(s); err != nil {
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
