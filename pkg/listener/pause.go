package listener

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/internal/backoff"
	"belfry/pkg/bus"
	"belfry/pkg/errs"
)

const (
	pauseTimeout  = 10 * time.Second // for the acknowledgment of events that a paused consumer has delivered
	pauseInterval = 20 * time.Millisecond
)

// pausedConsumer is a consumer of the log that delivers nothing and has nothing
// in flight.
type pausedConsumer struct {
	js       jetstream.JetStream
	consumer string
	length   time.Duration
	cancel   context.CancelFunc
	done     chan struct{}
}

// pauseConsumer pauses a consumer until resume, and waits until everything that it
// has delivered is acknowledged. The pause is extended while this process runs
// and expires within length after a crash. It reports errs.Conflict when another
// process has paused the consumer, or when an acknowledgment takes too long.
func pauseConsumer(ctx context.Context, js jetstream.JetStream, consumer string,
	length time.Duration) (*pausedConsumer, error) {
	waiting, cancel := context.WithTimeout(ctx, pauseTimeout)
	defer cancel()
	c, err := js.Consumer(waiting, stream, consumer)
	if err != nil {
		return nil, err
	}
	if c.CachedInfo().Paused {
		return nil, errs.New(errs.Conflict, "consumer %s is paused already", consumer)
	}
	p := &pausedConsumer{js: js, consumer: consumer, length: length, done: make(chan struct{})}
	if err := p.extend(waiting); err != nil {
		return nil, err
	}
	var extending context.Context
	extending, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go p.keepPaused(extending)
	if err := awaitIdle(waiting, c); err != nil {
		p.resume()
		return nil, errs.Wrap(err, errs.Conflict, "events in flight of consumer %s are not acknowledged", consumer)
	}
	return p, nil
}

// awaitIdle waits until a consumer is paused and has nothing in flight.
func awaitIdle(ctx context.Context, c jetstream.Consumer) error {
	for {
		info, err := c.Info(ctx)
		if err != nil || info.Paused && info.NumAckPending == 0 {
			return err
		}
		if err := backoff.Sleep(ctx, pauseInterval); err != nil {
			return err
		}
	}
}

func (p *pausedConsumer) extend(ctx context.Context) error {
	_, err := p.js.PauseConsumer(ctx, stream, p.consumer, time.Now().Add(p.length))
	return err
}

func (p *pausedConsumer) keepPaused(ctx context.Context) {
	defer close(p.done)
	for backoff.Sleep(ctx, p.length/4) == nil {
		_ = p.extend(ctx) // the next one may succeed before the pause expires
	}
}

func (p *pausedConsumer) resume() {
	p.cancel()
	<-p.done
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	_ = bus.Resume(ctx, p.js, stream, p.consumer) // else the pause expires
}
