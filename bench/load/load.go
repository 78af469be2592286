package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const connections = 64

// result holds the measurements of a run of requests.
type result struct {
	requests  int
	took      time.Duration
	latencies []time.Duration // sorted
}

func (r result) rate() float64 { return float64(r.requests) / r.took.Seconds() }

func (r result) percentile(p float64) time.Duration { return percentile(r.latencies, p) }

func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(p*float64(len(sorted))))]
}

// closedLoop sends total requests over conns connections, each as soon as its
// connection is free. one sends request number i.
func closedLoop(base string, conns, total int, one func(c *client, i int) error) (result, error) {
	return closedLoops([]string{base}, conns, total, one)
}

// closedLoops is closedLoop with the connections spread over several servers.
func closedLoops(bases []string, conns, total int, one func(c *client, i int) error) (result, error) {
	return loops(bases, conns, func(i int) bool { return i < total }, one)
}

// loopsFor is closedLoop for a time, with at most this many requests.
func loopsFor(took time.Duration, base string, conns, most int, one func(c *client, i int) error) (result, error) {
	end := time.Now().Add(took)
	return loops([]string{base}, conns, func(i int) bool { return i < most && time.Now().Before(end) }, one)
}

// loops sends requests over conns connections to several servers while there are more.
func loops(bases []string, conns int, more func(i int) bool, one func(c *client, i int) error) (result, error) {
	var next atomic.Int64
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	var all []time.Duration
	began := time.Now()
	for n := range conns {
		wg.Go(func() {
			c, err := dial(bases[n%len(bases)])
			var mine []time.Duration
			for err == nil {
				i := int(next.Add(1)) - 1
				if !more(i) {
					break
				}
				sent := time.Now()
				err = one(c, i)
				mine = append(mine, time.Since(sent))
			}
			if c != nil {
				c.close()
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, mine...)
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	r := result{requests: len(all), took: time.Since(began), latencies: all}
	slices.Sort(r.latencies)
	return r, failed
}

// object is a body of 400 bytes. Without a uuid the server chooses one.
func object(uuid string, fields string) []byte {
	start := `{`
	if uuid != "" {
		start += `"uuid":"` + uuid + `",`
	}
	start += fields +
		`"title":"The bells of the old town","year":1887,"price":12.50,"tags":["bronze","tower"],` +
		`"maker":{"name":"J. Founder & Sons","town":"Whitechapel"},"inStock":true,"note":"`
	return []byte(start + strings.Repeat("x", max(0, 400-len(start)-2)) + `"}`)
}

func create(path, run string) func(c *client, i int) error {
	return func(c *client, i int) error {
		return expect(c, 201, "POST", path, object(fmt.Sprintf("%s-%08d", run, i), ""))
	}
}

// createAny is create for objects whose uuids the server chooses.
func createAny(path string) func(c *client, i int) error {
	body := object("", "")
	return func(c *client, _ int) error { return expect(c, 201, "POST", path, body) }
}

func get(run string, count int) func(c *client, i int) error {
	return func(c *client, _ int) error {
		return expect(c, 200, "GET", fmt.Sprintf("/items/%s-%08d", run, rand.IntN(count)), nil)
	}
}

var errStatus = errors.New("unexpected status")

func expect(c *client, want int, method, path string, body []byte) error {
	status, err := c.do(method, path, body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if status != want {
		return fmt.Errorf("%s %s: %w: %d, want %d: %s", method, path, errStatus, status, want,
			c.body[:min(len(c.body), 500)])
	}
	return nil
}
