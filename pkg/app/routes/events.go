package routes

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api/sse"
	"belfry/pkg/app/part"
	"belfry/pkg/app/serving"
)

// Streams sends events to browsers.
type Streams struct {
	Served  *serving.Current
	Log     *slog.Logger
	Metrics *prometheus.Registry
}

// Part returns the functions that start, reload and stop it.
func (s *Streams) Part() serving.Part {
	return serving.Part{
		Name:   "events for browsers",
		Start:  func(_ context.Context, first *serving.Generation) error { s.open(first); return nil },
		Reload: s.reload,
		Stop:   func(context.Context) error { s.Served.Now().Live.Close(); return nil },
	}
}

// open makes the hub that sends events to browsers.
func (s *Streams) open(g *serving.Generation) {
	o := sse.Options{
		EventStreams: g.Config.Events, Bus: g.Bus,
		Identity: []string{config.SessionStore, g.Config.Authentication.UserStore},
		Accounts: g.Config.Authentication.UserStore, Sealer: g.Sealer, Registry: s.Metrics, Logger: s.Log,
	}
	o.Rules = serving.EventRules(g.Config)
	o.Stores, o.GetOnly = serving.EventStores(g.Config, g.Set)
	g.Live = sse.New(o)
}

// reload makes the hub of another configuration. Streams end at once: they last long, and the new rules decide what
// their clients may receive.
func (s *Streams) reload(_ context.Context, before, next *serving.Generation) (part.Change, error) {
	s.open(next)
	return part.Change{
		Apply: func() { before.Live.Retire(next.Live) }, Cancel: func() { next.Live.Close() },
		Retire: func(context.Context) { before.Live.Close() },
	}, nil
}
