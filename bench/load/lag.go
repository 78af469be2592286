package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// offered is a load of creates at a rate, of children over parents that exist.
type offered struct {
	run     string // of the children's uuids
	rate    int    // creates a second
	took    time.Duration
	parents int
	sample  int // one of this many creates is measured
	poll    time.Duration
}

// lagLoad is that of the part lag.
var lagLoad = offered{run: "c", rate: 2000, took: 10 * time.Second, parents: 200, sample: 20,
	poll: 500 * time.Microsecond}

func (o offered) creates() int { return int(float64(o.rate) * o.took.Seconds()) }

// lagged is what was measured of it.
type lagged struct {
	rate       float64         // creates a second
	lags, late []time.Duration // from the reply to the visible entry; of the generator. Sorted
}

// measure sends the load, and measures how long after the reply an entry appears in its target.
func (o offered) measure(bases []string) (lagged, error) {
	var mu sync.Mutex
	var l lagged
	began := time.Now()
	one := func(c *client, i int) error {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(o.rate))
		time.Sleep(time.Until(due))
		parent := fmt.Sprintf("p-%08d", i%o.parents)
		uuid := fmt.Sprintf("%s-%08d", o.run, i)
		delay := time.Since(due)
		if err := expect(c, 201, "POST", "/children", object(uuid, `"parent":"`+parent+`",`)); err != nil {
			return err
		}
		replied := time.Now()
		if i%o.sample != 0 {
			return nil
		}
		for entry := []byte(`{"uuid":"` + uuid + `"`); ; {
			if err := expect(c, 200, "GET", "/parents/"+parent, nil); err != nil {
				return err
			}
			if bytes.Contains(c.body, entry) {
				break
			}
			time.Sleep(o.poll)
			if time.Since(replied) > time.Minute {
				return fmt.Errorf("no entry of %s in %s after a minute", uuid, parent)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		l.lags, l.late = append(l.lags, time.Since(replied)), append(l.late, delay)
		return nil
	}
	_, err := closedLoops(bases, connections, o.creates(), one)
	l.rate = float64(o.creates()) / time.Since(began).Seconds()
	slices.Sort(l.lags)
	slices.Sort(l.late)
	return l, err
}

// lag measures how long after the reply an entry appears in its target.
func (b *bench) lag(ctx context.Context) (err error) {
	s, err := b.serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if _, err := closedLoop(s.base, connections, lagLoad.parents, create("/parents", "p")); err != nil {
		return err
	}
	var l lagged
	err = b.profiled(ctx, s, "lag", int(lagLoad.took.Seconds()), func() (err error) {
		l, err = lagLoad.measure([]string{s.base})
		return err
	})
	if err != nil {
		return err
	}
	p50, p99 := percentile(l.lags, 0.5), percentile(l.lags, 0.99)
	fmt.Printf("mapping lag at %.0f creates/s over %d parents, %d samples: p50 %s (goal 5ms): %s, p99 %s (goal "+
		"20ms): %s; the generator was late by p99 %s\n",
		l.rate, lagLoad.parents, len(l.lags), short(p50), verdict(p50 <= 5*time.Millisecond), short(p99),
		verdict(p99 <= 20*time.Millisecond), short(percentile(l.late, 0.99)))
	return nil
}
