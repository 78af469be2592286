package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"belfry/pkg/event"
)

// The load of cascades, beside deletions of the same objects by clients.
const (
	cascaded       = 1_000 // children of one parent
	cascadedConns  = 32    // of the clients that delete as many
	cascadedRounds = 3
	cascadedMost   = 5.0         // times as long as the clients take, at most
	cascadedWithin = time.Minute // from one deletion to the next
)

// cascades measures on a backend how long a deletion takes until all children are deleted and their events are
// published, beside clients that delete as many children themselves.
func (b *bench) cascades(
	ctx context.Context, name, backend string, children int, pause time.Duration,
) (err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	s, err := b.serveWith(ctx, withBus(on(backend), address))
	if err != nil {
		return err
	}
	s.pause = pause
	defer func() { err = errors.Join(err, s.stop()) }()
	log, err := openLog(ctx, address)
	if err != nil {
		return err
	}
	defer log.Close()
	var alone, together []time.Duration
	for round := range cascadedRounds {
		for _, turn := range []struct {
			run string
			to  *[]time.Duration
			del func(run string) error
		}{
			{fmt.Sprintf("s%d", round), &alone, func(run string) error {
				_, err := closedLoop(s.base, cascadedConns, children, func(c *client, i int) error {
					return deleteChild(c, fmt.Sprintf("/children/%s-%08d", run, i))
				})
				return err
			}},
			{fmt.Sprintf("c%d", round), &together, func(run string) error {
				_, err := closedLoop(s.base, 1, 1, func(c *client, _ int) error {
					return expect(c, 204, "DELETE", fmt.Sprintf("/parents/%s-00000000", run), nil)
				})
				return err
			}},
		} {
			took, err := deletion(s, log, turn.run, children, turn.del)
			if err != nil {
				return err
			}
			*turn.to = append(*turn.to, took)
		}
	}
	ratios := make([]float64, cascadedRounds)
	for i := range ratios {
		ratios[i] = together[i].Seconds() / alone[i].Seconds()
	}
	fmt.Printf("%s: %d children deleted by %d clients: %s; by a cascade: %s; ratio %.1f (goal %.0f): %s\n", name,
		children, cascadedConns, span(alone), span(together), median(ratios), cascadedMost,
		verdict(median(ratios) <= cascadedMost))
	return nil
}

// deletion fills a parent with children, and measures until del has deleted them and the events of that are published.
func deletion(s *server, log *eventLog, run string, children int, del func(run string) error) (time.Duration, error) {
	if _, err := closedLoop(s.base, 1, 1, create("/parents", run)); err != nil {
		return 0, err
	}
	if _, err := closedLoop(s.base, cascadedConns, children, func(c *client, i int) error {
		return expect(c, 201, "POST", "/children",
			object(fmt.Sprintf("%s-%08d", run, i), fmt.Sprintf(`"parent":"%s-00000000",`, run)))
	}); err != nil {
		return 0, err
	}
	if err := pollUntil(s, "/parents/"+run+"-00000000",
		func(body []byte) bool { return entries(body) == children }); err != nil {
		return 0, err
	}
	if err := published(s, 0); err != nil {
		return 0, err
	}
	deleted, err := log.SubscribeSync(event.Filter(event.StoreDeleted, "Children"))
	if err != nil {
		return 0, err
	}
	defer func() { _ = deleted.Unsubscribe() }()
	if err := log.Flush(); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := del(run); err != nil {
		return 0, err
	}
	seen := map[string]bool{} // by subject, which has the uuid: an event may be published twice
	for len(seen) < children {
		m, err := deleted.NextMsg(cascadedWithin)
		if err != nil {
			return 0, fmt.Errorf("%d of %d children are deleted: %w", len(seen), children, err)
		}
		seen[m.Subject] = true
	}
	took := time.Since(began)
	return took, published(s, 0)
}

// deleteChild deletes a child, and tries again while its backend is too slow for its clients.
func deleteChild(c *client, path string) error {
	for attempt := 0; ; attempt++ {
		status, err := c.do("DELETE", path, nil)
		switch {
		case err != nil || status == 204 || status == 404 && attempt > 0:
			return err
		case status != 503 || attempt == 10:
			return fmt.Errorf("DELETE %s: unexpected status: %d, want 204: %s", path, status, c.body)
		}
	}
}

// span is the shortest and the longest of some times.
func span(all []time.Duration) string {
	return short(slices.Min(all)) + " to " + short(slices.Max(all))
}

// cascadeTrips counts the requests to the server for each child that a cascade deletes.
func (c *counter) cascadeTrips(s *server, name string) error {
	if _, err := closedLoop(s.base, 1, 1, create("/parents", "d")); err != nil {
		return err
	}
	if _, err := closedLoop(s.base, 1, counted, func(c *client, i int) error {
		return expect(c, 201, "POST", "/children", object(fmt.Sprintf("d-%08d", i), `"parent":"d-00000000",`))
	}); err != nil {
		return err
	}
	if err := c.quiet(); err != nil {
		return err
	}
	c.reset()
	if _, err := closedLoop(s.base, 1, 1, func(c *client, _ int) error {
		return expect(c, 204, "DELETE", "/parents/d-00000000", nil)
	}); err != nil {
		return err
	}
	if err := c.quiet(); err != nil {
		return err
	}
	fmt.Printf("%s: requests to the server per deletion by a cascade of %d, including the work it causes: %s\n", name,
		counted, c.per(counted))
	return nil
}
