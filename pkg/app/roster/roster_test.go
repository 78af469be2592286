package roster

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/app/mailers"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/mail"
	"belfry/pkg/operations/doctor"
	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

func TestProcessesAreJudged(t *testing.T) {
	now := time.Now()
	entry := func(version, host string, seen time.Time) rosterEntry {
		return rosterEntry{Version: version, Host: host, PID: 7, Seen: seen}
	}
	for name, c := range map[string]struct {
		processes map[string]rosterEntry
		want      []string
	}{
		"one version": {map[string]rosterEntry{"a": entry("v1.0.0", "one", now),
			"b": entry("v1.0.0", "two", now.Add(-time.Minute))}, []string{"version.ok"}},
		"two versions": {map[string]rosterEntry{"a": entry("v1.0.0", "one", now),
			"b": entry("v1.1.0", "two", now)}, []string{"version.differs"}},
		"one that is gone": {map[string]rosterEntry{"a": entry("v1.0.0", "one", now.Add(-time.Hour)),
			"b": entry("v1.1.0", "two", now)}, []string{"version.ok"}},
		"one from the future": {map[string]rosterEntry{"a": entry("v1.0.0", "one", now.Add(time.Minute)),
			"b": entry("v1.0.0", "two", now)}, []string{"clock.differs", "version.ok"}},
	} {
		var got []string
		for _, f := range judgeRoster(roster{c.processes}, now) {
			got = append(got, f.Name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: found %v, want %v", name, got, c.want)
		}
	}
}

// What other processes say of themselves is found: their mailers, and the roles that none of them has.
func TestWhatOtherProcessesSayIsFound(t *testing.T) {
	now := time.Now()
	failing := map[string]mailers.Failure{"m": {Says: "logging in failed", Since: now}}
	r := roster{map[string]rosterEntry{
		"own":   {PID: 1, Host: "one", Seen: now, Roles: []string{"front"}, Mailers: failing},
		"other": {PID: 2, Host: "two", Seen: now, Roles: []string{"mapping", "mail"}, Mailers: failing},
		"gone":  {PID: 3, Host: "three", Seen: now.Add(-time.Hour), Mailers: failing},
	}}
	found := slices.Concat(missingRoles(r, []string{"mapping", "cascade", "search"}, now), r.failingMailers("own", now))
	var got []string
	for _, f := range found {
		if f.Level != doctor.Problem || f.Do == "" || f.Area == "" {
			t.Errorf("found %+v", f)
		}
		got = append(got, f.Name+" "+f.Subject)
	}
	if !slices.Equal(got, []string{"process.role cascade, search", "mailer.failing m"}) ||
		!strings.Contains(found[1].Says, "process 2 on two can't send mails since ") {
		t.Errorf("found %+v", found)
	}
	r.Processes["all"] = rosterEntry{Seen: now}
	if found := missingRoles(r, []string{"cascade", "search"}, now); len(found) > 0 {
		t.Errorf("a process without roles has all, but found is %+v", found)
	}
}

// Processes that share stores write that they run, and as what; one that ends takes its entry with it.
func TestProcessesAreListed(t *testing.T) {
	const away = "stores: {Books: {}}\nmailers: {default: {type: smtp, host: 127.0.0.1, port: %d}%s}\n"
	generationOf := func(more string) *serving.Generation {
		c, err := config.Parse("belfry.yaml", fmt.Appendf(nil, away, kit.FreePort(t), more),
			func(string) (string, bool) { return "", false })
		if err != nil {
			t.Fatal(err)
		}
		return serving.NewGeneration(c, &plan.Plan{Config: c})
	}
	first := generationOf("")
	positions, err := store.Open(t.Context(), model.NewMemory(), store.Options{Name: config.PositionStore})
	if err != nil {
		t.Fatal(err)
	}
	first.Set = store.NewSet([]*store.Store{positions}, nil)
	served, log := serving.NewCurrent(first), slog.New(slog.DiscardHandler)
	own := &List{Served: served, Run: "own", Began: time.Now(), Log: log, Chunks: &atomic.Bool{},
		Mailers: mailers.New(served, log, serving.NewMetrics())}
	other := &List{Served: served, Run: "another", Began: time.Now(), Log: log, Roles: []string{"mapping"},
		Chunks:  &atomic.Bool{},
		Mailers: mailers.New(served, log, serving.NewMetrics())}
	own.enroll(t.Context())
	former := generationOf(", removed: {type: smtp, host: 127.0.0.1, port: 1}")
	for _, name := range []string{"default", "removed"} {
		err := other.Mailers.Sender(former, name).Send(t.Context(),
			mail.Message{ID: "x", Date: time.Now(), From: "b@example.com", To: "a@example.com", Subject: "s",
				Text: "t"})
		if _, about := mail.AboutServer(err); !about {
			t.Fatal(err)
		}
	}
	other.enroll(t.Context())
	r, _, err := own.shared().Get(t.Context())
	if err != nil || len(r.Processes) != 2 || r.Processes["another"].Roles[0] != "mapping" ||
		r.Processes[own.Run].Version != plan.Version() {
		t.Fatalf("listed are %+v, %v", r, err)
	}
	if says := r.failsElsewhere(own.Run, "default", time.Now()); !strings.Contains(says,
		"connecting failed, as reported by process ") || len(r.Processes["another"].Mailers) != 1 {
		t.Errorf("its mailer is %q in %+v", says, r)
	}
	for _, says := range []string{r.failsElsewhere("another", "default", time.Now()),
		r.failsElsewhere(own.Run, "default", time.Now().Add(time.Hour)),
		r.failsElsewhere(own.Run, "another", time.Now())} {
		if says != "" {
			t.Errorf("a mailer that does not fail is %q", says)
		}
	}
	if _, _, err := own.shared().Change(t.Context(), func(r *roster) bool {
		gone := r.Processes["another"]
		gone.Seen = time.Now().Add(-time.Hour)
		r.Processes["another"] = gone
		return true
	}); err != nil {
		t.Fatal(err)
	}
	own.enroll(t.Context())
	if r, _, err = own.shared().Get(t.Context()); err != nil || len(r.Processes) != 1 {
		t.Errorf("listed are %+v, %v", r, err)
	}
}

// Arrays are put in chunks once all processes have said twice that they read them: the release before does not, and one
// that has just started has said nothing yet.
func TestChunksAreWrittenOnceAllProcessesReadThem(t *testing.T) {
	positions, err := store.Open(t.Context(), model.NewMemory(), store.Options{Name: config.PositionStore})
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("belfry.yaml", []byte("stores: {Books: {}}\n"), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	first := serving.NewGeneration(c, &plan.Plan{Config: c})
	first.Set = store.NewSet([]*store.Store{positions}, nil)
	served, log := serving.NewCurrent(first), slog.New(slog.DiscardHandler)
	own := &List{Served: served, Run: "own", Began: time.Now(), Log: log, Chunks: &atomic.Bool{},
		Mailers: mailers.New(served, log, serving.NewMetrics())}
	for i, step := range []struct{ former, chunks bool }{
		{true, false}, {true, false}, {false, false}, {true, false}, {false, false}, {false, true}, {true, true},
	} {
		if _, _, err := own.shared().Change(t.Context(), func(r *roster) bool {
			if r.Processes == nil {
				r.Processes = map[string]rosterEntry{}
			}
			if delete(r.Processes, "former"); step.former {
				r.Processes["former"] = rosterEntry{Version: "v1.0.0", Seen: time.Now()}
			}
			return true
		}); err != nil {
			t.Fatal(err)
		}
		if own.enroll(t.Context()); own.Chunks.Load() != step.chunks {
			t.Fatalf("step %d: chunks are written: %v, want %v", i, own.Chunks.Load(), step.chunks)
		}
	}
}
