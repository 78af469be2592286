package app

import (
	"context"
	"maps"
	"slices"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// console returns the options of the console, nil for none.
func (a *serving) console(openAPI func() ([]byte, error)) *console.Options {
	if !a.config.Console.Enabled {
		return nil
	}
	a.measure()
	o := &console.Options{Version: plan.Version(), Objects: a.consoleObjects(), Users: a.consoleUsers(), System: a.consoleSystem(), API: console.NewAPI(openAPI)}
	o.Account = a.config.PageLink("account")
	o.Workers, o.Verify, o.Schemas = a.measured.workers, a.measured.verify, a.consoleSchemas()
	o.Graph, o.Live = a.consoleGraph(), &console.Live{}
	streamed, _ := eventStores(a.config, a.set)
	for _, s := range streamed {
		o.Live.Stores = append(o.Live.Stores, s.Name())
	}
	if e := a.config.Authentication.Email; e != nil && a.config.Mailers[e.Mailer].File != nil {
		o.Mails = writtenMails(a.config.Mailers[e.Mailer].File.Folder)
	}
	return o
}

// consoleObjects returns what the view Objects needs: the stores of the configuration, other than the internal ones.
func (a *serving) consoleObjects() *console.Objects {
	o := &console.Objects{Set: a.set, Files: open.InOrder(a.binaries), History: a.history}
	for _, name := range slices.Sorted(maps.Keys(a.config.Stores)) {
		if config.Internal(name) {
			continue
		}
		s := a.config.Stores[name]
		info := console.StoreInfo{
			Name: name, Indexes: s.Indexes, Search: s.Search.Fields, Schema: s.Schema != "", Computed: a.set.Store(name).ComputedFields(),
			Users: name == a.config.Authentication.UserStore, Fixed: name == a.config.Authentication.IdentStore,
		}
		if s.Expose != nil {
			info.URL, info.List = s.Expose.URL, s.Expose.List
		}
		o.Stores = append(o.Stores, info)
	}
	return o
}

// history reads the newest events that say how an object has changed.
func (a *App) history(ctx context.Context, name, uuid string, before uint64, n int) (events []console.LogEvent, err error) {
	var page []*eventlog.Entry
	err = a.askBus(ctx, func(ctx context.Context) (err error) {
		page, _, err = eventlog.Newest(ctx, a.bus.Conn(), a.bus.JetStream(), eventlog.Object{Store: name, UUID: uuid}, eventlog.Changes(), before, n)
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
