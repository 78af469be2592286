// Package roster has the list of the processes that share stores, and checks whether they fit together.
package roster

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/indexing"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/part"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/operations/doctor"
	"belfry/pkg/store"
)

const (
	rosterInterval = time.Minute     // between two entries of a process
	rosterGone     = 5 * time.Minute // without an entry until a process counts as gone
	rosterTimeout  = 10 * time.Second
)

// rosterUUID is the object, in the store of positions, that has the processes of an installation.
const rosterUUID = "processes"

// roster has the processes that share the stores.
type roster struct {
	Processes map[string]rosterEntry `json:"processes"` // by the id of their run
}

// rosterEntry is the entry of a process, which it writes itself.
type rosterEntry struct {
	Version string    `json:"version"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Roles   []string  `json:"roles,omitempty"` // none: all
	Began   time.Time `json:"began"`
	Seen    time.Time `json:"seen"` // by its clock

	// Chunks says that it reads arrays in chunks, as the release before the first one that writes them does not.
	Chunks bool `json:"chunks,omitempty"`

	// Mailers are the mailers with which it can't send mails.
	Mailers map[string]mailers.Failure `json:"mailers,omitempty"`
}

// has reports whether it has a role.
func (e rosterEntry) has(role string) bool {
	return len(e.Roles) == 0 || slices.Contains(e.Roles, role)
}

func (e rosterEntry) String() string { return fmt.Sprintf("process %d on %s", e.PID, e.Host) }

// List is the entry of this process in the list of those that share the stores.
type List struct {
	Served  *serving.Current
	Roles   serving.Roles
	Log     *slog.Logger
	Mailers *mailers.Mailers
	Run     string // unique
	Began   time.Time

	// Chunks is set once all processes that share the stores have said twice that they read arrays in chunks.
	Chunks *atomic.Bool

	agreed  bool // all processes read chunks when the last entry was written
	running part.Background
}

// Part updates the entry of this process, with its version, at intervals if other processes may run as well.
func (l *List) Part() serving.Part {
	return serving.Part{
		Name: "the list of processes",
		Start: func(context.Context, *serving.Generation) error {
			l.running.NowAndEvery(rosterInterval, func(ctx context.Context) bool {
				if l.Served.Now().Plan.Shared() {
					l.enroll(ctx)
				}
				return true
			})
			return nil
		},
		Stop: l.stop,
	}
}

func (l *List) shared() store.Shared[roster] {
	return store.Shared[roster]{Store: l.Served.Now().Set.Store(config.PositionStore), UUID: rosterUUID,
		What: "the list of processes"}
}

// stop removes the entry of this process.
func (l *List) stop(ctx context.Context) error {
	err := l.running.Stop(ctx)
	ctx, done := context.WithTimeout(ctx, time.Second) // without it, other processes consider it gone a little later
	defer done()
	_, _, _ = l.shared().Change(ctx, func(r *roster) bool {
		_, is := r.Processes[l.Run]
		delete(r.Processes, l.Run)
		return is
	})
	return err
}

// enroll writes the entry of this process, and removes those of processes that are gone. If the list can't be written,
// the only consequence is that `belfry doctor` does not see this process.
func (l *List) enroll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, rosterTimeout)
	defer cancel()
	host, _ := os.Hostname()
	all, _, err := l.shared().Change(ctx, func(r *roster) bool {
		now := time.Now().UTC()
		maps.DeleteFunc(r.Processes, func(_ string, e rosterEntry) bool { return now.Sub(e.Seen).Abs() > rosterGone })
		if r.Processes == nil {
			r.Processes = map[string]rosterEntry{}
		}
		r.Processes[l.Run] = rosterEntry{Version: plan.Version(), Host: host, PID: os.Getpid(), Roles: l.Roles,
			Began: l.Began.UTC(), Seen: now, Chunks: true, Mailers: l.Mailers.AllFailing(l.Served.Now().Config.Mailers)}
		return true
	})
	if err != nil {
		if ctx.Err() == nil {
			l.Log.Debug("the list of processes can't be written", "error", err)
		}
		return
	}
	agreed := all.readChunks()
	if agreed && l.agreed { // one that has just started has written its entry since
		l.Chunks.Store(true)
	}
	l.agreed = agreed
}

// readChunks reports whether all processes read arrays in chunks.
func (r *roster) readChunks() bool {
	for _, e := range r.Processes {
		if !e.Chunks {
			return false
		}
	}
	return true
}

// Ask reports whether all processes have the same version, and whether their clocks agree.
func (l *List) Ask(ctx context.Context) []doctor.Finding {
	if !l.Served.Now().Plan.Shared() {
		return []doctor.Finding{{Level: doctor.OK, Name: "version.ok",
			Says: "one process, of version " + plan.Version()}}
	}
	r, _, err := l.shared().Get(ctx)
	if err != nil {
		return []doctor.Finding{{Level: doctor.Unseen, Name: "version.unknown", Says: examine.MessageOf(err),
			Do: "see the findings about the backends"}}
	}
	now := time.Now()
	return slices.Concat(judgeRoster(r, now), missingRoles(r, neededRoles(l.Served.Now()), now),
		r.failingMailers(l.Run, now))
}

// Others says which other processes share the stores, and so the configuration; "" if none has been seen.
func (l *List) Others(ctx context.Context) string {
	switch {
	case len(l.Roles) > 0:
		return "this process has only some roles, and others share its configuration"
	case !l.Served.Now().Plan.Shared():
		return ""
	}
	r, _, err := l.shared().Get(ctx)
	if err != nil {
		return "the list of the processes that share its configuration can't be read"
	}
	return r.others(l.Run, time.Now())
}

// others names the processes other than the own one.
func (r roster) others(own string, now time.Time) string {
	var names []string
	for _, id := range slices.Sorted(maps.Keys(r.Processes)) {
		if e := r.Processes[id]; id != own && now.Sub(e.Seen) <= rosterGone {
			names = append(names, e.String())
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "other processes share its configuration: " + strings.Join(names, ", ")
}

// neededRoles are the roles that some process must have, besides the front.
func neededRoles(g *serving.Generation) (all []string) {
	for _, spec := range g.Plan.Specs() {
		all = append(all, spec.Name)
	}
	if len(indexing.Searched(g)) > 0 {
		all = append(all, plan.RoleSearch)
	}
	return all
}

// FailsElsewhere reports that another process can't send mails with a mailer, since a front sends none itself. The
// result is from the other process's entry of the last minutes; "" if that can't be read.
func (l *List) FailsElsewhere(ctx context.Context, mailer string) string {
	if !l.Served.Now().Plan.Shared() {
		return ""
	}
	r, _, err := l.shared().Get(ctx)
	if err != nil {
		return ""
	}
	return r.failsElsewhere(l.Run, mailer, time.Now())
}

// missingRoles reports which roles no process has.
func missingRoles(r roster, needed []string, now time.Time) []doctor.Finding {
	var missing []string
	for _, role := range needed {
		has := false
		for _, e := range r.Processes {
			has = has || now.Sub(e.Seen) <= rosterGone && e.has(role)
		}
		if !has {
			missing = append(missing, role)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return []doctor.Finding{{Level: doctor.Problem, Area: examine.AreaProcess, Name: "process.role",
		Subject: strings.Join(missing, ", "),
		Says: "no process with " + count.Noun(len(missing), "this role", "these roles") + " has run in the last " +
			fmt.Sprint(int(rosterGone.Minutes())) +
			" minutes: its work waits, and the log keeps events for it up to its limits",
		Do: "start one with `belfry serve --role " + strings.Join(missing, ",") +
			"`, or one without --role; if one runs, see its log, and check that it uses the same backends"}}
}

