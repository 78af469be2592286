package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// countRequests counts the requests to the database in further, shorter runs: the proxy that counts needs processor
// time of its own.
func (s *scale) countRequests(ctx context.Context, url string) error {
	for _, n := range several {
		if err := s.counting(ctx, 1, n, url, func(d *deployment) error {
			if err := s.parents(ctx, d, s.operations); err != nil {
				return err
			}
			for _, operation := range applied {
				if err := s.counted(s.applyHeld(ctx, d, operation, s.operations)); err != nil {
					return err
				}
			}
			return s.derived(ctx, d, s.counted)
		}); err != nil {
			return err
		}
		if err := s.counting(ctx, n, 1, url, func(d *deployment) error {
			if err := s.counted(s.creates(ctx, d, s.operations)); err != nil {
				return err
			}
			return s.counted(s.gets(ctx, d, s.operations))
		}); err != nil {
			return err
		}
	}
	most := several[len(several)-1]
	return s.counting(ctx, most, most, url, func(d *deployment) error { return s.add(s.waits(ctx, d)) })
}

// counting is within a deployment whose requests to the database are counted.
func (s *scale) counting(ctx context.Context, fronts, workers int, url string, do func(*deployment) error) error {
	c, err := s.count(url)
	if err != nil {
		return err
	}
	defer c.close()
	s.counter = c
	defer func() { s.counter = nil }()
	return s.within(ctx, fronts, workers, c.url, do)
}

// countCosts counts the requests of operations, and of what they cause.
func (c *counter) countCosts(p *point, n int, operate func() error) error {
	err := c.quiet()
	if err != nil {
		return err
	}
	c.reset()
	if err = operate(); err == nil {
		err = c.quiet()
	}
	p.Operations, p.Database = n, c.share(n)
	return err
}

// counted adds the requests of a point to the points that were measured of the same processes.
func (s *scale) counted(p *point, err error) error {
	if err != nil {
		return err
	}
	for _, measured := range s.points {
		if measured.Operation == p.Operation && measured.Fronts == p.Fronts && measured.Workers == p.Workers {
			measured.Database = p.Database
		}
	}
	fmt.Printf("  %s: requests to the database: %s\n", p.label(), byKind(p.Database))
	return nil
}

// idle is a second without requests.
const idle = "idle"

// waits measures a deployment without requests.
func (s *scale) waits(ctx context.Context, d *deployment) (*point, error) {
	if _, err := d.settle(ctx); err != nil {
		return nil, err
	}
	began, err := d.now(ctx)
	if err != nil {
		return nil, err
	}
	s.counter.reset()
	time.Sleep(scaleIdle)
	ended, err := d.now(ctx)
	if err != nil {
		return nil, err
	}
	p := s.point(idle, d)
	seconds := int(scaleIdle.Seconds())
	p.measured(seconds, began, ended, ended)
	p.Database = s.counter.share(seconds)
	p.Bottleneck = "" // there is nothing to do
	return p, nil
}

// conclude prints what the points of a backend say together.
func (s *scale) conclude() {
	one, two := s.find(mapOwn, 1, 1, 1), s.find(mapOwn, 1, 2, 2)
	fmt.Printf("%s: 2 workers on 2 processors apply %.2f times as many events as one on one (goal %.1f): %s\n", s.name,
		two.Rate/one.Rate, scaleGoal, judge(one, two))
	for _, operation := range slices.Concat(applied, derived, []string{"create", "get"}) {
		var of []*point
		for _, n := range several {
			fronts, workers := n, 1
			if isMap(operation) {
				fronts, workers = 1, n
			}
			of = append(of, s.find(operation, fronts, workers, 2))
		}
		s.concludeOn(operation, of)
	}
}

// judge says whether two workers are fast enough. Where the database needs more processor time than the workers, the
// rates are its own.
func judge(one, two *point) string {
	if one.CPU["database"] > one.CPU["worker"] {
		return "not judged, since the database needs more processor time for an event than a worker"
	}
	return verdict(two.Rate/one.Rate >= scaleGoal)
}

// concludeOn compares the points of an operation with 1, 2 and 4 processes.
func (s *scale) concludeOn(operation string, of []*point) {
	processes, kindOf := "fronts", "front"
	if isMap(operation) {
		processes, kindOf = "workers", "worker"
	}
	each := func(value func(p *point) float64) (all []float64) {
		for _, p := range of {
			all = append(all, value(p))
		}
		return all
	}
	rates := each(func(p *point) float64 { return p.Rate })
	messages := each(func(p *point) float64 { return p.Bus.In + p.Bus.Out })
	requests := each(func(p *point) float64 { return sum(p.Database) })
	growth := "the rate grows up to " + fmt.Sprint(several[len(several)-1])
	if n := grows(several, rates); n > 0 {
		growth = fmt.Sprintf("the rate does not grow beyond %d, where this is busy: %s", n,
			of[slices.Index(several, n)].Bottleneck)
	}
	fmt.Printf("  %s, 1, 2 and 4 %s: %s/s; %s\n", operation, processes, texts(rates, "%.0f"), growth)
	for _, name := range []string{kindOf, "bus", "database"} {
		fmt.Printf("    processor time of %s: %s µs\n", name,
			texts(each(func(p *point) float64 { return p.CPU[name] }), "%.0f"))
	}
	reached := worst(messages) <= constantWork && worst(requests) <= constantWork
	fmt.Printf("    messages of the bus: %s; requests to the database: %s (goal: at most %.1f times those of "+
		"one): %s\n",
		texts(messages, "%.2f"), texts(requests, "%.2f"), constantWork, verdict(reached))
}

func (s *scale) find(operation string, fronts, workers, processors int) *point {
	i := slices.IndexFunc(s.points, func(p *point) bool {
		return p.Operation == operation && p.Fronts == fronts && p.Workers == workers && p.Processors == processors
	})
	return s.points[i]
}

// isMap reports whether workers execute an operation.
func isMap(operation string) bool {
	return slices.Contains(applied, operation) || slices.Contains(derived, operation)
}

func sum(values map[string]float64) (total float64) {
	for _, v := range values {
		total += v
	}
	return total
}

func texts(values []float64, format string) string {
	var all []string
	for _, v := range values {
		all = append(all, fmt.Sprintf(format, v))
	}
	return strings.Join(all, ", ")
}
