package main

import (
	"context"
	"fmt"

	"belfry/listeners/mapping"
)

// The operations that are measured one after the other. Each finds the processes idle, so it has the costs of waking
// them, and shares nothing with others: no batch of events, no round of a target.
const (
	createAlone = "create-alone"
	getAlone    = "get-alone"
	childAlone  = "child-alone" // a create with an entry in an array of its own target, until the worker has written it

	aloneShare = 3 // one of this many operations
)

// alone measures operations over one connection.
func (s *scale) alone(ctx context.Context, d *deployment) error {
	n := max(1, s.operations/aloneShare)
	if err := s.add(s.aloneOf(ctx, d, createAlone, n, 1, create("/items", "a"))); err != nil {
		return err
	}
	if err := s.add(s.aloneOf(ctx, d, getAlone, n, 0, get("i", s.operations))); err != nil {
		return err
	}
	if _, err := closedLoops(d.bases(), scaleConns, n, create("/parents", "q")); err != nil {
		return err
	}
	d.children += n
	return s.add(s.aloneOf(ctx, d, childAlone, n, 2, func(c *client, i int) error {
		return expect(c, 201, "POST", "/children",
			object(fmt.Sprintf("a-%08d", i), fmt.Sprintf(`"parent":"q-%08d",`, i)))
	}))
}

// aloneOf measures n operations, which have so many events each.
func (s *scale) aloneOf(ctx context.Context, d *deployment, operation string, n, events int,
	one func(c *client, i int) error) (*point, error) {
	if _, err := d.settle(ctx); err != nil {
		return nil, err
	}
	p := s.point(operation, d)
	before, err := d.events(ctx)
	if err != nil {
		return nil, err
	}
	return p, s.costs(ctx, d, p, n, d.fronts, func() error {
		if _, err := closedLoops(d.bases(), 1, n, one); err != nil {
			return err
		}
		if err := d.log.holds(ctx, int(before)+n*events); err != nil {
			return err
		}
		return d.applied(ctx, mapping.Name, 0)
	})
}
