package backends

import (
	"context"
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

// TestListsOnEachBackend runs the tests of lists on each backend.
func TestListsOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, at := range places() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend, err := at(t)()
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = backend.Close() })
			t.Run("rules", func(t *testing.T) { listsAreComplete(t, backend) })
			t.Run("teams", func(t *testing.T) { pagesFollowTeams(t, backend) })
			t.Run("filters", func(t *testing.T) { filtersFind(t, backend) })
			t.Run("texts", func(t *testing.T) { textsAreFound(t, backend) })
			t.Run("numbers", func(t *testing.T) { numbersAreFound(t, backend) })
			t.Run("times", func(t *testing.T) { timesAreFound(t, backend) })
			t.Run("expansions", func(t *testing.T) { expansionsAreRead(t, backend) })
		})
	}
}

// listsAreComplete: the pages of what a user owns and of what is public, merged from two indexes, are what the rule
// allows of the store, in order, and nothing is there twice.
func listsAreComplete(t *testing.T, backend driver.Backend) {
	rules, problems := policy.Compile(policy.Rules{Owner: true})
	if problems != nil {
		t.Fatal(problems)
	}
	s, err := store.Open(t.Context(), backend, store.Options{Name: "Notes", Policy: rules, Indexes: []query.Index{
		{Name: "year", Fields: []string{"year"}}, {Name: "user", Fields: []string{"user"}},
		{Name: "user,year", Fields: []string{"user", "year"}},
		{Name: "public", Fields: []string{"public"}}, {Name: "public,year", Fields: []string{"public", "year"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	years := map[string]int{}
	for i := range 36 {
		user, public, uuid := []string{"ada", "bob", "eve"}[i%3], i%4 == 0, fmt.Sprintf("n%02d", i)
		years[uuid] = i * 7 % 5
		o, err := object.Parse(fmt.Appendf(nil, `{"user":%q,"public":%t,"year":%d}`, user, public, years[uuid]))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Save(t.Context(), o, uuid); err != nil {
			t.Fatal(err)
		}
	}
	for user, want := range map[string]int{"ada": 12 + 6, "bob": 12 + 6, "": 9} {
		call := store.Call{Client: true}
		if user != "" {
			call.User = object.Object{"uuid": object.AppendString(nil, user)}
		}
		ctx := store.WithCall(t.Context(), call)
		for _, sort := range []string{"", "year", "-year"} {
			got := uuids(ctx, t, s, store.ListOptions{Sort: sort, Limit: 7})
			order := func(a, b string) int {
				switch sort {
				case "":
					return 0
				case "year":
					return years[a] - years[b]
				default:
					return years[b] - years[a]
				}
			}
			if !slices.IsSortedFunc(got, order) {
				t.Errorf("%q sorted by %q: %v", user, sort, got)
			}
			slices.Sort(got)
			if len(got) != want || len(slices.Compact(slices.Clone(got))) != want {
				t.Errorf("%q sorted by %q sees %d objects, want %d, each once: %v", user, sort, len(got), want, got)
			}
		}
	}
}

// uuids are those of all pages. A page is full unless it is the last.
func uuids(ctx context.Context, t *testing.T, s *store.Store, o store.ListOptions) (all []string) {
	t.Helper()
	var before []string
	for {
		page, err := s.List(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		var uuids []string
		for _, found := range page.Objects {
			uuids = append(uuids, found.UUID)
		}
		all = append(all, uuids...)
		if (page.Back != "") != (o.Cursor != "") {
			t.Errorf("%+v: the cursor of the page before is %q", o, page.Back)
		}
		if page.Back != "" {
			turned := o
			turned.Cursor, turned.Before = "", page.Back
			back, err := s.List(ctx, turned)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, found := range back.Objects {
				got = append(got, found.UUID)
			}
			if !slices.Equal(got, before) {
				t.Errorf("%+v: the page before has %v, want %v", o, got, before)
			}
		}
		before = uuids
		if page.Next == "" {
			return all
		}
		if len(page.Objects) != o.Limit {
			t.Errorf("a page of %d objects before the last", len(page.Objects))
		}
		o.Cursor = page.Next
	}
}

// filtersFind: each form of a filter and of an order finds the same objects in the same order on each backend.
func filtersFind(t *testing.T, backend driver.Backend) {
	var indexes []query.Index
	for _, fields := range [][]string{
		{"year"}, {"author", "year"}, {"author", "-year"}, {"title"}, {"tags[]"}, {"author", "tags[]"}, {"place.city"},
		{"sold"},
	} {
		indexes = append(indexes, query.NewIndex(fields))
	}
	s, err := store.Open(t.Context(), backend, store.Options{Name: "Books", Indexes: indexes})
	if err != nil {
		t.Fatal(err)
	}
	for uuid, body := range map[string]string{
		"a": `{"author":"ada","year":1843,"title":"Notes","tags":["red","blue"],"place":{"city":"London"},"sold":0}`,
		"b": `{"author":"ada","year":1850,"title":"Letters","tags":["red"],"sold":0}`,
		"c": `{"author":"bob","year":1850,"title":"Notes on notes","tags":[],"place":{"city":"Leeds"},"sold":0.1}`,
		"d": `{"author":"bob","title":"No year","tags":["blue",7,null],"place":"London","sold":-1}`,
		"e": `{"author":"eve","year":"1850","title":"é","sold":1e300}`,
		"f": `{"year":1900,"tags":["red","red"],"place":{"city":null},"sold":true}`,
	} {
		o, err := object.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Save(t.Context(), o, uuid); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ filter, sort, want string }{
		{`author == "ada"`, `year`, "a b"},
		{`author == "ada" || author == "bob"`, `-year`, "c b a d"},
		{`author in ["bob", "ada"]`, `year`, "d a b c"},
		{`author in []`, ``, ""},
		{`author != "ada"`, `author`, "f d c e"},
		{`!(author == "ada" || author == "eve")`, `author`, "f d c"},
		{`has(author)`, `author`, "a b d c e"},
		{`!has(author)`, ``, "f"},
		{`year == 1850 || title.startsWith("Notes")`, ``, "b c a"},
		{`year > 1843 && year < 1900`, ``, "b c"},
		{`year != 1850`, `year`, "d a f e"},
		{`!(year >= 1850)`, `year`, "d a e"},
		{`sold > 0`, ``, "c e"},
		{`sold < 0`, ``, "d"},
		{`sold == 0.1`, ``, "c"},
		{`sold == true || sold == 0`, ``, "a b f"},
		{`"red" in tags`, ``, "a b f"},
		{`"red" in tags && "blue" in tags`, ``, "a"},
		{`"red" in tags && !("blue" in tags)`, ``, "b f"},
		{`sold == 0 && "red" in tags`, ``, "a b"},
		{`"red" in tags && year == 1850 && sold == 0`, ``, "b"},
		{`sold in [0, 0.1] && year == 1850`, ``, "b c"},
		{`year in [1843, 1850] && sold == 0`, `-year`, "b a"},
		{`sold == 0 && ("blue" in tags || "red" in tags)`, ``, "a b"},
		{`sold == 0 && year == 1850 || sold == true && "red" in tags`, ``, "b f"},
		{`author == "ada" && place.city == "London"`, `year`, "a"},
		{`7 in tags || null in tags`, ``, "d"},
		{`author == "ada" && "blue" in tags`, ``, "a"},
		{`place.city == "London"`, ``, "a"},
		{`place.city == null || place.city == "Leeds"`, ``, "c f"},
		{`title == "é"`, ``, "e"},
		{`uuid in ["c", "a", "zz"] && has(author)`, ``, "a c"},
		{`author == "bob" && title == "No year"`, ``, "d"},
		{``, `author,-year`, "f b a c d e"},
		{``, `-author,year`, "e d c a b f"},
		{``, `author,year`, "f a b d c e"},
	} {
		limit := 2 // where there is more than one page of it
		if len(c.want) <= len("a b") {
			limit = 50
		}
		got := strings.Join(uuids(t.Context(), t, s, store.ListOptions{Filter: c.filter, Sort: c.sort, Limit: limit}),
			" ")
		if got != c.want {
			t.Errorf("filter %s sort %s limit %d: %s, want %s", c.filter, c.sort, limit, got, c.want)
		}
		counted, err := s.List(t.Context(),
			store.ListOptions{Filter: c.filter, Sort: c.sort, Limit: 1, Fields: "none", Count: store.CountExact})
		if err != nil {
			t.Fatal(err)
		}
		if want := (store.Count{Value: int64(len(strings.Fields(c.want))),
			Accuracy: store.Exact}); *counted.Count != want {
			t.Errorf("filter %s: counted %+v, want %+v", c.filter, *counted.Count, want)
		}
		for _, o := range counted.Objects {
			if want := fmt.Sprintf(`{"uuid":%q}`, o.UUID); string(o.Body) != want {
				t.Errorf("filter %s: %s, want %s", c.filter, o.Body, want)
			}
		}
	}
}

// expansionsAreRead: more objects are expanded than a backend reads at once, some of which are not there, and one that
// was changed is as it was written last.
func expansionsAreRead(t *testing.T, backend driver.Backend) {
	var stores [2]*store.Store
	for i, name := range []string{"Pages", "Writers"} {
		s, err := store.Open(t.Context(), backend, store.Options{Name: name})
		if err != nil {
			t.Fatal(err)
		}
		stores[i] = s
	}
	pages, writers := stores[0], stores[1]
	var want []string
	for i := range 30 {
		page, writer := fmt.Sprintf("p%02d", i), fmt.Sprintf("w%02d", i)
		save := func(s *store.Store, uuid, body string) {
			o, err := object.Parse([]byte(body))
			if err == nil {
				_, err = s.Save(t.Context(), o, uuid)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		save(pages, page, fmt.Sprintf(`{"writer":%q}`, writer))
		expanded := ""
		if i%4 != 0 {
			save(writers, writer, fmt.Sprintf(`{"name":"N%d","text":%q}`, i, strings.Repeat("x", 1000)))
			expanded = fmt.Sprintf(`"writer":{"uuid":%q,"name":"N%d"}`, writer, i)
		}
		if i%4 == 1 {
			if err := writers.Delete(t.Context(), writer, 0); err != nil {
				t.Fatal(err)
			}
			expanded = ""
		}
		if i%4 == 2 {
			if _, err := writers.Update(t.Context(), object.Object{"name": []byte(`"new"`)},
				store.UpdateOptions{UUID: writer}); err != nil {
				t.Fatal(err)
			}
			expanded = fmt.Sprintf(`"writer":{"uuid":%q,"name":"new"}`, writer)
		}
		want = append(want, fmt.Sprintf(`{"uuid":%q,"writer":%q,"_expanded":{%s}}`, page, writer, expanded))
	}
	expand, err := store.ParseExpand("writer", map[string]*store.Store{"writer": writers})
	if err != nil {
		t.Fatal(err)
	}
	page, err := pages.List(t.Context(), store.ListOptions{Fields: "writer.name", Expand: expand, Limit: 100})
	if err != nil || len(page.Objects) != len(want) {
		t.Fatalf("%d objects, %v", len(page.Objects), err)
	}
	for i, o := range page.Objects {
		if string(o.Body) != want[i] {
			t.Errorf("%s, want %s", o.Body, want[i])
		}
	}
}
