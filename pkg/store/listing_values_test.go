package store_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"belfry/internal/seal"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// member is the call of a user who is in teams.
func member(ctx context.Context, teams ...string) context.Context {
	return memberAs(ctx, "mia", teams...)
}

func memberAs(ctx context.Context, user string, teams ...string) context.Context {
	entries := []map[string]string{}
	for _, team := range teams {
		entries = append(entries, map[string]string{"uuid": "m-" + team, "team": team})
	}
	text, _ := json.Marshal(entries)
	return store.WithCall(ctx, store.Call{Client: true,
		User: map[string]json.RawMessage{"uuid": json.RawMessage(fmt.Sprintf("%q", user)), "teams": text}})
}

const inTeams = "object.team in user.teams.map(t, t.team)"

// TestPagesWhileTeamsChange: while a user joins and leaves teams, each page has the objects of the teams that they are
// in now that come after the place of its cursor, or before it, in each order and by each index.
func TestPagesWhileTeamsChange(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var indexes []query.Index
	for _, fields := range []string{
		"team", "year", "kind", "year,kind", "kind,year", "-year,kind", "team,year", "team,year,kind",
		"team,-year,kind", "team,kind,year", "team,kind", "team,-kind,year",
	} {
		indexes = append(indexes, query.NewIndex(strings.Split(fields, ",")))
	}
	sealer, err := seal.New(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	open, _ := open(t, store.Options{Indexes: indexes, Sealer: sealer})
	type task struct {
		uuid, team string
		year, kind int
	}
	var all []task
	teams := []string{"a", "b", "c", "d", "e", strings.Repeat("f", 300)}
	for i := range 160 {
		one := task{fmt.Sprintf("n%03d", i), teams[r.IntN(len(teams))], r.IntN(4), r.IntN(3)}
		save(t, open, one.uuid, fmt.Sprintf(`{"team":%q,"year":%d,"kind":%d}`, one.team, one.year, one.kind))
		all = append(all, one)
	}
	s := open.WithOptions(func(o *store.Options) { o.Policy = compile(t, policy.Rules{Get: inTeams}) })
	filters := map[string]func(task) bool{
		"":                             func(task) bool { return true },
		"kind == 1":                    func(a task) bool { return a.kind == 1 },
		"year in [1, 3]":               func(a task) bool { return a.year == 1 || a.year == 3 },
		"kind in [0, 2] && year != 2":  func(a task) bool { return a.kind != 1 && a.year != 2 },
		"year == 2 || kind == 0":       func(a task) bool { return a.year == 2 || a.kind == 0 },
		`team in ["a", "c", "nobody"]`: func(a task) bool { return a.team == "a" || a.team == "c" },
	}
	lists := 0
	for _, sort := range []string{"", "year", "-year", "year,kind", "-year,kind", "kind,year"} {
		for _, filter := range slices.Sorted(maps.Keys(filters)) {
			o := store.ListOptions{Sort: sort, Filter: filter, Limit: 1 + r.IntN(9)}
			o.Explain = true
			first, err := s.List(member(t.Context(), teams...), o)
			if err != nil && strings.Contains(err.Error(), "index") {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if first.Plan.Combined != "merged" || len(first.Plan.Checked) > 0 {
				continue // a place is also after objects that were read and do not match
			}
			lists++
			sorted := slices.SortedFunc(slices.Values(all), func(a, b task) int {
				for _, name := range first.Plan.Order { // which ends with uuid
					field, descending := strings.CutPrefix(name, "-")
					c := map[string]int{"year": cmp.Compare(a.year, b.year), "kind": cmp.Compare(a.kind, b.kind),
						"uuid": cmp.Compare(a.uuid, b.uuid)}[field]
					if descending {
						c = -c
					}
					if c != 0 {
						return c
					}
				}
				return 0
			})
			at, cursor, before := -1, "", false // place: after sorted[at]; before it when going back
			for step := range 40 {
				mine := slices.DeleteFunc(slices.Clone(teams), func(string) bool { return r.IntN(3) == 0 })
				matching := func(from []task) (matches []task) {
					for _, one := range from {
						if filters[filter](one) && slices.Contains(mine, one.team) {
							matches = append(matches, one)
						}
					}
					return matches
				}
				var want []string
				switch {
				case before:
					rest := matching(sorted[:at])
					for _, one := range rest[max(0, len(rest)-o.Limit):] {
						want = append(want, one.uuid)
					}
				default:
					rest := matching(sorted[at+1:])
					for _, one := range rest[:min(len(rest), o.Limit)] {
						want = append(want, one.uuid)
					}
				}
				o.Cursor, o.Before = cursor, ""
				if before {
					o.Cursor, o.Before = "", cursor
				}
				page, err := s.List(member(t.Context(), mine...), o)
				if err != nil {
					t.Fatalf("%+v, step %d: %v", o, step, err)
				}
				got := listedUUIDs(page)
				if !slices.Equal(got, want) {
					t.Fatalf("%+v, step %d, in %.20q, after %d, back %t:\n got %v\nwant %v", o, step, mine, at, before,
						got, want)
				}
				if len(got) == 0 {
					at, cursor, before = -1, "", false
					continue
				}
				place := func(uuid string) int {
					return slices.IndexFunc(sorted, func(one task) bool { return one.uuid == uuid })
				}
				switch {
				case page.Back != "" && r.IntN(3) == 0:
					at, cursor, before = place(got[0]), page.Back, true
				case page.Next != "":
					at, cursor, before = place(got[len(got)-1]), page.Next, false
				default:
					at, cursor, before = -1, "", false
				}
			}
		}
	}
	t.Log(lists, "lists")
	if lists < 20 {
		t.Errorf("only %d lists are supported", lists)
	}
}

// TestAListReadsTheTeamsOfAUser: however many objects of others there are, and however many teams.
func TestAListReadsTheTeamsOfAUser(t *testing.T) {
	all, _ := open(t,
		store.Options{Indexes: []query.Index{query.NewIndex([]string{"team"}),
			query.NewIndex([]string{"team", "-year"}), query.NewIndex([]string{"year"})}})
	var teams []string
	for i := range query.MaxValueReads + 1 {
		teams = append(teams, fmt.Sprintf("t%03d", i))
	}
	for i := range 600 {
		team := teams[i%len(teams)]
		if i%3 > 0 {
			team = "others"
		}
		save(t, all, fmt.Sprintf("n%03d", i), fmt.Sprintf(`{"team":%q,"year":%d}`, team, i%7))
	}
	s := all.WithOptions(func(o *store.Options) { o.Policy = compile(t, policy.Rules{Get: inTeams}) })
	plan := func(o store.ListOptions, teams ...string) *store.Plan {
		t.Helper()
		o.Explain = true
		page, err := s.List(member(t.Context(), teams...), o)
		if err != nil {
			t.Fatal(err)
		}
		return page.Plan
	}
	few := plan(store.ListOptions{Filter: "year >= 0", Sort: "-year", Limit: 5}, "t000", "t003")
	if few.Rule != "reads" || few.Combined != "merged" || len(few.Reads) != 2 ||
		few.Reads[1].Range[0] != `team == "t003"` || few.Read > 6 {
		t.Errorf("two teams: %+v", few)
	}
	if none := plan(store.ListOptions{}); none.Rule != "reads" || len(none.Reads) != 0 || none.Read != 0 {
		t.Errorf("no team: %+v", none)
	}
	if twice := plan(store.ListOptions{}, "t000", "t000"); len(twice.Reads) != 1 {
		t.Errorf("the same team twice: %+v", twice)
	}
	if most := plan(store.ListOptions{}, teams[1:]...); len(most.Reads) != 32 || most.More != query.MaxValueReads-32 ||
		most.Returned != store.DefaultPage {
		t.Errorf("as many teams as there may be: %+v", most)
	}
	if one := plan(store.ListOptions{Filter: `team == "t003"`}, teams...); len(one.Reads) != 1 || one.Rule != "reads" {
		t.Errorf("one of too many teams: %+v", one)
	}
	_, err := s.List(member(t.Context(), teams...), store.ListOptions{})
	kind(t, err, errs.Invalid)
	if want := "the rule of this store allows you objects with more than 100 values of team: name some in " +
		"the filter, " +
		"as in team == ..."; err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, mode := range []store.CountMode{store.CountExact, store.CountEstimate} {
		page, err := s.List(member(t.Context(), "t000", "t003", "t006"), store.ListOptions{Limit: 1, Count: mode})
		if err != nil || *page.Count != (store.Count{Value: 6, Accuracy: store.Exact}) {
			t.Errorf("%s: %+v, %v", mode, page.Count, err)
		}
	}
}

// TestACursorIsOfOneUser: also where it holds for other teams of theirs.
func TestACursorIsOfOneUser(t *testing.T) {
	all, _ := open(t, store.Options{Indexes: []query.Index{query.NewIndex([]string{"team"})}})
	for i := range 6 {
		save(t, all, fmt.Sprint("n", i), fmt.Sprintf(`{"team":%q}`, []string{"a", "b"}[i%2]))
	}
	s := all.WithOptions(func(o *store.Options) { o.Policy = compile(t, policy.Rules{Get: inTeams}) })
	page, err := s.List(memberAs(t.Context(), "mia", "a"), store.ListOptions{Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatal(page, err)
	}
	o := store.ListOptions{Limit: 10, Cursor: page.Next}
	for _, teams := range [][]string{{"a"}, {"b"}, {"a", "b"}, {}} {
		page, err := s.List(memberAs(t.Context(), "mia", teams...), o)
		if err != nil {
			t.Errorf("in %v: %v", teams, err)
		}
		for _, uuid := range listedUUIDs(page) {
			if uuid == "n0" {
				t.Errorf("in %v: the page before is listed again", teams)
			}
		}
	}
	_, err = s.List(memberAs(t.Context(), "bob", "a"), o)
	kind(t, err, errs.Invalid)
	o.Sort = "team"
	_, err = s.List(memberAs(t.Context(), "mia", "a"), o)
	kind(t, err, errs.Invalid)
}
