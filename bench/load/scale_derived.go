package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"belfry/listeners/aggregate"
	"belfry/listeners/copies"
)

// The operations of the workers that keep copies and aggregates.
const (
	copyName  = "copy" // an object gets another copy, since the object that it names has changed, as nine others do
	countTree = "tree" // an object is counted in the one that it names, and that one's numbers in the one that it names
)

// The numbers of a room are polled at this interval: more often would be a load that a slow database notices.
const numbersPoll = 25 * time.Millisecond

var derived = []string{copyName, countTree}

// derived measures them, on the processes on which arrays were measured. add adds a point.
func (s *scale) derived(ctx context.Context, d *deployment, add func(*point, error) error) error {
	if err := add(s.copyHeld(ctx, d, s.operations)); err != nil {
		return err
	}
	return add(s.countHeld(ctx, d, s.operations))
}

// copyHeld changes the names of authors, and measures how fast n books get them.
func (s *scale) copyHeld(ctx context.Context, d *deployment, n int) (*point, error) {
	authors := max(1, n/scaleChildren)
	if _, err := closedLoops(d.bases(), scaleConns, authors, create("/authors", "a")); err != nil {
		return nil, err
	}
	d.books += n
	if _, err := closedLoops(d.bases(), scaleConns, n, func(c *client, i int) error {
		return expect(c, 201, "POST", "/books",
			object(fmt.Sprintf("b-%08d", i), fmt.Sprintf(`"author":"a-%08d",`, i%authors)))
	}); err != nil {
		return nil, err
	}
	if _, err := d.settle(ctx); err != nil {
		return nil, err
	}
	return s.heldBack(ctx, d, s.point(copyName, d), copies.Name, n, authors, func() error {
		_, err := closedLoops(d.bases(), scaleConns, authors, func(c *client, i int) error {
			return expect(c, 200, "PATCH", fmt.Sprintf("/authors/a-%08d", i), []byte(`{"name":"Grace"}`))
		})
		return err
	}, func() error { return d.applied(ctx, copies.Name, 0) })
}

// countHeld creates n things in boxes, which are in rooms, and measures how fast they are counted in both.
func (s *scale) countHeld(ctx context.Context, d *deployment, n int) (*point, error) {
	boxes := max(1, n/scaleChildren)
	rooms := max(1, boxes/scaleChildren)
	if _, err := closedLoops(d.bases(), scaleConns, rooms, create("/rooms", "r")); err != nil {
		return nil, err
	}
	if _, err := closedLoops(d.bases(), scaleConns, boxes, func(c *client, i int) error {
		return expect(c, 201, "POST", "/boxes",
			object(fmt.Sprintf("x-%08d", i), fmt.Sprintf(`"room":"r-%08d",`, i%rooms)))
	}); err != nil {
		return nil, err
	}
	if _, err := d.settle(ctx); err != nil {
		return nil, err
	}
	return s.heldBack(ctx, d, s.point(countTree, d), aggregate.Name, n, n, func() error {
		_, err := closedLoops(d.bases(), scaleConns, n, func(c *client, i int) error {
			return expect(c, 201, "POST", "/things",
				object(fmt.Sprintf("t-%08d", i), fmt.Sprintf(`"box":"x-%08d",`, i%boxes)))
		})
		return err
	}, func() error { return d.counts(ctx, n, boxes, rooms) })
}

// counts waits until the rooms have the numbers of all things.
func (d *deployment) counts(ctx context.Context, things, boxes, rooms int) error {
	want := make([]int, rooms)
	for i := range things {
		want[i%boxes%rooms]++
	}
	c, err := dial(d.bases()[0])
	if err != nil {
		return err
	}
	defer c.close()
	for i := range rooms {
		path, number := fmt.Sprintf("/rooms/r-%08d", i), fmt.Sprintf(`"things":%d,`, want[i])
		for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(numbersPoll) {
			if err := expect(c, 200, "GET", path, nil); err != nil {
				return err
			}
			if strings.Contains(string(c.body), number) {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("%s has other numbers after two minutes: %s", path, c.body)
			}
		}
	}
	return d.applied(ctx, aggregate.Name, 0)
}
