package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/bus"
	"belfry/pkg/event"
	"belfry/test/backing"
)

// appendOnly is an event that is stored, without belfry: what a server of the bus can do.
const appendOnly = "append"

const (
	appendEvents   = 2   // for each operation of the other kinds
	appendBytes    = 900 // of an event
	appenders      = 4   // that publish batches
	appendInFlight = 256 // single events of a stream
	appendBatch    = 100 // events
	appendStall    = time.Minute
)

// appends measures how many events a second one server stores: in belfry's batches, and one by one, as belfry publishes
// where streams have replicas, in several streams.
func (s *scale) appends(ctx context.Context) error {
	for _, of := range []struct{ streams, batch int }{{1, appendBatch}, {1, 1}, {2, 1}, {4, 1}} {
		err := backing.WithHost(ctx, func(h *backing.Host) error {
			h.On(s.processors)
			server := backing.NATS(h)
			b, err := bus.Open(ctx, bus.Options{URL: server.URL})
			if err != nil {
				return err
			}
			defer func() { _ = b.Close(context.WithoutCancel(ctx)) }()
			if err := b.Setup(ctx); err != nil {
				return err
			}
			d := &deployment{scale: s, processors: s.processors, bus: h, monitor: server.Monitor}
			if d.log, err = openLog(ctx, server.URL[len("nats://"):]); err != nil {
				return err
			}
			defer d.log.Close()
			p := s.point(appendOnly, d)
			p.Streams, p.Batch = of.streams, of.batch
			return s.add(p, s.appendTo(ctx, d, p, b, server.URL))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// appendTo stores the events of a point.
func (s *scale) appendTo(ctx context.Context, d *deployment, p *point, b *bus.Bus, url string) error {
	n := appendEvents * s.operations / p.Streams * p.Streams
	began, err := d.now(ctx)
	if err != nil {
		return err
	}
	if p.Batch > 1 {
		err = publishBatches(ctx, b, n, p.Batch)
	} else {
		err = together(p.Streams, func(i int) error { return publishSingly(ctx, url, i, n/p.Streams) })
	}
	if err != nil {
		return err
	}
	ended, err := d.now(ctx)
	if err != nil {
		return err
	}
	settled, err := d.settle(ctx)
	if err == nil {
		p.measured(n, began, ended, settled)
		p.Events = 1 // of several streams, only that of belfry is counted
	}
	return err
}

// publishBatches publishes n events as a relay does.
func publishBatches(ctx context.Context, b *bus.Bus, n, batch int) error {
	return together(appenders, func(of int) error {
		for from := of * batch; from < n; from += appenders * batch {
			var events []bus.Event
			for i := from; i < min(n, from+batch); i++ {
				id := fmt.Sprintf("e-%08d", i)
				events = append(events, bus.Event{ID: id, Subject: event.Subject(event.StoreSaved, "Items", id),
					Payload: make([]byte, appendBytes)})
			}
			if err := b.Publish(ctx, events); err != nil {
				return err
			}
		}
		return nil
	})
}

// publishSingly publishes n events to stream number i, each as a message of its own. Number 0 is that of belfry.
func publishSingly(ctx context.Context, url string, i, n int) error {
	conn, err := nats.Connect(url)
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(appendInFlight))
	if err != nil {
		return err
	}
	prefix := ""
	if i > 0 {
		prefix = fmt.Sprintf("to%d.", i)
		config := bus.StreamConfigs(bus.Limits{})[0]
		config.Name, config.Subjects = fmt.Sprintf("%s-%d", config.Name, i), []string{prefix + event.LogPrefix + ">"}
		if _, err := js.CreateStream(ctx, config); err != nil {
			return err
		}
	}
	acks := make([]jetstream.PubAckFuture, n)
	for k := range acks {
		id := fmt.Sprintf("e-%08d", k)
		msg := &nats.Msg{
			Subject: prefix + event.Subject(event.StoreSaved, "Items", id),
			Header:  nats.Header{jetstream.MsgIDHeader: {id}}, Data: make([]byte, appendBytes),
		}
		if acks[k], err = js.PublishMsgAsync(msg, jetstream.WithStallWait(appendStall)); err != nil {
			return err
		}
	}
	for _, ack := range acks {
		select {
		case <-ack.Ok():
		case err := <-ack.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// together calls do at once for 0 to n-1.
func together(n int, do func(i int) error) error {
	var wg sync.WaitGroup
	failed := make([]error, n)
	for i := range n {
		wg.Go(func() { failed[i] = do(i) })
	}
	wg.Wait()
	return errors.Join(failed...)
}
