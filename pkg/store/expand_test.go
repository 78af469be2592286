package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// expandable opens a store Books whose author and readers name objects of another store.
func expandable(t *testing.T, o store.Options) (books, people *store.Store, known map[string]*store.Store) {
	t.Helper()
	people, _ = open(t, o)
	books, _ = open(t, store.Options{
		Fields:  fieldsOf(t, map[string]policy.FieldRule{"readers": {Read: `user.uuid == "ada"`}}),
		Indexes: []query.Index{query.NewIndex([]string{"year"})},
	})
	return books, people, map[string]*store.Store{"author": people, "readers": people}
}

func expansions(t *testing.T, text string, known map[string]*store.Store) []store.Expansion {
	t.Helper()
	all, err := store.ParseExpand(text, known)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// refusesGet is an interceptor that refuses the gets of one object.
type refusesGet string

func (uuid refusesGet) Intercept(_ context.Context, r store.InterceptRequest) (object.Object, error) {
	if r.Op == "get" && r.UUID == string(uuid) {
		return nil, errs.New(errs.Denied, "not this one")
	}
	return nil, nil
}

// TestExpansionsObeyTheRulesOfTheOtherStore: what is expanded is what a get of it would show; what is missing, what the
// policy denies and what an interceptor refuses is absent alike.
func TestExpansionsObeyTheRulesOfTheOtherStore(t *testing.T) {
	books, people, known := expandable(t, store.Options{
		Policy: compile(t, policy.Rules{Get: `object.shown == true`}), Private: []string{"pin"},
		Fields: fieldsOf(t, map[string]policy.FieldRule{"phone": {Read: `user.uuid == "ada"`}}), InterceptsGet: true,
		Interceptor: refusesGet("refused"),
	})
	for uuid, body := range map[string]string{
		"jane": `{"shown":true,"name":"Jane","phone":1,"pin":2}`, "kim": `{"shown":true,"name":"Kim"}`,
		"hidden": `{"name":"Hidden"}`, "refused": `{"shown":true,"name":"R"}`,
	} {
		save(t, people, uuid, body)
	}
	for i, author := range []string{`"jane"`, `"hidden"`, `"refused"`, `"nobody"`, `7.5`,
		`["jane","hidden","kim","jane"]`} {
		save(t, books, fmt.Sprint("b", i), fmt.Sprintf(`{"year":%d,"author":%s,"readers":["kim"]}`, i, author))
	}
	jane, forBob, kim := `{"uuid":"jane","name":"Jane","phone":1,"shown":true}`,
		`{"uuid":"jane","name":"Jane","shown":true}`, `{"uuid":"kim","name":"Kim","shown":true}`
	for who, c := range map[string]struct {
		ctx    context.Context
		author [6]string // what is expanded
		reader string
	}{
		"ada": {as(t.Context(), "ada"), [6]string{jane, "", "", "", "", "[" + jane + "," + kim + "]"}, "[" + kim + "]"},
		"bob": {as(t.Context(), "bob"), [6]string{forBob, "", "", "", "", "[" + forBob + "," + kim + "]"}, ""},
	} {
		list, err := books.List(c.ctx,
			store.ListOptions{Sort: "year", Expand: expansions(t, "author, readers", known), Explain: true})
		if err != nil || len(list.Objects) != 6 {
			t.Fatalf("%s: %d objects, %v", who, len(list.Objects), err)
		}
		for i, o := range list.Objects {
			one, err := books.GetView(c.ctx, o.UUID, store.View{Expand: expansions(t, "author,readers", known)})
			if err != nil || !one.Viewed {
				t.Fatal(err)
			}
			for _, body := range [][]byte{o.Body, one.Body} {
				parse(t, string(body))
				with := object.Field(body, "_expanded")
				for name, want := range map[string]string{"author": c.author[i], "readers": c.reader} {
					if got := withoutTimes(t, object.Field(with, name)); got != want {
						t.Errorf("%s, book %d, %s: %s, want %s", who, i, name, got, want)
					}
				}
			}
		}
		if reads := map[string]int{"ada": 6, "bob": 5}[who]; list.Plan.Expanded != reads {
			t.Errorf("%s: %d objects were read, want %d, each once", who, list.Plan.Expanded, reads)
		}
	}
}

// withoutTimes removes created and updated from an object, or the objects of an array.
func withoutTimes(t *testing.T, value []byte) string {
	t.Helper()
	switch {
	case value == nil:
		return ""
	case value[0] == '{':
		return string(object.Without(value, func(name string) bool { return name == "created" || name == "updated" }))
	}
	var all []string
	object.Elements(value, func(element []byte) bool {
		all = append(all, withoutTimes(t, element))
		return true
	})
	return "[" + strings.Join(all, ",") + "]"
}

func TestExpansionsAndProjections(t *testing.T) {
	books, people, known := expandable(t, store.Options{})
	save(t, people, "jane", `{"name":"Jane","born":1775}`)
	save(t, books, "emma", `{"author":"jane","title":"Emma","year":1815}`)
	for fields, want := range map[string]string{
		"title,author.name":       `{"uuid":"emma","author":"jane","title":"Emma","_expanded":{"author":{"uuid":"jane","name":"Jane"}}}`,
		"author.born,author.name": `{"uuid":"emma","author":"jane","_expanded":{"author":{"uuid":"jane","born":1775,"name":"Jane"}}}`,
		"author.none":             `{"uuid":"emma","author":"jane","_expanded":{"author":{"uuid":"jane"}}}`,
	} {
		list, err := books.List(t.Context(), store.ListOptions{Fields: fields, Expand: expansions(t, "author", known)})
		if err != nil || string(list.Objects[0].Body) != want {
			t.Errorf("%s: %s, %v, want %s", fields, list.Encode("items"), err, want)
		}
		one, err := books.GetView(t.Context(), "emma",
			store.View{Fields: fields, Expand: expansions(t, "author", known)})
		if err != nil || string(one.Body) != want {
			t.Errorf("%s: %s, %v, want %s", fields, one.Body, err, want)
		}
	}
	back, err := books.GetView(client(t.Context()), "emma", store.View{Expand: expansions(t, "author", known)})
	if err != nil {
		t.Fatal(err)
	}
	// What was read can be written back.
	stored, err := books.Update(client(t.Context()), parse(t, string(back.Body)), store.UpdateOptions{UUID: "emma"})
	if err != nil || strings.Contains(string(stored.Body), "_expanded") {
		t.Errorf("%s, %v", stored.Body, err)
	}
}

func TestParseExpand(t *testing.T) {
	_, _, known := expandable(t, store.Options{})
	for text, says := range map[string]string{"title": "author, readers", "author,author": "twice",
		"author,": "can't be expanded", "author.name": "can't be"} {
		if _, err := store.ParseExpand(text, known); errs.KindOf(err) != errs.Invalid ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := store.ParseExpand("author", nil); errs.KindOf(err) != errs.Invalid {
		t.Error(err)
	}
	if all, err := store.ParseExpand(" ", known); len(all) != 0 || err != nil {
		t.Error(all, err)
	}
}

// TestAPageEndsBeforeItExpandsTooMuch: in both directions no object is lost between pages, and none has a part of what
// it names.
func TestAPageEndsBeforeItExpandsTooMuch(t *testing.T) {
	books, people, known := expandable(t, store.Options{})
	large := strings.Repeat("x", 120<<10)
	for i := range 60 {
		save(t, people, fmt.Sprintf("p%02d", i), fmt.Sprintf(`{"text":%q}`, large))
		save(t, books, fmt.Sprintf("b%02d", i), fmt.Sprintf(`{"year":%d,"author":"p%02d"}`, i, i))
	}
	var many []string
	for i := range 200 {
		many = append(many, fmt.Sprintf("n%03d-%%d", i))
	}
	for i := range 3 { // each names 200 objects, which are not there
		save(t, books,
			fmt.Sprintf("c%d",
				i), fmt.Sprintf(`{"year":%d,"author":["`+
				strings.ReplaceAll(strings.Join(many, `","`), "%d", fmt.Sprint(i))+`"]}`, 100+i))
	}
	o := store.ListOptions{Sort: "year", Limit: 500, Expand: expansions(t, "author", known)}
	var pages []store.List
	var seen []string
	for {
		page, err := books.List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(page.Encode("items")); size > store.MaxPageBytes {
			t.Errorf("a page has %d bytes", size)
		}
		for _, found := range page.Objects {
			if author := object.Field(object.Field(found.Body, "_expanded"), "author"); author == nil {
				t.Errorf("%s lacks its author", found.UUID)
			}
		}
		pages, seen = append(pages, page), append(seen, listedUUIDs(page)...)
		if page.Next == "" {
			break
		}
		o.Cursor = page.Next
	}
	if len(pages) < 3 || len(seen) != 63 || seen[59] != "b59" || seen[62] != "c2" {
		t.Errorf("%d pages with %v", len(pages), seen)
	}
	o.Cursor = ""
	for o.Before = pages[len(pages)-1].Back; o.Before != ""; {
		page, err := books.List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		before := listedUUIDs(page)
		left := len(seen) - len(listedUUIDs(pages[len(pages)-1]))
		if got, want := strings.Join(before, " "), strings.Join(seen[left-len(before):left], " "); got != want ||
			got == "" {
			t.Fatalf("before are %s, want %s", got, want)
		}
		seen = append(seen[:left-len(before)], seen[left:]...)
		o.Before = page.Back
	}
	save(t, books, "d", fmt.Sprintf(`{"author":[%s]}`, quotedNames(60)))
	_, err := books.GetView(t.Context(), "d", store.View{Expand: expansions(t, "author", known)})
	kind(t, err, errs.TooLarge)
	_, err = books.List(t.Context(), store.ListOptions{Filter: `uuid == "d"`, Expand: expansions(t, "author", known)})
	kind(t, err, errs.TooLarge)
	one, err := books.GetView(t.Context(), "d",
		store.View{Fields: "author.none", Expand: expansions(t, "author", known)})
	if err != nil || len(one.Body) > 5000 {
		t.Errorf("%d bytes, %v", len(one.Body), err)
	}
}

// counting is a backend that records how many objects are read at once.
type counting struct {
	driver.Backend
	chunks *[]int
}

func (b counting) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return countingStore{s, b.chunks}, err
}

type countingStore struct {
	driver.Store
	chunks *[]int
}

func (s countingStore) GetMany(ctx context.Context, uuids []string) ([]driver.Record, error) {
	*s.chunks = append(*s.chunks, len(uuids))
	return driver.GetMany(ctx, s.Store, uuids)
}

// TestExpansionsReadOnlySoMuch: objects of which a projection keeps little are read all the same: a few at once, and no
// more for a page than so many bytes.
func TestExpansionsReadOnlySoMuch(t *testing.T) {
	var chunks []int
	file, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	people, err := store.Open(t.Context(), counting{file, &chunks}, store.Options{Name: "People"})
	if err != nil {
		t.Fatal(err)
	}
	books, _ := open(t, store.Options{})
	known := map[string]*store.Store{"author": people}
	large := strings.Repeat("x", 250<<10)
	const size = 80 // of 19 MiB
	for i := range size {
		save(t, people, fmt.Sprintf("p%02d", i), fmt.Sprintf(`{"name":"n","text":%q}`, large))
		save(t, books, fmt.Sprintf("b%02d", i), fmt.Sprintf(`{"author":"p%02d"}`, i))
	}
	o := store.ListOptions{Limit: 500, Fields: "author.name", Expand: expansions(t, "author", known), Explain: true}
	page, err := books.List(t.Context(), o)
	if err != nil || page.Next == "" || page.Plan.Expanded < 60 || page.Plan.Expanded >= size {
		t.Fatalf("%+v, %v", page.Plan, err)
	}
	o.Cursor = page.Next
	rest, err := books.List(t.Context(), o)
	if err != nil || rest.Next != "" || len(page.Objects)+len(rest.Objects) != size {
		t.Errorf("%d and %d objects, %v", len(page.Objects), len(rest.Objects), err)
	}
	if n := slices.Max(chunks); n > 8 {
		t.Errorf("%d objects of 250 KiB are read at once", n)
	}
	save(t, books, "all", fmt.Sprintf(`{"author":[%s]}`, quotedNames(size)))
	_, err = books.GetView(t.Context(), "all",
		store.View{Fields: "author.name", Expand: expansions(t, "author", known)})
	if kind(t, err, errs.TooLarge); !strings.Contains(err.Error(), "one by one") {
		t.Error(err)
	}
}

// TestOneObjectThatManyNameCountsForEach: it is read once, and is in the page as often as it is named.
func TestOneObjectThatManyNameCountsForEach(t *testing.T) {
	books, people, known := expandable(t, store.Options{})
	save(t, people, "p", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 200<<10)))
	for i := range 30 {
		save(t, books, fmt.Sprintf("b%02d", i), `{"author":"p"}`)
	}
	o := store.ListOptions{Limit: 500, Expand: expansions(t, "author", known)}
	var seen []string
	for {
		page, err := books.List(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(page.Encode("items")); size > store.MaxPageBytes {
			t.Errorf("a page has %d bytes", size)
		}
		seen = append(seen, listedUUIDs(page)...)
		if o.Cursor = page.Next; o.Cursor == "" {
			break
		}
	}
	if len(seen) != 30 || seen[29] != "b29" {
		t.Errorf("the pages have %v", seen)
	}
}

func quotedNames(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%02d"`, i))
	}
	return strings.Join(all, ",")
}
