package cascade_test

import (
	"encoding/json"
	"strings"
	"testing"

	"belfry/listeners/cascade"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/model"
)

// owned gives the fixture albums and photos, of which those of the same owner are deleted with their album.
func (f *fixture) owned() {
	f.Helper()
	set, err := model.OpenSet(f.Context(), model.NewMemory(), []store.Mapping{{
		Source: "Photos", Target: "Albums", Key: "album", Array: "photos", Cascade: true, Limit: 100,
		SourceOwner: "user", TargetOwner: "user",
	}}, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.set, f.worker = set, cascade.NewWorker(set, cascade.Options{})
}

func (f *fixture) create(name, uuid, body string) {
	f.Helper()
	o, err := object.Parse([]byte(body))
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.set.Store(name).Save(f.Context(), o, uuid); err != nil {
		f.Fatal(err)
	}
}

// lastDeletion returns the event of the deletion that is pending in a store.
func (f *fixture) lastDeletion(name string) *event.Envelope {
	f.Helper()
	pending, _, err := f.set.Store(name).Driver().Pending(f.Context(), nil, 100)
	if err != nil {
		f.Fatal(err)
	}
	var e event.Envelope
	if err := json.Unmarshal(pending[len(pending)-1].Payload, &e); err != nil || e.Event != event.StoreDeleted {
		f.Fatalf("%v, %s", err, e.Event)
	}
	return &e
}

// The deletion of a target deletes objects of its owner only, however large the target was. One that is saved
// once the worker has looked is deleted by the worker of mappings, which finds the owner in the tombstone.
func TestACascadeBySameOwnerLeavesWhatStrangersOwn(t *testing.T) {
	for name, text := range map[string]string{"a small target": "",
		"a target too large for an event": strings.Repeat("x", 256<<10-200)} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.owned()
			f.create("Albums", "a", `{"user":"ann","text":"`+text+`"}`)
			f.create("Photos", "ann", `{"album":"a","user":"ann"}`)
			f.create("Photos", "bob", `{"album":"a","user":"bob"}`)
			f.create("Photos", "nobody", `{"album":"a"}`)
			if err := f.set.Store("Albums").Delete(t.Context(), "a", 0); err != nil {
				t.Fatal(err)
			}
			e := f.lastDeletion("Albums")
			if omitted := len(text) > 0; e.ObjectOmitted != omitted {
				t.Fatalf("omitted: %v", e.ObjectOmitted)
			}
			f.handle(e)
			f.create("Photos", "annLate", `{"album":"a","user":"ann"}`)
			f.create("Photos", "bobLate", `{"album":"a","user":"bob"}`)
			late := []string{"annLate", "bobLate"}
			if err := mapping.NewReconciler(f.set, mapping.Options{}).Reconcile(t.Context(), &f.set.Mappings()[0], "a",
				late); err != nil {
				t.Fatal(err)
			}
			for uuid, want := range map[string]bool{"ann": false, "annLate": false, "bob": true, "bobLate": true,
				"nobody": true} {
				if f.exists("Photos", uuid) != want {
					t.Errorf("%s exists: %v", uuid, !want)
				}
			}
		})
	}
}
