package listener

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/backoff"
	"belfry/pkg/errs"
)

const (
	haltTimeout = 10 * time.Second // for what a halted consumer has handed out
	haltLook    = 20 * time.Millisecond
)

// halted is a consumer of the log that hands out nothing and has nothing out.
type halted struct {
	js       jetstream.JetStream
	consumer string
	length   time.Duration
	stop     context.CancelFunc
	stopped  chan struct{}
}

// halt has a consumer stand still until release, and waits until all that it
// has handed out is acknowledged. It goes on by itself within length when this
// process ends. It reports errs.Conflict when somebody else halts it, or when
// what is out takes too long.
func halt(ctx context.Context, js jetstream.JetStream, consumer string, length time.Duration) (*halted, error) {
	asking, cancel := context.WithTimeout(ctx, haltTimeout)
	defer cancel()
	c, err := js.Consumer(asking, stream, consumer)
	if err != nil {
		return nil, err
	}
	if c.CachedInfo().Paused {
		return nil, errs.New(errs.Conflict, "consumer %s is paused already", consumer)
	}
	h := &halted{js: js, consumer: consumer, length: length, stopped: make(chan struct{})}
	if err := h.extend(asking); err != nil {
		return nil, err
	}
	var life context.Context
	life, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	go h.keep(life)
	if err := quiet(asking, c); err != nil {
		h.release()
		return nil, errs.Wrap(err, errs.Conflict, "what consumer %s has handed out is not acknowledged", consumer)
	}
	return h, nil
}

// quiet waits until a consumer stands still and has nothing out.
func quiet(ctx context.Context, c jetstream.Consumer) error {
	for {
		info, err := c.Info(ctx)
		if err != nil || info.Paused && info.NumAckPending == 0 {
			return err
		}
		if err := backoff.Sleep(ctx, haltLook); err != nil {
			return err
		}
	}
}

func (h *halted) extend(ctx context.Context) error {
	_, err := h.js.PauseConsumer(ctx, stream, h.consumer, time.Now().Add(h.length))
	return err
}

func (h *halted) keep(ctx context.Context) {
	defer close(h.stopped)
	for backoff.Sleep(ctx, h.length/4) == nil {
		_ = h.extend(ctx) // the next one may succeed before the last one ends
	}
}

// release lets the consumer go on.
func (h *halted) release() {
	h.stop()
	<-h.stopped
	ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
	defer cancel()
	_, _ = h.js.ResumeConsumer(ctx, stream, h.consumer) // else it goes on by itself
}
