package store_test

import (
	"context"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// writes makes each write of an object whose reply has an object, and returns the
// replies.
func writes(t *testing.T, ctx context.Context, s *store.Store, uuid, fields string) map[string]store.Stored {
	t.Helper()
	replies := map[string]store.Stored{}
	var err error
	for _, op := range []string{"save", "update", "patch"} {
		if op == "save" {
			replies[op], err = s.Save(ctx, parse(t, fields), uuid)
		} else {
			replies[op], err = s.Update(ctx, object.Object{}, store.UpdateOptions{UUID: uuid, Patch: op == "patch"})
		}
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
	}
	return replies
}

func TestRepliesToWritesShowWhatAGetWould(t *testing.T) {
	s, _ := open(t,
		store.Options{ClientUUIDs: true, Policy: compile(t, policy.Rules{Get: "user != null && has(object.shown)"})})
	withoutGet := store.CallOf(as(t.Context(), "ada"))
	withoutGet.NoGet = true
	for name, test := range map[string]struct {
		ctx    context.Context
		fields string
		shown  bool
	}{
		"a user who may get it":       {as(t.Context(), "ada"), `{"n":1,"shown":true}`, true},
		"a user who may not":          {as(t.Context(), "ada"), `{"n":1}`, false},
		"nobody":                      {client(t.Context()), `{"n":1,"shown":true}`, false},
		"where objects are not shown": {store.WithCall(t.Context(), withoutGet), `{"n":1,"shown":true}`, false},
		"the program":                 {t.Context(), `{"n":1}`, true},
	} {
		for op, got := range writes(t, test.ctx, s, object.NewUUID(), test.fields) {
			switch {
			case got.UUID == "" || got.Revision == 0:
				t.Errorf("%s, %s: uuid %q, revision %d", name, op, got.UUID, got.Revision)
			case test.shown:
				is(t, got.Body, map[string]string{"n": "1"})
			case string(got.Body) != `{"uuid":"`+got.UUID+`"}`:
				t.Errorf("%s, %s: the reply shows %s", name, op, got.Body)
			}
		}
	}
}

// byOp is an interceptor with a function for each operation that it decides.
type byOp map[string]func() (object.Object, error)

func (b byOp) Intercept(_ context.Context, q store.InterceptRequest) (object.Object, error) {
	if f := b[q.Op]; f != nil {
		return f()
	}
	return nil, nil
}

func TestRepliesToWritesShowWhatAnInterceptorOfGetShows(t *testing.T) {
	interceptor := byOp{}
	s, out := open(t, store.Options{Interceptor: interceptor})
	trusted := store.WithCall(t.Context(), store.Call{Client: true, Trusted: true})
	for name, ctx := range map[string]context.Context{"client": client(t.Context()), "trusted": trusted} {
		interceptor["get"] = func() (object.Object, error) { return parse(t, `{"n":null,"seen":true}`), nil }
		for _, got := range writes(t, ctx, s, name+"-amended", `{"n":1}`) {
			is(t, got.Body, map[string]string{"n": "", "seen": "true"})
		}
		interceptor["get"] = func() (object.Object, error) { return nil, errs.New(errs.Unavailable, "no responders") }
		for op, got := range writes(t, ctx, s, name+"-refused", `{"n":1}`) {
			if string(got.Body) != `{"uuid":"`+name+`-refused"}` {
				t.Errorf("%s: the reply to %s shows %s", name, op, got.Body)
			}
		}
		if len(out.events) != 6 {
			t.Errorf("%d events: the writes were not all made", len(out.events))
		}
		out.events = nil
	}
}

func TestMutationsShowAClientNothing(t *testing.T) {
	s, _ := open(t, store.Options{ClientUUIDs: true, Policy: compile(t, policy.Rules{Get: "false"})})
	save(t, s, "a", `{"n":1}`)
	got, err := s.Mutate(client(t.Context()), "a",
		func(store.Stored) (store.Mutation, error) { return store.Mutation{}, nil })
	if err != nil || got.Body != nil || got.Revision == 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
