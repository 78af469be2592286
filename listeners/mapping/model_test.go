package mapping_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"belfry/listeners/cascade"
	"belfry/listeners/mapping"
	"belfry/pkg/store"
	"belfry/pkg/verify"
	"belfry/test/model"
)

var (
	seedFlag  = flag.Uint64("model.seed", 0, "walk this one way through the model's worlds instead of the usual ones")
	handsFlag = flag.Int("model.hands", 2, "how many events workers have in hand at once in worlds that are gone through whole")
	crashFlag = flag.Bool("model.crash", false, "let handlers vanish in every world that is gone through whole, which takes minutes")
	walksFlag = flag.Int("model.walks", 150, "how many ways to walk through each of the model's larger worlds")
)

// workers are the built-in listeners.
func workers(set *store.Set) []model.Consumer {
	mapper := mapping.NewWorker(set, mapping.Options{})
	all := []model.Consumer{{Name: "mapping", Filters: mapping.Filters(set), Handle: mapper.HandleSerially}}
	if filters := cascade.Filters(set); len(filters) > 0 {
		cascader := cascade.NewWorker(set, cascade.Options{Concurrency: 1})
		all = append(all, model.Consumer{Name: "cascade", Filters: filters, Handle: cascader.Handle})
	}
	return all
}

// explore goes through all of a world.
func explore(t *testing.T, w model.Scenario) {
	t.Helper()
	const tooMany = 50_000_000
	stats, err := checker(t, w).Explore(t.Context(), tooMany)
	if err != nil {
		t.Fatal(err)
	}
	if !stats.Complete || stats.Quiescent < 2 {
		t.Fatalf("not explored: %v", stats)
	}
	t.Log(stats)
}

// walk goes ways through a world by chance.
func walk(t *testing.T, w model.Scenario) {
	t.Helper()
	c := checker(t, w)
	first, n := uint64(1), *walksFlag
	if *seedFlag != 0 {
		first, n = *seedFlag, 1
	}
	moves, quiet := 0, 0
	for seed := first; seed < first+uint64(n); seed++ {
		stats, err := c.Simulate(t.Context(), seed)
		if err != nil {
			t.Fatalf("%v\nto see it again: go test ./listeners/mapping -run '%s' -model.seed=%d", err, t.Name(), seed)
		}
		moves, quiet = moves+stats.Transitions, quiet+stats.Quiescent
	}
	t.Logf("%d schedules, %d moves, %d quiet states judged", n, moves, quiet)
}

func checker(t *testing.T, w model.Scenario) *model.Checker {
	t.Helper()
	w.Mappings = slices.Clone(w.Mappings)
	for i := range w.Mappings {
		if w.Mappings[i].Limit == 0 {
			w.Mappings[i].Limit = 100
		}
	}
	c, err := model.New(t.Context(), w, workers, equal)
	if err != nil {
		t.Fatal(err)
	}
	if w.Clock {
		c.OnWrite = justified(w.Mappings)
	}
	return c
}

// equal is what must hold whenever workers have nothing to do: arrays equal
// objects. It is said here in other words than in verify, which must agree.
func equal(ctx context.Context, set *store.Set, lives model.Histories) error {
	for i := range set.Mappings() {
		if err := arraysEqual(ctx, set, &set.Mappings()[i]); err != nil {
			return err
		}
	}
	if err := cascaded(ctx, set, lives); err != nil {
		return err
	}
	report, err := verify.Run(ctx, set, verify.Options{})
	if err == nil && !report.Clean() {
		err = fmt.Errorf("verify finds %+v", report.Differences)
	}
	return err
}

type object map[string]any

func objects(ctx context.Context, s *store.Store) (map[string]object, error) {
	found, next, err := s.Scan(ctx, nil, 1000)
	if err != nil || next != nil {
		return nil, fmt.Errorf("not a small world: %w", err)
	}
	all := map[string]object{}
	for _, o := range found {
		decoded := object{}
		if err := json.Unmarshal(o.Body, &decoded); err != nil {
			return nil, err
		}
		all[o.UUID] = decoded
	}
	return all, nil
}

// names reports whether an object's key names a target.
func names(m *store.Mapping, o object, target string) bool {
	if list, ok := o[m.Key].([]any); ok {
		return slices.Contains(list, any(target))
	}
	return o[m.Key] == any(target)
}

func arraysEqual(ctx context.Context, set *store.Set, m *store.Mapping) error {
	sources, err := objects(ctx, set.Store(m.Source))
	if err != nil {
		return err
	}
	targets, err := objects(ctx, set.Store(m.Target))
	if err != nil {
		return err
	}
	for uuid, target := range targets {
		want := map[string]object{}
		for id, o := range sources {
			if !names(m, o, uuid) {
				continue
			}
			want[id] = object{"uuid": id}
			for _, f := range m.Fields {
				if value, ok := o[f]; ok {
					want[id][f] = value
				}
			}
		}
		array, _ := target[m.Array].([]any)
		if err := entriesEqual(array, want, m.Limit); err != nil {
			return fmt.Errorf("%s/%s.%s: %w", m.Target, uuid, m.Array, err)
		}
	}
	return nil
}

func entriesEqual(array []any, want map[string]object, limit int) error {
	seen := map[string]bool{}
	for _, e := range array {
		entry, _ := e.(map[string]any)
		uuid, _ := entry["uuid"].(string)
		if seen[uuid] {
			return fmt.Errorf("two entries for %s: %v", uuid, array)
		}
		seen[uuid] = true
		if !reflect.DeepEqual(object(entry), want[uuid]) {
			return fmt.Errorf("entry %v, want %v", entry, want[uuid])
		}
	}
	if len(array) != min(limit, len(want)) {
		return fmt.Errorf("%v holds %d entries, want %d of %v", array, len(array), min(limit, len(want)), slices.Sorted(maps.Keys(want)))
	}
	return nil
}
