package cascade_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"belfry/listeners/cascade"
	"belfry/pkg/event"
	"belfry/pkg/mapping"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
	"belfry/test/model"
)

// owned gives the fixture albums and photos, of which those of the same owner are deleted with their
// album. sleep is called where the worker waits.
func (f *fixture) owned(sleep func(time.Duration)) {
	f.Helper()
	rules, problems := policy.Compile(policy.Rules{OwnerField: "user"})
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	set, err := model.OpenSet(f.Context(), model.NewMemory(), []store.Mapping{{
		Source: "Photos", Target: "Albums", Key: "album", Array: "photos", Cascade: true, Limit: 100, SourceOwner: "user", TargetOwner: "user",
	}}, func(o *store.Options) { o.Policy = rules })
	if err != nil {
		f.Fatal(err)
	}
	f.set = set
	f.worker = cascade.NewWorker(set, cascade.Options{Sleep: func(_ context.Context, d time.Duration) error {
		sleep(d)
		return nil
	}})
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

// The deletion of a target deletes objects of its owner only, also of those that are saved during the
// deletion, and however large the target was.
func TestACascadeBySameOwnerLeavesWhatStrangersOwn(t *testing.T) {
	for name, text := range map[string]string{"a small target": "", "a target too large for an event": strings.Repeat("x", 256<<10-200)} {
		t.Run(name, func(t *testing.T) {
			f, slept := newFixture(t), time.Duration(0)
			f.owned(func(d time.Duration) {
				slept = d
				f.create("Photos", "annLate", `{"album":"a","user":"ann"}`)
				f.create("Photos", "bobLate", `{"album":"a","user":"bob"}`)
			})
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
			for uuid, want := range map[string]bool{"ann": false, "annLate": false, "bob": true, "bobLate": true, "nobody": true} {
				if f.exists("Photos", uuid) != want {
					t.Errorf("%s exists: %v", uuid, !want)
				}
			}
			if slept <= 0 || slept > mapping.GracePeriod {
				t.Errorf("it waited for %v", slept)
			}
		})
	}
}

// A worker that handles a deletion after the grace period has nothing to wait for.
func TestACascadeBySameOwnerThatIsLateDoesNotWait(t *testing.T) {
	f := newFixture(t)
	f.owned(func(time.Duration) { t.Error("it waits") })
	f.create("Albums", "a", `{"user":"ann"}`)
	f.create("Photos", "ann", `{"album":"a","user":"ann"}`)
	if err := f.set.Store("Albums").Delete(t.Context(), "a", 0); err != nil {
		t.Fatal(err)
	}
	e := f.lastDeletion("Albums")
	f.worker = cascade.NewWorker(f.set, cascade.Options{Now: func() time.Time { return time.Now().Add(mapping.GracePeriod) }})
	f.handle(e)
	if f.exists("Photos", "ann") {
		t.Error("the photo is left")
	}
}
