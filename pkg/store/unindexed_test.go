package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// unindexedBooks are stores of the same objects: one with indexes, and one that has none and reads all objects instead.
func unindexedBooks(t *testing.T, rules *policy.Rules, log *bytes.Buffer) (indexed, unindexed *store.Store) {
	t.Helper()
	var indexes []query.Index
	for _, fields := range [][]string{{"year"}, {"author", "year"}, {"author", "-year"}, {"editor", "year"}, {"tags[]"},
		{"address.city"}, {"year", "author"}, {"title"}} {
		indexes = append(indexes, query.NewIndex(fields))
	}
	indexed, _ = open(t, store.Options{Indexes: indexes})
	for i := range 60 {
		save(t, indexed,
			fmt.Sprintf("b%02d",
				(i*37)%60), fmt.Sprintf(
				`{"year":%d,"author":"a%d","editor":"a%d","title":"t%02d","tags":["x%d","x%d"],"address":{"city":"c%d"},"user":"u%d"}`,
				1990+i%7, i%3, i%4, i, i%2, i%5, i%3, i%2))
	}
	if rules != nil {
		indexed = indexed.WithOptions(func(o *store.Options) { o.Policy = compile(t, *rules) })
	}
	return indexed, indexed.WithOptions(func(o *store.Options) {
		o.Indexes, o.Unindexed = nil, true
		if log != nil {
			o.Logger = slog.New(slog.NewTextHandler(log, nil))
		}
	})
}

// pagesOf returns the uuids of all pages.
func pagesOf(t *testing.T, ctx context.Context, s *store.Store, o store.ListOptions) (uuids []string, warnings int) {
	t.Helper()
	for {
		page, err := s.List(ctx, o)
		if err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		uuids = append(uuids, listedUUIDs(page)...)
		if page.Warning != "" {
			warnings++
		}
		if page.Next == "" {
			return uuids, warnings
		}
		back, err := s.List(ctx, store.ListOptions{Filter: o.Filter, Sort: o.Sort, Limit: o.Limit, Cursor: page.Next})
		if err != nil {
			t.Fatal(err)
		}
		before, err := s.List(ctx, store.ListOptions{Filter: o.Filter, Sort: o.Sort, Limit: o.Limit, Before: back.Back})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := listedUUIDs(before), listedUUIDs(page); !slices.Equal(got, want) {
			t.Fatalf("%+v: the page before is %v, want %v", o, got, want)
		}
		o.Cursor = page.Next
	}
}

// In development a list without an index has what it has with the indexes that it names, in the same order and pages,
// under the same rules.
func TestAListWithoutAnIndexIsWhatItIsWithOne(t *testing.T) {
	for name, rules := range map[string]*policy.Rules{"no rule": nil, "the owner": {OwnerField: "user", Get: "isOwner"},
		"a rule for each object": {Get: "object.year > 1992"}} {
		indexed, unindexed := unindexedBooks(t, rules, nil)
		ctx := as(t.Context(), "u1")
		for _, o := range []store.ListOptions{
			{Sort: "year"}, {Sort: "-year"}, {Filter: "year >= 1993", Sort: "year"},
			{Filter: `author == "a1"`, Sort: "year"}, {Filter: `author == "a1"`, Sort: "-year"},
			{Filter: `author in ["a0", "a2"] && year > 1991`, Sort: "-year"}, {Filter: `"x1" in tags`},
			{Filter: `address.city == "c2"`}, {Filter: `title.startsWith("t1")`, Sort: "title"},
			{Filter: `author == "a1" || editor == "a1"`, Sort: "-year"}, {Filter: "year != 1993", Sort: "year"},
			{Filter: "has(year)"}, {Sort: "author,-year"}, {Filter: `year == 1990`},
		} {
			for _, limit := range []int{1, 7, 100} {
				o.Limit = limit
				want, none := pagesOf(t, ctx, indexed, o)
				got, warned := pagesOf(t, ctx, unindexed, o)
				if o.Sort == "" { // whatever index is chosen has an order of its own
					slices.Sort(want)
					slices.Sort(got)
				}
				if !slices.Equal(got, want) || none > 0 || warned == 0 {
					t.Errorf("%s, %+v: %v with %d warnings, want %v, %d", name, o, got, warned, want, none)
				}
			}
		}
	}
}

// The reply and the log name the index to declare, with which the list needs no other one.
func TestAListWithoutAnIndexNamesTheOneToDeclare(t *testing.T) {
	for _, c := range []struct{ filter, sort, declare string }{
		{"", "year", `["year"]`}, {"", "-year", `["year"]`}, {`author == "a1"`, "-year", `["author, year"]`},
		{`author == "a1" && year > 3`, "", `["author, year"]`},
		{`"x1" in tags`, "", `["tags[]"]`},
		{`author == "a1" || editor == "a1"`, "year", `["author, year", "editor, year"]`},
		{"", "author,-year", `["author, -year"]`},
	} {
		log := &bytes.Buffer{}
		_, unindexed := unindexedBooks(t, nil, log)
		page, err := unindexed.List(t.Context(), store.ListOptions{Filter: c.filter, Sort: c.sort})
		if err != nil || !strings.Contains(page.Warning, ".indexes: "+c.declare) {
			t.Errorf("%s by %s: %q, %v, want %s", c.filter, c.sort, page.Warning, err, c.declare)
		}
		if !strings.Contains(strings.ReplaceAll(log.String(), `\"`, `"`), c.declare) {
			t.Errorf("the log is %s, want %s", log, c.declare)
		}
		if !strings.Contains(string(page.Encode("items")), `"warning":"no index supports`) {
			t.Errorf("the reply is %s", page.Encode("items"))
		}
	}
	indexed, _ := unindexedBooks(t, nil, nil)
	if page, err := indexed.List(t.Context(), store.ListOptions{Sort: "year"}); err != nil || page.Warning != "" ||
		strings.Contains(string(page.Encode("items")), "warning") {
		t.Errorf("with an index: %q, %v", page.Warning, err)
	}
}

