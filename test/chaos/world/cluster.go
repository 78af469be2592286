package world

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"belfry/test/backing"
)

// clusterNemeses are those that a cluster of NATS servers survives.
func (w *World) clusterNemeses() []Nemesis {
	if len(w.buses) < 2 {
		return nil
	}
	anyone := func(r *rand.Rand) *bus { return some(r, 1, w.buses)[0] }
	// While another fault is there may be no leader.
	leader := func(ctx context.Context, r *rand.Rand) (*bus, error) {
		if b, err := w.leader(ctx); err == nil || ctx.Err() != nil {
			return b, err
		}
		return anyone(r), nil
	}
	return []Nemesis{
		{Name: "kill bus leader", Kills: 1, Inject: func(ctx context.Context, r *rand.Rand) (heal, error) {
			b, err := leader(ctx, r)
			if err != nil {
				return nil, err
			}
			b.kill()
			return func(context.Context) error { return b.start() }, nil
		}},
		w.isolate("isolate bus", func(_ context.Context, r *rand.Rand) (*bus, error) { return anyone(r), nil }),
		w.isolate("isolate bus leader", leader),
	}
}

// isolate cuts the connections of one server to the others, while belfry's processes still reach it.
func (w *World) isolate(name string, which func(context.Context, *rand.Rand) (*bus, error)) Nemesis {
	return Nemesis{Name: name, Full: lease, Inject: func(ctx context.Context, r *rand.Rand) (heal, error) {
		b, err := which(ctx, r)
		if err != nil {
			return nil, err
		}
		if r.IntN(2) == 0 {
			return breakAll(ctx, b.routes, func(ctx context.Context, p *backing.Proxy) error { return p.Disable(ctx) })
		}
		return breakAll(ctx, b.routes, func(ctx context.Context, p *backing.Proxy) error { return p.Drop(ctx) })
	}}
}

// leaderPatience is how long an election may take. While another fault is there it may not end.
const leaderPatience = 5 * time.Second

// leader returns the server that leads stream EVENTS.
func (w *World) leader(ctx context.Context) (*bus, error) {
	ctx, cancel := context.WithTimeout(ctx, leaderPatience)
	defer cancel()
	conn, err := nats.Connect(w.deployment.Bus)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	for {
		name, err := streamLeader(ctx, js)
		for _, b := range w.buses {
			if name != "" && b.name == name {
				return b, nil
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("no server leads stream EVENTS (%q): %w", name, errors.Join(err, ctx.Err()))
		}
		<-time.After(50 * time.Millisecond)
	}
}

func streamLeader(ctx context.Context, js jetstream.JetStream) (string, error) {
	stream, err := js.Stream(ctx, "EVENTS")
	if err != nil {
		return "", err
	}
	info := stream.CachedInfo()
	if info.Cluster == nil {
		return "", errors.New("stream EVENTS is in no cluster")
	}
	return strings.TrimSpace(info.Cluster.Leader), nil
}
