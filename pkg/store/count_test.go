package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// TestCounts: what is counted by keys, and by objects, is what lists have.
func TestCounts(t *testing.T) {
	s, _ := open(t, store.Options{Indexes: []query.Index{
		query.NewIndex([]string{"year"}), query.NewIndex([]string{"author", "year"}),
		query.NewIndex([]string{"tags[]"}), query.NewIndex([]string{"title"}),
	}})
	long := strings.Repeat("x", 300)
	for i := range 40 {
		save(t, s, fmt.Sprintf("n%02d", i), fmt.Sprintf(`{"year":%d,"author":%q,"tags":["t%d","all"],"title":%q}`, i%5,
			[]string{"ada", "bob"}[i%2], i%3, long+fmt.Sprint(i%2)))
	}
	for filter, want := range map[string]int64{
		"": 40, "year == 1": 8, "year in [1, 2]": 16, "year == 1 || year == 2": 16, "year == 1 || year < 2": 16,
		"year != 1": 32, "year > 9": 0,
		`author == "ada" && year >= 3`: 8, `author == "ada" || year == 1`: 24, `"t1" in tags`: 13,
		`"t1" in tags || "all" in tags`: 40,
		`year == 1 && "t1" in tags`:     3, `year in [1, 2] && "t1" in tags && "all" in tags`: 6,
		`year == 1 && ("t1" in tags || "t2" in tags)`: 5,
		`title == "` + long + `0"`:                    20, `uuid in ["n01", "n02", "zz"]`: 2, `year in []`: 0,
		`year == 1 && title.startsWith("x")`: 8,
	} {
		for _, mode := range []store.CountMode{store.CountExact, store.CountEstimate} {
			list, err := s.List(t.Context(), store.ListOptions{Filter: filter, Limit: 1, Count: mode})
			if err != nil {
				t.Fatal(err)
			}
			accuracy := store.Exact
			if mode == store.CountEstimate && filter == "" {
				accuracy = store.Estimate
			}
			if *list.Count != (store.Count{Value: want, Accuracy: accuracy}) {
				t.Errorf("%.60s, %s: %+v, want %d", filter, mode, *list.Count, want)
			}
		}
	}
	if _, err := store.ParseCount("all"); errs.KindOf(err) != errs.Invalid {
		t.Error(err)
	}
	if list, err := s.List(t.Context(), store.ListOptions{}); err != nil || list.Count != nil {
		t.Errorf("counted unasked: %v, %v", list.Count, err)
	}
}

// TestCountsTellNothingOfWhatIsHidden: whatever the mode, a user's count is of what they may see, by a rule that an
// index supports and by one that none does.
func TestCountsTellNothingOfWhatIsHidden(t *testing.T) {
	all, _ := open(t, store.Options{Indexes: noteIndexes})
	for i := range 30 {
		save(t, all, fmt.Sprintf("n%02d", i),
			fmt.Sprintf(`{"user":%q,"public":%t,"year":1,"kind":%d}`, []string{"ada", "bob"}[i%2], i%10 == 0, i%3))
	}
	for name, c := range map[string]struct {
		rules          policy.Rules
		ada, eve, none int64
	}{
		"owner or public":  {policy.Rules{OwnerField: "user", Get: "isOwner || object.public == true"}, 15, 3, 3},
		"without an index": {policy.Rules{Get: "object.kind == 2"}, 10, 10, 10},
		"nobody":           {policy.Rules{Get: "object.kind == 7"}, 0, 0, 0},
	} {
		s := all.WithOptions(func(o *store.Options) { o.Policy = compile(t, c.rules) })
		for who, of := range map[string]struct {
			ctx  context.Context
			want int64
		}{"ada": {as(t.Context(), "ada"), c.ada}, "eve": {as(t.Context(), "eve"), c.eve},
			"nobody": {client(t.Context()), c.none}} {
			for _, mode := range []store.CountMode{store.CountExact, store.CountEstimate} {
				for _, filter := range []string{"", "year == 1", "year > 0"} {
					list, err := s.List(of.ctx, store.ListOptions{Filter: filter, Limit: 1, Count: mode})
					if err != nil {
						t.Fatal(err)
					}
					if *list.Count != (store.Count{Value: of.want, Accuracy: store.Exact}) {
						t.Errorf("%s, %s, %s of %q: %+v, want %d", name, who, mode, filter, *list.Count, of.want)
					}
				}
			}
		}
	}
	users := all.WithOptions(func(o *store.Options) { o.Policy = compile(t, policy.Rules{List: "user != null"}) })
	_, err := users.List(client(t.Context()), store.ListOptions{Count: store.CountExact})
	kind(t, err, errs.Unauthenticated)
}

// TestAListReadsAsManyObjectsAsItsCallerAllows: the page ends there with a cursor, and the count says at least.
func TestAListReadsAsManyObjectsAsItsCallerAllows(t *testing.T) {
	s, _ := open(t, store.Options{Indexes: []query.Index{query.NewIndex([]string{"n"}), query.NewIndex([]string{"m"})}})
	for i := range 60 {
		save(t, s, fmt.Sprintf("n%03d", i), fmt.Sprintf(`{"n":%d,"m":%d}`, i, i%30))
	}
	o := store.ListOptions{Filter: "n >= 0 && m == 29", Sort: "n", MaxReads: 20, Count: store.CountExact}
	var found []string
	for pages := 1; ; pages++ {
		page, err := s.List(t.Context(), o)
		if err != nil || pages > 4 {
			t.Fatal(pages, err)
		}
		if o.Cursor == "" && (page.Count.Accuracy != store.AtLeast || len(page.Objects) != 0) {
			t.Errorf("%+v of %+v", page.Count, page.Objects)
		}
		for _, x := range page.Objects {
			found = append(found, x.UUID)
		}
		if o.Cursor, o.Count = page.Next, ""; o.Cursor == "" {
			break
		}
	}
	if !slices.Equal(found, []string{"n029", "n059"}) {
		t.Error(found)
	}
}

