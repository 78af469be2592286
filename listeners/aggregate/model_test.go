package aggregate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"

	"belfry/listeners/aggregate"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
	"belfry/test/model"
)

// workers are the built-in listeners.
func workers(set *store.Set) []model.Consumer {
	w := aggregate.NewWorker(set, aggregate.Options{})
	return []model.Consumer{{Name: "aggregate", Filters: aggregate.Filters(set), Handle: w.HandleSerially}}
}

func newChecker(t *testing.T, s model.Scenario, workers func(*store.Set) []model.Consumer) *model.Checker {
	t.Helper()
	c, err := model.New(t.Context(), s, workers, checkInvariant)
	if err != nil {
		t.Fatal(err)
	}
	c.OnApplied = checkApplied
	return c
}

// explore visits all states of a scenario.
func explore(t *testing.T, s model.Scenario, workers func(*store.Set) []model.Consumer) {
	t.Helper()
	const tooMany = 50_000_000
	stats, err := newChecker(t, s, workers).Explore(t.Context(), tooMany)
	if err != nil {
		t.Fatal(err)
	}
	if !stats.Complete || stats.Quiescent < 2 {
		t.Fatalf("not explored: %v", stats)
	}
	t.Log(stats)
}

type object map[string]any

func decode(body []byte) (object, error) {
	decoded := object{}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	return decoded, d.Decode(&decoded)
}

func objects(ctx context.Context, s *store.Store) (map[string]object, error) {
	found, next, err := s.Scan(ctx, nil, 1000)
	if err != nil || next != nil {
		return nil, fmt.Errorf("too many objects: %w", err)
	}
	all := map[string]object{}
	for _, o := range found {
		if all[o.UUID], err = decode(o.Body); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func names(o object, target string) bool {
	if list, ok := o["recipe"].([]any); ok {
		return slices.Contains(list, any(target))
	}
	return o["recipe"] == any(target)
}

// wanted are the aggregates of a target.
func wanted(m *store.Mapping, uuid string, target object, sources map[string]object) string {
	count, sum, best := 0, int64(0), int64(math.MinInt64)
	for _, o := range sources {
		if !names(o, uuid) || m.SourceOwner != "" && (o["owner"] == nil || o["owner"] != target["owner"]) {
			continue
		}
		stars, _ := o["stars"].(json.Number).Int64()
		count, sum, best = count+1, sum+stars, max(best, stars)
	}
	if count == 0 || len(m.Aggregates) < 3 {
		return fmt.Sprintf("%d %d <nil>", count, sum)
	}
	return fmt.Sprintf("%d %d %d", count, sum, best)
}

// checkInvariant checks a state in which workers have nothing to do: aggregates match objects. It is implemented
// independently of verify, which must agree.
func checkInvariant(ctx context.Context, set *store.Set, _ model.Histories) error {
	m := &set.Aggregating()[0]
	sources, err := objects(ctx, set.Store(m.Source))
	if err != nil {
		return err
	}
	targets, err := objects(ctx, set.Store(m.Target))
	if err != nil {
		return err
	}
	for uuid, target := range targets {
		has := fmt.Sprintf("%v %v %v", target["ratings"], target["stars"], target["best"])
		if want := wanted(m, uuid, target, sources); has != want {
			return fmt.Errorf("%s/%s has %s, want %s", m.Target, uuid, has, want)
		}
	}
	report, err := verify.Run(ctx, set, verify.Options{})
	if err == nil && !report.Clean() {
		err = fmt.Errorf("verify reports %+v", report.Differences)
	}
	return err
}

// checkApplied checks what a request can rely on once its wait is over: the target shows the only source as it was
// written, or as it has been since.
func checkApplied(ctx context.Context, set *store.Set, a *model.Applied) error {
	m := &set.Aggregating()[0]
	targets, err := objects(ctx, set.Store(m.Target))
	if err != nil {
		return err
	}
	target, exists := targets["a"]
	if !exists || !a.Lasting(m.Target, "a") {
		return nil
	}
	has := fmt.Sprintf("%v %v %v", target["ratings"], target["stars"], target["best"])
	var all []string
	for _, version := range a.Since(m.Source, "x") {
		sources := map[string]object{}
		if !version.Deleted {
			if sources["x"], err = decode(version.Body); err != nil {
				return err
			}
		}
		all = append(all, wanted(m, "a", target, sources))
	}
	if len(all) > 0 && !slices.Contains(all, has) {
		return fmt.Errorf("a request has waited, and the target shows %s: want one of %v", has, all)
	}
	return nil
}
