package mapping_test

import (
	"testing"

	"belfry/pkg/event"
	encoded "belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// ownBooks are mapped into the arrays of authors of the same owner.
func ownBooks(limit int) []store.Mapping {
	m := books(limit)
	m[0].SourceOwner, m[0].TargetOwner = "owner", "owner"
	return m
}

// ownerScenarios are explored like smallScenarios.
func ownerScenarios() map[string]model.Scenario {
	book := func(uuid, owner string) model.Op {
		return model.Save("Books", uuid, `{"author":"a","owner":"`+owner+`"}`)
	}
	author := func(owner string) model.Op { return model.Save("Authors", "a", `{"owner":"`+owner+`"}`) }
	scenario := func(limit int, setup []model.Op, clients ...[]model.Op) model.Scenario {
		return model.Scenario{Mappings: ownBooks(limit), Setup: setup, AtomicClients: true, Clients: clients}
	}
	return map[string]model.Scenario{
		"a target is created again with another owner": scenario(0,
			[]model.Op{author("ann"), book("x", "ann"), book("y", "bob")},
			[]model.Op{model.Delete("Authors", "a"), author("bob")},
		),
		"the owner of a target changes while a source does": scenario(0,
			[]model.Op{author("ann"), book("x", "ann"), book("y", "bob")},
			[]model.Op{model.Update("Authors", "a", `{"owner":"bob"}`)},
			[]model.Op{model.Update("Books", "y", `{"title":"2"}`)},
		),
		gotOwner: scenario(0,
			[]model.Op{model.Save("Authors", "a", `{}`), book("x", "ann")},
			[]model.Op{model.Update("Authors", "a", `{"owner":"ann"}`)},
			[]model.Op{model.Update("Books", "x", `{"title":"2"}`)},
		),
		changedAtLimit: scenario(1,
			[]model.Op{author("ann"), book("x", "ann"), book("y", "bob"), book("z", "bob")},
			[]model.Op{model.Update("Authors", "a", `{"owner":"bob"}`)},
			[]model.Op{model.Delete("Books", "y")},
		),
	}
}

const (
	gotOwner       = "a target without an owner gets one"
	changedAtLimit = "the owner of a target changes whose array is at its limit"
)

// Each step by which arrays follow the owner of their target is necessary.
func TestModelFindsWhereOwnersAreMissed(t *testing.T) {
	t.Parallel()
	updated := func(e *event.Envelope) bool { return e.Store == "Authors" && e.Event == event.StoreUpdated }
	all := ownerScenarios()

	unnoticed := all["the owner of a target changes while a source does"]
	unnoticed.Fault.DropEvent = updated

	byPrevious := all[gotOwner]
	byPrevious.Clients = byPrevious.Clients[:1]
	byPrevious.Fault.DropEvent = func(e *event.Envelope) bool { return updated(e) && e.Previous["owner"] == nil }

	// A round that records the new owner, and reads the object of its event only.
	early := all["the owner of a target changes while a source does"]
	early.Fault.RewritePut = func(w *driver.Write) {
		o, err := encoded.Decode(w.Body)
		if err == nil && w.Event.Subject != "" && o["owner"] != nil && o["books"] != nil {
			o["_owners"] = []byte(`{"books":` + string(o["owner"]) + `}`)
			w.Body = o.Encode()
		}
	}
	for name, s := range map[string]model.Scenario{
		"nobody is notified of a new owner": unnoticed, "a new owner is recognized by the former one": byPrevious,
		"the owner is recorded before all objects were read": early,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.MaxInFlight = 2
			findFault(t, s, workers)
		})
	}
}

// A request that writes a target waits for the worker if the write may have changed its owner, which its arrays
// follow, and otherwise does not.
func TestARequestThatChangesTheOwnerOfATargetWaitsForItsArrays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mappings []store.Mapping
		want     int
	}{"by owner": {ownBooks(1), 1}, "without owners": {books(1), 0}} {
		set := store.NewSet(nil, c.mappings)
		if got := set.Workers(store.Cause{Event: event.StoreUpdated, Store: "Authors", Origin: event.OriginHTTP}); len(
			got) != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
