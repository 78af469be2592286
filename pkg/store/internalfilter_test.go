package store_test

import (
	"slices"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/query"
)

// belfry finds objects by an index of an internal field. A client who could filter or sort by it would learn its
// values.
func TestClientsCantListByInternalFields(t *testing.T) {
	s, _ := open(t, store.Options{Indexes: []query.Index{
		{Name: "_due", Fields: []string{"_due"}}, {Name: "year", Fields: []string{"year"}},
		{Name: "_due,year", Fields: []string{"_due", "year"}},
	}})
	for uuid, due := range map[string]string{"a": "2030", "b": "2031", "c": ""} {
		save(t, s, uuid, `{"year":1}`)
		if due == "" {
			continue
		}
		_, err := s.Mutate(t.Context(), uuid, func(store.Stored) (store.Mutation, error) {
			fields := object.Object{}
			fields.Set("_due", due)
			return store.Mutation{Fields: fields}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.List(t.Context(), store.ListOptions{Filter: `_due <= "2030"`})
	if err != nil || len(list.Objects) != 1 || list.Objects[0].UUID != "a" {
		t.Fatalf("belfry itself lists %d objects, %v", len(list.Objects), err)
	}
	client := as(t.Context(), "ada")
	for _, o := range []store.ListOptions{
		{Filter: `_due <= "2030"`}, {Filter: `_due == "2030"`}, {Filter: `has(_due)`}, {Filter: `object._due > "2"`},
		{Filter: `object["_due"] > "2"`}, {Filter: `_due.x == 1`},
		{Filter: `_due > "2" && year == 1`}, {Filter: `year == 1 || _due > "2"`}, {Filter: `!(_due > "2")`},
		{Filter: `"x" in _due`}, {Filter: `_due in ["2030", "2031"]`},
		{Sort: "_due"}, {Sort: "-_due"}, {Filter: "year == 1", Sort: "_due"}, {Filter: `uuid == "a" && _due == "2030"`},
		{Filter: `uuid in ["a", "b"] && has(_due)`}, {Filter: `uuid == "a"`, Sort: "_due"},
		{Filter: `uuid == "a" || _due == "2031"`},
	} {
		if list, err := s.List(client, o); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: %d objects, %v", o, len(list.Objects), err)
		}
		o.Count = "exact"
		if _, err := s.List(client, o); errs.KindOf(err) != errs.Invalid {
			t.Errorf("%+v: counted, %v", o, err)
		}
	}
	list, err = s.List(client, store.ListOptions{Filter: "year == 1", Explain: true})
	if err != nil || len(list.Objects) != 3 {
		t.Fatalf("%d objects, %v", len(list.Objects), err)
	}
	if slices.ContainsFunc(list.Plan.Reads,
		func(r query.ExplainedRead) bool { return slices.Contains(r.Index, "_due") }) {
		t.Errorf("read %+v", list.Plan)
	}
}
