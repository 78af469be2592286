package backends

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// pagesFollowTeams: while a user joins and leaves teams, each page has what comes after its cursor, or before it, of
// the teams that they are in at that time, in order.
func pagesFollowTeams(t *testing.T, backend driver.Backend) {
	rules, problems := policy.Compile(policy.Rules{Get: "object.team in user.teams.map(t, t.team)"})
	if problems != nil {
		t.Fatal(problems)
	}
	var indexes []query.Index
	for _, fields := range []string{"team", "year", "team,year", "team,-year"} {
		indexes = append(indexes, query.NewIndex(strings.Split(fields, ",")))
	}
	s, err := store.Open(t.Context(), backend, store.Options{Name: "Documents", Policy: rules, Indexes: indexes})
	if err != nil {
		t.Fatal(err)
	}
	// Two teams differ after what an index has of a value. Years are not unique, and some documents have none.
	long := strings.Repeat("t", 2*driver.MaxPart)
	teams := []string{"red", "blue", "green", long + "1", long + "2"}
	var all []document
	for i := range 40 {
		d := document{uuid: fmt.Sprintf("d%02d", i), team: teams[i*7%len(teams)], year: i * 5 % 4}
		text := fmt.Sprintf(`{"team":%q,"year":%d}`, d.team, d.year)
		if d.year == 0 {
			text = fmt.Sprintf(`{"team":%q}`, d.team)
		}
		o, err := object.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Save(t.Context(), o, d.uuid); err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	// What the user is in at each page, the last one at all further pages: both long ones or none, since a cursor is
	// also after what an index has at the same place and the rule denies.
	memberships := [][]string{teams[:2], teams[1:3], teams[:1], nil, teams[2:], teams}
	for _, c := range []struct {
		sort, filter string
		years        []int // of the filter; nil: all
	}{{"", "", nil}, {"year", "", nil}, {"-year", "", nil}, {"year", "year in [1, 3]", []int{1, 3}},
		{"-year", "year in [1, 3]", []int{1, 3}}} {
		plan := listAs(t, s, store.ListOptions{Sort: c.sort, Filter: c.filter, Explain: true}, teams).Plan
		sorted := slices.SortedFunc(slices.Values(all), func(a, b document) int { return a.compare(b, plan.Order) })
		if c.years != nil {
			sorted = slices.DeleteFunc(sorted, func(d document) bool { return !slices.Contains(c.years, d.year) })
		}
		o := store.ListOptions{Sort: c.sort, Filter: c.filter, Limit: 3}
		for _, team := range teams {
			if got, want := uuids(asMember(t, []string{team}), t, s,
				store.ListOptions{Sort: c.sort, Filter: c.filter, Limit: 2}),
				ofTeams(sorted, []string{team}); !slices.Equal(got, want) {
				t.Errorf("%q, %q, in %.20q:\n got %v\nwant %v", c.sort, c.filter, team, got, want)
			}
		}
		at, listed := -1, 0 // the last document of the page before, and how many there have been
		for step := 0; ; step++ {
			mine := memberships[min(step, len(memberships)-1)]
			rest := ofTeams(sorted[at+1:], mine)
			want := rest[:min(len(rest), o.Limit)]
			page := listAs(t, s, o, mine)
			if got := uuidsOf(page); !slices.Equal(got, want) {
				t.Fatalf("%+v, page %d, in %.20q:\n got %v\nwant %v", o, step, mine, got, want)
			}
			if len(want) == 0 {
				if mine != nil {
					break
				}
				continue // in no team there is nothing at the place, which stays
			}
			if (page.Back != "") != (o.Cursor != "") {
				t.Errorf("%+v, page %d: the cursor of the page before is %q", o, step, page.Back)
			}
			if page.Back != "" {
				turned := store.ListOptions{Sort: c.sort, Filter: c.filter, Limit: o.Limit, Before: page.Back}
				earlier := ofTeams(sorted[:indexOf(sorted, want[0])], teams)
				earlier = earlier[max(0, len(earlier)-o.Limit):]
				if got := uuidsOf(listAs(t, s, turned, teams)); !slices.Equal(got, earlier) {
					t.Fatalf("%+v, before page %d, in all teams:\n got %v\nwant %v", turned, step, got, earlier)
				}
			}
			listed += len(want)
			at = indexOf(sorted, want[len(want)-1])
			if page.Next != "" {
				o.Cursor = page.Next
				continue
			}
			if len(rest) > len(want) {
				t.Fatalf("%+v: page %d has no cursor, and there is more: %v", o, step, rest)
			}
			break
		}
		if listed <= 2*o.Limit {
			t.Errorf("%+v: only %d documents were listed", o, listed)
		}
	}
}

type document struct {
	uuid, team string
	year       int // 0: none
}

// compare compares by the fields of an order, which ends with uuid.
func (d document) compare(other document, order []string) int {
	for _, name := range order {
		field, descending := strings.CutPrefix(name, "-")
		c := map[string]int{"year": cmp.Compare(d.year, other.year), "uuid": cmp.Compare(d.uuid, other.uuid)}[field]
		if descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

func ofTeams(all []document, teams []string) (uuids []string) {
	for _, d := range all {
		if slices.Contains(teams, d.team) {
			uuids = append(uuids, d.uuid)
		}
	}
	return uuids
}

func indexOf(all []document, uuid string) int {
	return slices.IndexFunc(all, func(d document) bool { return d.uuid == uuid })
}

// asMember is the context of a user who is in teams.
func asMember(t *testing.T, teams []string) context.Context {
	t.Helper()
	var entries []map[string]string
	for _, team := range teams {
		entries = append(entries, map[string]string{"uuid": "m-" + team, "team": team})
	}
	text, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	return store.WithCall(t.Context(),
		store.Call{Client: true, User: object.Object{"uuid": []byte(`"mia"`), "teams": text}})
}

func listAs(t *testing.T, s *store.Store, o store.ListOptions, teams []string) store.List {
	t.Helper()
	page, err := s.List(asMember(t, teams), o)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	return page
}

func uuidsOf(page store.List) (all []string) {
	for _, o := range page.Objects {
		all = append(all, o.UUID)
	}
	return all
}
