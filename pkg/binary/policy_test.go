package binary_test

import (
	"testing"

	"belfry/pkg/binary"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
)

func TestPoliciesAreJudgedBeforeTheBodyIsRead(t *testing.T) {
	w := newWorld(t, options{})
	diary := w.save("Diaries", `{"user":"ada"}`)
	p := binary.Place{Store: "Diaries", UUID: diary, Property: "scans"}
	w.refused(client(t.Context(), ""), binary.Upload{Place: p, Body: untouched{t}}, errs.Unauthenticated)
	w.refused(client(t.Context(), "eve"), binary.Upload{Place: p, Body: untouched{t}}, errs.Denied)
	ada := client(t.Context(), "ada")
	got, err := w.Put(ada, upload(p, "a"))
	w.must(err)
	if object.Field(got.Object.Body, store.BinariesField) != nil {
		t.Errorf("a client sees %s", got.Object.Body)
	}
	_, err = w.Find(client(t.Context(), "eve"), p)
	w.kind(err, errs.Denied)
	_, err = w.Delete(client(t.Context(), "eve"), p, hashOf("a"))
	w.kind(err, errs.Denied)
	_, err = w.Find(ada, p)
	w.must(err)
	_, err = w.Delete(ada, p, hashOf("a"))
	w.must(err)
}

// Reading asks the rule of get, attaching and taking away that of update.
func TestEachActAsksItsRule(t *testing.T) {
	for name, test := range map[string]struct {
		rules     policy.Rules
		find, put bool
	}{
		"reads":  {policy.Rules{Get: "true", List: "false", Update: "false", Delete: "false", Create: "false"}, true, false},
		"writes": {policy.Rules{Get: "false", List: "false", Update: "true", Delete: "false", Create: "false"}, false, true},
		"others": {policy.Rules{Get: "false", List: "true", Update: "false", Delete: "true", Create: "true"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			rules, problems := policy.Compile(test.rules)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			w := newWorld(t, options{stores: func(o *store.Options) { o.Policy = rules }})
			book := w.save("Books", `{}`)
			w.add(book, "a")
			ctx := client(t.Context(), "ada")
			_, err := w.Find(ctx, photo(book, 0))
			if (err == nil) != test.find {
				t.Errorf("Find: %v", err)
			}
			up := upload(photo(book, 1), "b")
			if !test.put {
				up.Body = untouched{t}
			}
			if err := w.Check(ctx, up); (err == nil) != test.put {
				t.Errorf("Check: %v", err)
			}
			if _, err := w.Put(ctx, up); (err == nil) != test.put {
				t.Errorf("Put: %v", err)
			}
			if _, err := w.Delete(ctx, photo(book, 0), hashOf("a")); (err == nil) != test.put {
				t.Errorf("Delete: %v", err)
			}
		})
	}
}

func TestRulesSeeTheRecordsComeIn(t *testing.T) {
	rules, problems := policy.Compile(policy.Rules{
		Update: `input.all(name, name == "photos") && (input.photos == null || input.photos.all(r, r.size < 3))`,
	})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	w := newWorld(t, options{stores: func(o *store.Options) {
		if o.Name == "Books" {
			o.Policy = rules
		}
	}})
	book := w.save("Books", `{}`)
	ctx := client(t.Context(), "ada")
	_, err := w.Put(ctx, upload(photo(book, 0), "12"))
	w.must(err)
	w.refused(ctx, upload(photo(book, 1), "123"), errs.Denied)
	_, err = w.Delete(ctx, photo(book, 0), hashOf("12"))
	w.must(err)
}

func TestPrivatePropertiesStayPrivate(t *testing.T) {
	w := newWorld(t, options{})
	book := w.save("Books", `{}`)
	w.add(book, "a")
	w.set.Store("Books").Private = []string{"photos"}
	_, err := w.Find(client(t.Context(), "ada"), photo(book, 0))
	w.kind(err, errs.NotFound)
	_, err = w.Delete(client(t.Context(), "ada"), photo(book, 0), hashOf("a"))
	w.kind(err, errs.NotFound)
}
