package listener

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/event"
)

// Lag reports how many events a listener has yet to be given, and how many it
// has been given and not acknowledged.
func Lag(ctx context.Context, b Bus, name string) (pending, unacked uint64, err error) {
	consumers := []string{name}
	// A user who may look at one consumer alone is asked for no other.
	if _, err := b.JetStream().Consumer(ctx, stream, name); errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumers = nil
		for p := range event.Partitions {
			consumers = append(consumers, partitioned(name, p))
		}
	} else if err != nil {
		return 0, 0, err
	}
	for _, c := range consumers {
		consumer, err := b.JetStream().Consumer(ctx, stream, c)
		if err != nil {
			return 0, 0, err
		}
		info := consumer.CachedInfo()
		pending, unacked = pending+info.NumPending, unacked+uint64(info.NumAckPending)
	}
	return pending, unacked, nil
}
