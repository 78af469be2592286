package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// crossIndexes are such that lists by several fields are intersections, by uuid and by year.
var crossIndexes = []query.Index{
	query.NewIndex([]string{"a"}), query.NewIndex([]string{"b"}), query.NewIndex([]string{"tags[]"}),
	query.NewIndex([]string{"user"}),
	query.NewIndex([]string{"a", "year"}), query.NewIndex([]string{"b", "year"}),
	query.NewIndex([]string{"tags[]", "year"}), query.NewIndex([]string{"user", "year"}),
	query.NewIndex([]string{"year"}),
}

// planOf makes the plan of a list.
func planOf(filter, sort string, indexes []query.Index) (*query.Plan, error) {
	q, err := query.Parse(filter, sort)
	if err != nil {
		return nil, err
	}
	return q.Plan(indexes)
}

// TestIntersectionsEndAfterSoManyKeys: a page that compared as many keys as it may ends with a cursor, in both
// directions, and all pages have together what all objects tell, without a rule and with one.
func TestIntersectionsEndAfterSoManyKeys(t *testing.T) {
	s, _ := open(t, store.Options{Indexes: crossIndexes})
	r, objects := rand.New(rand.NewPCG(3, 3)), map[string]object.Object{}
	for i := range 160 {
		// 1 and 1 are rare, but for the last objects: most pages find nothing.
		a, b := i%2, (i+1)%2
		if i%40 == 0 || i > 150 {
			a, b = 1, 1
		}
		uuid := fmt.Sprintf("n%03d", i)
		stored := save(t, s,
			uuid, fmt.Sprintf(`{"a":%d,"b":%d,"tags":[%d,%d],"year":%d,"user":%q}`, a, b, a, 2+r.IntN(2), i%7,
				[]string{"ada", "bob"}[i/2%2]))
		objects[uuid] = parse(t, string(stored.Body))
	}
	defer store.SetMaxListKeys(70)()
	owned := s.WithOptions(func(o *store.Options) {
		o.Policy = compile(t, policy.Rules{OwnerField: "user", Get: "isOwner && object.year != 6"})
	})
	short := 0
	for _, sort := range []string{"", "year", "-year"} {
		for _, filter := range []string{
			`a == 1 && b == 1`, `b == 1 && 1 in tags`, `a == 1 && b == 1 && 3 in tags`, `a == 1 && (b == 1 || b == 2)`,
			`a in [1, 3] && b == 1 && 1 in tags`,
			`a == 1 && 3 in tags || b == 1 && 2 in tags`, `a == 1 && b == 1 || user == "ada" && 3 in tags`,
		} {
			p, err := planOf(filter, sort, crossIndexes)
			if err != nil || !p.Intersecting(crossIndexes).Intersects() {
				t.Fatalf("%s is no intersection: %v", filter, err)
			}
			for name, of := range map[string]*store.Store{"all": s, "owned": owned} {
				ctx := as(t.Context(), "ada")
				var want []string
				for uuid, o := range objects {
					allowed := name == "all" || string(o["user"]) == `"ada"` && string(o["year"]) != "6"
					if allowed && p.Match(o) {
						want = append(want, uuid)
					}
				}
				slices.Sort(want)
				o := store.ListOptions{Filter: filter, Sort: sort, Limit: 1 + r.IntN(8)}
				about := fmt.Sprintf("%s %+v", name, o)
				found, n := allPages(ctx, t, of, o, about)
				if short += n; !slices.Equal(slices.Sorted(slices.Values(found)), want) {
					t.Errorf("%s: found %v, want %v", about, found, want)
				}
				if !slices.IsSortedFunc(found, func(a, b string) int { return p.Compare(objects[a], objects[b]) }) {
					t.Errorf("%s: not in order: %v", about, found)
				}
			}
		}
	}
	if short < 20 {
		t.Errorf("%d pages ended early", short)
	}
	list, err := s.List(t.Context(),
		store.ListOptions{Filter: `a == 1 && b == 1 && 3 in tags`, Limit: 1, Count: store.CountExact})
	if err != nil || list.Count.Accuracy != store.Exact {
		t.Errorf("counted by keys: %+v, %v", list.Count, err)
	}
	list, err = owned.List(as(t.Context(), "ada"),
		store.ListOptions{Filter: `a == 1 && b == 1`, Limit: 1, Count: store.CountExact})
	if err != nil || list.Count.Accuracy != store.AtLeast {
		t.Errorf("counted by objects: %+v, %v", list.Count, err)
	}
	list, err = s.List(t.Context(), store.ListOptions{Filter: `a == 1 && b == 1`, MaxKeys: 20, Count: store.CountExact})
	if err != nil || list.Count.Accuracy != store.AtLeast || list.Next == "" {
		t.Errorf("20 keys at most: %+v, cursor %q, %v", list.Count, list.Next, err)
	}
}

