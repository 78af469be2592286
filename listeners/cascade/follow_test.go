package cascade_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"belfry/listeners/cascade"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/model"
)

// clearingFixture is pets with owners: the deletion of one clears the reference. A pet has private references, too.
func clearingFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{T: t}
	f.remaining.Store(-1)
	backend := &model.Hooked{Backend: model.NewMemory(), BeforePut: f.put}
	set, err := model.OpenSet(t.Context(), backend, []store.Mapping{
		{Source: "Pets", Target: "People", Key: "owner", Array: "pets", Limit: 10_000},
		{Source: "Guests", Target: "People", Key: "host", Array: "guests", Limit: 10_000},
	}, func(o *store.Options) {
		if o.Name == "Pets" {
			o.Private = []string{"secret"}
			o.References = []store.Reference{
				{Field: "owner", Target: "People", Indexed: true, OnDelete: store.OnDeleteClear},
				{Field: "secret", Target: "People", Indexed: true, OnDelete: store.OnDeleteClear},
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	f.set, f.worker = set, cascade.NewWorker(set, cascade.Options{})
	return f
}

// field returns a field of an object, and when a client has last written it.
func (f *fixture) field(name, uuid, field string) (value, updated string) {
	f.Helper()
	x, err := f.set.Store(name).Get(f.Context(), uuid)
	if err != nil {
		f.Fatal(err)
	}
	return string(object.Field(x.Body, field)), string(object.Field(x.Body, "updated"))
}

// last returns the last pending event of an object.
func (f *fixture) last(name, uuid string) *event.Envelope {
	f.Helper()
	pending, _, err := f.set.Store(name).Driver().Pending(f.Context(), nil, 100_000)
	if err != nil {
		f.Fatal(err)
	}
	var last *event.Envelope
	for _, p := range pending {
		if p.UUID == uuid {
			last = new(event.Envelope)
			if err := json.Unmarshal(p.Payload, last); err != nil {
				f.Fatal(err)
			}
		}
	}
	return last
}

func TestADeletionClearsReferences(t *testing.T) {
	f := clearingFixture(t)
	f.save("People", "p", "name", "p")
	f.save("People", "other", "name", "other")
	for i := range 1100 {
		f.save("Pets", fmt.Sprint("pet", i), "owner", "p")
	}
	f.save("Pets", "stays", "owner", "other")
	f.save("Pets", "hidden", "secret", "p")
	f.save("Guests", "g", "host", "p")
	_, before := f.field("Pets", "pet7", "owner")
	f.handle(f.delete("People", "p"))
	for i := range 1100 {
		if owner, _ := f.field("Pets", fmt.Sprint("pet", i), "owner"); owner != "" {
			t.Fatalf("pet %d names %s", i, owner)
		}
	}
	if _, after := f.field("Pets", "pet7", "owner"); after != before {
		t.Errorf("updated is %s, was %s", after, before)
	}
	if owner, _ := f.field("Pets", "stays", "owner"); owner != `"other"` {
		t.Errorf("the pet of another person names %s", owner)
	}
	if secret, _ := f.field("Pets", "hidden", "secret"); secret != "" {
		t.Errorf("the private reference names %s", secret)
	}
	if host, _ := f.field("Guests", "g", "host"); host != `"p"` {
		t.Errorf("the guest, which has no reference, names %s", host)
	}
	e := f.last("Pets", "pet7")
	if e.Event != event.StoreUpdated || e.Origin != event.OriginCascade || string(e.Previous["owner"]) != `"p"` {
		t.Errorf("the event of the cleared object: %+v", e)
	}
}

func TestElementsOfAnArrayAreCleared(t *testing.T) {
	f := clearingFixture(t)
	f.save("People", "1", "name", "one")
	if _, err := f.set.Store("Pets").Save(t.Context(), object.Object{
		"owner": []byte(`["x", 1, null, {"a":[1]}, "1", "y"]`)}, "pet"); err != nil {
		t.Fatal(err)
	}
	f.handle(f.delete("People", "1"))
	if owner, _ := f.field("Pets", "pet", "owner"); owner != `["x",null,{"a":[1]},"y"]` {
		t.Errorf("the pet names %s", owner)
	}
}

// An object that is written while what it names is deleted has an event of its own, which has the reference cleared.
func TestTheEventOfAnObjectClearsItsReferences(t *testing.T) {
	f := clearingFixture(t)
	f.save("People", "p", "name", "p")
	f.delete("People", "p")
	f.save("Pets", "pet", "owner", "p")
	f.save("Pets", "hidden", "secret", "p")
	f.save("Pets", "moved", "owner", "later")
	if _, err := f.set.Store("Pets").Update(t.Context(), object.Object{"owner": []byte(`["later","p"]`),
		"text": object.AppendString(nil, strings.Repeat("x", 250<<10))}, store.UpdateOptions{UUID: "moved"}); err != nil {
		t.Fatal(err)
	}
	for _, uuid := range []string{"pet", "hidden", "moved"} {
		f.handle(f.last("Pets", uuid))
	}
	for uuid, want := range map[string]string{"pet": "", "moved": `["later"]`} {
		if owner, _ := f.field("Pets", uuid, "owner"); owner != want {
			t.Errorf("%s names %s, want %s", uuid, owner, want)
		}
	}
	if secret, _ := f.field("Pets", "hidden", "secret"); secret != "" {
		t.Errorf("the private reference names %s", secret)
	}
}

func TestAnEventOfAnUnchangedReferenceReadsNothing(t *testing.T) {
	f := clearingFixture(t)
	f.save("People", "p", "name", "p")
	f.delete("People", "p")
	f.save("Pets", "pet", "owner", "p")
	if _, err := f.set.Store("Pets").Update(t.Context(), object.Object{"name": []byte(`"x"`)},
		store.UpdateOptions{UUID: "pet"}); err != nil {
		t.Fatal(err)
	}
	f.handle(f.last("Pets", "pet"))
	if owner, _ := f.field("Pets", "pet", "owner"); owner != `"p"` {
		t.Errorf("the event of another field has the reference cleared: %s", owner)
	}
}

func TestReferencesWrittenSinceTheTargetWasCreatedAgainStay(t *testing.T) {
	f := clearingFixture(t)
	f.save("People", "p", "name", "p")
	f.save("Pets", "old", "owner", "p")
	f.save("Pets", "changed", "owner", "p")
	e := f.delete("People", "p")
	f.save("People", "p", "name", "again")
	f.save("Pets", "new", "owner", "p")
	if _, err := f.set.Store("Pets").Update(t.Context(), object.Object{"name": []byte(`"x"`)},
		store.UpdateOptions{UUID: "changed"}); err != nil {
		t.Fatal(err)
	}
	f.handle(e)
	for uuid, want := range map[string]string{"old": "", "changed": `"p"`, "new": `"p"`} {
		if owner, _ := f.field("Pets", uuid, "owner"); owner != want {
			t.Errorf("%s names %s, want %s", uuid, owner, want)
		}
	}
}
