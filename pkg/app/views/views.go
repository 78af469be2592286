// Package views provides the data of the console: it fills console.Options, keeps metrics of the last hour, and has the
// runs that admins start.
package views

import (
	"context"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/app/messaging"
	"belfry/pkg/app/open"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/binary"
	"belfry/pkg/bus"
	"belfry/pkg/bus/eventlog"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/missed"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/outbox"
	"belfry/pkg/store"
	"belfry/pkg/walk"
)

// Views provide the data of the console.
type Views struct {
	Served   *serving.Current
	Roles    serving.Roles
	Log      *slog.Logger
	Gatherer prometheus.Gatherer // of metrics that cost no request to a backend
	System   *System
	Missed   func() []missed.Status                    // what listeners have missed
	Overflow func(source, target, array string) uint64 // entries that this process has not added to arrays
	Filled   func() []walk.Status                      // the progress of filling arrays
	Copies   func(ctx context.Context) []missed.CopyLag
	Editor   console.ModelEditor

	Thumbnails *binary.Thumbnails

	measured measured
	running  part.Background
	end      context.CancelFunc // of the runs
}

// measured has the measurements of the last hour for the console, including the time before a reload.
type measured struct {
	history *history
	workers *consoleWorkers
	jobs    []*command.Job
	uploads *bulk.Uploads
	backups *command.BackupPages
}

// Part stops the background work of the views, which the first console of the process starts.
func (v *Views) Part() serving.Part {
	return serving.Part{Name: "the console", Start: func(context.Context, *serving.Generation) error { return nil },
		Stop: func(ctx context.Context) error {
			if v.end != nil {
				v.end()
				for _, j := range v.measured.jobs {
					j.Wait()
				}
				v.measured.uploads.Close()
			}
			return v.running.Stop(ctx)
		}}
}

// measure begins to keep the metrics of the last hour, for the first console of the process.
func (v *Views) measure(relay *outbox.Relay, data string) {
	if v.measured.history != nil {
		return
	}
	h := &history{gather: v.Gatherer}
	take := func() { h.take(time.Now(), relay.Stats().Published) }
	take()
	v.running.Every(historyInterval, func(context.Context) bool { take(); return true })
	workers := newConsoleWorkers(v.Served, v.Missed, v.Copies)
	v.running.Every(sampleInterval, workers.measure)
	var ctx context.Context
	ctx, v.end = context.WithCancel(context.Background())
	v.measured = measured{history: h, workers: workers, uploads: bulk.NewUploads(filepath.Join(data, "imports")),
		backups: &command.BackupPages{}}
	host := &command.Host{
		Ctx: ctx, Log: v.Log, Now: func() *command.Place { return v.System.Place(v.Served.Now()) },
		Serving: v.System.Serving,
		Records: func() *store.Store { return v.Served.Now().Set.Store(config.TokenStore) },
		Uploads: v.measured.uploads,
	}
	for _, o := range slices.Concat(command.Operations, command.ConsoleOperations) {
		if j := o.Job(host); j != nil {
			v.measured.jobs = append(v.measured.jobs, j)
		}
	}
}

// Uploads are the files that the console has received; nil before the first console.
func (v *Views) Uploads() *bulk.Uploads { return v.measured.uploads }

// Options returns the options of the console, nil for none.
func (v *Views) Options(g *serving.Generation, openAPI func() ([]byte, error)) *console.Options {
	if !g.Config.Console.Enabled {
		return nil
	}
	v.measure(g.Relay, g.Config.Data)
	o := &console.Options{Version: plan.Version(), Objects: v.consoleObjects(g), Uploads: v.measured.uploads,
		Users:  consoleUsers(g),
		System: v.System.of(g, v.measured.history), API: console.NewAPI(openAPI)}
	o.Logs, o.Settings, o.Backups = v.System.logs(g), settings(g), v.backupPlace(g)
	o.Account, o.Model = g.Config.PageLink("account"), consoleModel(g)
	o.Model.Editing = v.editing(g)
	o.Workers = v.measured.workers
	for _, j := range v.measured.jobs {
		if j.Offered == nil || j.Offered(g.Config) {
			o.Operations = append(o.Operations, j.Operation)
		}
	}
	o.Graph, o.Live = v.consoleGraph(g), &console.Live{}
	streamed, _ := serving.EventStores(g.Config, g.Set)
	for _, s := range streamed {
		o.Live.Stores = append(o.Live.Stores, s.Name())
	}
	if e := g.Config.Authentication.Email; e != nil && g.Config.Mailers[e.Mailer].File != nil {
		o.Mails = writtenMails(g.Config.Mailers[e.Mailer].File.Folder)
	}
	return o
}

// consoleUsers returns the options of the view Users.
func consoleUsers(g *serving.Generation) *console.Users {
	return &console.Users{Accounts: g.Auth.Admin, Keys: g.Auth.Keys, Store: g.Config.Authentication.UserStore,
		Mails: g.Auth.EmailEnabled(), Impersonation: g.Config.Console.Impersonation}
}

// consoleObjects returns the options of the view Objects: the stores of the configuration, other than the internal
// ones.
func (v *Views) consoleObjects(g *serving.Generation) *console.Objects {
	o := &console.Objects{Set: g.Set, Files: open.InOrder(g.Binaries), Thumbnails: v.Thumbnails,
		History: func(ctx context.Context, name, uuid string, before uint64, n int) ([]console.LogEvent, error) {
			return changes(ctx, g.Bus, name, uuid, before, n)
		}}
	for _, name := range slices.Sorted(maps.Keys(g.Config.Stores)) {
		if config.Internal(name) {
			continue
		}
		s := g.Config.Stores[name]
		info := console.StoreInfo{
			Name: name, Indexes: s.Indexes, Search: s.Search.Fields, Schema: s.Schema != "",
			Computed: g.Set.Store(name).ComputedFields(), Modeled: true, Title: g.Plan.Titles[name],
			Users: name == g.Config.Authentication.UserStore, Fixed: name == g.Config.Authentication.IdentStore,
		}
		info.ByAddress = info.Users && len(s.Title) == 0
		if s.Expose != nil {
			info.URL, info.List, info.Get = s.Expose.URL, s.Expose.List, !s.Expose.Restrict.Get
		}
		o.Stores = append(o.Stores, info)
	}
	return o
}

// changes reads the newest events about changes of an object.
func changes(ctx context.Context, b *bus.Bus, name, uuid string, before uint64,
	n int) (events []console.LogEvent, err error) {
	var page []*eventlog.Entry
	err = messaging.Do(ctx, b, func(ctx context.Context) (err error) {
		page, _, err = eventlog.Newest(ctx, b.Conn(), b.JetStream(), eventlog.Object{Store: name, UUID: uuid},
			eventlog.Changes(), before, n)
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
