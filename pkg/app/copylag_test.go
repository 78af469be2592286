package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/app/command"
	"belfry/pkg/bus"
	"belfry/pkg/missed"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
)

// gatedBackend holds the queries of an index of a store while its gate is closed.
type gatedBackend struct {
	driver.Backend
	store, index string
	gate         chan struct{}
}

func (b gatedBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	if spec.Name != b.store {
		return s, err
	}
	return gatedStore{s, b}, err
}

type gatedStore struct {
	driver.Store
	gatedBackend
}

func (s gatedStore) Query(ctx context.Context, q driver.Query) (driver.Page, error) {
	if q.Index == s.index {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return driver.Page{}, ctx.Err()
		}
	}
	return s.Store.Query(ctx, q)
}

// CountKeys is that of the store.
func (s gatedStore) CountKeys(ctx context.Context, q driver.Query, limit int) (int, bool, error) {
	return s.Store.(driver.KeyCounter).CountKeys(ctx, q, limit)
}

// behind returns which copies are behind, by what each way shows: the metrics, the console and the command.
func (p *place) behind(a *App) map[string][]string {
	p.Helper()
	all := map[string][]string{}
	for line := range strings.Lines(p.metrics(a)) {
		labels, value, found := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "belfry_copy_lag_seconds"), " ")
		if found && strings.HasPrefix(line, "belfry_copy_lag_seconds{") && value != "0" {
			all["metrics"] = append(all["metrics"], labels)
		}
	}
	for _, c := range a.console().Workers.Copies(p.Context()) {
		if c.Seconds > 0 {
			all["console"] = append(all["console"], fmt.Sprintf("{copies=%q,source=%q}", c.Copies, c.Source))
		}
	}
	client, err := bus.Dial(bus.Options{URL: "nats://" + p.config.Bus.Listen})
	if err != nil {
		p.Fatal(err)
	}
	defer client.Close()
	rows, err := command.ListenerList.Run(p.Context(), &command.Place{Bus: client}, struct{}{},
		func(err error) { p.Error(err) })
	if err != nil {
		p.Fatal(err)
	}
	text, err := json.Marshal(rows)
	if err != nil {
		p.Fatal(err)
	}
	var shown []struct {
		Name   string
		Copies []missed.CopyLag
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		p.Fatal(err)
	}
	for _, row := range shown {
		if (row.Name == "copy") != (len(row.Copies) == 2) {
			p.Errorf("the listener %s has %+v", row.Name, row.Copies)
		}
		for _, c := range row.Copies {
			if c.Seconds > 0 {
				all["command"] = append(all["command"], fmt.Sprintf("{copies=%q,source=%q}", c.Copies, c.Source))
			}
		}
	}
	return all
}

// wantBehind waits until each way shows exactly these copies as behind.
func (p *place) wantBehind(a *App, want ...string) {
	p.Helper()
	kit.WaitUntil(p, func() error {
		is := p.behind(a)
		for _, way := range []string{"metrics", "console", "command"} {
			if fmt.Sprint(is[way]) != fmt.Sprint(want) {
				return fmt.Errorf("behind are %v, want %v", is, want)
			}
		}
		return nil
	})
}

// A pass in progress, and events that no process has, show as the lag of the copies that they concern, and of no
// others; afterwards none is behind.
func TestTheLagOfCopiesIsShown(t *testing.T) {
	p := newPlace(t, strings.Replace(copiesConfig, `bus: {listen: ""}`,
		fmt.Sprintf("bus: {listen: '127.0.0.1:%d'}\nmetrics: {listen: '127.0.0.1:0'}", kit.FreePort(t)), 1))
	gate := make(chan struct{})
	a := p.startWith(nil, func(a *App) {
		for name, b := range a.now().Backends {
			if _, done := b.(gatedBackend); !done {
				a.now().Backends[name] = gatedBackend{b, "Recipes", "map.author", gate}
			}
		}
	})
	open := func() { close(gate) }
	t.Cleanup(func() {
		if open != nil {
			open()
		}
	})
	p.want(a, "POST", "/teams", `{"uuid":"t","name":"Red"}`, http.StatusCreated)
	const recipes, authors = `{copies="Recipes.author",source="Authors"}`, `{copies="Authors.team",source="Teams"}`
	p.wantBehind(a)
	p.want(a, "POST", "/authors", `{"uuid":"a","name":"Ann","team":"t"}`, http.StatusCreated)
	p.wantBehind(a, recipes)
	open()
	open = nil
	p.wantBehind(a)

	js := a.now().Bus.JetStream()
	if _, err := js.PauseConsumer(t.Context(), bus.StreamEvents, "copy", time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	p.want(a, "PATCH", "/teams/t", `{"name":"Blue"}`, http.StatusOK)
	p.wantBehind(a, authors)
	if _, err := js.ResumeConsumer(t.Context(), bus.StreamEvents, "copy"); err != nil {
		t.Fatal(err)
	}
	p.wantBehind(a)
	p.wantBody(a, "/authors/a", `"teamName":"Blue"`)
}
