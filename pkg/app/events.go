package app

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api/sse"
	"belfry/pkg/app/part"
)

// streams sends events to browsers.
type streams struct {
	served  *current
	log     *slog.Logger
	metrics *prometheus.Registry
}

// part is the part of a process.
func (s *streams) part() servedPart {
	return servedPart{
		Name:   "events for browsers",
		Start:  func(_ context.Context, first *generation) error { s.open(first); return nil },
		Reload: s.reload,
		Stop:   func(context.Context) error { s.served.now().live.Close(); return nil },
	}
}

// open makes the hub that sends events to browsers.
func (s *streams) open(g *generation) {
	e := g.config.Events
	o := sse.Options{
		Bus: g.bus, Identity: []string{config.SessionStore, g.config.Authentication.UserStore}, Accounts: g.config.Authentication.UserStore,
		Clients: e.Clients, Address: e.Address, Heartbeat: e.Heartbeat, Buffer: e.Buffer,
		Sealer: g.sealer, Registry: s.metrics, Logger: s.log,
	}
	if o.Address == 0 {
		o.Address = -1
	}
	o.Stores, o.GetOnly = eventStores(g.config, g.set)
	g.live = sse.New(o)
}

// reload makes the hub of another configuration. Streams end at once: they last for long, and what their clients may receive is for
// its rules to decide.
func (s *streams) reload(_ context.Context, before, next *generation) (part.Change, error) {
	s.open(next)
	return part.Change{
		Apply: func() { before.live.Retire(next.live) }, Cancel: func() { next.live.Close() },
		Retire: func(context.Context) { before.live.Close() },
	}, nil
}
