package store

import (
	"context"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
)

// Stored is an object as a store holds it.
type Stored struct {
	UUID     string
	Revision uint64
	Body     []byte // the encoded object; must not be modified

	// ByCaller says that another caller may receive another Body of the same revision: rules hide fields from some, or
	// an interceptor amends what is read. It is the same for all objects of a store, or it would reveal what is hidden.
	ByCaller bool

	Viewed bool // the Body is what a View chose: other requests receive another Body of the same revision
}

// View is what of an object a caller asks for; the zero View is the whole object.
type View struct {
	Fields string      // see ParseProjection
	Expand []Expansion // what the object names is returned with it

	MaxBytes int // of an object with expansions; 0: MaxPageBytes
}

// Object decodes the body.
func (s Stored) Object() (object.Object, error) { return object.Decode(s.Body) }

// Get returns an object, for a client without the fields it must not see.
// NotFound when there is none; Unauthenticated or Denied by the policy. The get of
// a client is announced; what belfry reads itself is nobody's get.
func (s *Store) Get(ctx context.Context, uuid string) (Stored, error) {
	return s.getRecord(ctx, uuid, true)
}

// GetView is Get of a part of the object, or with what it names. Errors: those of Get; Invalid for a view that can't be
// read; TooLarge for one with too much expanded.
func (s *Store) GetView(ctx context.Context, uuid string, v View) (Stored, error) {
	projection, err := ParseProjection(v.Fields)
	if err != nil {
		return Stored{}, err
	}
	o, err := s.Get(ctx, uuid)
	if err != nil || projection == nil && len(v.Expand) == 0 {
		return o, err
	}
	expander, projection := newExpander(v.Expand, projection, newPageBytes(v.MaxBytes).limit)
	whole := o.Body
	o.Body, o.Viewed = projection.Apply(o.Body), true
	if expander == nil {
		return o, nil
	}
	return expander.one(ctx, o, whole)
}

// Reread is Get for the reply to another operation of the caller, such as a write
// whose consequences it has waited for. It is not announced.
func (s *Store) Reread(ctx context.Context, uuid string) (Stored, error) {
	return s.getRecord(ctx, uuid, false)
}

func (s *Store) getRecord(ctx context.Context, uuid string, announced bool) (Stored, error) {
	record, err := s.read(ctx, uuid)
	if err != nil {
		return Stored{}, err
	}
	call := CallOf(ctx)
	if call.Client {
		if err := s.rules.Allow(ctx, call.caller(), policy.Get, record.Body, nil); err != nil {
			return Stored{}, s.hide(ctx, call, policy.Get, record, nil, err)
		}
	}
	external := call.Client && (call.Origin == event.OriginHTTP || call.Origin == event.OriginBus)
	if announced && external && s.announces(event.StoreGet) {
		s.announce(call, event.StoreGet, uuid, record.Revision, record.Body)
	}
	return s.get(ctx, call, record)
}

// GetAuthorized returns an object with all its fields, those that clients never
// see included, to a caller who may do an operation with it. input is what the
// rule sees as the input. For policy.Get, an interceptor of reads can refuse.
// Errors: as for Get.
func (s *Store) GetAuthorized(ctx context.Context, uuid string, op policy.Op, input object.Object) (Stored, error) {
	record, err := s.read(ctx, uuid)
	if err != nil {
		return Stored{}, err
	}
	if call := CallOf(ctx); call.Client {
		if err := s.rules.Allow(ctx, call.caller(), op, record.Body, input); err != nil {
			return Stored{}, s.hide(ctx, call, op, record, input, err)
		}
		if err := s.rules.AllowMutation(ctx, call.caller(), record.Body, input); err != nil {
			return Stored{}, err
		}
		if op == policy.Get {
			if _, err := s.get(ctx, call, record); err != nil {
				return Stored{}, err
			}
		}
	}
	return Stored{UUID: uuid, Revision: record.Revision, Body: record.Body}, nil
}

// get returns what a caller who may get an object receives of it.
func (s *Store) get(ctx context.Context, call Call, r driver.Record) (Stored, error) {
	reader := s.rules.Reader(ctx, call.caller())
	o, err := s.show(ctx, call, reader, r, nil)
	if err != nil {
		return Stored{}, err
	}
	if o, err = s.interceptGet(ctx, call, o); err != nil || reader == nil || s.opts.Interceptor == nil {
		return o, err
	}
	// The interceptor can't show a field that the rules hide.
	o.Body, err = s.rules.Readable(ctx, reader, o.Body, r.Body, nil)
	return o, err
}

