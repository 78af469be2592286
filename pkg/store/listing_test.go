package store_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"belfry/internal/seal"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// noteIndexes are those of lists, and of the values that the rules of the tests name.
var noteIndexes = []query.Index{
	{Name: "year", Fields: []string{"year"}}, {Name: "user", Fields: []string{"user"}},
	{Name: "user,year", Fields: []string{"user", "year"}},
	{Name: "public", Fields: []string{"public"}}, {Name: "public,year", Fields: []string{"public", "year"}},
}

// all returns the uuids of a list's pages. Each page before the last must be full, and the last must not be empty
// unless it is the only one.
func (n *notes) all(ctx context.Context, o store.ListOptions) []string {
	n.Helper()
	var uuids []string
	var before store.List
	for number := 0; ; number++ {
		page, err := n.store.List(ctx, o)
		if err != nil {
			n.Fatal(err)
		}
		for _, found := range page.Objects {
			uuids = append(uuids, found.UUID)
		}
		n.goesBack(ctx, o, number, page, before)
		before = page
		if page.Next == "" {
			if len(page.Objects) == 0 && o.Cursor != "" {
				n.Errorf("%+v: the last page is empty: its cursor revealed objects that are not shown", o)
			}
			return uuids
		}
		if len(page.Objects) != o.Limit {
			n.Errorf("%+v: a page of %d objects before the last", o, len(page.Objects))
		}
		o.Cursor = page.Next
	}
}

// goesBack: from each page but the first one goes back to the same page from which one came, and from there forth
// again.
func (n *notes) goesBack(ctx context.Context, o store.ListOptions, number int, page, before store.List) {
	n.Helper()
	if (page.Back != "") != (number > 0) {
		n.Errorf("%+v: page %d has the cursor %q of the page before", o, number, page.Back)
	}
	if page.Back == "" {
		return
	}
	forth := o.Cursor
	o.Cursor, o.Before = "", page.Back
	back, err := n.store.List(ctx, o)
	if err != nil {
		n.Fatal(err)
	}
	if got, want := listedUUIDs(back), listedUUIDs(before); !slices.Equal(got, want) {
		n.Errorf("%+v: before page %d are %v, want %v", o, number, got, want)
	}
	if (back.Back != "") != (number > 1) {
		n.Errorf("%+v: the page before page %d has the cursor %q", o, number, back.Back)
	}
	o.Before, o.Cursor = "", back.Next
	again, err := n.store.List(ctx, o)
	if err != nil {
		n.Fatal(err)
	}
	if got, want := listedUUIDs(again), listedUUIDs(page); !slices.Equal(got, want) {
		n.Errorf("%+v: back and forth to page %d, after %.20s: %v, want %v", o, number, forth, got, want)
	}
}

func listedUUIDs(l store.List) (uuids []string) {
	for _, found := range l.Objects {
		uuids = append(uuids, found.UUID)
	}
	return uuids
}

type notes struct {
	*testing.T
	store   *store.Store
	objects map[string]object.Object
}

