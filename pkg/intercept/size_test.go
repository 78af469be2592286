package intercept_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/bus"
	"belfry/pkg/errs"
	"belfry/pkg/intercept"
	"belfry/pkg/interceptor"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// A caller who can make an object large must not decide by it whether an interceptor
// is asked, and an object that has grown must not be blocked by its interceptor.
func TestAnInterceptorIsAskedHoweverLargeTheObjectIs(t *testing.T) {
	accepting := rule("a")
	accepting.FailOpen = true
	// 1.6 MiB.
	entries := []byte(`[` + strings.Repeat(`{"uuid":"one","title":"a copy of a book"},`, 40_000) + `{"uuid":"last"}]`)
	// 1.4 MiB with < as \u003c.
	text := `"` + strings.Repeat("<", 250_000) + `"`
	for name, one := range map[string]struct {
		rule    intercept.Rule
		text    string
		copies  []byte
		omitted []string
	}{
		"array, accept": {accepting, `"short"`, entries, []string{"copies"}},
		"array, reject": {rule("a"), `"short"`, entries, []string{"copies"}},
		"text, accept":  {accepting, text, []byte(`[]`), nil},
		"text, reject":  {rule("a"), text, []byte(`[]`), nil},
		"both, accept":  {accepting, text, entries, []string{"copies"}},
		"both, reject":  {rule("a"), text, entries, []string{"copies"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t, all(one.rule))
			w.store = w.store.WithOptions(func(o *store.Options) { o.MaxSize = 0 })
			base, err := w.store.Save(t.Context(), w.parse(`{"text":`+one.text+`}`), "emma")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := store.NewWorker(w.store).CompareAndSet(t.Context(), base,
				object.Object{"copies": one.copies}); err != nil {
				t.Fatal(err)
			}
			asked := make(chan interceptor.Request, 10)
			refuses := true
			w.intercepts("a", func(_ context.Context, q interceptor.Request) interceptor.Response {
				if q.Op == "" {
					return interceptor.Allow()
				}
				asked <- q
				if refuses {
					return interceptor.Refuse(403, "no")
				}
				return interceptor.Allow()
			})
			update := func() error {
				_, err := w.store.Update(w.client(), w.parse(`{"title":"casino"}`), store.UpdateOptions{UUID: "emma"})
				return err
			}
			get := func() error { _, err := w.store.Get(w.client(), "emma"); return err }
			remove := func() error { return w.store.Delete(w.client(), "emma", 0) }
			for op, act := range map[string]func() error{"update": update, "get": get, "delete": remove} {
				if err := act(); !errors.Is(err, errs.Denied) {
					t.Errorf("%s, refused: %v", op, err)
				}
			}
			if got, err := w.store.Get(t.Context(), "emma"); err != nil || bytes.Contains(got.Body, []byte("casino")) {
				t.Errorf("a refused update was written: %v", err)
			}
			refuses = false
			for _, act := range []func() error{update, get, remove} {
				if err := act(); err != nil {
					t.Errorf("allowed: %v", err)
				}
			}
			if len(asked) != 7 { // the reply to the update that was allowed is a get
				t.Fatalf("asked %d times", len(asked))
			}
			for range 7 {
				q := <-asked
				if !slices.Equal(q.ArraysOmitted, one.omitted) || q.StoredOmitted ||
					bytes.Contains(q.Object, []byte("last")) || bytes.Contains(q.Stored, []byte("last")) {
					t.Errorf("%s: arraysOmitted %v, storedOmitted %t", q.Op, q.ArraysOmitted, q.StoredOmitted)
				}
				if q.Op == "update" && !bytes.Contains(q.Object, []byte("casino")) {
					t.Errorf("the object is missing in the request")
				}
			}
		})
	}
}

func TestWhatCannotBeAskedIsNeverAccepted(t *testing.T) {
	accepting := rule("second")
	accepting.FailOpen = true
	w := open(t, all(rule("first"), accepting))
	w.intercepts("first", func(context.Context, interceptor.Request) interceptor.Response {
		return interceptor.Amend(object.Object{"note": []byte(`"` + strings.Repeat("x", bus.MaxPayload-60) + `"`)})
	})
	// No second interceptor runs, and its rule accepts that.
	w.store = w.store.WithOptions(func(o *store.Options) { o.MaxSize = 4 << 20 })
	_, err := w.save(`{"uuid":"emma"}`)
	if !errors.Is(err, errs.TooLarge) || !strings.Contains(err.Error(), "interceptor second") {
		t.Errorf("got %v", err)
	}
	if n, _, err := w.store.Count(t.Context()); n != 0 || err != nil {
		t.Errorf("%d objects, %v", n, err)
	}
}

func TestAnInterceptorGetsArraysThatFit(t *testing.T) {
	w := open(t, all(rule("a")))
	base, err := w.store.Save(t.Context(), w.parse(`{}`), "emma")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.NewWorker(w.store).CompareAndSet(t.Context(), base,
		object.Object{"copies": []byte(`[{"uuid":"x"}]`)}); err != nil {
		t.Fatal(err)
	}
	asked := make(chan interceptor.Request, 1)
	w.intercepts("a", func(_ context.Context, q interceptor.Request) interceptor.Response {
		if q.Op == "update" {
			asked <- q
		}
		return interceptor.Allow()
	})
	if _, err := w.store.Update(w.client(), w.parse(`{"title":"E"}`), store.UpdateOptions{UUID: "emma"}); err != nil {
		t.Fatal(err)
	}
	q := <-asked
	for what, body := range map[string][]byte{"object": q.Object, "stored": q.Stored} {
		if got := string(object.Field(body, "copies")); got != `[{"uuid":"x"}]` || len(q.ArraysOmitted) > 0 {
			t.Errorf("%s has %s, omitted %v", what, got, q.ArraysOmitted)
		}
	}
}
