package app

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/examine"
	"belfry/pkg/app/plan"
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

// rosterEntry is what a process says of itself.
type rosterEntry struct {
	Version string    `json:"version"`
	Host    string    `json:"host"`
	PID     int       `json:"pid"`
	Roles   []string  `json:"roles,omitempty"` // none: all
	Began   time.Time `json:"began"`
	Seen    time.Time `json:"seen"` // by its clock

	// Mailers are those with which it can't send mails.
	Mailers map[string]mailFailure `json:"mailers,omitempty"`
}

// has reports whether it has a role.
func (e rosterEntry) has(role string) bool {
	return len(e.Roles) == 0 || slices.Contains(e.Roles, role)
}

func (e rosterEntry) String() string { return fmt.Sprintf("process %d on %s", e.PID, e.Host) }

func (a *App) sharedRoster() store.Shared[roster] {
	return store.Shared[roster]{Store: a.now().set.Store(config.PositionStore), UUID: rosterUUID, What: "the list of processes"}
}

// startRoster has the process say now and then that it runs, and as which version, where others may run as well.
func (a *serving) startRoster(context.Context) error {
	ctx, cancel := context.WithCancel(context.Background())
	var first sync.WaitGroup
	first.Go(func() { a.enroll(ctx) })
	a.onStop("the entry in the list of processes", func(ctx context.Context) error {
		cancel()
		first.Wait()
		ctx, done := context.WithTimeout(ctx, time.Second) // without it others take the process for gone a little later
		defer done()
		_, _, _ = a.sharedRoster().Change(ctx, func(r *roster) bool {
			_, is := r.Processes[a.run]
			delete(r.Processes, a.run)
			return is
		})
		return nil
	})
	a.every(rosterInterval, "the list of processes", func(ctx context.Context) bool {
		a.enroll(ctx)
		return true
	})
	return nil
}

// enroll writes the entry of this process, and removes those of processes that are gone. A list that can't be written has
// no consequence but that `belfry doctor` does not know of this process.
func (a *App) enroll(ctx context.Context) {
	if !a.now().plan.Shared() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, rosterTimeout)
	defer cancel()
	host, _ := os.Hostname()
	_, _, err := a.sharedRoster().Change(ctx, func(r *roster) bool {
		now := time.Now().UTC()
		maps.DeleteFunc(r.Processes, func(_ string, e rosterEntry) bool { return now.Sub(e.Seen).Abs() > rosterGone })
		if r.Processes == nil {
			r.Processes = map[string]rosterEntry{}
		}
		r.Processes[a.run] = rosterEntry{Version: plan.Version(), Host: host, PID: os.Getpid(), Roles: a.roles, Began: a.began.UTC(), Seen: now, Mailers: a.mailers.allFailing(a.now().config.Mailers)}
		return true
	})
	if err != nil && ctx.Err() == nil {
		a.log.Debug("the list of processes can't be written", "error", err)
	}
}

// askRoster reports whether all processes are of one version, and whether one has another time.
func (a *App) askRoster(ctx context.Context) []doctor.Finding {
	if !a.now().plan.Shared() {
		return []doctor.Finding{{Level: doctor.OK, Name: "version.ok", Says: "one process, of version " + plan.Version()}}
	}
	r, _, err := a.sharedRoster().Get(ctx)
	if err != nil {
		return []doctor.Finding{{Level: doctor.Unseen, Name: "version.unknown", Says: examine.MessageOf(err), Do: "see what is wrong with the backends"}}
	}
	now := time.Now()
	return slices.Concat(judgeRoster(r, now), missingRoles(r, a.neededRoles(), now), r.failingMailers(a.run, now))
}

// neededRoles are the roles that some process must have, besides the front.
func (a *App) neededRoles() (all []string) {
	now := a.now()
	for _, spec := range now.plan.Specs() {
		all = append(all, spec.Name)
	}
	if len(now.searched()) > 0 {
		all = append(all, plan.RoleSearch)
	}
	return all
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
	return []doctor.Finding{{Level: doctor.Problem, Area: examine.AreaProcess, Name: "process.role", Subject: strings.Join(missing, ", "),
		Says: "no process with " + count.Noun(len(missing), "this role", "these roles") + " has run in the last " + fmt.Sprint(int(rosterGone.Minutes())) + " minutes: what it does waits, and events are kept for it as long as the log has room",
		Do:   "start one with `belfry serve --role " + strings.Join(missing, ",") + "`, or one without --role; if one runs, see its log, and whether it has the same backends"}}
}

// failsElsewhere says that a process besides this one can't send mails with a mailer.
func (r roster) failsElsewhere(own, mailer string, now time.Time) string {
	for _, id := range slices.Sorted(maps.Keys(r.Processes)) {
		e := r.Processes[id]
		if f, fails := e.Mailers[mailer]; fails && id != own && now.Sub(e.Seen) <= rosterGone {
			return f.String() + ", as " + e.String() + " says"
		}
	}
	return ""
}

// failingMailers reports with which mailers other processes can't send mails. That of this process is among what is degraded.
func (r roster) failingMailers(own string, now time.Time) (all []doctor.Finding) {
	for _, id := range slices.Sorted(maps.Keys(r.Processes)) {
		e := r.Processes[id]
		if id == own || now.Sub(e.Seen) > rosterGone {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(e.Mailers)) {
			all = append(all, doctor.Finding{Level: doctor.Problem, Area: examine.AreaMailer, Name: "mailer.failing", Subject: name,
				Says: e.String() + " can't send mails " + e.Mailers[name].String(), Do: "its log has the words of the server; `belfry mail test ADDRESS` there tries it at once. Mails are retried for about a day"})
		}
	}
	return all
}

// judgeRoster reports what is wrong with the processes of an installation.
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
		return append(all, doctor.Finding{Level: doctor.Warning, Name: "version.differs", Says: "processes of " + count.Of(len(versions), "version") + " run: " + strings.Join(says, "; "), Do: "complete the update: docs/guides/upgrade.md says which versions work together"})
	}
	for v, processes := range versions {
		all = append(all, doctor.Finding{Level: doctor.OK, Name: "version.ok", Says: count.Of(len(processes), "process", "processes") + " of version " + v})
	}
	return all
}
