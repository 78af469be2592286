package aggregates_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/mapping/aggregates"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/aggregate"
	"belfry/pkg/store/driver"
	"belfry/test/model"
)

var everyFunction = []store.Aggregate{
	{Property: "n", Function: "count"},
	{Property: "sum", Function: "sum", Field: "v"},
	{Property: "least", Function: "min", Field: "v"},
	{Property: "greatest", Function: "max", Field: "v"},
	{Property: "last", Function: "max", Field: "at"},
}

func ratings() []store.Mapping {
	return []store.Mapping{{Source: "Ratings", Target: "Recipes", Key: "recipe", Aggregates: everyFunction}}
}

type fixture struct {
	*testing.T
	set    *store.Set
	engine *aggregates.Engine
	m      *store.Mapping
	hooks  *model.Hooked
	absent []string
}

func newFixture(t *testing.T, mappings []store.Mapping) *fixture {
	t.Helper()
	f := &fixture{T: t, hooks: &model.Hooked{Backend: model.NewMemory()}}
	f.open(mappings)
	return f
}

// open opens the stores with mappings, which may be others than before.
func (f *fixture) open(mappings []store.Mapping) {
	f.Helper()
	set, err := model.OpenSet(f.Context(), f.hooks, mappings, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.set, f.m = set, &set.Aggregating()[0]
	f.engine = aggregates.New(set, aggregates.Options{AtOnce: 1,
		OnAbsent: func(_ *store.Mapping, property string) { f.absent = append(f.absent, property) }})
}

func (f *fixture) save(name, uuid, body string) {
	f.Helper()
	o, err := object.Parse([]byte(body))
	if err == nil {
		_, err = f.set.Store(name).Save(f.Context(), o, uuid)
	}
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) update(name, uuid, body string) {
	f.Helper()
	o, err := object.Parse([]byte(body))
	if err == nil {
		_, err = f.set.Store(name).Update(f.Context(), o, store.UpdateOptions{UUID: uuid})
	}
	if err != nil {
		f.Fatal(err)
	}
}

// apply applies objects to a target.
func (f *fixture) apply(target, owner string, sources ...string) {
	f.Helper()
	p := aggregates.Place{Mapping: f.m, Target: target, Owner: owner}
	if err := f.engine.Apply(f.Context(), p, sources, false, nil); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) check(target, want string) {
	f.Helper()
	o, err := f.set.Store("Recipes").Get(f.Context(), target)
	if err != nil {
		f.Fatal(err)
	}
	var has []string
	for _, a := range f.m.Aggregates {
		if value := object.Field(o.Body, a.Property); value != nil {
			has = append(has, a.Property+"="+string(value))
		}
	}
	if got := strings.Join(has, " "); got != want {
		f.Errorf("%s has\n%.300s, want\n%.300s", target, got, want)
	}
}

func (f *fixture) records() driver.Store { return f.set.Store("Recipes").Aggregates().Records() }

// verify returns the differences that a verification reports.
func (f *fixture) verify(repair bool) (all []string) {
	f.Helper()
	report, err := verify.Run(f.Context(), f.set, verify.Options{Repair: repair, Alone: true})
	if err != nil {
		f.Fatal(err)
	}
	for _, d := range report.Differences {
		all = append(all, fmt.Sprintf("%s %s.%s %s", d.Kind, d.Holder, d.Array, d.Detail))
	}
	return all
}

// A table of values: what each function makes of them, and what is left once they are removed again.
func TestFunctions(t *testing.T) {
	long := strings.Repeat("a", 800)
	for _, c := range []struct {
		name   string
		values []string
		want   string
	}{
		{"no objects", nil, "n=0 sum=0"},
		{"numbers", []string{`"v":3`, `"v":0.1`, `"v":-2`, `"v":0.2`}, "n=4 sum=1.3 least=-2 greatest=3"},
		{"absent and null", []string{`"x":1`, `"v":null`}, "n=2 sum=0"},
		{"times", []string{`"at":"2026-01-02"`, `"at":"2026-01-10"`}, `n=2 sum=0 last="2026-01-10"`},
		{"texts", []string{`"v":"b"`, `"v":"\u0061"`}, `n=2 sum=0 least="a" greatest="b"`},
		{"types in the order of lists", []string{`"v":"1"`, `"v":7`, `"v":true`}, `n=3 sum=7 least=true greatest="1"`},
		{"arrays and objects", []string{`"v":[1]`, `"v":{"a":1}`, `"v":2`}, "n=3 sum=2 least=2 greatest=2"},
		{"large integers", []string{`"v":9007199254740993`, `"v":9007199254740992`},
			"n=2 sum=18014398509481985 least=9007199254740992 greatest=9007199254740993"},
		{"a sum with more than 34 digits", []string{`"v":1e40`, `"v":1`}, "n=2 least=1 greatest=1e40"},
		{"a number that can't be summed", []string{`"v":1e101`, `"v":1`}, "n=2 least=1 greatest=1e101"},
		{"a text that is too long", []string{`"v":"` + long + `"`, `"v":"b"`}, "n=2 sum=0"},
		{"texts with the same beginning", []string{`"v":"` + long[:700] + `b"`, `"v":"` + long[:700] + `a"`},
			`n=2 sum=0 least="` + long[:700] + `a" greatest="` + long[:700] + `b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, ratings())
			f.save("Recipes", "r", `{}`)
			var all []string
			for i, value := range c.values {
				uuid := fmt.Sprintf("x%d", i)
				f.save("Ratings", uuid, `{"recipe":"r",`+value+`}`)
				all = append(all, uuid)
			}
			f.apply("r", "", all...)
			f.check("r", c.want)
			if found := f.verify(false); found != nil {
				t.Errorf("verify reports %v", found)
			}
			missing := !strings.Contains(c.want, "sum") || c.name == "a text that is too long"
			if missing == (f.absent == nil) {
				t.Errorf("properties that were left out: %v", f.absent)
			}
			for _, uuid := range all {
				if err := f.set.Store("Ratings").Delete(t.Context(), uuid, 0); err != nil {
					t.Fatal(err)
				}
			}
			f.apply("r", "", all...)
			f.check("r", "n=0 sum=0")
		})
	}
}

// The number of requests for one more object is the same for any number of objects.
func TestCostDoesNotGrow(t *testing.T) {
	f := newFixture(t, ratings())
	f.save("Recipes", "r", `{}`)
	cost := func(uuid string) (n int) {
		f.save("Ratings", uuid, `{"recipe":"r","v":1}`)
		f.hooks.BeforeGet = func(context.Context, string, string) error { n++; return nil }
		f.hooks.BeforePut = func(context.Context, string, driver.Write) error { n++; return nil }
		f.apply("r", "", uuid)
		f.hooks.BeforeGet, f.hooks.BeforePut = nil, nil
		return n
	}
	cost("first")
	few := cost("second")
	var all []string
	for i := range 600 {
		uuid := fmt.Sprintf("x%03d", i)
		f.save("Ratings", uuid, `{"recipe":"r","v":2}`)
		all = append(all, uuid)
	}
	f.apply("r", "", all...)
	f.check("r", "n=602 sum=1202 least=1 greatest=2")
	cost("again") // which may read what the last write has counted
	if many := cost("last"); many > few {
		t.Errorf("%d requests with many objects, %d with two", many, few)
	}
}

// A worker that stalls before it has written a contribution, and resumes long after others have done so and after the
// object was deleted, changes nothing.
func TestAStalledWriteOfAContribution(t *testing.T) {
	f := newFixture(t, ratings())
	f.save("Recipes", "r", `{}`)
	f.save("Ratings", "x", `{"recipe":"r","v":1}`)
	errStalled := errors.New("stalled")
	var stalled *driver.Write
	f.hooks.BeforePut = func(_ context.Context, name string, w driver.Write) error {
		if stalled == nil && name == "Recipes.aggregates" && strings.Contains(w.UUID, "-") {
			stalled = &w
			return errStalled
		}
		return nil
	}
	p := aggregates.Place{Mapping: f.m, Target: "r"}
	if err := f.engine.Apply(t.Context(), p, []string{"x"}, false, nil); !errors.Is(err, errStalled) {
		t.Fatal(err)
	}
	f.apply("r", "", "x")
	f.check("r", "n=1 sum=1 least=1 greatest=1")
	if err := f.set.Store("Ratings").Delete(t.Context(), "x", 0); err != nil {
		t.Fatal(err)
	}
	f.apply("r", "", "x")
	if err := f.records().Put(t.Context(), *stalled); err == nil {
		t.Error("a contribution that was removed is there again")
	}
	f.check("r", "n=0 sum=0")
	if found := f.verify(false); found != nil {
		t.Errorf("verify reports %v", found)
	}
}

// What a worker that crashed has counted is completed by the next one, also for another object.
func TestChangesOfACrashedWorkerAreMade(t *testing.T) {
	f := newFixture(t, ratings())
	f.save("Recipes", "r", `{}`)
	f.save("Ratings", "x", `{"recipe":"r","v":1}`)
	f.save("Ratings", "y", `{"recipe":"r","v":2}`)
	crash := errors.New("crash")
	f.hooks.BeforePut = func(_ context.Context, name string, w driver.Write) error {
		if name == "Recipes.aggregates" && strings.Contains(w.UUID, "-") {
			return crash
		}
		return nil
	}
	p := aggregates.Place{Mapping: f.m, Target: "r"}
	if err := f.engine.Apply(t.Context(), p, []string{"x"}, false, nil); !errors.Is(err, crash) {
		t.Fatal(err)
	}
	f.hooks.BeforePut = nil
	f.apply("r", "", "y")
	f.check("r", "n=2 sum=3 least=1 greatest=2")
	f.apply("r", "", "x")
	f.check("r", "n=2 sum=3 least=1 greatest=2")
}

// An accumulator without contributions stays as long as its target needs it, and no longer.
func TestAccumulatorsAreRemoved(t *testing.T) {
	f := newFixture(t, ratings())
	f.save("Ratings", "x", `{"recipe":"r","v":1}`)
	f.apply("r", "", "x")
	id := aggregate.Place{Source: "Ratings", Target: "r"}.ID()
	exists := func() bool {
		record, found, err := f.records().Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return found && !record.Deleted
	}
	if !exists() {
		t.Error("a target that will be created has no accumulator")
	}
	f.save("Recipes", "r", `{}`)
	if err := f.engine.Fill(t.Context(), f.m, "r", nil); err != nil {
		t.Fatal(err)
	}
	f.check("r", "n=1 sum=1 least=1 greatest=1")
	if err := f.set.Store("Recipes").Delete(t.Context(), "r", 0); err != nil {
		t.Fatal(err)
	}
	f.update("Ratings", "x", `{"recipe":"other"}`)
	f.apply("r", "", "x")
	if exists() {
		t.Error("the accumulator of a target that was deleted stays without contributions")
	}
}

// What is computed after the records were begun anew, as by a restore, is current for the next process.
func TestAggregatesThatARestoreComputesAreCurrent(t *testing.T) {
	f := newFixture(t, ratings())
	f.save("Recipes", "r", `{}`)
	f.save("Ratings", "x", `{"recipe":"r","v":1}`)
	f.apply("r", "", "x")
	f.check("r", "n=1 sum=1 least=1 greatest=1")
	if err := f.set.Store("Recipes").Aggregates().Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if found := f.verify(false); len(found) == 0 {
		t.Error("aggregates of a former generation are current")
	}
	if found := f.verify(true); len(found) > 0 {
		t.Errorf("a repair leaves %q", found)
	}
	f.open(ratings())
	if found := f.verify(false); len(found) > 0 {
		t.Errorf("the next process finds %q", found)
	}
	f.save("Ratings", "y", `{"recipe":"r","v":2}`)
	f.apply("r", "", "y")
	f.check("r", "n=2 sum=3 least=1 greatest=2")
}

// unbuilt is a backend whose indexes are not complete.
type unbuilt struct{ driver.Backend }

func (b unbuilt) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return unbuiltStore{s, spec.Indexes}, err
}

type unbuiltStore struct {
	driver.Store
	indexes []driver.Index
}

func (s unbuiltStore) Building(context.Context) (all []driver.Build, err error) {
	for _, i := range s.indexes {
		all = append(all, driver.Build{Index: i.Name, ID: "1"})
	}
	return all, nil
}

// A verification reports what it has read, also while the index is built by which objects are found again.
func TestAggregatesAreVerifiedWithoutAnIndex(t *testing.T) {
	f := newFixture(t, ratings())
	f.save("Recipes", "r", `{}`)
	f.save("Ratings", "x", `{"recipe":"r","v":1}`)
	set, err := model.OpenSet(t.Context(), unbuilt{f.hooks}, ratings(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f.set = set
	for _, repair := range []bool{false, true} {
		found := f.verify(repair)
		if len(found) == 0 || !strings.Contains(found[0],
			"is 0, and by the objects 1; it can be compared again and repaired when `belfry serve` has built the index recipe") {
			t.Errorf("with repair %t it finds %q", repair, found)
		}
	}
}

// Clients set no aggregates, and a new object has those of no objects.
func TestClientsSetNoAggregates(t *testing.T) {
	f := newFixture(t, ratings())
	f.save("Recipes", "r", `{"n":7,"sum":8,"least":9,"_aggregates":{"Ratings":"x"}}`)
	f.check("r", "n=0 sum=0")
	f.update("Recipes", "r", `{"n":7,"greatest":9,"title":"t"}`)
	f.check("r", "n=0 sum=0")
	f.save("Ratings", "x", `{"recipe":"r","v":1}`)
	f.apply("r", "", "x")
	f.check("r", "n=1 sum=1 least=1 greatest=1")
}

// The owner of a target decides which of its accumulators it shows; a change of it reads no objects.
func TestOwners(t *testing.T) {
	m := ratings()
	m[0].SourceOwner, m[0].TargetOwner = "owner", "owner"
	f := newFixture(t, m)
	f.save("Recipes", "r", `{"owner":"ann"}`)
	for uuid, owner := range map[string]string{"x": "ann", "y": "bob", "z": "bob"} {
		f.save("Ratings", uuid, `{"recipe":"r","v":1,"owner":"`+owner+`"}`)
	}
	f.apply("r", "ann", "x", "y", "z")
	f.apply("r", "bob", "x", "y", "z")
	f.check("r", "n=1 sum=1 least=1 greatest=1")
	f.update("Recipes", "r", `{"owner":"bob"}`)
	f.hooks.BeforeGet = func(_ context.Context, name, _ string) error {
		if name == "Ratings" {
			return errors.New("an object is read")
		}
		return nil
	}
	p := aggregates.Place{Mapping: f.m, Target: "r", Owner: "bob"}
	if err := f.engine.Refresh(t.Context(), p, false); err != nil {
		t.Fatal(err)
	}
	f.hooks.BeforeGet = nil
	f.check("r", "n=2 sum=2 least=1 greatest=1")
	f.update("Recipes", "r", `{"owner":null}`)
	if err := f.engine.Refresh(t.Context(), p, false); err != nil {
		t.Fatal(err)
	}
	f.check("r", "n=0 sum=0")
	if found := f.verify(false); found != nil {
		t.Errorf("verify reports %v", found)
	}
}

// Aggregates that are added, or change, leave a target as it is until all of its objects are applied.
func TestFill(t *testing.T) {
	m := ratings()
	m[0].Aggregates = everyFunction[:1]
	f := newFixture(t, m)
	f.save("Recipes", "r", `{}`)
	var all []string
	for i := range 300 {
		uuid := fmt.Sprintf("x%03d", i)
		f.save("Ratings", uuid, `{"recipe":"r","v":1}`)
		all = append(all, uuid)
	}
	f.apply("r", "", all...)
	f.check("r", "n=300")

	m = ratings()
	m[0].Key = "dish"
	f.open(m)
	f.update("Ratings", "x000", `{"dish":"r"}`)
	f.apply("r", "", "x000")
	f.check("r", "n=300") // not those of one object
	if found := f.verify(false); len(found) == 0 {
		t.Error("verify reports nothing before the fill")
	}
	read := 0
	if err := f.engine.Fill(t.Context(), f.m, "r", func(n int) error { read += n; return nil }); err != nil {
		t.Fatal(err)
	}
	f.check("r", "n=1 sum=1 least=1 greatest=1")
	if read < 300 {
		t.Errorf("%d objects were read", read)
	}
	if found := f.verify(false); found != nil {
		t.Errorf("verify reports %v", found)
	}
}

// A verification finds aggregates that are wrong, and corrects them and what they are computed of.
func TestVerify(t *testing.T) {
	f := newFixture(t, ratings())
	f.save("Recipes", "r", `{}`)
	f.save("Ratings", "x", `{"recipe":"r","v":1}`)
	f.apply("r", "", "x")
	place := aggregate.Place{Source: "Ratings", Target: "r"}
	record, _, err := f.records().Get(t.Context(), place.ID())
	if err != nil {
		t.Fatal(err)
	}
	wrong := &aggregate.Accumulator{Count: 7}
	if err := f.records().Put(t.Context(), driver.Write{UUID: place.ID(), IfRevision: record.Revision,
		Revision: record.Revision + 1, Body: wrong.Encode()}); err != nil {
		t.Fatal(err)
	}
	f.apply("r", "")
	f.check("r", "n=7 sum=0 least=1 greatest=1")
	want := []string{"wrong r.n is 7, and by the objects 1", "wrong r.sum is 0, and by the objects 1"}
	if found := f.verify(false); !slices.Equal(found, want) {
		t.Errorf("verify reports %q", found)
	}
	if found := f.verify(true); found != nil {
		t.Errorf("verify can't repair %v", found)
	}
	f.check("r", "n=1 sum=1 least=1 greatest=1")
	f.save("Ratings", "y", `{"recipe":"r","v":2}`)
	if found := f.verify(true); found != nil {
		t.Errorf("verify can't repair %v", found)
	}
	f.check("r", "n=2 sum=3 least=1 greatest=2")
}
