package workers

import (
	"log/slog"
	"testing"
	"time"

	"belfry/config"
	"belfry/listeners/copies"
	"belfry/pkg/app/plan"
	"belfry/pkg/app/serving"
	"belfry/pkg/event"
	"belfry/pkg/listener"
	"belfry/pkg/store"
	"belfry/test/model"
)

// What a process has in flight is read by others, until it is done, or the process is gone. A process writes only while
// its copies are behind.
func TestProcessesReportTheLagOfTheirCopies(t *testing.T) {
	c, err := config.Parse("belfry.yaml", []byte(`
backends: {default: {type: mongodb, url: mongodb://127.0.0.1:1}}
stores:
  Authors: {}
  Recipes: {references: {author: Authors}, copies: {chef: author.name}}
`), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.CompileFor(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	g, backend := serving.NewGeneration(c, p), model.NewMemory()
	var all []*store.Store
	for _, o := range append(p.Stores, store.Options{Name: config.PositionStore}) {
		s, err := store.Open(t.Context(), backend, store.Options{Name: o.Name, References: o.References, Copies: o.Copies,
			CopiedFrom: o.CopiedFrom})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	g.Set = store.NewSet(all, p.Mappings)
	worker := copies.NewWorker(g.Set, copies.Options{})
	t.Cleanup(worker.Close)
	served, log := serving.NewCurrent(g), slog.New(slog.DiscardHandler)
	one := &CopyLag{Served: served, Log: log, Run: "one"}
	front := &CopyLag{Served: served, Log: log, Run: "front"}
	one.report(t.Context(), one.inFlight.Since())
	if _, revision, err := one.shared().Get(t.Context()); revision != 0 || err != nil {
		t.Errorf("a process without work has written revision %d, %v", revision, err)
	}
	e := &listener.Event{Envelope: event.Envelope{ID: "1", Event: event.StoreUpdated, Store: "Authors", UUID: "a",
		Changed: []string{"name"}, Time: time.Now().Add(-time.Minute).Format(time.RFC3339Nano)}}
	end := one.inFlight.Begin(worker, &e.Envelope, 1)
	one.report(t.Context(), one.inFlight.Since())
	since := func() time.Duration {
		t.Helper()
		for _, e := range front.others(t.Context()) {
			return time.Since(e.Since["Recipes.author"])
		}
		return 0
	}
	if lag := since(); lag < time.Minute || lag > time.Hour {
		t.Errorf("another process reads %s", lag)
	}
	if len(one.others(t.Context())) > 0 {
		t.Error("a process reads its own entry")
	}
	end(nil)
	one.report(t.Context(), one.inFlight.Since())
	if lag := since(); lag != 0 {
		t.Errorf("after it is done, another process reads %s", lag)
	}
	_, before, _ := one.shared().Get(t.Context())
	one.report(t.Context(), one.inFlight.Since())
	if _, after, _ := one.shared().Get(t.Context()); after != before {
		t.Error("a process whose copies are up to date has written again")
	}
	if _, _, err := one.shared().Change(t.Context(), func(all *lags) bool {
		all.Processes = map[string]lagEntry{"gone": {Seen: time.Now().Add(-2 * lagGone),
			Since: map[string]time.Time{"Recipes.author": time.Now()}}}
		return true
	}); err != nil || since() != 0 {
		t.Errorf("a process that is gone counts, %v", err)
	}
}
