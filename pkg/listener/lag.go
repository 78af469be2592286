package listener

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"belfry/pkg/event"
)

// Lag reports how many events are not delivered to a listener yet, and how many are
// delivered and not acknowledged.
func Lag(ctx context.Context, b Bus, name string) (pending, unacked uint64, err error) {
	consumers := []string{name}
	// A user may have the permission for only one consumer.
	if _, err := b.JetStream().Consumer(ctx, stream, name); errors.Is(err, jetstream.ErrConsumerNotFound) {
		consumers = nil
		for p := range event.Partitions {
			consumers = append(consumers, partitionConsumer(name, p))
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
