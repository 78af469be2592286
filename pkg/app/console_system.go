package app

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/internal/count"
	"belfry/pkg/api/console"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/plan"
	"belfry/pkg/search"
)

// systemView is what the view System shows of a process.
type systemView struct {
	roles      roles
	log        *slog.Logger
	health     *health
	mailers    *mailers
	elsewhere  func(ctx context.Context, mailer string) string // why another process can't send mails with a mailer; "": it can
	began      time.Time
	lastReload func() *console.Reload // nil: none was requested
}

// of returns what the view needs.
func (v *systemView) of(g *generation, h *history) *console.System {
	return &console.System{
		Facts: v.facts(g), ConfigFile: g.config.File(), Config: g.config.Shown, Charts: h.charts,
		Checks: func(ctx context.Context) []console.Check { return v.checks(ctx, g) }, Disks: func() []console.Disk { return disks(g) }, Warnings: func(context.Context) []string { return v.health.shortcomings() },
		Backups: func(ctx context.Context) console.Backups { return consoleBackups(ctx, g) }, Reload: v.lastReload, Mail: v.consoleMail(g),
		Ready: func(ctx context.Context) string {
			if _, err := v.health.ready(ctx); err != nil {
				return saysOf(err)
			}
			return ""
		},
	}
}

// facts describes the process.
func (v *systemView) facts(g *generation) []console.Fact {
	facts := []console.Fact{{Name: "Version", Value: plan.Version()}}
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
	add("Started", v.began.UTC().Format("2006-01-02 15:04:05")+" UTC")
	add("Roles", strings.Join(v.roles.names(), ", "))
	add("HTTP", g.address)
	add("Base URL", g.auth.BaseURL())
	add("Metrics", g.metricsAddress)
	add("Bus", g.bus.ClientURL())
	add("Data", g.config.Data)
	return facts
}

// checks asks all parts at once whether they work, as probes do: one that hangs delays the page no longer than ctx.
func (v *systemView) checks(ctx context.Context, g *generation) []console.Check {
	all := make([]console.Check, 0, len(g.depends))
	var asked sync.WaitGroup
	for _, p := range g.depends {
		if p.kind == partOutbox {
			continue // it follows, with what waits in it
		}
		all = append(all, console.Check{Name: p.title(), Kind: p.detail})
		c := &all[len(all)-1] // all does not grow beyond its capacity
		asked.Go(func() {
			err := p.state(ctx)
			c.OK, c.Took = err == nil, p.lastTook()
			if err != nil {
				v.log.WarnContext(ctx, "a part does not work", "part", c.Name, "error", err)
				c.Says = saysOf(err)
			}
		})
	}
	asked.Wait()
	s := g.relay.Stats()
	relay := console.Check{Name: "Outbox", Kind: "to the bus", OK: !s.Unavailable, Says: count.Of(s.Events, "event") + " to be published"}
	if s.Unavailable {
		relay.Says += "; the bus does not accept events, which stay in their records"
	}
	all = append(all, relay)
	for _, i := range g.searchStatus() {
		all = append(all, console.Check{Name: "Search index " + i.Store, Kind: "text", OK: i.Ready, Says: saysOfIndex(i)})
	}
	return all
}

// saysOfIndex returns what a search index has. A former one answers while another one is built.
func saysOfIndex(i search.Status) string {
	if !i.Ready {
		return "is being built; " + count.Of(i.Read, "object") + " read"
	}
	says := count.Of(i.Objects, "object") + ", " + count.Of(i.Behind, "event") + " behind the log"
	if i.Former {
		says += "; a former one, in use until a new one is built; " + count.Of(i.Read, "object") + " read"
	}
	return says
}

// disks returns the space of the folders that this process writes.
func disks(g *generation) []console.Disk {
	var all []console.Disk
	add := func(what, folder string) {
		if free, total, ok := examine.Space(folder); ok {
			all = append(all, console.Disk{What: what, Folder: folder, Free: free, Total: total})
		}
	}
	add("data", g.config.Data)
	elsewhere := func(folder string) bool {
		below, err := filepath.Rel(g.config.Data, folder)
		return err != nil || !filepath.IsLocal(below)
	}
	for _, name := range slices.Sorted(maps.Keys(g.backends)) {
		if f := g.config.Backends[name].File; f != nil && elsewhere(f.Folder) {
			add("backend "+name, f.Folder)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.config.Binaries)) {
		if f := g.config.Binaries[name].File; f != nil && elsewhere(f.Folder) {
			add("binaries "+name, f.Folder)
		}
	}
	return all
}