// TestListsUnderRulesAreComplete: whatever the rule, the user, the filter, the order and the size of the pages, a
// list is what the rule allows of the list without a rule.
func TestListsUnderRulesAreComplete(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	open, _ := open(t, store.Options{Indexes: noteIndexes})
	n := &notes{T: t, store: open, objects: map[string]object.Object{}}
	for i := range 150 {
		fields := []string{fmt.Sprintf(`"kind":%d`, i%3)}
		for name, values := range map[string][]string{
			"user":   {"", `"ada"`, `"bob"`, `"bob"`, `"bob"`, `["ada"]`, "null"},
			"public": {"", "true", "false", "false", `"true"`}, "year": {"", "1", "2", "2.0", "3", "4", `"x"`},
		} {
			if value := values[r.IntN(len(values))]; value != "" {
				fields = append(fields, fmt.Sprintf("%q:%s", name, value))
			}
		}
		uuid := fmt.Sprintf("n%03d", i)
		if i == 77 {
			uuid = "ada"
		}
		stored := save(t, open, uuid, "{"+strings.Join(fields, ",")+"}")
		n.objects[uuid] = parse(t, string(stored.Body))
	}
	lists := []store.ListOptions{
		{}, {Sort: "year"}, {Sort: "-year"}, {Filter: "year >= 2", Sort: "year"}, {Filter: "year == 2"},
		{Filter: `user == "ada"`},
		{Filter: `user == "bob"`, Sort: "-year"}, {Filter: "public == true", Sort: "year"},
	}
	for name, rules := range map[string]policy.Rules{
		"the owner's rules":   {Owner: true},
		"owner or public":     {OwnerField: "user", Get: "isOwner || object.public == true"},
		"public or owner":     {OwnerField: "user", List: "object.public || isOwner", Get: "false"},
		"the owner":           {OwnerField: "user", Get: "isOwner"},
		"equal to a field":    {Get: "user != null && object.user == user.uuid"},
		"the owner of a few":  {OwnerField: "user", Get: "isOwner && object.kind != 1"},
		"without an index":    {OwnerField: "user", Get: "isOwner || object.kind == 2"},
		"any":                 {Get: "object.kind > 0"},
		"nobody":              {OwnerField: "user", Get: "isOwner && false"},
		"users":               {Users: true, Get: "isOwner || object.public == true"},
		"a field of the user": {Get: "object.year == user.year || object.user == user.uuid"},
		"a list of the user":  {Get: "object.year in user.years"},
		"owner or a list":     {OwnerField: "user", Get: "isOwner || object.year in user.years"},
		"copies":              {Get: "object.user in user.teams.map(t, t.team)"},
		"a copy":              {Get: "user.teams.exists(t, t.team == object.user && t.ok)"},
		"a copy, and more":    {Get: "user.teams.exists(t, t.team == object.user && object.kind < t.kind)"},
		"uuids in a list":     {OwnerField: "user", Get: "object.uuid in user.ids || isOwner"},
		"uuids of a list":     {Get: "object.uuid in user.ids"},
		"who may all":         {OwnerField: "user", Get: "user.admin || isOwner"},
	} {
		n.store = open.WithOptions(func(o *store.Options) { o.Policy = compile(t, rules) })
		for who, ctx := range map[string]context.Context{
			"nobody": client(t.Context()), "ada": as(t.Context(), "ada"), "bob": as(t.Context(), "bob"),
			"eve": store.WithCall(t.Context(), store.Call{Client: true, User: parse(t, `{"uuid":"eve","year":2}`)}),
			"max": store.WithCall(t.Context(),
				store.Call{Client: true, User: parse(t, `{"uuid":"bob","years":[4,2,"x",1.0],"admin":true,
				"teams":[{"team":"ada","ok":true,"kind":1},{"team":["ada"]},{"ok":true},{"team":"bob","ok":1,"kind":2},{"team":null,"ok":true}],"ids":["n003","zz","n100","ada",7,"n050"]}`)}),
		} {
			for _, o := range lists {
				o.Limit = 1 + r.IntN(20)
				n.same(fmt.Sprintf("%s, %s, %+v", name, who, o), ctx, o, open)
			}
		}
	}
}

