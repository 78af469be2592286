package store

import (
	"context"
	"errors"

	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
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
		if err := s.allow(ctx, call, policy.Get, record.Body, nil); err != nil {
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
		if err := s.allow(ctx, call, op, record.Body, input); err != nil {
			return Stored{}, s.hide(ctx, call, op, record, input, err)
		}
		if err := s.allowMutation(ctx, call, record.Body, input); err != nil {
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
	reader := s.fieldReader(ctx, call)
	o, err := s.show(ctx, call, reader, r, nil)
	if err != nil {
		return Stored{}, err
	}
	if o, err = s.interceptGet(ctx, call, o); err != nil || reader == nil || s.opts.Interceptor == nil {
		return o, err
	}
	// The interceptor can't show a field that the rules hide.
	o.Body, err = s.readable(ctx, reader, o.Body, r.Body, nil)
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

// Visible returns an object without the fields that never leave the server.
func (s *Store) Visible(o Stored) Stored {
	o.Body = s.visible(o.Body)
	return o
}

// project returns a record, for a client without the fields that never leave the server.
func (s *Store) project(call Call, r driver.Record) Stored {
	o := Stored{UUID: r.UUID, Revision: r.Revision, Body: r.Body}
	if call.Client {
		o.ByCaller = s.byCaller && !call.Trusted
		return s.Visible(o)
	}
	return o
}

// allow evaluates the policy of an operation on a stored and an incoming object.
func (s *Store) allow(ctx context.Context, call Call, op policy.Op, stored []byte, input object.Object) error {
	rules := s.opts.Policy
	if rules == nil || call.Trusted || rules.Open(op) {
		return nil
	}
	var decoded object.Object
	if stored != nil && rules.NeedsObject(op) {
		var err error
		if decoded, err = object.Decode(stored); err != nil {
			return err
		}
	}
	return s.allowDecoded(ctx, op, s.policyInput(call, decoded, input))
}

// policyInput is what the rules of a store see of a call.
func (s *Store) policyInput(call Call, stored, input object.Object) policy.Input {
	return policy.Input{User: call.User, Session: call.Session, Object: stored, Input: input, Now: s.opts.Now(), Budget: call.RuleBudget}
}

// allowDecoded evaluates the rule of an operation, which is there.
func (s *Store) allowDecoded(ctx context.Context, op policy.Op, in policy.Input) error {
	err := s.opts.Policy.Allow(ctx, op, in)
	var denial *policy.Denial
	if errors.As(err, &denial) && denial.Reason != "" {
		s.opts.Logger.DebugContext(ctx, "a rule of the policy could not be evaluated, so the operation is denied",
			"store", s.opts.Name, "operation", op, "error", denial)
	}
	return err
}

// isForbidden reports whether an error is a denial by the policy.
func isForbidden(err error) bool {
	return errors.Is(err, errs.Unauthenticated) || errors.Is(err, errs.Denied)
}

// needsStepUp reports whether a denial would be none if the user proved again who they are. That an object exists is
// no secret from somebody who may get it.
func needsStepUp(err error) bool {
	var step *errs.StepUp
	return errors.As(err, &step)
}

// hide returns NotFound in place of an error about an object that a client may know nothing of: where such objects are
// hidden, and the client may neither get this one nor do with it what they ask. That holds for any error, such as one of
// the input, since without the object there would be none.
func (s *Store) hide(ctx context.Context, call Call, op policy.Op, record driver.Record, input object.Object, err error) error {
	if err == nil || !s.opts.HideForbidden || !call.Client {
		return err
	}
	for _, asked := range []policy.Op{op, policy.Get} {
		denial := s.allow(ctx, call, asked, record.Body, input)
		if !isForbidden(denial) || needsStepUp(denial) {
			return err
		}
	}
	return s.missing(record.UUID)
}
