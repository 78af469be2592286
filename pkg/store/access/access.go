// Package access decides which operations a caller may execute on an object of a store, and which of its fields they
// may see and set.
//
//	                    the program    a trusted client    another client
//	operations          all            all                 by the policy
//	sees                all fields     no hidden ones      nor those whose read rule does not hold
//	sets                no maintained  nor hidden and      nor read-only ones, nor those
//	                    ones           reserved ones       whose write rule does not hold
//
// Hidden fields never leave the server: private ones, and internal ones, whose names begin with an underscore.
// Maintained fields are belfry's own: the times, arrays of mappings, computed fields, records of binaries. A write
// ignores fields that the caller can't set, so that clients can write back an object that they have read. It fails
// for fields that a write rule denies.
//
// Operations and their order are those of package store. Nothing here reads or writes a record.
package access

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// Caller is on whose behalf an operation is done. The zero Caller is the program itself.
type Caller struct {
	Client  bool // policies and the rules of fields hold
	Trusted bool // but not for this client, which another layer authorizes
	NoGet   bool // it has no get of the store

	User    object.Object   // the logged-in user; may be nil
	Session *policy.Session // theirs, for rules; nil for none
	Budget  *policy.Budget  // for evaluating rules; nil: none
}

// isRestricted reports whether the policy and the rules of fields hold for the caller.
func (c Caller) isRestricted() bool { return c.Client && !c.Trusted }

// Options are the rules of a store.
type Options struct {
	Store       string         // its name
	Policy      *policy.Policy // nil: every client may do everything
	ClientUUIDs bool           // with a policy too, clients may choose the uuids of new objects
	Fields      *policy.Fields // rules for fields; nil: none
	Private     []string       // fields that clients neither set nor see
	ReadOnly    []string       // fields that clients see, and only trusted clients set
	Reserved    []string       // fields that clients see, and that only belfry sets
	Maintained  []string       // further fields that belfry maintains
	Arrays      []string       // arrays that mappings maintain
	Derived     []string       // other fields with values of other objects: copies and aggregates
	Binaries    []string       // properties that hold nothing but records of binaries
	Computed    *policy.Computed

	HideForbidden bool // a client that may not get an object gets NotFound

	Links policy.Links // of rules with linked; nil: the store has no references

	// Amended returns a stored object as the caller of ctx reads it once an interceptor has amended it, or the error by
	// which that refuses. nil: no interceptor amends objects that are read.
	Amended func(ctx context.Context, stored object.Object) (body []byte, err error)

	Logger *slog.Logger
	Now    func() time.Time
}

// Rules are those of one store. They are immutable and safe for concurrent use.
type Rules struct {
	opts   Options
	fields *policy.Fields // Fields, Private, ReadOnly, and the owner, which is read-only
	owner  string         // the field with the uuid of the owner, which new objects get; "" for none

	hiddenNames [][]byte // the names of the hidden fields that are not internal, as JSON

	arrays, derived, binaries, reserved, maintained map[string]bool
}

// New returns the rules that options describe.
func New(o Options) *Rules {
	r := &Rules{
		opts: o, arrays: setOf(o.Arrays), derived: setOf(o.Derived), binaries: setOf(o.Binaries),
		reserved: setOf(o.Reserved), maintained: setOf(o.Maintained),
	}
	readOnly := slices.Clone(o.ReadOnly)
	if o.Policy != nil {
		r.owner = o.Policy.Owner()
	}
	switch r.owner {
	case "":
	case "uuid": // users own themselves; the field that names the owner is not theirs to set
		r.owner = ""
		readOnly = append(readOnly, "user")
	default:
		readOnly = append(readOnly, r.owner)
	}
	r.fields = o.Fields.With(o.Private, readOnly)
	for _, name := range r.fields.NeverRead() {
		r.hiddenNames = append(r.hiddenNames, object.AppendString(nil, name))
	}
	return r
}

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// Policy returns the policy of the store, nil when everyone may do everything.
func (r *Rules) Policy() *policy.Policy { return r.opts.Policy }

// Fields returns the rules of fields.
func (r *Rules) Fields() *policy.Fields { return r.fields }

// Owner returns the field with the uuid of an object's owner, which new objects get; "" for none.
func (r *Rules) Owner() string { return r.owner }

