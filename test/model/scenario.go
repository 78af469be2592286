package model

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// Scenario is the initial state of a check and the operations that clients make.
type Scenario struct {
	Mappings []store.Mapping
	Setup    []Op   // made, and their events handled, before the check starts
	Clients  [][]Op // each client makes its operations one after another

	// MaxInFlight is how many events can be handled at once.
	MaxInFlight int

	// Crash lets a handler crash between any two of its steps, also between
	// the last and the acknowledgement. Its event is then redelivered.
	Crash bool

	// CrashClients lets a client crash between any two steps of an operation. It continues with the next one.
	CrashClients bool

	// Options change those of the stores; may be nil.
	Options func(*store.Options)

	// MaxCrashes limits the crashes of one run; 0: no limit. Where each attempt
	// at an event makes a write, as one that a request waits for does, there is
	// no end of states without it.
	MaxCrashes int

	// OneHandler delivers no event while a handler runs for it. A crash still
	// has it delivered again.
	OneHandler bool

	// Clock advances the time with every write. Without it the time is
	// constant and revisions count up for each object by itself, so that far
	// more interleavings lead to the same state. A protocol that compares the
	// revisions of different objects, as a cascade does, needs the clock.
	Clock bool

	// AtomicClients makes each operation of a client one step. Nothing is lost
	// by it where a client's write that conflicts is retried anyway.
	AtomicClients bool

	// LaggingIndexes lets queries return what was indexed at any time since
	// the worker last waited for the index. Simulate supports it, Explore does
	// not: states do not include what an index returned earlier.
	LaggingIndexes bool

	// Volatile lets a power failure take back writes that are not durable yet,
	// see volatileWrite. No handler may end with a write.
	Volatile bool

	// OwnLogs gives each store a log of its own, as backends of their own have:
	// a write may be durable before an earlier one in another store.
	OwnLogs bool

	// Chunks keeps each array in chunks, however small, so that workers read and write single entries.
	Chunks bool

	Fault Fault
}

// Fault breaks a condition of the protocol, so that the check must fail.
type Fault struct {
	// NoRecheck returns to a handler that reads an object again after a write
	// what it read before.
	NoRecheck bool

	// AckByOther acknowledges an event that two handlers hold when one of them
	// completes, also if the other crashes afterwards.
	AckByOther bool

	// DropTombstones removes records instead of leaving tombstones, so that
	// (without Clock) the revisions of a new incarnation repeat.
	DropTombstones bool

	// ShowVolatile has reads return writes that are not durable yet.
	ShowVolatile bool

	// NoFence hides from workers that a request waits for the work of an event.
	NoFence bool

	// LostReports has a wait end although a worker crashed that may have made
	// writes for the request.
	LostReports bool

	Unconditional func(store, uuid string) bool // writes of handlers whose preconditions are ignored

	RewritePut func(w *driver.Write)        // changes each write
	DropEvent  func(e *event.Envelope) bool // events that are never delivered
}

// Op is an operation of a client. An operation that fails because the object
// exists already, or does not, or because of a value that must be unique, is no error.
type Op struct {
	Name  string
	Store string
	UUID  string
	run   func(ctx context.Context, s *store.Store) error
	ahead uint64
	after map[int]int // by client: how many operations it has ended before this one begins
}

// Do makes an operation of a function. It must be deterministic, and make its driver calls one after another.
func Do(name, store, uuid string, run func(ctx context.Context, s *store.Store) error) Op {
	return Op{Name: name, Store: store, UUID: uuid, run: run}
}

// Ahead has the clock of the client be ahead of that of others during an operation, by some revisions.
func Ahead(o Op, by uint64) Op {
	o.ahead = by
	return o
}

// Through makes an operation through another store of the same records.
func Through(o Op, other func(*store.Store) *store.Store) Op {
	run := o.run
	o.run = func(ctx context.Context, s *store.Store) error { return run(ctx, other(s)) }
	return o
}

// After has an operation begin only once a client has ended its first operations.
func After(o Op, client, operations int) Op {
	o.after = maps.Clone(o.after)
	if o.after == nil {
		o.after = map[int]int{}
	}
	o.after[client] = operations
	return o
}

// Save creates an object from JSON.
func Save(name, uuid, body string) Op {
	o := mustParse(body)
	return Do("save", name, uuid, func(ctx context.Context, s *store.Store) error {
		_, err := s.Save(ctx, o, uuid)
		return err
	})
}

