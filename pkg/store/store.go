// Package store is the only way to write an object: it merges, validates,
// applies policies and limits, gives the object its next revision, and hands
// the driver one record to write in one act, event included.
//
// # The life of a write
//
// Save, Update and Delete take these steps:
//
//  1. announce the act (Store.Save, ...) to whoever listens live;
//  2. read the record (Update, Delete), judge the policy, merge;
//  3. take away what the caller may not set, validate against the schema;
//  4. write body, index keys, revision and event under the precondition that
//     the record is as it was read;
//  5. hand the event to the outbox, which publishes it.
//
// The write is acknowledged after step 4, which is durable. Whatever happens
// to step 5, the event is in the record and a sweeper finds it.
package store

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/object"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// MaxObjectSize is the most bytes that what a client writes can have in one
// object; a store may set less.
const MaxObjectSize = 256 << 10

// Validator judges a whole object; it reports errs.Invalid.
type Validator interface {
	Validate(ctx context.Context, doc []byte) error
}

// Outbox learns of every event right after the write that holds it.
type Outbox interface {
	// Committed never blocks. The event stays in the record until it is
	// published, whatever Committed does with it.
	Committed(store string, p driver.Pending)
}

// Announcer tells live listeners what is about to happen, without a promise.
type Announcer interface {
	HasInterest(name event.Name) bool
	Live(name event.Name, payload []byte)
}

// Options are what a store is made of. Name and Driver are required.
type Options struct {
	Name          string
	Policy        *policy.Policy // nil: open
	Schema        Validator      // nil: any object
	Private       []string       // fields that clients neither set nor see
	ReadOnly      []string       // fields that clients see, and only trusted ones set
	MaxSize       int            // 0: MaxObjectSize
	Maps          []Mapping      // those whose Source this store is
	Arrays        []string       // arrays of this store that mappings keep
	Binaries      []string       // properties that hold nothing but records of binaries
	IndexBinaries bool           // objects are found by the binaries they hold
	Indexes       []query.Index  // for listing
	Outbox        Outbox
	Announce      Announcer        // nil: no announcements
	Interceptor   Interceptor      // nil: nobody is asked
	Now           func() time.Time // nil: time.Now
	Locker        Locker           // nil: a KeyLock
	HideForbidden bool             // who may not get an object is told that there is none
	NoEvents      bool             // nobody is told of writes: no events, no announcements
}

// Store holds objects. It is safe for concurrent use.
type Store struct {
	Options
	driver   driver.Store
	mapped   []string        // the distinct keys of Maps
	arrays   map[string]bool // Arrays
	private  map[string]bool // Private
	readOnly map[string]bool // ReadOnly
	binary   map[string]bool // Binaries
}

// Open opens the store in a backend, with the indexes that its mappings and
// its listing need.
func Open(ctx context.Context, backend driver.Backend, o Options) (*Store, error) {
	s := &Store{Options: o, arrays: map[string]bool{}, private: map[string]bool{}, readOnly: map[string]bool{}, binary: map[string]bool{}}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Locker == nil {
		s.Locker = NewKeyLock()
	}
	if s.MaxSize == 0 {
		s.MaxSize = MaxObjectSize
	}
	for _, name := range o.Arrays {
		s.arrays[name] = true
	}
	for _, name := range o.Private {
		s.private[name] = true
	}
	for _, name := range o.ReadOnly {
		s.readOnly[name] = true
	}
	for _, name := range o.Binaries {
		s.binary[name] = true
	}
	spec := driver.Spec{Name: o.Name, Keys: s.keys}
	for _, m := range o.Maps {
		if !slices.Contains(s.mapped, m.Key) {
			s.mapped = append(s.mapped, m.Key)
			spec.Indexes = append(spec.Indexes, driver.Index{Name: index(m.Key), Parts: 1, Multi: true})
		}
	}
	if o.IndexBinaries {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: binaryIndex, Parts: 2, Multi: true})
	}
	for _, i := range o.Indexes {
		spec.Indexes = append(spec.Indexes, driver.Index{Name: i.Name, Parts: len(i.Fields)})
	}
	d, err := backend.Open(ctx, spec)
	if err != nil {
		return nil, errs.Wrap(err, errs.KindOf(err), "opening store %s", o.Name)
	}
	s.driver = d
	return s, nil
}

// Driver returns what the relay reads waiting events from.
func (s *Store) Driver() driver.Store { return s.driver }

