package verify_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/mapping"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

// newWide is a set of targets, each with one object that its array lacks.
func newWide(t *testing.T, targets int, backend driver.Backend) *fixture {
	set, err := model.OpenSet(t.Context(), backend, []store.Mapping{{
		Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}, Cascade: true,
		Limit: 10,
	}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, set}
	for i := range targets {
		author := fmt.Sprint("a", i)
		f.save("Authors", author, `{}`)
		f.save("Books", "of-"+author, `{"author":"`+author+`"}`)
	}
	return f
}

// Differences are read again together: a hundred of them take as long as one.
func TestAllDifferencesAreReadAgainInTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWide(t, 100, model.NewMemory())
		began := time.Now()
		r := f.run(verify.Options{RecheckFor: 15 * time.Second})
		if took := time.Since(began); len(r.Differences) != 100 || took < 15*time.Second || took > 20*time.Second {
			t.Errorf("%d differences after %s, want 100 after 15 s", len(r.Differences), took)
		}
	})
}

// A repair waits for nothing: workers that make the same correction do no harm.
func TestARepairStartsAtOnceAlsoWhereWorkersMayRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newWide(t, 100, model.NewMemory())
		began := time.Now()
		r := f.run(verify.Options{Repair: true, RecheckFor: 15 * time.Second})
		if took := time.Since(began); !r.Clean() || r.Repaired != 100 || took > time.Second {
			t.Errorf("%d repaired after %s, and left %+v", r.Repaired, took, r.Differences)
		}
	})
}

func TestAnInterruptedRepairIsContinuedByTheNext(t *testing.T) {
	hooked := &model.Hooked{Backend: model.NewMemory()}
	f := newWide(t, 100, hooked)
	ctx, interrupt := context.WithCancel(t.Context())
	var writes atomic.Int64
	hooked.BeforePut = func(context.Context, string, driver.Write) error {
		if writes.Add(1) == 30 {
			interrupt()
		}
		return nil
	}
	var progress verify.Tracker
	if _, err := verify.Run(ctx, f.set, verify.Options{Repair: true, Tracker: &progress}); !errors.Is(err,
		context.Canceled) {
		t.Fatalf("an interrupted repair returned %v", err)
	}
	p := progress.Progress()
	if p.Objects != 100 || p.Targets != 100 || p.Differ != 100 || p.Repaired < 10 || p.Repaired > 50 {
		t.Errorf("it was interrupted at %+v", p)
	}
	r := f.run(verify.Options{Repair: true})
	if !r.Clean() || r.Repaired == 0 || r.Repaired+int(p.Repaired) > 100 {
		t.Errorf("%d repaired after %d, and left %+v", r.Repaired, p.Repaired, r.Differences)
	}
}

// One array that can't be written does not keep the others from being repaired, and the report says why it is left.
func TestAnArrayThatCannotBeWrittenIsReportedAndTheOthersAreRepaired(t *testing.T) {
	hooked := &model.Hooked{Backend: model.NewMemory()}
	f := newWide(t, 40, hooked)
	hooked.BeforePut = func(_ context.Context, _ string, w driver.Write) error {
		if w.UUID == "a7" {
			return errs.New(errs.TooLarge, "the record is too large")
		}
		return nil
	}
	r := f.run(verify.Options{Repair: true})
	if r.Repaired != 39 || len(r.Differences) != 1 || r.Differences[0].Holder != "a7" ||
		!strings.Contains(r.Differences[0].Detail, "the record is too large") {
		t.Errorf("%d repaired, and left %+v", r.Repaired, r.Differences)
	}
}

// newShelves is a cascade over three stores, whose last one has no array.
func newShelves(t *testing.T) *fixture {
	set, err := model.OpenSet(t.Context(), model.NewMemory(), []store.Mapping{
		{Source: "Books", Target: "Authors", Key: "author", Array: "books", Cascade: true, Limit: 10},
		{Source: "Pages", Target: "Books", Key: "book", Cascade: true},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t, set}
	f.save("Authors", "a", `{}`)
	f.save("Books", "x", `{"author":"a"}`)
	f.save("Pages", "p", `{"book":"x"}`)
	f.must(mapping.NewReconciler(set, mapping.Options{}).Reconcile(t.Context(), &set.Mappings()[0], "a", []string{"x"}))
	return f
}

func TestAnObjectThatACascadeWithoutAnArrayLeftIsReportedAndDeleted(t *testing.T) {
	f := newShelves(t)
	if r := f.run(verify.Options{}); !r.Clean() || r.Mappings != 1 {
		t.Fatalf("%+v", r)
	}
	f.must(f.set.Store("Books").Delete(t.Context(), "x", 0))
	f.must(mapping.NewReconciler(f.set, mapping.Options{}).Reconcile(t.Context(), &f.set.Mappings()[0], "a",
		[]string{"x"}))
	f.finds("undeleted p in x")
}

// Where no workers run, a repair also corrects what its own deletions make wrong.
func TestARepairFollowsItsOwnDeletions(t *testing.T) {
	f := newShelves(t)
	f.must(f.set.Store("Authors").Delete(t.Context(), "a", 0))
	if r := f.run(verify.Options{Repair: true, Alone: true}); !r.Clean() || r.Repaired != 2 {
		t.Errorf("%d repaired, and left %+v", r.Repaired, r.Differences)
	}
	if r := f.run(verify.Options{}); !r.Clean() || r.Objects != 0 {
		t.Errorf("after the repair: %+v", r)
	}
	for name, uuid := range map[string]string{"Books": "x", "Pages": "p"} {
		if found, err := f.set.Store(name).Exists(t.Context(), uuid); err != nil || found {
			t.Errorf("%s %s exists: %v, %v", name, uuid, found, err)
		}
	}
}