// Old puts a record as it is, without an event: one from before a change of how objects are stored.
func Old(name, uuid, body string) Op {
	return Do("old", name, uuid, func(ctx context.Context, s *store.Store) error {
		_, err := store.NewWorker(s).CopyRecord(ctx, driver.Record{UUID: uuid, Revision: Epoch, Body: []byte(body)},
			nil)
		return err
	})
}

// Update replaces the fields that are in the JSON.
func Update(name, uuid, body string) Op {
	o := mustParse(body)
	return Do("update", name, uuid, func(ctx context.Context, s *store.Store) error {
		_, err := s.Update(ctx, o, store.UpdateOptions{UUID: uuid})
		return err
	})
}

// Delete deletes an object.
func Delete(name, uuid string) Op {
	return Do("delete", name, uuid, func(ctx context.Context, s *store.Store) error { return s.Delete(ctx, uuid, 0) })
}

// Await makes an operation a request that waits for the work that it causes.
func Await(o Op) Op {
	run, subject := o.run, "applied.model."+o.String()
	o.run = func(ctx context.Context, s *store.Store) error {
		call := store.CallOf(ctx)
		call.Ctx.Wait = subject
		return run(store.WithCall(ctx, call), s)
	}
	return o
}

func (o Op) String() string { return fmt.Sprintf("%s %s/%s", o.Name, o.Store, o.UUID) }

func mustParse(body string) object.Object {
	o, err := object.Parse([]byte(body))
	if err != nil {
		panic("model: " + err.Error())
	}
	return o
}

// Consumer is a worker: the events that it subscribes to, and its handler. The
// handler must be deterministic, and make its driver calls one after another.
type Consumer struct {
	Name    string
	Filters []string // see event.Filter
	Handle  func(ctx context.Context, e *event.Envelope) error
	Over    *Over // by which Handle hands events over to the consumer; may be nil
}

// Over hands events over to a consumer.
type Over struct {
	c        *Checker
	consumer int
}

// To delivers an event to the consumer, in a step of its own.
func (o *Over) To(_ context.Context, e *event.Envelope) error {
	return o.c.call(step{"hand over", e.Store, e.UUID + e.Ctx.Rest}, func() answer {
		if drop := o.c.scenario.Fault.DropEvent; drop != nil && drop(e) {
			return answer{}
		}
		d := newDelivery(o.consumer, o.c.consumers[o.consumer].Name, e)
		if !slices.ContainsFunc(o.c.state.unacked, func(held *delivery) bool { return held.hash == d.hash }) {
			o.c.deliver([]delivery{d}) // the bus drops an event that it has
		}
		return answer{}
	}).err
}

func (c *Consumer) wants(subject string) bool {
	return slices.ContainsFunc(c.Filters, func(f string) bool { return matches(f, subject) })
}

// NoLock leaves mutual exclusion to the driver's preconditions, as between
// processes.
type NoLock struct{}

// Lock implements store.Locker.
func (NoLock) Lock(context.Context, string) (func(), error) { return func() {}, nil }

// Epoch is the revision at the model's time 0.
const Epoch = 1_000_000

// Tick is by how much revisions grow with each write when there is a clock.
const Tick = uint64(time.Second / time.Microsecond)

// OpenSet opens the stores that mappings connect in a backend.
func OpenSet(ctx context.Context, backend driver.Backend, mappings []store.Mapping,
	adapt func(*store.Options)) (*store.Set, error) {
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
			if m.Target == name && m.Array != "" {
				o.Arrays = append(o.Arrays, m.Array)
			}
			if m.Target == name && len(m.Aggregates) > 0 {
				o.Aggregated = append(o.Aggregated, m)
			}
		}
		if field := ownerField(mappings, name); field != "" {
			rules, problems := policy.Compile(policy.Rules{OwnerField: field})
			if len(problems) > 0 {
				return nil, fmt.Errorf("%v", problems)
			}
			o.Policy = rules
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

// ownerField is the field of the owner of a store, whose tombstones keep it.
func ownerField(mappings []store.Mapping, name string) string {
	for _, m := range mappings {
		if m.Target == name && m.OwnerChanges() {
			return m.TargetOwner
		}
	}
	return ""
}

func timeAt(clock uint64) time.Time { return time.UnixMicro(int64(Epoch + clock*Tick)) }
