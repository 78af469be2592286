package verify_test

import (
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/test/model"
)

// referencing has books that name authors, and no worker.
func referencing(t *testing.T, required bool, onDelete string) *fixture {
	t.Helper()
	set, err := model.OpenSet(t.Context(), model.NewMemory(), []store.Mapping{
		{Source: "Books", Target: "Authors", Key: "author", Cascade: onDelete == store.OnDeleteCascade},
	}, func(o *store.Options) {
		o.Arrays = nil
		if o.Name == "Books" {
			o.References = []store.Reference{{
				Field: "author", Target: "Authors", Required: required, Indexed: true, OnDelete: onDelete,
			}}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, set}
	f.save("Authors", "a", `{}`)
	f.save("Authors", "b", `{}`)
	f.save("Books", "x", `{"author":["b","a"]}`)
	f.save("Books", "y", `{"author":"b"}`)
	f.must(set.Store("Authors").Delete(store.WithCall(t.Context(), store.Call{Origin: event.OriginCascade}), "a", 0))
	return f
}

func (f *fixture) authorsOf(uuid string) string {
	f.Helper()
	x, err := f.set.Store("Books").Get(f.Context(), uuid)
	f.must(err)
	return string(object.Field(x.Body, "author"))
}

func TestDanglingReferencesAreReported(t *testing.T) {
	for name, of := range map[string]struct {
		required  bool
		onDelete  string
		kind      verify.Kind // "": no difference
		repaired  bool
		remaining string // what the object names after the repair
	}{
		"keep":             {false, store.OnDeleteKeep, "", false, `["b","a"]`},
		"keep, required":   {true, store.OnDeleteKeep, "", false, `["b","a"]`},
		"restrict":         {false, store.OnDeleteRestrict, verify.Broken, false, `["b","a"]`},
		"clear":            {false, store.OnDeleteClear, verify.Broken, true, `["b"]`},
		"cascade":          {false, store.OnDeleteCascade, verify.Undeleted, true, ``},
		"cascade required": {true, store.OnDeleteCascade, verify.Broken, false, ``},
	} {
		t.Run(name, func(t *testing.T) {
			f := referencing(t, of.required, of.onDelete)
			r, err := verify.Run(t.Context(), f.set, verify.Options{})
			f.must(err)
			if of.kind == "" != r.Clean() || of.kind != "" && r.Differences[0].Kind != of.kind {
				t.Errorf("differences %+v, want %q", r.Differences, of.kind)
			}
			if of.onDelete != store.OnDeleteCascade {
				want := verify.Dangling{Source: "Books", Field: "author", Target: "Authors", OnDelete: of.onDelete,
					Named: 1, UUID: "x", Holder: "a"}
				if len(r.Dangling) != 1 || r.Dangling[0] != want {
					t.Errorf("dangling %+v, want %+v", r.Dangling, want)
				}
			}
			r, err = verify.Run(t.Context(), f.set, verify.Options{Repair: true, Alone: true})
			f.must(err)
			if r.Clean() != (of.kind == "" || of.repaired || of.remaining == "") || of.repaired && r.Repaired != 1 && of.remaining != "" {
				t.Errorf("the repair leaves %+v, repaired %d", r.Differences, r.Repaired)
			}
			if of.remaining == "" {
				if exists, err := f.set.Store("Books").Exists(t.Context(), "x"); exists || err != nil {
					t.Errorf("the book stays: %v", err)
				}
			} else if got := f.authorsOf("x"); got != of.remaining {
				t.Errorf("the book names %s, want %s", got, of.remaining)
			}
			if got := f.authorsOf("y"); got != `"b"` {
				t.Errorf("the other book names %s", got)
			}
		})
	}
}

// An object of another owner stays when the object is deleted that it has to name. No difference comes of it, or any user
// could make one.
func TestObjectsThatACascadeSparesAreNoDifference(t *testing.T) {
	m := store.Mapping{Source: "Books", Target: "Authors", Key: "author", Cascade: true,
		SourceOwner: "owner", TargetOwner: "owner"}
	set, err := model.OpenSet(t.Context(), model.NewMemory(), []store.Mapping{m}, func(o *store.Options) {
		o.Arrays = nil
		if o.Name == "Books" {
			o.References = []store.Reference{{
				Field: "author", Target: "Authors", Required: true, Indexed: true, OnDelete: store.OnDeleteCascade,
			}}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, set}
	f.save("Authors", "a", `{"owner":"ann"}`)
	f.save("Books", "mine", `{"author":"a","owner":"ann"}`)
	f.save("Books", "strange", `{"author":"a","owner":"ben"}`)
	f.must(set.Store("Authors").Delete(t.Context(), "a", 0))
	for _, repair := range []bool{false, true} {
		r, err := verify.Run(t.Context(), set, verify.Options{Repair: repair, Alone: true})
		f.must(err)
		if r.Clean() != repair {
			t.Errorf("with repair %t the differences are %+v", repair, r.Differences)
		}
		for _, d := range r.Differences {
			if d.UUID != "mine" {
				t.Errorf("%+v", d)
			}
		}
		if len(r.Dangling) != 1 || r.Dangling[0].UUID != "strange" && r.Dangling[0].Named == 1 {
			t.Errorf("dangling %+v", r.Dangling)
		}
	}
	if exists, err := set.Store("Books").Exists(t.Context(), "strange"); !exists || err != nil {
		t.Errorf("a book of another owner is deleted: %v", err)
	}
}

// A reference that is not required may name an object that does not exist yet.
func TestObjectsThatWereNeverThereAreNoDifference(t *testing.T) {
	for _, onDelete := range []string{store.OnDeleteRestrict, store.OnDeleteClear, store.OnDeleteCascade} {
		f := referencing(t, false, onDelete)
		f.must(f.set.Store("Books").Delete(t.Context(), "x", 0))
		f.save("Books", "z", `{"author":"later"}`)
		r, err := verify.Run(t.Context(), f.set, verify.Options{Repair: true})
		f.must(err)
		if !r.Clean() || len(r.Dangling) != 1 || r.Dangling[0].UUID != "z" || f.authorsOf("z") != `"later"` {
			t.Errorf("%s: %+v, dangling %+v", onDelete, r.Differences, r.Dangling)
		}
	}
}

func TestReferencesOfManyObjectsAreCompared(t *testing.T) {
	f := referencing(t, false, store.OnDeleteClear)
	for range 1200 {
		f.save("Books", object.NewUUID(), `{"author":["a","b","none"]}`)
	}
	r, err := verify.Run(t.Context(), f.set, verify.Options{})
	f.must(err)
	if len(r.Differences)+r.More != 1201 || len(r.Dangling) != 1 || r.Dangling[0].Named != 2401 {
		t.Errorf("%d and %d differences, dangling %+v", len(r.Differences), r.More, r.Dangling)
	}
	r, err = verify.Run(t.Context(), f.set, verify.Options{Repair: true})
	f.must(err)
	if !r.Clean() || r.Repaired != 1201 {
		t.Errorf("the repair leaves %d and has repaired %d", len(r.Differences), r.Repaired)
	}
}
