package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Ratings of one recipe.
const (
	ratedRate      = 1_000 // a second
	ratedElsewhere = 50    // on other backends, whose servers are stand-ins
	ratedTurn      = 20 * time.Second
	ratedSample    = 20 // one of this many is awaited
	ratedLag       = 50 * time.Millisecond
)

func rating(run string, i int) []byte {
	return fmt.Appendf(nil, `{"uuid":"%s-%08d","recipe":"r","stars":%d,"text":"The bells of the old town"}`, run, i, i%5+1)
}

// rated measures ratings of a recipe that has many.
func (b *bench) rated(ctx context.Context, s *server, o copied) error {
	if _, err := closedLoop(s.base, 1, 1, func(c *client, _ int) error {
		return expect(c, 201, "POST", "/recipes", []byte(`{"uuid":"r"}`))
	}); err != nil {
		return err
	}
	has := 0
	for total := copyLeast; total <= max(o.most, copyLeast); total *= 10 {
		began := time.Now()
		for from := has; from < total; from += queryStream {
			to := min(from+queryStream, total)
			lines := linesOf(from, to, func(i int) []byte { return rating("m", i) })
			if err := createLines(ctx, s.base+"/ratings", lines, to-from); err != nil {
				return err
			}
			if err := handled(s, "aggregate"); err != nil {
				return err
			}
		}
		filled := float64(total-has) / time.Since(began).Seconds()
		has = total
		if err := b.rate(ctx, s, o, total, filled); err != nil {
			return fmt.Errorf("%d ratings: %w", total, err)
		}
	}
	return nil
}

// rate sends ratings of a recipe that has this many, at a rate.
func (b *bench) rate(ctx context.Context, s *server, o copied, total int, filled float64) error {
	var mu sync.Mutex
	var lags []time.Duration
	var load paced
	began := time.Now()
	err := b.profiled(ctx, s, fmt.Sprintf("ratings-%d", total), int(ratedTurn.Seconds()), func() (err error) {
		load, err = atRate(s.base, o.ratings, ratedTurn, func(c *client, i int) error {
			c.header = ""
			if i%ratedSample == 0 {
				c.header = "Prefer: wait=30\r\n"
			}
			sent := time.Now()
			err := expect(c, 201, "POST", "/ratings", rating(fmt.Sprint("x", total), i))
			if i%ratedSample == 0 {
				mu.Lock()
				defer mu.Unlock()
				lags = append(lags, time.Since(sent))
			}
			return err
		})
		return err
	})
	if err != nil {
		return err
	}
	took := time.Since(began)
	if err := handled(s, "aggregate"); err != nil {
		return err
	}
	slices.Sort(lags)
	p99 := percentile(lags, 0.99)
	fmt.Printf("  ratings of a recipe that has %d (created and counted at %.0f/s): %.0f/s of %d; in its aggregates "+
		"p50 %s, p99 %s after the request was sent (goal %s): %s; all after %s; the generator was late by p99 %s\n",
		total, filled, float64(load.requests)/took.Seconds(), o.ratings, short(percentile(lags, 0.5)),
		short(p99),
		short(ratedLag), verdict(p99 <= ratedLag), short(time.Since(began)), short(percentile(load.late, 0.99)))
	return nil
}
