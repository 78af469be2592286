package messaging

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"belfry/internal/backoff"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
	"belfry/pkg/bus"
	"belfry/pkg/listener"
)

const (
	narrowTimeout  = 10 * time.Second
	narrowRetryMin = time.Second
	narrowRetryMax = 10 * time.Second

	// NarrowPause is the shortest time between two reads of the consumers, even if many are created: each process reads
	// all of them.
	NarrowPause = 100 * time.Millisecond

	// narrowDenied is the time before a denied request, to read the consumers or to narrow one, is retried: the server
	// logs each attempt.
	narrowDenied = 10 * time.Minute

	// createdConsumers are the subjects on which the server publishes that a consumer of the log was created. It
	// publishes no updates.
	createdConsumers = "$JS.EVENT.ADVISORY.CONSUMER.CREATED." + bus.StreamEvents
)

// Narrowing narrows consumers of the log that would receive events about the security of accounts without naming them:
// consumers of an earlier release, and of programs in other languages. It does so at the start, as soon as a consumer
// is created, and every CheckInterval. Without the permission it logs their names.
type Narrowing struct {
	Log *slog.Logger

	bus     *bus.Bus
	running part.Background
}

// Part returns the functions that start and stop it.
func (n *Narrowing) Part() serving.Part {
	return serving.Part{Name: "the narrowing of consumers", Stop: n.running.Stop,
		Start: func(_ context.Context, first *serving.Generation) error {
			n.bus = first.Bus
			n.running.Go(n.run)
			return nil
		}}
}

func (n *Narrowing) run(ctx context.Context) {
	created, stop := n.watchConsumers(ctx)
	defer stop()
	var logged []string              // the consumers that are too wide
	denied := map[string]time.Time{} // when narrowing a consumer was denied
	for delays := backoff.New(narrowRetryMin, narrowRetryMax); ctx.Err() == nil; {
		began := time.Now()
		limited, done := context.WithTimeout(ctx, narrowTimeout)
		maps.DeleteFunc(denied, func(_ string, at time.Time) bool { return began.Sub(at) >= narrowDenied })
		found, err := listener.NarrowConsumers(limited, n.bus, false, slices.Collect(maps.Keys(denied))...)
		done()
		var wide []string
		for _, d := range found {
			if d.State == bus.Updated {
				n.Log.Info("a consumer was narrowed: events about the security of accounts have to be named",
					"consumer", d.What, "change", d.Detail)
				continue
			}
			wide = append(wide, d.What)
			if _, tried := denied[d.What]; !tried && errors.Is(err, bus.ErrPermissionDenied) {
				denied[d.What] = began
			}
		}
		wait, woken := CheckInterval, created
		switch {
		case err == nil:
			delays.Reset()
		case !errors.Is(err, bus.ErrPermissionDenied):
			wait = delays.Next()
		case len(found) == 0:
			wait, woken = narrowDenied, nil // the user may not read the list of consumers either
		case !slices.Equal(wide, logged):
			logged = wide
			n.Log.Warn("a listener may receive events about the security of accounts that it does not name",
				"consumers", strings.Join(wide, ", "), "error", err)
		}
		if pause(ctx, woken, time.After(wait)) {
			pause(ctx, nil, time.After(time.Until(began.Add(NarrowPause))))
		}
	}
}

// pause returns at a time, or when ctx ends, or when a consumer was created. It reports the latter.
func pause(ctx context.Context, created <-chan struct{}, until <-chan time.Time) (woken bool) {
	select {
	case <-ctx.Done():
	case <-created:
		return true
	case <-until:
	}
	return false
}

// watchConsumers returns a channel that has a value once a consumer of the log was created. A process without the
// permission for these messages finds such consumers by reading them.
func (n *Narrowing) watchConsumers(ctx context.Context) (created <-chan struct{}, stop func()) {
	woken := make(chan struct{}, 1)
	allowed, ended := n.bus.UntilDenied(ctx, createdConsumers)
	sub, err := n.bus.Conn().Subscribe(createdConsumers+".*", func(*nats.Msg) {
		select {
		case woken <- struct{}{}:
		default: // a read of the consumers is already due
		}
	})
	if err != nil {
		ended()
		return woken, func() {}
	}
	context.AfterFunc(allowed, func() { _ = sub.Unsubscribe() }) // otherwise each new connection would be denied again
	return woken, ended
}
