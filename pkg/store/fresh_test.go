package store_test

import (
	"context"
	"fmt"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
)

// recordedBackend records the last write of a store.
type recordedBackend struct {
	driver.Backend
	last *driver.Write
}

type recordedStore struct {
	driver.Store
	last *driver.Write
}

func (b recordedBackend) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := b.Backend.Open(ctx, spec)
	return recordedStore{s, b.last}, err
}

func (s recordedStore) Put(ctx context.Context, w driver.Write) error {
	*s.last = w
	return s.Store.Put(ctx, w)
}

// audience is a bus with a subscriber of announcements, or none.
type audience struct{ listens bool }

func (a *audience) HasInterest(event.Name) bool { return a.listens }

func (a *audience) Live(event.Name, []byte) {}

// Whether a uuid is free is not checked where nobody but the store knows it, and checked wherever anyone may.
func TestAUUIDIsFreshWhileNobodyElseKnowsIt(t *testing.T) {
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = backend.Close() })
	idempotent := func(ctx context.Context) context.Context {
		call := store.CallOf(ctx)
		call.Idempotency = &store.Idempotency{Revision: 1, NewUUID: true}
		return store.WithCall(ctx, call)
	}
	for n, c := range []struct {
		name    string
		options store.Options
		ctx     context.Context
		object  string
		uuid    string
		fresh   bool
	}{
		{"generated", store.Options{}, client(t.Context()), `{}`, "", true},
		{"given", store.Options{}, client(t.Context()), `{}`, "a", false},
		{"in the object", store.Options{}, client(t.Context()), `{"uuid":"a"}`, "", false},
		{"of a repeated request", store.Options{}, idempotent(client(t.Context())), `{}`, "a", false},
		{"announced to nobody", store.Options{Announce: &audience{}}, client(t.Context()), `{}`, "", true},
		{"announced", store.Options{Announce: &audience{listens: true}}, client(t.Context()), `{}`, "", false},
		{"intercepted", store.Options{Interceptor: &amending{}}, client(t.Context()), `{}`, "", false},
		{"of the server, whose writes are not intercepted", store.Options{Interceptor: &amending{}}, t.Context(), `{}`,
			"", true},
	} {
		var last driver.Write
		c.options.Name = fmt.Sprint("Books", n)
		s, err := store.Open(t.Context(), recordedBackend{backend, &last}, c.options)
		if err != nil {
			t.Fatal(err)
		}
		x, err := s.Save(c.ctx, parse(t, c.object), c.uuid)
		if err != nil || last.Fresh != c.fresh {
			t.Errorf("a uuid that is %s: %v, fresh %v", c.name, err, last.Fresh)
			continue
		}
		if _, err := s.Save(t.Context(), parse(t, `{}`), x.UUID); errs.KindOf(err) != errs.Exists {
			t.Errorf("a uuid that is %s is taken again: %v", c.name, err)
		}
		if _, err := s.Update(t.Context(), parse(t, `{"n":1}`), store.UpdateOptions{UUID: x.UUID}); err != nil {
			t.Error(err)
		}
		if n, _, err := s.Count(t.Context()); err != nil || n != 1 {
			t.Errorf("a uuid that is %s: %d objects, %v", c.name, n, err)
		}
	}
}
