package store_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/kit"
	"belfry/test/model"
)

const (
	x = `{"slug":"x"}`
	y = `{"slug":"y"}`
)

// uniqueScenario has clients that write to Books, whose slugs are unique, in processes of their own.
func uniqueScenario(setup []model.Op, clients ...[]model.Op) model.Scenario {
	return model.Scenario{
		Mappings: []store.Mapping{{Source: "Books", Target: "Books", Key: "none"}}, // opens the store
		Setup:    setup, Clients: clients, CrashClients: true,
		Options: func(o *store.Options) {
			o.Unique, o.Arrays, o.Maps, o.NoEvents, o.FenceAfter = [][]string{{"slug"}}, nil, nil, true, -1
		},
	}
}

// repair is what verify --repair does to an object and to all claims.
func repair(uuid string) model.Op {
	return model.Do("repair", "Books", uuid, func(ctx context.Context, s *store.Store) error {
		if _, _, err := s.Claims().Make(ctx, uuid); err != nil {
			return err
		}
		_, _, err := s.Claims().Sweep(ctx, true)
		return err
	})
}

// saveOnce is a request with an idempotency key, whose attempts have the same revision.
func saveOnce(uuid, body string, revision uint64) model.Op {
	return model.Do("save once", "Books", uuid, func(ctx context.Context, s *store.Store) error {
		o, err := object.Parse([]byte(body))
		if err != nil {
			return err
		}
		call := store.CallOf(ctx)
		call.Origin = event.OriginBus
		call.Idempotency = &store.Idempotency{ID: "request", Revision: revision}
		_, err = s.Save(store.WithCall(ctx, call), o, uuid)
		return err
	})
}

func ops(all ...model.Op) []model.Op { return all }

func uniqueScenarios() map[string]model.Scenario {
	save := func(uuid, body string) model.Op { return model.Save("Books", uuid, body) }
	update := func(uuid, body string) model.Op { return model.Update("Books", uuid, body) }
	remove := func(uuid string) model.Op { return model.Delete("Books", uuid) }
	return map[string]model.Scenario{
		"two objects are created": uniqueScenario(nil, ops(save("a", x)), ops(save("b", x))),
		"a value moves": uniqueScenario(ops(save("a", x)), ops(update("a", y)),
			ops(save("b", x))),
		"a value is given up and taken again": uniqueScenario(ops(save("a", x)),
			ops(update("a", y), update("a", x)), ops(save("b", x))),
		"two objects exchange their values": uniqueScenario(ops(save("a", x), save("b", y)),
			ops(update("a", "{}"), update("a", y)), ops(update("b", "{}"), update("b", x))),
		"an object is deleted and created again": uniqueScenario(ops(save("a", x)), ops(remove("a"), save("a", x)),
			ops(save("b", x))),
		"a request is repeated": uniqueScenario(nil, ops(saveOnce("a", x, model.Epoch+5)),
			ops(saveOnce("a", x, model.Epoch+5), remove("a")), ops(save("b", x))),
		"a repair runs while an object is created": uniqueScenario(nil, ops(save("a", x)), ops(repair("a")),
			ops(save("b", x))),

		"two clients change one object": withoutCrashes(uniqueScenario(ops(save("a", y)), ops(update("a", x)),
			ops(update("a", x)), ops(save("b", x)))),
		"clocks differ at a creation": withoutCrashes(uniqueScenario(nil, ops(model.Ahead(save("a", x), 10)),
			ops(save("a", x)), ops(save("b", x)))),
		"clocks differ at a deletion": withoutCrashes(uniqueScenario(ops(save("a", x)), ops(remove("a")),
			ops(model.Ahead(save("a", x), 10)), ops(save("b", x)))),
	}
}

// largeUniqueScenarios have too many states for each test run.
func largeUniqueScenarios() map[string]model.Scenario {
	save := func(uuid, body string) model.Op { return model.Save("Books", uuid, body) }
	update := func(uuid, body string) model.Op { return model.Update("Books", uuid, body) }
	remove := func(uuid string) model.Op { return model.Delete("Books", uuid) }
	return map[string]model.Scenario{
		"three objects are created": uniqueScenario(nil, ops(save("a", x)), ops(save("b", x)), ops(save("c", x))),
		"an object comes and goes": uniqueScenario(nil, ops(save("a", x), remove("a"), save("a", x)),
			ops(save("a", x), update("a", y), update("a", x)), ops(save("b", x), remove("b"), save("b", x))),
		"clocks differ": uniqueScenario(ops(save("a", x)), ops(model.Ahead(update("a", y), 10), update("a", x)),
			ops(remove("a"), model.Ahead(save("a", x), 10)),
			ops(save("a", x), save("b", x), model.Ahead(remove("b"), 5))),
		"repairs run": uniqueScenario(ops(save("a", x)), ops(update("a", y), update("a", x)),
			ops(repair("a"), repair("b")), ops(save("b", x), remove("b"))),
	}
}

func withoutCrashes(s model.Scenario) model.Scenario {
	s.CrashClients = false
	return s
}

// checkUnique checks, in each state, that no two objects have a value in common, and that each has its claim.
func checkUnique(ctx context.Context, set *store.Set, _ model.Histories) error {
	s := set.Store("Books")
	holders := map[string]string{}
	for o, err := range s.All(ctx, 100) {
		if err != nil {
			return err
		}
		slug, _ := object.Text(object.Field(o.Body, "slug"))
		if other := holders[slug]; other != "" {
			return fmt.Errorf("%s and %s both have %s", other, o.UUID, slug)
		}
		holders[slug] = o.UUID
		found, err := s.Claims().Check(ctx, o.UUID)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return fmt.Errorf("%s has %s without its claim", o.UUID, slug)
		}
	}
	return nil
}

func uniqueChecker(t *testing.T, s model.Scenario) *model.Checker {
	t.Helper()
	c, err := model.New(t.Context(), s, func(set *store.Set) []model.Consumer {
		set.Store("Books").Claims().Trust(true)
		return nil
	}, checkUnique)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The attempts of a write are few here: with each more the states are several times as many.
func TestValuesAreUniqueInEveryInterleaving(t *testing.T) {
	defer store.SetMaxAttempts(2)()
	for name, s := range uniqueScenarios() {
		t.Run(name, func(t *testing.T) {
			stats, err := uniqueChecker(t, s).Explore(t.Context(), 1_000_000)
			if err != nil {
				t.Fatal(err)
			}
			if !stats.Complete {
				t.Fatalf("not every state was visited: %v", stats)
			}
			t.Log(stats)
		})
	}
}

func TestSoakValuesAreUniqueInRandomSchedules(t *testing.T) {
	defer store.SetMaxAttempts(3)()
	scenarios := largeUniqueScenarios()
	checkers := make([]*model.Checker, 0, len(scenarios))
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		checkers = append(checkers, uniqueChecker(t, scenarios[name]))
	}
	for soak := kit.Soak(t, 40); soak.More(); {
		for _, c := range checkers {
			if _, err := c.Simulate(t.Context(), soak.Rand().Uint64()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
