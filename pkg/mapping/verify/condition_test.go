package verify_test

import (
	"testing"

	"belfry/pkg/mapping/verify"
	"belfry/pkg/store/policy"
)

// published has the mapping of a fixture copy published books only.
func (f *fixture) published() {
	when, problems := policy.CompileCondition("source.published == true")
	if len(problems) > 0 {
		f.Fatal(problems)
	}
	f.set.Mappings()[0].When = when
}

// A condition that is added to a mapping over existing arrays hides entries, and one that is removed shows them again:
// verify reports both, with the reason, and a repair corrects them.
func TestArraysFollowAConditionThatChanges(t *testing.T) {
	f := newFixture(t, 10, "w")
	f.save("Books", "x", `{"author":"a","title":"t","published":true}`)
	f.reconcile("a", "x")
	f.published()
	const why = "the mapping's condition does not hold for the object"
	if found := f.run(verify.Options{}).Differences; len(found) != 1 || found[0].Detail != why {
		t.Errorf("%+v", found)
	}
	f.finds("extra w in a")
	f.set.Mappings()[0].When = nil
	f.finds("missing w in a")
}

func TestAnObjectThatAConditionHidesIsNotMissing(t *testing.T) {
	f := newFixture(t, 1)
	f.published()
	f.save("Books", "w", `{"author":"a","title":"t"}`)
	f.save("Books", "x", `{"author":"a","title":"t","published":true}`)
	f.save("Books", "y", `{"author":"a","title":"t","published":true}`)
	f.finds("missing x in a", "missing y in a")
	r := f.run(verify.Options{})
	if len(r.Full) != 1 || r.Full[0].Objects != 2 {
		t.Errorf("%+v, want an array at its limit of 2 objects", r.Full)
	}
}

// A condition says what is shown: what it hides is deleted with the target all the same.
func TestAnObjectThatAConditionHidesAndACascadeLeftIsReported(t *testing.T) {
	f := newFixture(t, 10)
	f.published()
	f.save("Books", "x", `{"author":"a"}`)
	f.must(f.set.Store("Authors").Delete(t.Context(), "a", 0))
	f.finds("undeleted x in a")
}
