package model

import (
	"context"
	"fmt"
	"slices"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
)

// World is what a check starts from and what may happen in it.
type World struct {
	Mappings []store.Mapping
	Start    []Act   // done, and its events handled, before anything else
	Writers  [][]Act // each a client that does its acts one after another
	Hands    int     // how many events can be in hand at once

	// Crash lets a handler vanish between any two of its steps, the last and
	// the acknowledgement included. Its event is then handled again.
	Crash bool

	// Clock makes time pass with every write. Without it time stands still
	// and revisions count up for each object by itself, so that far more
	// orders lead to the same state. What compares revisions of different
	// objects, as a cascade does, needs the clock.
	Clock bool

	// Atomic makes each act of a client one step. That is no loss where a
	// client's write that was overtaken starts over anyway.
	Atomic bool

	// Lag lets indexes be behind the records, unless a worker has waited.
	Lag bool

	Fault Fault
}

// Fault is what a check is to find: a world in which the protocol's
// conditions do not hold.
type Fault struct {
	// NoRecheck answers what a handler reads again after a write with what it
	// read before: as if it had not looked.
	NoRecheck bool

	// Shadow lets an event that two handlers have in hand at once be over when
	// one of them acknowledges it, though the other vanishes.
	Shadow bool

	// Forget drops tombstones, so that (without Clock) an object that is
	// created again has the revisions of its former life.
	Forget bool

	Tamper func(w *driver.Write)        // changes writes on their way
	Lose   func(e *event.Envelope) bool // events that are never delivered
}

// Act is one thing that a client does. An act that comes to nothing, because
// the object is there already, or is not, is no fault.
type Act struct {
	Name  string
	Store string
	UUID  string
	do    func(ctx context.Context, s *store.Store) error
}

// Save creates an object of this JSON.
func Save(name, uuid, body string) Act {
	o := mustParse(body)
	return Act{"save", name, uuid, func(ctx context.Context, s *store.Store) error {
		_, err := s.Save(ctx, o, uuid)
		return err
	}}
}

// Update replaces the fields that are in this JSON.
func Update(name, uuid, body string) Act {
	o := mustParse(body)
	return Act{"update", name, uuid, func(ctx context.Context, s *store.Store) error {
		_, err := s.Update(ctx, o, store.UpdateOptions{UUID: uuid})
		return err
	}}
}

// Delete removes an object.
func Delete(name, uuid string) Act {
	return Act{"delete", name, uuid, func(ctx context.Context, s *store.Store) error { return s.Delete(ctx, uuid, 0) }}
}

func (a Act) String() string { return fmt.Sprintf("%s %s/%s", a.Name, a.Store, a.UUID) }

func mustParse(body string) object.Object {
	o, err := object.Parse([]byte(body))
	if err != nil {
		panic("model: " + err.Error())
	}
	return o
}

// Consumer is a worker: which events it is given, and what it does with one.
// Within one call of Handle, one driver call follows another.
type Consumer struct {
	Name    string
	Filters []string // see event.Filter
	Handle  func(ctx context.Context, e *event.Envelope) error
}

func (c *Consumer) wants(subject string) bool {
	return slices.ContainsFunc(c.Filters, func(f string) bool { return matches(f, subject) })
}

// noLock leaves all exclusion to the driver's preconditions, which must do
// between processes.
type noLock struct{}

func (noLock) Lock(context.Context, string) (func(), error) { return func() {}, nil }

// Epoch is the revision at which the model's time begins.
const Epoch = 1_000_000

// Tick is by how much revisions grow with each write, where there is a clock.
const Tick = uint64(time.Second / time.Microsecond)

// Set opens the stores that mappings connect in a backend.
func Set(ctx context.Context, backend driver.Backend, mappings []store.Mapping, adapt func(*store.Options)) (*store.Set, error) {
	var names []string
	for _, m := range mappings {
		for _, name := range []string{m.Source, m.Target} {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	var stores []*store.Store
	for _, name := range names {
		o := store.Options{Name: name}
		for _, m := range mappings {
			if m.Source == name {
				o.Maps = append(o.Maps, m)
			}
			if m.Target == name {
				o.Arrays = append(o.Arrays, m.Array)
			}
		}
		if adapt != nil {
			adapt(&o)
		}
		s, err := store.Open(ctx, backend, o)
		if err != nil {
			return nil, err
		}
		stores = append(stores, s)
	}
	return store.NewSet(stores, mappings), nil
}

func timeAt(clock uint64) time.Time { return time.UnixMicro(int64(Epoch + clock*Tick)) }