// TestACountReadsOnlySoMuch: a count whose objects must be read says that there are at least so many.
func TestACountReadsOnlySoMuch(t *testing.T) {
	s, _ := open(t, store.Options{Policy: compile(t, policy.Rules{Get: "object.n >= 0"}),
		Indexes: []query.Index{query.NewIndex([]string{"n"})}})
	text := strings.Repeat("x", 60<<10)
	const size = 150 // more than 4 MiB
	for i := range size {
		save(t, s, fmt.Sprintf("n%03d", i), fmt.Sprintf(`{"n":1,"text":%q}`, text))
	}
	list, err := s.List(client(t.Context()), store.ListOptions{Limit: 1, Count: store.CountExact})
	if err != nil || list.Count.Accuracy != store.AtLeast || list.Count.Value < 60 || list.Count.Value >= size {
		t.Errorf("%+v, %v", list.Count, err)
	}
	list, err = s.List(t.Context(), store.ListOptions{Filter: "n == 1", Limit: 1, Count: store.CountExact})
	if err != nil || *list.Count != (store.Count{Value: size, Accuracy: store.Exact}) {
		t.Errorf("by keys: %+v, %v", list.Count, err)
	}
}

func TestPlans(t *testing.T) {
	all, _ := open(t, store.Options{Indexes: []query.Index{
		query.NewIndex([]string{"author", "-year"}), query.NewIndex([]string{"year"}),
		query.NewIndex([]string{"tags[]"}), query.NewIndex([]string{"user"}),
	}})
	for i := range 6 {
		save(t, all, fmt.Sprint("n", i), fmt.Sprintf(`{"author":"ada","year":%d,"tags":["red"],"user":"ada"}`, 1840+i))
	}
	for _, c := range []struct{ filter, sort, want string }{
		{``, ``, `"reads":[{}],"order":["uuid"],"read":2,`},
		{`author == "ada" && year > 1843`,
			``, `"reads":[{"index":["author","-year"],"range":["author == \"ada\"","year > 1843"]}],"order":["-year","uuid"],"read":2,`},
		{`author == "ada"`,
			`year`, `"reads":[{"index":["author","-year"],"range":["author == \"ada\""],"backward":true}],"order":["year","-uuid"],"read":2,`},
		{`year in [1841, 1843] && "red" in tags`, `year`,
			`"reads":[{"index":["year"],"range":["year == 1841"],"intersected":[{"index":["tags[]"],"range":["\"red\" in tags"]}]},` +
				`{"index":["year"],"range":["year == 1843"],"intersected":[{"index":["tags[]"],"range":["\"red\" in tags"]}]}],"combined":"merged","order":["year","uuid"],"read":2,"bytes":296,"keys":2,`},
		{`year in [1841, 1843] && !("red" in tags)`, `year`,
			`"reads":[{"index":["year"],"range":["year == 1841"]},{"index":["year"],"range":["year == 1843"]}],"combined":"merged","order":["year","uuid"],"checked":["!(\"red\" in tags)"],"read":2,`},
		{`"red" in tags || year < 1841`,
			``, `"reads":[{"index":["tags[]"],"range":["\"red\" in tags"],"alternative":1},{"index":["year"],"range":["year < 1841"],"alternative":2}],"combined":"inTurn",`},
		{`uuid == "n1"`, ``, `"reads":[{"uuid":"n1"}],"order":["uuid"],"read":1,`},
		{`year != 1841`,
			``, `"range":["year < 1841 in the order of all types"]},{"index":["year"],"range":["year > 1841 in the order of all types"]}`},
		{`has(author) && year >= 0`, `author`,
			`"range":["has(author)"]}],"order":["author","-year","uuid"],"checked":["year >= 0"]`},
		{`!has(year)`, ``, `"range":["!has(year)"]`},
	} {
		page, err := all.List(t.Context(), store.ListOptions{Filter: c.filter, Sort: c.sort, Limit: 2, Explain: true})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(page.Encode("items")); !strings.Contains(got, c.want) {
			t.Errorf("filter %s sort %s: %s, want %s", c.filter, c.sort, got, c.want)
		}
	}
	owned := all.WithOptions(func(o *store.Options) {
		o.Policy = compile(t, policy.Rules{OwnerField: "user", Get: "isOwner"})
	})
	page, err := owned.List(as(t.Context(), "ada"), store.ListOptions{Explain: true})
	if err != nil || page.Plan.Rule != "reads" || page.Plan.Returned != 6 || page.Plan.Reads[0].Index[0] != "user" {
		t.Errorf("%+v, %v", page.Plan, err)
	}
	save(t, all, "m1", `{"tags":["red"],"user":"bob"}`)
	save(t, all, "m2", `{"tags":["blue"],"user":"ada"}`)
	page, err = owned.List(as(t.Context(), "ada"),
		store.ListOptions{Filter: `"red" in tags`, Explain: true, Count: store.CountExact})
	if err != nil || page.Plan.Rule != "reads" || page.Plan.Read != 6 || page.Plan.Returned != 6 ||
		page.Count.Value != 6 || page.Plan.Keys == 0 ||
		len(page.Plan.Reads) != 1 || page.Plan.Reads[0].Index[0] != "tags[]" ||
		page.Plan.Reads[0].Intersected[0].Index[0] != "user" {
		t.Errorf("what the user owns of what the filter finds: %+v, %v", page.Plan, err)
	}
}
