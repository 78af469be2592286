package binary_test

import (
	"testing"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

func TestPoliciesAreCheckedBeforeTheBodyIsRead(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	diary := f.save("Diaries", `{"user":"ada"}`)
	p := binary.Place{Store: "Diaries", UUID: diary, Property: "scans"}
	f.refused(client(t.Context(), ""), binary.Upload{Place: p, Body: unreadBody{t}}, errs.Unauthenticated)
	f.refused(client(t.Context(), "eve"), binary.Upload{Place: p, Body: unreadBody{t}}, errs.Denied)
	ada := client(t.Context(), "ada")
	got, err := f.Put(ada, upload(p, "a"))
	f.must(err)
	if got.Object.Body != nil {
		t.Errorf("a client receives %s", got.Object.Body)
	}
	_, err = f.Get(client(t.Context(), "eve"), p)
	f.kind(err, errs.Denied)
	_, err = f.Delete(client(t.Context(), "eve"), p, hashOf("a"))
	f.kind(err, errs.Denied)
	// The error must not reveal whether there is a binary, or its hash.
	missing := p
	missing.Index = 7
	_, err = f.Delete(client(t.Context(), "eve"), missing, hashOf("a"))
	f.kind(err, errs.Denied)
	_, err = f.Delete(client(t.Context(), "eve"), p, hashOf("b"))
	f.kind(err, errs.Denied)
	_, err = f.Get(ada, p)
	f.must(err)
	_, err = f.Delete(ada, p, hashOf("a"))
	f.must(err)
}

// Reading a binary needs the rule of get, uploading and deleting that of update.
func TestOperationsCheckTheirRule(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rules     policy.Rules
		find, put bool
	}{
		"reads": {policy.Rules{Get: "true", List: "false", Update: "false", Delete: "false", Create: "false"}, true,
			false},
		"writes": {policy.Rules{Get: "false", List: "false", Update: "true", Delete: "false", Create: "false"}, false,
			true},
		"others": {policy.Rules{Get: "false", List: "true", Update: "false", Delete: "true", Create: "true"}, false,
			false},
	} {
		t.Run(name, func(t *testing.T) {
			rules, problems := policy.Compile(test.rules)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			f := newFixture(t, options{stores: func(o *store.Options) { o.Policy = rules }})
			book := f.save("Books", `{}`)
			f.add(book, "a")
			ctx := client(t.Context(), "ada")
			_, err := f.Get(ctx, photo(book, 0))
			if (err == nil) != test.find {
				t.Errorf("Find: %v", err)
			}
			up := upload(photo(book, 1), "b")
			if !test.put {
				up.Body = unreadBody{t}
			}
			if err := f.Validate(ctx, up); (err == nil) != test.put {
				t.Errorf("Check: %v", err)
			}
			if _, err := f.Put(ctx, up); (err == nil) != test.put {
				t.Errorf("Put: %v", err)
			}
			if _, err := f.Delete(ctx, photo(book, 0), hashOf("a")); (err == nil) != test.put {
				t.Errorf("Delete: %v", err)
			}
		})
	}
}

func TestRulesSeeTheRecordsOfAnUpload(t *testing.T) {
	t.Parallel()
	rules, problems := policy.Compile(policy.Rules{
		Update: `input.all(name, name == "photos") && (input.photos == null || input.photos.all(r, r.size < 3))`,
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	f := newFixture(t, options{stores: func(o *store.Options) {
		if o.Name == "Books" {
			o.Policy = rules
		}
	}})
	book := f.save("Books", `{}`)
	ctx := client(t.Context(), "ada")
	_, err := f.Put(ctx, upload(photo(book, 0), "12"))
	f.must(err)
	f.refused(ctx, upload(photo(book, 1), "123"), errs.Denied)
	_, err = f.Delete(ctx, photo(book, 0), hashOf("12"))
	f.must(err)
}

func TestPrivatePropertiesStayPrivate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, options{})
	book := f.save("Books", `{}`)
	f.add(book, "a")
	books := f.set.Store("Books").WithOptions(func(o *store.Options) { o.Private = []string{"photos"} })
	service := binary.New(binary.Options{Name: "files", Set: store.NewSet([]*store.Store{books}, nil),
		Contents: f.entries, Storage: f.storage})
	_, err := service.Get(client(t.Context(), "ada"), photo(book, 0))
	f.kind(err, errs.NotFound)
	_, err = service.Delete(client(t.Context(), "ada"), photo(book, 0), hashOf("a"))
	f.kind(err, errs.NotFound)
}