// Stored is an object as a store holds it.
type Stored struct {
	UUID     string
	Revision uint64
	Body     []byte // the encoded object; not to be modified
}

// Object decodes the body.
func (s Stored) Object() (object.Object, error) { return object.Decode(s.Body) }

// Get returns an object, for a client without the fields it must not see.
// NotFound when there is none; Unauthenticated or Denied by the policy.
func (s *Store) Get(ctx context.Context, uuid string) (Stored, error) {
	record, found, err := s.driver.Get(ctx, uuid)
	if err != nil {
		return Stored{}, err
	}
	if !found || record.Deleted {
		return Stored{}, s.missing(uuid)
	}
	call := CallOf(ctx)
	if call.Client {
		if err := s.allow(ctx, call, policy.Get, record.Body, nil); err != nil {
			if s.HideForbidden && (errors.Is(err, errs.Unauthenticated) || errors.Is(err, errs.Denied)) {
				err = s.missing(uuid)
			}
			return Stored{}, err
		}
	}
	// What belfry looks at by itself would only drown what anybody asked for.
	asked := call.Origin == event.OriginHTTP || call.Origin == event.OriginBus || call.Origin == event.OriginGo
	if asked && s.announces(event.StoreGet) {
		s.announce(call, event.StoreGet, uuid, record.Revision, record.Body)
	}
	return s.interceptGet(ctx, call, s.project(call, record))
}

// Look returns an object whole, with what clients never see, to a caller that
// may do an operation with it. input is what the rule sees come in. Whoever is
// asked about what clients read may refuse that here too. Errors: as for Get.
func (s *Store) GetAuthorized(ctx context.Context, uuid string, op policy.Op, input object.Object) (Stored, error) {
	record, found, err := s.driver.Get(ctx, uuid)
	if err != nil {
		return Stored{}, err
	}
	if !found || record.Deleted {
		return Stored{}, s.missing(uuid)
	}
	if call := CallOf(ctx); call.Client {
		if err := s.allow(ctx, call, op, record.Body, input); err != nil {
			return Stored{}, err
		}
		if op == policy.Get {
			if _, err := s.interceptGet(ctx, call, s.project(call, record)); err != nil {
				return Stored{}, err
			}
		}
	}
	return Stored{UUID: uuid, Revision: record.Revision, Body: record.Body}, nil
}

// Exists reports whether there is an object with this uuid.
func (s *Store) Exists(ctx context.Context, uuid string) (bool, error) {
	record, found, err := s.driver.Get(ctx, uuid)
	return found && !record.Deleted, err
}

// Deleted returns the revision of the deletion of an object, and false when
// the object is there, never was, or was deleted so long ago that its tombstone
// has been purged.
func (s *Store) Deleted(ctx context.Context, uuid string) (revision uint64, deleted bool, err error) {
	record, found, err := s.driver.Get(ctx, uuid)
	return record.Revision, found && record.Deleted, err
}

// Settle is how long after a write Linked and List are sure to find it.
func (s *Store) IndexLag() time.Duration {
	if d, ok := s.driver.(driver.IndexLagger); ok {
		return d.IndexLag()
	}
	return 0
}

// Count returns roughly how many objects there are, and how many events wait.
func (s *Store) Count(ctx context.Context) (objects, pending int64, err error) {
	return s.driver.Count(ctx)
}

func (s *Store) missing(uuid string) error {
	return errs.New(errs.NotFound, "%s has no object %q", s.Name, uuid)
}

// Visible is an object without the fields that never leave the server.
func (s *Store) Visible(o Stored) Stored {
	o.Body = s.visible(o.Body)
	return o
}

// seen is a record as the caller may see it.
func (s *Store) project(call Call, r driver.Record) Stored {
	o := Stored{UUID: r.UUID, Revision: r.Revision, Body: r.Body}
	if call.Client {
		return s.Visible(o)
	}
	return o
}

// allow judges the policy of an operation on a stored and an incoming object.
func (s *Store) allow(ctx context.Context, call Call, op policy.Op, stored []byte, input object.Object) error {
	if s.Policy == nil || call.Trusted || s.Policy.Open(op) {
		return nil
	}
	in := policy.Input{User: call.User, Input: input, Now: s.Now()}
	if stored != nil && s.Policy.NeedsObject(op) {
		o, err := object.Decode(stored)
		if err != nil {
			return err
		}
		in.Object = o
	}
	return s.Policy.Allow(ctx, op, in)
}