// read returns the record of an object: NotFound when there is none.
func (s *Store) read(ctx context.Context, uuid string) (driver.Record, error) {
	record, found, err := s.driver.Get(ctx, uuid)
	if err == nil && (!found || record.Deleted) {
		err = s.missing(uuid)
	}
	return record, err
}

// Exists reports whether there is an object with this uuid.
func (s *Store) Exists(ctx context.Context, uuid string) (bool, error) {
	record, found, err := s.driver.Get(ctx, uuid)
	return found && !record.Deleted, err
}

// Tombstone is what is left of a deleted object until it is purged.
type Tombstone struct {
	Revision uint64 // of the deletion
	Owner    string // of the object, in a store with owners
}

// Deleted returns the tombstone of an object. It returns false when the object
// exists, with its revision, never existed, or was deleted so long ago that its
// tombstone has been purged.
func (s *Store) Deleted(ctx context.Context, uuid string) (t Tombstone, deleted bool, err error) {
	record, found, err := s.driver.Get(ctx, uuid)
	if !found || !record.Deleted {
		return Tombstone{Revision: record.Revision}, false, err
	}
	t = tombstoneOf(record)
	return t, t.Revision > 0, err
}

func (s *Store) missing(uuid string) error {
	return errs.New(errs.NotFound, "%s has no object %q", s.opts.Name, uuid)
}

// project returns a record, for a client without the fields that never leave the server.
func (s *Store) project(call Call, r driver.Record) Stored {
	o := Stored{UUID: r.UUID, Revision: r.Revision, Body: r.Body}
	if call.Client {
		o.ByCaller = s.rules.VariesByCaller() && !call.Trusted
		o.Body = s.rules.Visible(o.Body)
	}
	return o
}

// show returns a record as the caller may see it. decoded is its body, nil if it has not been decoded. Errors: those of
// a context that has ended and of a spent budget.
func (s *Store) show(ctx context.Context, call Call, reader *policy.FieldReader, r driver.Record, decoded object.Object) (Stored, error) {
	o := s.project(call, r)
	var err error
	o.Body, err = s.rules.Readable(ctx, reader, o.Body, r.Body, decoded)
	return o, err
}

// Shown returns an object as the caller may see it, who is not asked whether they may get it.
func (s *Store) Shown(ctx context.Context, o Stored) (Stored, error) {
	call := CallOf(ctx)
	record := driver.Record{UUID: o.UUID, Revision: o.Revision, Body: o.Body}
	return s.show(ctx, call, s.rules.Reader(ctx, call.caller()), record, nil)
}

// MayRead reports whether the caller may read a field of an object.
func (s *Store) MayRead(ctx context.Context, o Stored, field string) (bool, error) {
	return s.rules.MayRead(ctx, CallOf(ctx).caller(), field, o.Body)
}

// SettableByAnonymous returns the fields of a new object that a client who is not
// logged in may set. Denied when the write rule of one of them does not hold.
func (s *Store) SettableByAnonymous(ctx context.Context, o object.Object) (object.Object, error) {
	return s.rules.SettableByAnonymous(ctx, CallOf(ctx).RuleBudget, o)
}

// amended returns a stored object as its caller reads it once the interceptor has amended it.
func (s *Store) amended(ctx context.Context, stored object.Object) ([]byte, error) {
	uuid, _ := stored.Text("uuid")
	seen, err := s.get(ctx, CallOf(ctx), driver.Record{UUID: uuid, Body: stored.Encode()})
	return seen.Body, err
}

// Explain explains what the rules decide about an operation of the caller on an object; input is what a
// creation or an update would send. Values of private fields are left out. Errors: NotFound.
func (s *Store) Explain(ctx context.Context, op policy.Op, uuid string, input object.Object) (access.Explanation, error) {
	var stored object.Object
	if op != policy.Create {
		record, err := s.read(ctx, uuid)
		if err != nil {
			return access.Explanation{}, err
		}
		if stored, err = object.Decode(record.Body); err != nil {
			return access.Explanation{}, err
		}
	}
	return s.rules.Explain(ctx, CallOf(ctx).caller(), op, stored, input)
}

// hide returns NotFound in place of an error about an object that a client may know nothing of: see Rules.Hides.
func (s *Store) hide(ctx context.Context, call Call, op policy.Op, record driver.Record, input object.Object, err error) error {
	if err != nil && s.rules.Hides(ctx, call.caller(), op, record.Body, input) {
		return s.missing(record.UUID)
	}
	return err
}