// ClientsChooseUUIDs reports whether clients may choose the uuids of new objects, those of deleted objects included.
func (r *Rules) ClientsChooseUUIDs() bool { return r.opts.Policy == nil || r.opts.ClientUUIDs }

// HidesForbidden reports whether a client that may not get an object gets NotFound.
func (r *Rules) HidesForbidden() bool { return r.opts.HideForbidden }

// VariesByCaller reports whether the caller determines which fields of an object they receive.
func (r *Rules) VariesByCaller() bool { return len(r.fields.Readers()) > 0 || r.opts.Amended != nil }

// Input is an operation's input for the rules.
func (r *Rules) Input(c Caller, stored, input object.Object) policy.Input {
	return policy.Input{
		User: c.User, Session: c.Session, Object: stored, Input: input, Now: r.opts.Now(), Budget: c.Budget,
		Links: r.opts.Links,
	}
}

// Allow is AllowWrite of an operation that writes nothing, or that deletes the object.
func (r *Rules) Allow(ctx context.Context, c Caller, op policy.Op, stored []byte, input object.Object) error {
	return r.AllowWrite(ctx, c, op, stored, input, nil)
}

// AllowWrite evaluates the policy of an operation on a stored and an incoming object. after is the object after a
// creation or an update; without it linked objects do not exist.
func (r *Rules) AllowWrite(
	ctx context.Context, c Caller, op policy.Op, stored []byte, input object.Object, after *policy.After,
) error {
	rules := r.opts.Policy
	if rules == nil || c.Trusted || rules.Open(op) {
		return nil
	}
	var decoded object.Object
	if stored != nil && rules.NeedsObject(op) {
		var err error
		if decoded, err = object.Decode(stored); err != nil {
			return err
		}
	}
	in := r.Input(c, decoded, input)
	in.After = after
	return r.Evaluate(ctx, op, in)
}

// Evaluate evaluates the rule of an operation. There has to be a policy.
func (r *Rules) Evaluate(ctx context.Context, op policy.Op, in policy.Input) error {
	err := r.opts.Policy.Allow(ctx, op, in)
	var denial *policy.Denial
	if errors.As(err, &denial) && denial.Reason != "" {
		r.opts.Logger.DebugContext(ctx, "a rule of the policy could not be evaluated, so the operation is denied",
			"store", r.opts.Store, "operation", op, "error", denial)
	}
	return err
}

// AllowList evaluates the rule of lists if it does not depend on the object. Otherwise it has to be evaluated for each
// one.
func (r *Rules) AllowList(ctx context.Context, c Caller) (perObject bool, err error) {
	switch {
	case !c.isRestricted() || r.opts.Policy == nil || r.opts.Policy.Open(policy.List):
		return false, nil
	case r.opts.Policy.NeedsObject(policy.List):
		return true, nil
	default:
		return false, r.Allow(ctx, c, policy.List, nil, nil)
	}
}

// Hides reports whether an error about an object is to be NotFound. It is if forbidden objects are hidden, and the
// client may neither get this one nor do the operation. That holds for any error, such as one of the input, because a
// missing object would not cause it.
func (r *Rules) Hides(ctx context.Context, c Caller, op policy.Op, stored []byte, input object.Object) bool {
	if !r.opts.HideForbidden || !c.Client {
		return false
	}
	for _, asked := range []policy.Op{op, policy.Get} {
		denial := r.Allow(ctx, c, asked, stored, input)
		if !IsForbidden(denial) || needsStepUp(denial) {
			return false
		}
	}
	return true
}

// IsForbidden reports whether an error is a denial by the policy.
func IsForbidden(err error) bool {
	return errors.Is(err, errs.Unauthenticated) || errors.Is(err, errs.Denied)
}

// needsStepUp reports whether the operation would be allowed if the user proved their identity again. Such a user
// may know that the object exists.
func needsStepUp(err error) bool {
	var step *errs.StepUp
	return errors.As(err, &step)
}

// SetOwner makes the caller the owner of a new object. A client can't name another one, and a trusted client may.
func (r *Rules) SetOwner(c Caller, next object.Object) {
	if r.owner != "" && next[r.owner] == nil && c.User["uuid"] != nil {
		next[r.owner] = c.User["uuid"]
	}
}
