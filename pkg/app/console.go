package app

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/mapping/fill"
	"belfry/pkg/missed"
	"belfry/pkg/outbox"
)

// views are what the console shows.
type views struct {
	served   *current
	roles    roles
	log      *slog.Logger
	gatherer prometheus.Gatherer // of metrics that cost no request to a backend
	system   *systemView
	missed   func() []missed.Status                    // what listeners have missed
	overflow func(source, target, array string) uint64 // what this process has not added to arrays
	filled   func() []fill.Status                      // how far arrays are filled

	measured measured
	running  part.Background
	end      context.CancelFunc // of the runs
}

// measured is what the console shows of the time before, also of that before a reload.
type measured struct {
	history *history
	workers *consoleWorkers
	verify  *verifications
	schemas *schemaChecks
}

// part ends what the views do beside requests, which the first console of the process begins.
func (v *views) part() servedPart {
	return servedPart{Name: "the console", Start: func(context.Context, *generation) error { return nil }, Stop: func(ctx context.Context) error {
		if v.end != nil {
			v.end()
			v.measured.verify.Wait()
			v.measured.schemas.Wait()
		}
		return v.running.Stop(ctx)
	}}
}

// measure begins to keep the metrics of the last hour, for the first console of the process.
func (v *views) measure(relay *outbox.Relay) {
	if v.measured.history != nil {
		return
	}
	h := &history{gather: v.gatherer}
	take := func() { h.take(time.Now(), relay.Stats().Published) }
	take()
	v.running.Every(historyInterval, func(context.Context) bool { take(); return true })
	workers := newConsoleWorkers(v.served, v.missed)
	v.running.Every(sampleInterval, workers.measure)
	var ctx context.Context
	ctx, v.end = context.WithCancel(context.Background())
	v.measured = measured{history: h, workers: workers, verify: newVerifications(ctx, v), schemas: newSchemaChecks(ctx, v)}
}

// options returns the options of the console, nil for none.
func (v *views) options(g *generation, openAPI func() ([]byte, error)) *console.Options {
	if !g.config.Console.Enabled {
		return nil
	}
	v.measure(g.relay)
	o := &console.Options{Version: plan.Version(), Objects: consoleObjects(g), Users: consoleUsers(g), System: v.system.of(g, v.measured.history), API: console.NewAPI(openAPI)}
	o.Account = g.config.PageLink("account")
	o.Workers, o.Verify, o.Schemas = v.measured.workers, v.measured.verify, v.consoleSchemas(g)
	o.Graph, o.Live = v.consoleGraph(g), &console.Live{}
	streamed, _ := eventStores(g.config, g.set)
	for _, s := range streamed {
		o.Live.Stores = append(o.Live.Stores, s.Name())
	}
	if e := g.config.Authentication.Email; e != nil && g.config.Mailers[e.Mailer].File != nil {
		o.Mails = writtenMails(g.config.Mailers[e.Mailer].File.Folder)
	}
	return o
}

// consoleUsers returns what the view Users needs.
func consoleUsers(g *generation) *console.Users {
	return &console.Users{Accounts: g.auth.Admin, Store: g.config.Authentication.UserStore, Mails: g.auth.EmailEnabled()}
}

// consoleObjects returns what the view Objects needs: the stores of the configuration, other than the internal ones.
func consoleObjects(g *generation) *console.Objects {
	o := &console.Objects{Set: g.set, Files: open.InOrder(g.binaries), History: func(ctx context.Context, name, uuid string, before uint64, n int) ([]console.LogEvent, error) {
		return changes(ctx, g.bus, name, uuid, before, n)
	}}
	for _, name := range slices.Sorted(maps.Keys(g.config.Stores)) {
		if config.Internal(name) {
			continue
		}
		s := g.config.Stores[name]
		info := console.StoreInfo{
			Name: name, Indexes: s.Indexes, Search: s.Search.Fields, Schema: s.Schema != "", Computed: g.set.Store(name).ComputedFields(),
			Users: name == g.config.Authentication.UserStore, Fixed: name == g.config.Authentication.IdentStore,
		}
		if s.Expose != nil {
			info.URL, info.List = s.Expose.URL, s.Expose.List
		}
		o.Stores = append(o.Stores, info)
	}
	return o
}

// changes reads the newest events that say how an object has changed.
func changes(ctx context.Context, b *bus.Bus, name, uuid string, before uint64, n int) (events []console.LogEvent, err error) {
	var page []*eventlog.Entry
	err = askBus(ctx, b, func(ctx context.Context) (err error) {
		page, _, err = eventlog.Newest(ctx, b.Conn(), b.JetStream(), eventlog.Object{Store: name, UUID: uuid}, eventlog.Changes(), before, n)
		return err
	})
	for _, entry := range page {
		e, err := event.Decode(entry.Data)
		if err != nil {
			return nil, errs.Wrap(err, errs.Internal, "event %d of the log", entry.Sequence)
		}
		events = append(events, console.LogEvent{Sequence: entry.Sequence, Envelope: e})
	}
	return events, err
}