// same compares a list under a rule with what the rule allows of the one without.
func (n *notes) same(what string, ctx context.Context, o store.ListOptions, unrestricted *store.Store) {
	n.Helper()
	restricted := n.store
	n.store = unrestricted
	everything := n.all(n.Context(), store.ListOptions{Filter: o.Filter, Sort: o.Sort, Limit: store.MaxPage})
	n.store = restricted
	want := slices.DeleteFunc(everything, func(uuid string) bool {
		return n.store.Rules().Policy().Allow(ctx, policy.List,
			policy.Input{User: store.CallOf(ctx).User, Object: n.objects[uuid]}) != nil
	})
	got := n.all(ctx, o)
	if o.Sort != "" { // objects of one year may come in any order
		year := func(uuid string) []byte { return query.EncodePart(n.objects[uuid]["year"]) }
		sorted := func(a, b string) int {
			order := bytes.Compare(year(a), year(b))
			if strings.HasPrefix(o.Sort, "-") {
				order = -order
			}
			return order
		}
		if !slices.IsSortedFunc(got, sorted) {
			n.Errorf("%s: not in order: %v", what, got)
		}
		slices.Sort(got)
		slices.Sort(want)
	}
	if o.Filter != "" {
		slices.SortFunc(got, cmp.Compare[string])
		slices.SortFunc(want, cmp.Compare[string])
	}
	if !slices.Equal(got, want) {
		n.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// TestAListReadsOnlySoMuch: a rule that no index answers leaves out many objects, which are read in several requests,
// and so does a filter by a text of which the index has only the beginning.
func TestAListReadsOnlySoMuch(t *testing.T) {
	const objects, size = 45, 200 << 10
	long := strings.Repeat("x", 300)
	for name, by := range map[string]struct {
		options store.Options
		filter  string
	}{
		"a rule": {store.Options{Policy: compile(t, policy.Rules{Get: "has(object.shown)"})}, ""},
		"a filter": {store.Options{Indexes: []query.Index{{Name: "title", Fields: []string{"title"}}}},
			`title == "` + long + `shown"`},
	} {
		s, _ := open(t, by.options)
		for i := range objects {
			save(t, s, fmt.Sprintf("n%02d", i), `{"title":"`+long+`","pad":"`+strings.Repeat("x", size)+`"}`)
		}
		save(t, s, "n99", `{"title":"`+long+`shown","shown":1}`)
		requests, found := 0, 0
		for o := (store.ListOptions{Filter: by.filter}); requests == 0 || o.Cursor != ""; requests++ {
			page, err := s.List(client(t.Context()), o)
			if err != nil {
				t.Fatal(err)
			}
			found += len(page.Objects)
			o.Cursor = page.Next
		}
		if least := objects * size / store.MaxPageBytes; found != 1 || requests <= least || requests > 2*least+2 {
			t.Errorf("%s: %d found in %d requests, each of which reads %d bytes", name, found, requests,
				store.MaxPageBytes)
		}
	}
}

// TestCursorsTellNothing: they are sealed, and hold for their store and their user's list only.
func TestCursorsTellNothing(t *testing.T) {
	sealer, err := seal.New(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, store.Options{Sealer: sealer, Indexes: noteIndexes, Policy: compile(t, policy.Rules{Owner: true})})
	for i := range 10 {
		save(t, s, fmt.Sprintf("secret-%d", i),
			fmt.Sprintf(`{"user":%q,"public":%t}`, []string{"ada", "bob"}[i%2], i > 7))
	}
	o := store.ListOptions{Limit: 2}
	page, err := s.List(as(t.Context(), "ada"), o)
	if err != nil || page.Next == "" {
		t.Fatalf("%q, %v", page.Next, err)
	}
	decoded, err := base64.RawURLEncoding.DecodeString(page.Next)
	if err != nil || bytes.Contains(decoded, []byte("secret")) {
		t.Errorf("the cursor is readable: %q, %v", decoded, err)
	}
	if long, err := s.List(t.Context(), store.ListOptions{Limit: 2, Sort: "user,year"}); err != nil ||
		len(long.Next) != len(page.Next) {
		t.Errorf("the length of a cursor reveals what it holds: %d and %d, %v", len(long.Next), len(page.Next), err)
	}
	o.Cursor = page.Next
	if _, err := s.List(as(t.Context(), "ada"), o); err != nil {
		t.Error(err)
	}
	_, err = s.List(as(t.Context(), "bob"), o)
	kind(t, err, errs.Invalid)
	other := s.WithOptions(func(o *store.Options) { o.Name = "Others" })
	_, err = other.List(as(t.Context(), "ada"), o)
	kind(t, err, errs.Invalid)
	for _, made := range []string{page.Next[1:], page.Next + "A",
		base64.RawURLEncoding.EncodeToString([]byte("secret-1")), strings.Repeat("A", 1<<16)} {
		_, err := s.List(as(t.Context(), "ada"), store.ListOptions{Limit: 2, Cursor: made})
		kind(t, err, errs.Invalid)
	}
	if page, err = s.List(client(t.Context()), store.ListOptions{Limit: 2}); err != nil || page.Next != "" ||
		len(page.Objects) != 2 {
		t.Errorf("nobody sees %d public objects and the cursor %q, %v", len(page.Objects), page.Next, err)
	}
}

// TestCursorsAreRefusedByTheReleaseBefore: it shares the key, and would take the place in a cursor for another one.
func TestCursorsAreRefusedByTheReleaseBefore(t *testing.T) {
	sealer, err := seal.New(seal.NewKey())
	if err != nil {
		t.Fatal(err)
	}
	s, _ := open(t, store.Options{Sealer: sealer})
	save(t, s, "a", `{}`)
	save(t, s, "b", `{}`)
	page, err := s.List(t.Context(), store.ListOptions{Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	if _, ok := sealer.Open("cursor of Books", page.Next); ok {
		t.Error("the release before opens the cursor")
	}
}
