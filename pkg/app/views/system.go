package views

import (
	"cmp"
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
	"belfry/internal/logbuffer"
	"belfry/internal/memory"
	"belfry/internal/schedule"
	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/health"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/probe"
	"belfry/pkg/app/serving"
	"belfry/pkg/mail"
	"belfry/pkg/search"
	"belfry/pkg/walk"
)

// System returns the data of a process for the view System.
type System struct {
	Roles   serving.Roles
	Log     *slog.Logger
	Health  *health.Health
	Mailers *mailers.Mailers
	Walks   func() []walk.Status
	Removed func() []string // mappings whose copies objects keep
	// why another process can't send mails with a mailer; "" if it can
	Elsewhere  func(ctx context.Context, mailer string) string
	Place      func(g *serving.Generation) *command.Place // in which operations of commands run
	Serving    command.Serving                            // the same, which stays complete meanwhile
	Began      time.Time
	LastReload func() *console.Reload // nil without one
	Memory     func(g *serving.Generation) []memory.Holder
}

// of returns the data of the view.
func (v *System) of(g *serving.Generation, h *history) *console.System {
	return &console.System{
		Facts: v.Facts(g), ConfigFile: g.Config.File(), Config: g.Config.Shown, Charts: h.charts,
		Checks:   func(ctx context.Context) []console.Check { return v.checks(ctx, g) },
		Disks:    func() []console.Disk { return disks(g) },
		Memory:   func() []memory.Holder { return v.Memory(g) },
		Warnings: func(context.Context) []string { return v.Health.Shortcomings() },
		Backups:  func(ctx context.Context) console.Backups { return consoleBackups(ctx, g) }, Walks: v.Walks,
		Reload: v.LastReload, Mail: v.consoleMail(g), Ready: func(ctx context.Context) string {
			if _, err := v.Health.Ready(ctx); err != nil {
				return probe.Says(err)
			}
			return ""
		},
	}
}

// Facts describes the process.
func (v *System) Facts(g *serving.Generation) []console.Fact {
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
	add("Started", v.Began.UTC().Format("2006-01-02 15:04:05")+" UTC")
	add("Roles", strings.Join(v.Roles.Names(), ", "))
	add("HTTP", g.Address)
	add("Base URL", g.Auth.BaseURL())
	add("Metrics", g.MetricsAddress)
	add("Bus", g.Bus.ClientURL())
	add("Data", g.Config.Data)
	ctx, cancel := context.WithTimeout(context.Background(), probe.Timeout)
	defer cancel()
	unused, _ := open.UnusedStores(ctx, g.Config, g.Backends) // the checks report backends that do not reply
	for _, u := range unused {
		add("Not in the configuration", u.String())
	}
	for _, mapping := range v.Removed() {
		add("Not in the configuration", "copies of "+mapping)
	}
	return facts
}

// checks checks all parts concurrently, as probes do: a part that hangs delays the page no longer than ctx.
func (v *System) checks(ctx context.Context, g *serving.Generation) []console.Check {
	all := make([]console.Check, 0, len(g.Depends))
	var asked sync.WaitGroup
	for _, p := range g.Depends {
		if p.Kind == probe.Outbox {
			continue // it follows, with its pending events
		}
		all = append(all, console.Check{Name: p.Title(), Kind: p.Detail})
		c := &all[len(all)-1] // all does not grow beyond its capacity
		asked.Go(func() {
			err := p.State(ctx)
			c.OK, c.Took = err == nil, p.LastTook()
			if err != nil {
				v.Log.WarnContext(ctx, "a part does not work", "part", c.Name, "error", err)
				c.Says = probe.Says(err)
			}
		})
	}
	asked.Wait()
	s := g.Relay.Stats()
	relay := console.Check{Name: "Outbox", Kind: "to the bus", OK: !s.Unavailable,
		Says: count.Of(s.Events, "event") + " to be published"}
	if s.Unavailable {
		relay.Says += "; the bus does not accept events, which stay in their records"
	}
	all = append(all, relay)
	for _, i := range g.SearchStatus() {
		all = append(all,
			console.Check{Name: "Search index " + i.Store, Kind: "text", OK: i.Ready, Says: saysOfIndex(i)})
	}
	return all
}

