package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"belfry/pkg/event"
	"belfry/test/backing"
)

// The load of cascades, beside deletions of the same objects by clients.
const (
	cascaded       = 100   // children of one parent
	cascadedConns  = 32    // of the clients that delete as many
	cascadedRounds = 3
	cascadedMost   = 5.0         // times as long as the clients take, at most
	cascadedWithin = time.Minute // from one deletion to the next
)

// cascades measures on a backend how long a deletion takes until all children are deleted and their events are
// published, beside clients that delete as many children themselves.
func (b *bench) cascades(ctx context.Context, name, backend string, pause time.Duration) (err error) {
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
				_, err := closedLoop(s.base, cascadedConns, cascaded, func(c *client, i int) error {
					return expect(c, 204, "DELETE", fmt.Sprintf("/children/%s-%08d", run, i), nil)
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
			took, err := b.deletion(ctx, s, log, turn.run, turn.del)
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
		cascaded, cascadedConns, span(alone), span(together), median(ratios), cascadedMost,
		verdict(median(ratios) <= cascadedMost))
	return nil
}

// deletion fills a parent with children, and measures until del has deleted them and the events of that are published.
func (b *bench) deletion(ctx context.Context, s *server, log *eventLog, run string,
	del func(run string) error) (time.Duration, error) {
	if _, err := closedLoop(s.base, 1, 1, create("/parents", run)); err != nil {
		return 0, err
	}
	if _, err := closedLoop(s.base, cascadedConns, cascaded, func(c *client, i int) error {
		return expect(c, 201, "POST", "/children",
			object(fmt.Sprintf("%s-%08d", run, i), fmt.Sprintf(`"parent":"%s-00000000",`, run)))
	}); err != nil {
		return 0, err
	}
	if err := pollUntil(s, "/parents/"+run+"-00000000",
		func(body []byte) bool { return entries(body) == cascaded }); err != nil {
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
	for len(seen) < cascaded {
		m, err := deleted.NextMsg(cascadedWithin)
		if err != nil {
			return 0, fmt.Errorf("%d of %d children are deleted: %w", len(seen), cascaded, err)
		}
		seen[m.Subject] = true
	}
	took := time.Since(began)
	return took, published(s, 0)
}

// span is the shortest and the longest of some times.
func span(all []time.Duration) string {
	return short(slices.Min(all)) + " to " + short(slices.Max(all))
}

// cascadeRates is the part of backends that measures cascades.
func (b *bench) cascadeRates(ctx context.Context) error {
	if err := setCredentials(); err != nil {
		return err
	}
	if err := b.cascades(ctx, "file", "{type: file}", 0); err != nil {
		return err
	}
	return backing.WithHost(ctx, func(h *backing.Host) error {
		for _, d := range []struct{ name, backend string }{
			{"dynoxide", fmt.Sprintf(onDynamo, backing.Dynoxide(h).URL)},
			{"dynalite", fmt.Sprintf(onDynamo, backing.Dynalite(h).URL)},
			{"mongodb", fmt.Sprintf("{type: mongodb, url: '%s', database: belfry-load}", mongoDatabase(h).url)},
		} {
			if only := os.Getenv("CASC"); only != "" && only != d.name {
				continue
			}
			if err := b.cascades(ctx, d.name, d.backend, metricsPause); err != nil {
				return fmt.Errorf("%s: %w", d.name, err)
			}
		}
		return nil
	})
}

const onDynamo = "{type: dynamodb, region: eu-central-1, endpoint: '%s'}"