// failsElsewhere reports that another process can't send mails with a mailer.
func (r roster) failsElsewhere(own, mailer string, now time.Time) string {
	for _, id := range slices.Sorted(maps.Keys(r.Processes)) {
		e := r.Processes[id]
		if f, fails := e.Mailers[mailer]; fails && id != own && now.Sub(e.Seen) <= rosterGone {
			return f.String() + ", as reported by " + e.String()
		}
	}
	return ""
}

// failingMailers reports the mailers with which other processes can't send mails. The mailers of this process are among
// its degraded parts.
func (r roster) failingMailers(own string, now time.Time) (all []doctor.Finding) {
	for _, id := range slices.Sorted(maps.Keys(r.Processes)) {
		e := r.Processes[id]
		if id == own || now.Sub(e.Seen) > rosterGone {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(e.Mailers)) {
			all = append(all,
				doctor.Finding{Level: doctor.Problem, Area: examine.AreaMailer, Name: "mailer.failing", Subject: name,
					Says: e.String() + " can't send mails " +
						e.Mailers[name].String(), Do: "see the server's reply in its log, or run `belfry mail test " +
						"ADDRESS` there. Mails are retried for about a day"})
		}
	}
	return all
}

// judgeRoster reports the problems of an installation's processes.
func judgeRoster(r roster, now time.Time) (all []doctor.Finding) {
	versions := map[string][]string{}
	for _, id := range slices.SortedFunc(maps.Keys(r.Processes), func(x, y string) int {
		return cmp.Or(cmp.Compare(r.Processes[x].Host, r.Processes[y].Host), cmp.Compare(x, y))
	}) {
		e := r.Processes[id]
		if now.Sub(e.Seen) > rosterGone {
			continue
		}
		versions[e.Version] = append(versions[e.Version], e.String())
		if ahead := e.Seen.Sub(now); ahead > examine.ClockSkew {
			all = append(all, examine.JudgeClock(e.String(), e.Seen, now, now))
		}
	}
	if len(versions) > 1 {
		var says []string
		for _, v := range slices.Sorted(maps.Keys(versions)) {
			says = append(says, v+": "+strings.Join(versions[v], ", "))
		}
		return append(all, doctor.Finding{Level: doctor.Warning, Name: "version.differs",
			Says: "processes of " + count.Of(len(versions), "version") + " run: " + strings.Join(says, "; "),
			Do:   "complete the update: docs/guides/upgrade.md lists the versions that work together"})
	}
	for v, processes := range versions {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "version.ok",
			Says: count.Of(len(processes), "process", "processes") + " of version " + v})
	}
	return all
}