// saysOfIndex describes a search index. The former index answers while a new one is built.
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

// disks returns the space of the folders that this process writes.
func disks(g *serving.Generation) []console.Disk {
	var all []console.Disk
	add := func(what, folder string) {
		if free, total, ok := examine.Space(folder); ok {
			all = append(all, console.Disk{What: what, Folder: folder, Free: free, Total: total})
		}
	}
	add("data", g.Config.Data)
	for _, name := range slices.Sorted(maps.Keys(g.Backends)) {
		if f := g.Config.Backends[name].File; f != nil && outside(g.Config.Data, f.Folder) {
			add("backend "+name, f.Folder)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(g.Config.Binaries)) {
		if f := g.Config.Binaries[name].File; f != nil && outside(g.Config.Data, f.Folder) {
			add("binaries "+name, f.Folder)
		}
	}
	return all
}

// outside reports whether a folder is not below another one.
func outside(of, folder string) bool {
	below, err := filepath.Rel(of, folder)
	return err != nil || !filepath.IsLocal(below)
}

// consoleBackups returns the backups for the view System. It reads one object.
func consoleBackups(ctx context.Context, g *serving.Generation) console.Backups {
	out := console.Backups{}
	configured := g.Config.Backup
	if configured != nil {
		out.Place = configured.String()
	}
	state, err := open.BackupStates(g.Set).Get(ctx)
	if err != nil {
		out.Error = probe.Says(err)
		return out
	}
	if configured != nil && configured.Schedule != (schedule.Schedule{}) {
		out.Next = time.Now()
		if next := configured.Schedule.Next(state.Due.Local()); !state.Due.IsZero() && next.After(out.Next) {
			out.Next = next
		}
	}
	if lease := state.Live(time.Now()); lease != nil {
		out.Running = "by belfry on " + lease.Host + " since " + lease.Began.Format("2006-01-02 15:04:05") + " UTC"
	}
	out.Recent = state.Recent
	return out
}

// writtenMails are the mails in the folder of a mailer of type file.
type writtenMails string

// List implements console.Mails.
func (folder writtenMails) List(limit int) ([]mail.Written, error) {
	return mail.List(string(folder), limit)
}

// Read implements console.Mails.
func (folder writtenMails) Read(name string) (mail.Written, error) {
	return mail.Read(string(folder), name)
}

// hasMail reports whether a folder has a mail, which another process may have written, or one before this.
func hasMail(folder string) bool {
	all, err := mail.List(folder, 1)
	return err == nil && len(all) > 0
}

// consoleMail returns the mailer for the console; nil without login by e-mail.
func (v *System) consoleMail(g *serving.Generation) *console.Mailer {
	e := g.Config.Authentication.Email
	if e == nil {
		return nil
	}
	m := g.Config.Mailers[e.Mailer]
	t := &console.Mailer{Name: e.Mailer, From: e.From, Type: m.Type}
	switch {
	case m.SMTP != nil:
		t.Server = fmt.Sprintf("%s:%d, %s", m.SMTP.Host, m.SMTP.Port, m.SMTP.TLS)
	case m.File != nil:
		t.Server = m.File.Folder
	}
	t.Sent = func() bool { return v.Mailers.Sent(e.Mailer) || m.File != nil && hasMail(m.File.Folder) }
	t.Failing = func(ctx context.Context) string {
		if says, since := v.Mailers.Failing(e.Mailer); says != "" {
			return mailers.Failure{Says: says, Since: since}.String()
		}
		return v.Elsewhere(ctx, e.Mailer)
	}
	return t
}

// logs returns the lines that this process has logged; nil if none are kept.
func (v *System) logs(g *serving.Generation) *console.Logs {
	lines := logbuffer.Of(v.Log)
	if lines == nil {
		return nil
	}
	host, _ := os.Hostname() // may be missing
	return &console.Logs{Lines: lines, Level: strings.ToLower(g.Config.Log.Level.String()), File: g.Config.File(),
		Process: fmt.Sprintf("process %d on %s, started %s UTC", os.Getpid(), cmp.Or(host, "an unknown host"),
			v.Began.UTC().Format(time.DateTime))}
}
