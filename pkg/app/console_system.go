package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"belfry/internal/count"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/search"
)

// consoleUsers returns what the view Users needs.
func (a *serving) consoleUsers() *console.Users {
	return &console.Users{Accounts: a.auth.Admin, Store: a.config.Authentication.UserStore, Mails: a.auth.EmailEnabled()}
}

// measured is what the console shows of the time before, also of that before a reload.
type measured struct {
	history *history
	workers *consoleWorkers
	verify  *verifications
	schemas *schemaChecks
}

// measure begins to keep the metrics of the last hour, for the first console of the process.
func (a *App) measure() {
	if a.measured.history != nil {
		return
	}
	h := &history{gather: a.registry}
	take := func() { h.take(time.Now(), a.relay.Stats().Published) }
	take()
	a.every(historyInterval, "the metrics of the last hour", func(context.Context) bool { take(); return true })
	a.measured = measured{history: h, workers: a.newConsoleWorkers(), verify: a.newVerifications(), schemas: a.newSchemaChecks()}
}

// consoleSystem returns what the view System needs.
func (a *serving) consoleSystem() *console.System {
	return &console.System{
		Facts: a.facts(), ConfigFile: a.config.File(), Config: a.config.Shown, Charts: a.measured.history.charts,
		Checks: a.checks, Disks: a.disks, Warnings: func(context.Context) []string { return a.shortcomings() },
		Backups: a.consoleBackups, Reload: a.lastReload.Load, Mail: a.consoleMail(),
		Ready: func(ctx context.Context) string {
			if _, err := a.ready(ctx); err != nil {
				return saysOf(err)
			}
			return ""
		},
	}
}

// facts describes the process.
func (a *serving) facts() []console.Fact {
	facts := []console.Fact{{Name: "Version", Value: Version()}}
	add := func(name, value string) {
		if value != "" {
			facts = append(facts, console.Fact{Name: name, Value: value})
		}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				add("Commit", setting.Value)
			}
		}
	}
	add("Go", runtime.Version()+" "+runtime.GOOS+"/"+runtime.GOARCH)
	host, _ := os.Hostname() // may be missing
	add("Host", host)
	add("Process", fmt.Sprint(os.Getpid()))
	add("Started", a.began.UTC().Format("2006-01-02 15:04:05")+" UTC")
	roles := a.roles
	if len(roles) == 0 {
		roles = Roles()
	}
	add("Roles", strings.Join(roles, ", "))
	add("HTTP", a.HTTPAddress())
	add("Base URL", a.auth.BaseURL())
	add("Metrics", a.metricsAddress)
	add("Bus", a.bus.ClientURL())
	add("Data", a.config.Data)
	return facts
}

// checks asks all parts at once whether they work, as probes do: one that hangs delays the page no longer than ctx.
func (a *App) checks(ctx context.Context) []console.Check {
	all := make([]console.Check, 0, len(a.parts))
	var asked sync.WaitGroup
	for _, p := range a.parts {
		if p.kind == partOutbox {
			continue // it follows, with what waits in it
		}
		all = append(all, console.Check{Name: p.title(), Kind: p.detail})
		c := &all[len(all)-1] // all does not grow beyond its capacity
		asked.Go(func() {
			err := p.state(ctx)
			c.OK, c.Took = err == nil, p.lastTook()
			if err != nil {
				a.log.WarnContext(ctx, "a part does not work", "part", c.Name, "error", err)
				c.Says = saysOf(err)
			}
		})
	}
	asked.Wait()
	s := a.relay.Stats()
	relay := console.Check{Name: "Outbox", Kind: "to the bus", OK: !s.Unavailable, Says: count.Of(s.Events, "event") + " to be published"}
	if s.Unavailable {
		relay.Says += "; the bus does not accept events, which stay in their records"
	}
	all = append(all, relay)
	for _, i := range a.searchStatus() {
		all = append(all, console.Check{Name: "Search index " + i.Store, Kind: "text", OK: i.Ready, Says: saysOfIndex(i)})
	}
	return all
}

// saysOfIndex returns what a search index has. A former one answers while another one is built.
func saysOfIndex(i search.Status) string {
	if !i.Ready {
		return "is being built; " + count.Of(i.Done, "object") + " read"
	}
	says := count.Of(i.Objects, "object") + ", " + count.Of(i.Behind, "event") + " behind the log"
	if i.Former {
		says += "; a former one, in use until a new one is built; " + count.Of(i.Done, "object") + " read"
	}
	return says
}

// saysOf returns what an error says to an admin: its message, without the text of servers, which can have addresses
// with passwords.
func saysOf(err error) string {
	var own *errs.Error
	if errors.As(err, &own) {
		return own.Message
	}
	return "it does not reply; the log has the reason"
}

// disks returns the space of the folders that this process writes.
func (a *serving) disks() []console.Disk {
	var all []console.Disk
	add := func(what, folder string) {
		if free, total, ok := space(folder); ok {
			all = append(all, console.Disk{What: what, Folder: folder, Free: free, Total: total})
		}
	}
	add("data", a.config.Data)
	elsewhere := func(folder string) bool {
		below, err := filepath.Rel(a.config.Data, folder)
		return err != nil || !filepath.IsLocal(below)
	}
	for _, name := range names(a.backends) {
		if f := a.config.Backends[name].File; f != nil && elsewhere(f.Folder) {
			add("backend "+name, f.Folder)
		}
	}
	for _, name := range names(a.config.Binaries) {
		if f := a.config.Binaries[name].File; f != nil && elsewhere(f.Folder) {
			add("binaries "+name, f.Folder)
		}
	}
	return all
}
