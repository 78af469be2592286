package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/pkg/listener"
)

const (
	listenerGoal = 0.70
	concurrency  = 64 // handler calls, where they are concurrent
	ackPending   = 20_000
)

const busConfiguration = `
listen: 127.0.0.1:0
metrics: {token: the-metrics-of-load}
data: ./data
bus: {listen: %s}
log: {level: error}
stores:
  Items: {}
`

// listeners measures how many events a second one process with an empty handler
// receives, compared with a bare consumer of the same log.
func (b *bench) listeners(ctx context.Context, rounds, events int) (err error) {
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	s, err := b.serveWith(ctx, fmt.Sprintf(busConfiguration, address))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	log := slog.New(slog.DiscardHandler)
	conn, err := bus.Open(ctx, bus.Options{URL: "nats://" + address, Unmanaged: true, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	if err := fill(ctx, conn, events); err != nil {
		return err
	}
	variants := []*variant{
		{name: "one at a time", spec: listener.Spec{}},
		{name: "64 at once", spec: listener.Spec{Concurrency: concurrency}},
		{name: "in batches",
			spec: listener.Spec{Batch: func(context.Context, []*listener.Event) []error { return nil }}},
		{name: "64 batches at once", spec: listener.Spec{Concurrency: concurrency,
			Batch: func(context.Context, []*listener.Event) []error { return nil }}},
	}
	var bare []float64
	for round := range rounds {
		limit, err := bareRate(ctx, conn, fmt.Sprintf("bare-%d", round), events)
		if err != nil {
			return err
		}
		bare = append(bare, limit)
		for i, e := range variants {
			rate, err := listenerRate(ctx, conn, fmt.Sprintf("listener-%d-%d", i, round), e.spec, events)
			if err != nil {
				return err
			}
			e.rates, e.ratios = append(e.rates, rate), append(e.ratios, rate/limit)
		}
	}
	fmt.Printf("events through one process: a bare consumer %.0f/s (median of %d rounds)\n", median(bare), rounds)
	for _, e := range variants {
		ratio := median(e.ratios)
		fmt.Printf("  %-20s %7.0f/s, %.0f %% (goal %.0f %%): %s\n", e.name, median(e.rates), 100*ratio,
			100*listenerGoal, verdict(ratio >= listenerGoal))
	}
	return nil
}

// variant is a configuration of a listener with its results.
type variant struct {
	name          string
	spec          listener.Spec
	rates, ratios []float64
}

// fill publishes events to the log.
func fill(ctx context.Context, b *bus.Bus, events int) error {
	for b.Ready(ctx) != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(10 * time.Millisecond)
	}
	const some = 1000
	for from := 0; from < events; from += some {
		var list []bus.Event
		for i := from; i < min(from+some, events); i++ {
			uuid := fmt.Sprintf("i-%08d", i)
			e := event.Envelope{
				ID: uuid, Event: event.StoreSaved, Time: "2026-11-21T04:05:06.000007Z", Store: "Items", UUID: uuid,
				Revision: 1, Origin: event.OriginHTTP, Object: object(uuid, ""),
				Ctx: event.Ctx{Request: uuid, Address: "127.0.0.1", UserAgent: "load"},
			}
			list = append(list,
				bus.Event{ID: e.ID, Subject: event.Subject(e.Event, e.Store, e.UUID), Payload: e.Append(nil)})
		}
		if err := b.Publish(ctx, list); err != nil {
			return err
		}
	}
	return nil
}

// bareRate returns how many events a second a consumer receives that only
// acknowledges them.
func bareRate(ctx context.Context, b *bus.Bus, name string, events int) (float64, error) {
	began := time.Now()
	c, err := b.JetStream().CreateConsumer(ctx, bus.StreamEvents, jetstream.ConsumerConfig{
		Durable: name, AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: ackPending,
		FilterSubject: event.LogPrefix + ">",
	})
	if err != nil {
		return 0, err
	}
	done, n := make(chan struct{}), 0
	listening, err := c.Consume(func(m jetstream.Msg) {
		_ = m.Ack()
		if n++; n == events {
			close(done)
		}
	})
	if err != nil {
		return 0, err
	}
	defer listening.Stop()
	return awaitAcked(ctx, b, name, events, began, done)
}

// listenerRate returns how many events a second a listener handles.
func listenerRate(ctx context.Context, b *bus.Bus, name string, spec listener.Spec, events int) (float64, error) {
	var n atomic.Int64
	done := make(chan struct{})
	count := func(more int) {
		if n.Add(int64(more)) == int64(events) {
			close(done)
		}
	}
	spec.Name, spec.Start = name, listener.StartAll()
	if spec.Batch != nil {
		spec.Batch = func(_ context.Context, all []*listener.Event) []error { count(len(all)); return nil }
	} else {
		spec.Handler = func(context.Context, *listener.Event) error { count(1); return nil }
	}
	listening, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- listener.Run(listening, b, slog.New(slog.DiscardHandler), spec) }()
	rate, err := awaitAcked(ctx, b, name, events, began, done)
	stop()
	return rate, errors.Join(err, <-ended)
}

// awaitAcked waits until all events are handled and acknowledged, and returns
// their rate.
func awaitAcked(ctx context.Context, b *bus.Bus, name string, events int, began time.Time,
	done <-chan struct{}) (float64, error) {
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		return 0, fmt.Errorf("%s has not received all events within two minutes", name)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if err := b.Conn().Flush(); err != nil {
		return 0, err
	}
	rate := float64(events) / time.Since(began).Seconds()
	pending, unacked, err := listener.Lag(ctx, b, name)
	if err == nil && pending > 0 {
		err = fmt.Errorf("%s has %d events pending and %d unacknowledged", name, pending, unacked)
	}
	return rate, err
}