// TestAnIntersectionHasACursorOnlyIfItHasMore: what one index alone has after the last object is no reason.
func TestAnIntersectionHasACursorOnlyIfItHasMore(t *testing.T) {
	s, _ := open(t, store.Options{Indexes: crossIndexes})
	for i := range 20 {
		save(t, s, fmt.Sprintf("n%02d", i), fmt.Sprintf(`{"a":1,"b":%d}`, i/5))
	}
	for _, sort := range []string{"", "year"} {
		for limit, more := range map[int]bool{4: true, 5: false, 6: false} {
			page, err := s.List(t.Context(),
				store.ListOptions{Filter: `a == 1 && b == 1`, Sort: sort, Limit: limit, Explain: true})
			if err != nil || len(page.Objects) != min(limit, 5) || (page.Next != "") != more || page.Plan.Keys == 0 {
				t.Errorf("limit %d: %d objects, cursor %q, %d keys, %v", limit, len(page.Objects), page.Next,
					page.Plan.Keys, err)
			}
		}
	}
}

// TestForgedCursorsOfIntersectionsAreHarmless: whatever place a client makes up, it gets an error or objects that
// match.
func TestForgedCursorsOfIntersectionsAreHarmless(t *testing.T) {
	s, _ := open(t, store.Options{Indexes: crossIndexes})
	for i := range 40 {
		save(t, s, fmt.Sprintf("n%02d", i), fmt.Sprintf(`{"a":%d,"b":%d,"year":%d}`, i%2, i%3, i%5))
	}
	r, found := rand.New(rand.NewPCG(5, 5)), 0
	for range 400 {
		o := store.ListOptions{Filter: `a == 1 && b == 1`, Sort: []string{"", "year", "-year"}[r.IntN(3)], Limit: 3}
		plan, err := planOf(o.Filter, o.Sort, query.Prepare(crossIndexes))
		if err != nil || !plan.Intersecting(query.Prepare(crossIndexes)).Intersects() {
			t.Fatalf("%+v is no intersection: %v", o, err)
		}
		place := []byte{1, byte(r.IntN(12))} // of the one range: after so many bytes
		for range place[1] {
			place = append(place, []byte{0, 1, 2, 0x10, 0x40, 0xbf, 0xc0, 'n', 0xff}[r.IntN(9)])
		}
		o.Cursor = plan.Cursor(place)
		page, err := s.List(t.Context(), o)
		if err != nil {
			kind(t, err, errs.Invalid)
			continue
		}
		for _, o := range page.Objects {
			found++
			if !plan.Match(parse(t, string(o.Body))) {
				t.Fatalf("place %x: found %s", place, o.Body)
			}
		}
	}
	if found == 0 {
		t.Error("nothing is ever found")
	}
}

// allPages returns the uuids of all pages, and how many pages ended early; the way back has the same.
func allPages(ctx context.Context, t *testing.T, s *store.Store, o store.ListOptions,
	about string) (found []string, short int) {
	t.Helper()
	list := func() store.List {
		page, err := s.List(ctx, o)
		if err != nil {
			t.Fatalf("%s: %v", about, err)
		}
		return page
	}
	page := list()
	for found = listedUUIDs(page); page.Next != ""; found = append(found, listedUUIDs(page)...) {
		if len(page.Objects) < o.Limit {
			short++
		}
		if o.Cursor = page.Next; short > 10_000 {
			t.Fatalf("%s: there is no end", about)
		}
		page = list()
	}
	back := listedUUIDs(page)
	for o.Cursor = ""; page.Back != ""; back = slices.Concat(listedUUIDs(page), back) {
		o.Before = page.Back
		page = list()
	}
	if !slices.Equal(back, found) {
		t.Errorf("%s: back are %v, forth %v", about, back, found)
	}
	return found, short
}
