package verify_test

import (
	"testing"

	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// sameOwner has the mapping of a fixture ask for the same owner.
func (f *fixture) sameOwner(source, target string) {
	f.set.Mappings()[0].SourceOwner, f.set.Mappings()[0].TargetOwner = source, target
}

// setOwner changes the owner of an author, behind the workers.
func (f *fixture) setOwner(author, owner string) {
	f.Helper()
	a, err := f.set.Store("Authors").Get(f.Context(), author)
	f.must(err)
	_, err = store.NewWorker(f.set.Store("Authors")).CompareAndSet(f.Context(), a,
		object.Object{"user": object.AppendString(nil, owner)})
	f.must(err)
}

func TestArraysFollowTheOwnerOfTheirTarget(t *testing.T) {
	f := newFixture(t, 10)
	f.setOwner("a", "ann")
	for uuid, body := range map[string]string{
		"ann": `{"author":"a","title":"t","user":"ann"}`, "bob": `{"author":["a","b"],"title":"t","user":"bob"}`,
		"nobody": `{"author":["a","b"],"title":"t"}`,
	} {
		f.save("Books", uuid, body)
	}
	f.reconcile("a", "ann", "bob", "nobody")
	f.reconcile("b", "bob", "nobody")
	f.sameOwner("user", "user")
	const why = "the object does not belong to the owner of the target"
	if found := f.run(verify.Options{}).Differences; len(found) != 4 || found[0].Detail != why {
		t.Errorf("%+v", found)
	}
	f.finds("extra bob in a", "extra bob in b", "extra nobody in a", "extra nobody in b")
	f.setOwner("a", "bob")
	f.finds("extra ann in a", "missing bob in a")
	f.setOwner("b", "bob")
	f.finds("missing bob in b")
	f.sameOwner("", "")
	f.finds("missing ann in a", "missing nobody in a", "missing nobody in b")
}

// Objects of strangers take no place of an array, and do not make verify report it as full.
func TestStrangersTakeNoPlaceOfAnArray(t *testing.T) {
	f := newFixture(t, 1)
	f.sameOwner("user", "user")
	f.setOwner("a", "ann")
	f.save("Books", "b1", `{"author":"a","title":"t","user":"bob"}`)
	f.save("Books", "b2", `{"author":"a","title":"t","user":"bob"}`)
	f.reconcile("a", "b1", "b2")
	f.save("Books", "x", `{"author":"a","title":"t","user":"ann"}`)
	f.finds("missing x in a")
	if r := f.run(verify.Options{}); len(r.Full) != 0 {
		t.Errorf("%+v", r.Full)
	}
}

// The tombstone of a target has its owner, so that verify finds what a cascade left, and a user is their own.
func TestVerifyDeletesWhatACascadeLeftOfTheSameOwner(t *testing.T) {
	for _, owner := range []string{"user", "uuid"} {
		f := ownedFixture(t, owner)
		f.setOwner("a", "a")
		f.save("Books", "own", `{"author":"a","user":"a"}`)
		f.save("Books", "stranger", `{"author":"a","user":"bob"}`)
		f.must(f.set.Store("Authors").Delete(t.Context(), "a", 0))
		f.finds("undeleted own in a")
		if r := f.run(verify.Options{Repair: true}); !r.Clean() {
			t.Errorf("%+v", r.Differences)
		}
		for uuid, left := range map[string]bool{"own": false, "stranger": true} {
			if found, err := f.set.Store("Books").Exists(t.Context(), uuid); err != nil || found != left {
				t.Errorf("by %s: %s exists: %v, %v", owner, uuid, found, err)
			}
		}
	}
}