// What is refused for another reason than a missing index stays refused in development, and so does everything
// elsewhere.
func TestWhatNoIndexWouldSupportStaysRefused(t *testing.T) {
	_, unindexed := unindexedBooks(t, nil, nil)
	restricted := unindexed.WithOptions(func(o *store.Options) { o.Private = []string{"author"} })
	ruled := unindexed.WithOptions(func(o *store.Options) {
		o.Fields = fieldsOf(t, map[string]policy.FieldRule{"author": {Read: "object.year > 1992"}})
	})
	mapped := unindexed.WithOptions(func(o *store.Options) { o.Arrays = []string{"books"} })
	for name, c := range map[string]struct {
		store *store.Store
		ctx   context.Context
		o     store.ListOptions
		says  string
	}{
		"elsewhere": {unindexed.WithOptions(func(o *store.Options) { o.Unindexed = false }), t.Context(),
			store.ListOptions{Sort: "year"}, "one on (year) is needed"},
		"too many fields": {unindexed, t.Context(),
			store.ListOptions{Filter: "a == 1 && b == 1 && c == 1 && d == 1 && e == 1"}, "is needed"},
		"a range in the way": {unindexed, t.Context(), store.ListOptions{Filter: "year > 1", Sort: "author"},
			"sort: with a range"},
		"only what is not": {unindexed, t.Context(), store.ListOptions{Filter: `!("x" in tags)`}, "by itself"},
		"no filter":        {unindexed, t.Context(), store.ListOptions{Filter: "year >"}, "filter"},
		"an internal field": {unindexed, client(t.Context()), store.ListOptions{Filter: `_x == 1`},
			"one on (_x) is needed"},
		"a private field": {restricted, client(t.Context()), store.ListOptions{Filter: `author == "a1"`},
			"one on (author) is needed"},
		"sorted by a private": {restricted, client(t.Context()), store.ListOptions{Sort: "author"},
			"one on (author) is needed"},
		"a private and another": {restricted, client(t.Context()),
			store.ListOptions{Filter: `author == "a1"`, Sort: "year"}, "is needed"},
		"a field with a rule": {ruled, client(t.Context()), store.ListOptions{Sort: "author"}, "author"},
		"elements of a mapping": {mapped, t.Context(), store.ListOptions{Filter: `"x" in books`},
			"one on (books[]) is needed"},
		"the cursor of another": {unindexed, t.Context(), store.ListOptions{Sort: "year", Cursor: "x"}, "cursor"},
	} {
		if page, err := c.store.List(c.ctx, c.o); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d objects, %v, want %q", name, len(page.Objects), err, c.says)
		}
	}
	denied := unindexed.WithOptions(func(o *store.Options) {
		o.Policy = compile(t, policy.Rules{List: "user != null && user.uuid == 'x'"})
	})
	if _, err := denied.List(as(t.Context(), "ada"), store.ListOptions{Sort: "year"}); !errors.Is(err, errs.Denied) {
		t.Errorf("who may not list gets %v", err)
	}
}

// A store that has outgrown development is refused, as it would be elsewhere.
func TestAListWithoutAnIndexReadsOnlySoMany(t *testing.T) {
	_, unindexed := unindexedBooks(t, nil, nil)
	store.SetMaxUnindexed(t, 60)
	if _, err := unindexed.List(t.Context(), store.ListOptions{Sort: "year"}); err != nil {
		t.Errorf("60 objects of 60: %v", err)
	}
	store.SetMaxUnindexed(t, 59)
	if _, err := unindexed.List(t.Context(), store.ListOptions{Sort: "year"}); !errors.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "one on (year) is needed") || !strings.Contains(err.Error(), "59 objects") {
		t.Errorf("60 objects of 59: %v", err)
	}
	store.SetMaxUnindexed(t, 29) // far more: it is refused by their number
	if _, err := unindexed.List(t.Context(), store.ListOptions{Sort: "year"}); !errors.Is(err, errs.Invalid) ||
		!strings.Contains(err.Error(), "29 objects") {
		t.Errorf("60 objects of 29: %v", err)
	}
	store.SetMaxUnindexed(t, 60)
	store.SetMaxUnindexedKeys(t, 100)
	if _, err := unindexed.List(t.Context(), store.ListOptions{Sort: "year"}); err != nil {
		t.Errorf("60 keys of 100: %v", err)
	}
	if _, err := unindexed.List(t.Context(), store.ListOptions{Filter: `"x1" in tags`}); !errors.Is(err,
		errs.Invalid) || !strings.Contains(err.Error(), "100 elements of arrays") {
		t.Errorf("more keys than 100: %v", err)
	}
}
