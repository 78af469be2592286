package store_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/kit"
	"belfry/test/model"
)

// pendingScenario has clients that write to Books while the claims of its slugs are pending. Some are of processes
// without the constraint; one collects the claims.
type pendingScenario struct {
	model.Scenario
	set *store.Set
}

func newPendingScenario(setup []model.Op, clients ...[]model.Op) *pendingScenario {
	p := &pendingScenario{Scenario: uniqueScenario(setup, clients...)}
	p.Mappings = append(p.Mappings, store.Mapping{Source: "State", Target: "State", Key: "none"})
	unique := p.Options
	p.Options = func(o *store.Options) {
		unique(o)
		if o.CollectWait = -1; o.Name == "State" {
			o.Unique = nil
		}
	}
	return p
}

func (p *pendingScenario) withoutCrashes() *pendingScenario {
	p.Scenario = withoutCrashes(p.Scenario)
	return p
}

// collected is how far the claims are collected.
type collected struct {
	Place    string   // the last object that was read
	Named    []string // objects with the value of another one
	Complete bool
}

// collecting adds a client that collects the claims of two objects once the clients without the constraint have ended
// their first operations. If it crashes, another one continues.
func (p *pendingScenario) collecting(after map[int]int) *pendingScenario {
	op := model.Do("collect", "Books", "all", p.collect)
	for client, operations := range after {
		op = model.After(op, client, operations)
	}
	all := []model.Op{op}
	if p.CrashClients {
		all = append(all, op)
	}
	p.Clients = append(p.Clients, all)
	return p
}

func (p *pendingScenario) collect(ctx context.Context, s *store.Store) error {
	state := p.set.Store("State").Driver()
	record, _, err := state.Get(ctx, "collected")
	if err != nil {
		return err
	}
	at := decodeCollected(record)
	for _, uuid := range []string{"a", "b"} {
		if at.Complete || uuid <= at.Place {
			continue
		}
		found, err := s.Claims().Collect(ctx, uuid)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			at.Named = append(at.Named, uuid)
		}
		at.Place, at.Complete = uuid, uuid == "b"
		body, err := json.Marshal(at)
		if err != nil {
			return err
		}
		w := driver.Write{UUID: "collected", IfRevision: record.Revision, Revision: record.Revision + 1, Body: body}
		if err := state.Put(ctx, w); err != nil {
			return err
		}
		record.Revision++
	}
	return nil
}

func decodeCollected(record driver.Record) (at collected) {
	if len(record.Body) > 0 {
		if err := json.Unmarshal(record.Body, &at); err != nil {
			panic(err)
		}
	}
	return at
}

// plain makes an operation one of a process without the constraint.
func plain(o model.Op) model.Op {
	return model.Through(o, func(s *store.Store) *store.Store {
		return s.WithOptions(func(o *store.Options) { o.Unique = nil })
	})
}

func pendingScenarios() map[string]*pendingScenario {
	save := func(uuid, body string) model.Op { return model.Save("Books", uuid, body) }
	update := func(uuid, body string) model.Op { return model.Update("Books", uuid, body) }
	remove := func(uuid string) model.Op { return model.Delete("Books", uuid) }
	return map[string]*pendingScenario{
		"an object is created beside one of a process without it": newPendingScenario(nil,
			ops(plain(save("a", x))), ops(save("b", x))).collecting(map[int]int{0: 1}),
		"an object gets the value of one that there was": newPendingScenario(ops(plain(save("a", x))),
			ops(update("a", y)), ops(save("b", x))).collecting(nil),
		"two objects that there were have one value": newPendingScenario(ops(plain(save("a", x)), plain(save("b", x))),
			ops(update("a", y)), ops(update("b", y))).collecting(nil),
		"the owner of a claim of before gets the value " +
			"without it": newPendingScenario(ops(save("a", x), plain(update("a", y))),
			ops(plain(update("a", x))), ops(save("b", x))).collecting(map[int]int{0: 1}),
		"a value is given up, and given again without a claim": newPendingScenario(ops(save("a", x)),
			ops(update("a", y)), ops(plain(update("a", x)))).collecting(map[int]int{1: 1}),
		"an object is deleted and created again without a claim": newPendingScenario(ops(save("a", x)),
			ops(plain(remove("a")), plain(save("a", x))), ops(save("b", x))).collecting(map[int]int{0: 2}),
		"a process gets the constraint": newPendingScenario(nil,
			ops(plain(save("a", x)), update("a", y)), ops(save("b", y))).collecting(map[int]int{0: 1}),
		"a process gets the constraint, and clocks differ": newPendingScenario(nil, ops(model.Ahead(save("a", x), 10)),
			ops(plain(save("a", x)), remove("a"))).withoutCrashes().collecting(map[int]int{1: 1}),
	}
}

// checkCollected checks that once the claims are complete, each object has those of its values, except objects that the
// collection has named. So nobody gets a value that another object has.
func checkCollected(ctx context.Context, set *store.Set, _ model.Histories) error {
	record, _, err := set.Store("State").Driver().Get(ctx, "collected")
	if err != nil {
		return err
	}
	at := decodeCollected(record)
	if !at.Complete {
		return nil
	}
	s := set.Store("Books")
	for o, err := range s.All(ctx, 100) {
		if err != nil {
			return err
		}
		found, err := s.Claims().Check(ctx, o.UUID)
		if err != nil {
			return err
		}
		if len(found) > 0 && !slices.Contains(at.Named, o.UUID) {
			slug, _ := object.Text(object.Field(o.Body, "slug"))
			return fmt.Errorf("%s has %s without its claim, and nobody has named it: %+v", o.UUID, slug, found[0])
		}
	}
	return nil
}

func pendingChecker(t *testing.T, p *pendingScenario) *model.Checker {
	t.Helper()
	c, err := model.New(t.Context(), p.Scenario, func(set *store.Set) []model.Consumer {
		p.set = set
		return nil
	}, checkCollected)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClaimsAreCollectedInEveryInterleaving(t *testing.T) {
	defer store.SetMaxAttempts(2)()
	for name, p := range pendingScenarios() {
		t.Run(name, func(t *testing.T) {
			stats, err := pendingChecker(t, p).Explore(t.Context(), 1_000_000)
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

// The collection of larger scenarios is followed by writes of all processes.
func TestSoakClaimsAreCollectedInRandomSchedules(t *testing.T) {
	defer store.SetMaxAttempts(3)()
	save := func(uuid, body string) model.Op { return model.Save("Books", uuid, body) }
	update := func(uuid, body string) model.Op { return model.Update("Books", uuid, body) }
	remove := func(uuid string) model.Op { return model.Delete("Books", uuid) }
	checkers := []*model.Checker{
		pendingChecker(t, newPendingScenario(ops(save("a", x), plain(update("a", y))),
			ops(plain(update("a", x)), plain(remove("a")), plain(save("a", x)), update("a", y), update("a", x)),
			ops(save("b", x), update("b", y), remove("b"), save("b", x))).collecting(map[int]int{0: 3})),
		pendingChecker(t, newPendingScenario(ops(save("a", x)),
			ops(plain(update("a", y)), update("a", x)), ops(plain(save("b", x)), plain(update("b", y)), update("b", x)),
			ops(update("a", y), model.Ahead(save("b", y), 10), update("a", x))).collecting(map[int]int{0: 1, 1: 2})),
	}
	for soak := kit.Soak(t, 40); soak.More(); {
		for _, c := range checkers {
			if _, err := c.Simulate(t.Context(), soak.Rand().Uint64()); err != nil {
				t.Fatal(err)
			}
		}
	}
}
