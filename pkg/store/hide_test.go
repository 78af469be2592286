package store_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// TestHideForbidden: where objects are hidden, a client who may neither get one nor do what they ask receives the reply
// for a missing object, whatever they ask and however wrong it is.
func TestHideForbidden(t *testing.T) {
	s, _ := open(t, store.Options{
		Policy:        compile(t, policy.Rules{Owner: true}),
		HideForbidden: true, MaxSize: 100,
	})
	save(t, s, "a", `{"user":"ada"}`)
	wide := `{"x":"` + strings.Repeat("x", 400) + `"}`
	update := func(body string, opts store.UpdateOptions) func(context.Context, string) error {
		return func(ctx context.Context, uuid string) error {
			opts.UUID = uuid
			_, err := s.Update(ctx, parse(t, body), opts)
			return err
		}
	}
	asks := map[string]func(ctx context.Context, uuid string) error{
		"get": func(ctx context.Context, uuid string) error {
			_, err := s.Get(ctx, uuid)
			return err
		},
		"update":                        update(`{"x":1}`, store.UpdateOptions{}),
		"patch":                         update(`{"x":1}`, store.UpdateOptions{Patch: true}),
		"update at a revision":          update(`{"x":1}`, store.UpdateOptions{If: 1}),
		"update with what is too large": update(wide, store.UpdateOptions{}),
		"a check of an update": func(ctx context.Context, uuid string) error {
			return s.CheckUpdate(ctx, parse(t, wide), store.UpdateOptions{UUID: uuid})
		},
		"delete": func(ctx context.Context, uuid string) error { return s.Delete(ctx, uuid, 0) },
		"delete at a revision": func(ctx context.Context, uuid string) error {
			return s.Delete(ctx, uuid, math.MaxUint64)
		},
		"a check of a delete": s.CheckDelete,
		"all of it": func(ctx context.Context, uuid string) error {
			_, err := s.GetAuthorized(ctx, uuid, policy.Update, parse(t, `{}`))
			return err
		},
	}
	for name, ask := range asks {
		for who, ctx := range map[string]context.Context{"nobody": client(t.Context()), "bob": as(t.Context(), "bob")} {
			there, none := ask(ctx, "a"), ask(ctx, "b")
			if !errors.Is(there, errs.NotFound) || errors.Is(there, errs.Denied) ||
				there.Error() != strings.ReplaceAll(none.Error(), `"b"`, `"a"`) {
				t.Errorf("%s by %s: %v, and of an object that does not exist: %v", name, who, there, none)
			}
		}
	}
	// Nothing is hidden from those who may do something with the object.
	if err := asks["update with what is too large"](as(t.Context(), "ada"), "a"); errors.Is(err, errs.NotFound) {
		t.Errorf("the owner gets %v", err)
	}
	if err := asks["delete"](as(t.Context(), "ada"), "a"); err != nil {
		t.Error(err)
	}
}
