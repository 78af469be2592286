package backends

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/dynamostore"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/mongostore"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
	"belfry/test/backing"
)

// TestListsUnderRulesAreCompleteOnEachBackend: the pages of what a user owns and of what is public, merged from two
// indexes, are what the rule allows of the store, in order, and nothing is there twice.
func TestListsUnderRulesAreCompleteOnEachBackend(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (driver.Backend, error){
		"files": func(t *testing.T) (driver.Backend, error) { return filestore.Open(t.TempDir(), filestore.Options{}) },
		"MongoDB": func(t *testing.T) (driver.Backend, error) {
			return mongostore.Open(t.Context(), mongostore.Options{URL: "mongodb://" + backing.StartMongo(t).Address + "/", Database: "lists"})
		},
		"DynamoDB": func(t *testing.T) (driver.Backend, error) {
			return dynamostore.Open(t.Context(), dynamostore.Options{Region: "eu-central-1", Endpoint: backing.Dynoxide(t).URL})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			backend, err := open(t)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = backend.Close() })
			listsAreComplete(t, backend)
		})
	}
}

func listsAreComplete(t *testing.T, backend driver.Backend) {
	t.Helper()
	rules, problems := policy.Compile(policy.Rules{Owner: true})
	if problems != nil {
		t.Fatal(problems)
	}
	s, err := store.Open(t.Context(), backend, store.Options{Name: "Notes", Policy: rules, Indexes: []query.Index{
		{Name: "year", Fields: []string{"year"}}, {Name: "user", Fields: []string{"user"}}, {Name: "user,year", Fields: []string{"user", "year"}},
		{Name: "public", Fields: []string{"public"}}, {Name: "public,year", Fields: []string{"public", "year"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	years := map[string]int{}
	for i := range 60 {
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
	for user, want := range map[string]int{"ada": 20 + 10, "bob": 20 + 10, "": 15} {
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
	for {
		page, err := s.List(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range page.Objects {
			all = append(all, found.UUID)
		}
		if page.Next == "" {
			return all
		}
		if len(page.Objects) != o.Limit {
			t.Errorf("a page of %d objects before the last", len(page.Objects))
		}
		o.Cursor = page.Next
	}
}
