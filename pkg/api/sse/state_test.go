package sse

import (
	"context"
	"errors"
	"sync"
	"testing"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/policy"
)

// gate is a backend whose reads wait until they are released.
type gate struct {
	driver.Backend
	reads   chan struct{} // one for each read that waits
	release chan struct{}
}

func (g *gate) Open(ctx context.Context, spec driver.Spec) (driver.Store, error) {
	s, err := g.Backend.Open(ctx, spec)
	return gatedStore{s, g}, err
}

type gatedStore struct {
	driver.Store
	gate *gate
}

func (s gatedStore) Get(ctx context.Context, uuid string) (driver.Record, bool, error) {
	s.gate.reads <- struct{}{}
	select {
	case <-s.gate.release:
	case <-ctx.Done():
		return driver.Record{}, false, ctx.Err()
	}
	return s.Store.Get(ctx, uuid)
}

func newGate(t *testing.T) (*gate, *authorization) {
	t.Helper()
	folder, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = folder.Close() })
	rules, problems := policy.Compile(policy.Rules{Owner: true})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	g := &gate{folder, make(chan struct{}, 100), make(chan struct{})}
	notes, err := store.Open(t.Context(), g, store.Options{Name: "Notes", Policy: rules})
	if err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"user":"ada"}`)
	o, err := object.Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	stored, err := notes.Save(t.Context(), o, "n")
	if err != nil {
		t.Fatal(err)
	}
	e := event.Envelope{Event: event.StoreSaved, UUID: "n", Revision: stored.Revision, Object: body}
	return g, newSource(notes, true, nil, nil).authorization(1, &e)
}

func ada() *Viewer {
	return &Viewer{User: object.Object{"uuid": []byte(`"ada"`)}, Key: "ada", UUID: "ada"}
}

// A client that waits for the read of another one can leave while the store hangs.
func TestAClientThatWaitsForAReadCanLeave(t *testing.T) {
	t.Parallel()
	g, a := newGate(t)
	var wait sync.WaitGroup
	wait.Go(func() {
		if ok, err := a.allows(context.Background(), ada()); !ok || err != nil {
			t.Errorf("the client that reads: %v, %v", ok, err)
		}
	})
	<-g.reads
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := a.allows(left, ada()); !errors.Is(err, context.Canceled) {
		t.Errorf("the client that has left: %v", err)
	}
	close(g.release)
	wait.Wait()
}

// When the client that reads the object leaves, another one reads it for the rest.
func TestAReadOfAClientThatLeavesIsMadeByAnother(t *testing.T) {
	t.Parallel()
	g, a := newGate(t)
	first, leave := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		if _, err := a.allows(first, ada()); !errors.Is(err, context.Canceled) {
			t.Errorf("the client that has left: %v", err)
		}
	})
	<-g.reads
	for range 10 {
		wait.Go(func() {
			if ok, err := a.allows(context.Background(), ada()); !ok || err != nil {
				t.Errorf("a client that waits: %v, %v", ok, err)
			}
		})
	}
	leave()
	<-g.reads
	close(g.release)
	wait.Wait()
	if n := len(g.reads); n > 0 {
		t.Errorf("%d more reads for clients that could have waited", n)
	}
}
