package access

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/policy"
)

// Visible returns an encoded object without its hidden fields; the same slice if no field
// is hidden.
func (r *Rules) Visible(body []byte) []byte {
	if !r.mayHide(body) {
		return body
	}
	hides := false
	_ = object.Each(body, func(name string, _ []byte) bool {
		hides = r.Hidden(name)
		return !hides
	})
	if !hides {
		return body
	}
	return object.Without(body, r.Hidden)
}

// mayHide reports whether a body contains the beginning of a hidden field's name
// anywhere. Most do not, and skip the scan of their fields.
func (r *Rules) mayHide(body []byte) bool {
	if bytes.Contains(body, []byte(`"_`)) {
		return true
	}
	for _, name := range r.hiddenNames {
		if bytes.Contains(body, name) {
			return true
		}
	}
	return false
}

// Reader returns the rules that decide which fields a caller may read, nil for a caller without restrictions
// of fields: the program itself, and trusted clients. For a list it decides about all its objects.
func (r *Rules) Reader(ctx context.Context, c Caller) *policy.FieldReader {
	if !c.isRestricted() || len(r.fields.Readers()) == 0 {
		return nil
	}
	return r.FieldReader(ctx, c.User, c.Session, c.Budget)
}

// FieldReader returns the rules that decide which fields a user may read; user may be nil.
func (r *Rules) FieldReader(
	ctx context.Context, user object.Object, session *policy.Session, budget *policy.Budget,
) *policy.FieldReader {
	in := policy.Input{User: user, Session: session, Now: r.opts.Now(), Budget: budget, Links: r.opts.Links}
	return r.fields.For(in, func(failed *policy.Denial) {
		r.opts.Logger.DebugContext(ctx, "a read rule of a field could not be evaluated, so the field is hidden",
			"store", r.opts.Store, "error", failed)
	})
}

// Readable returns a body without the fields that a reader must not see of a stored object, which decoded is, or nil.
// Errors: those of a context that has ended and of a spent budget.
func (r *Rules) Readable(
	ctx context.Context, reader *policy.FieldReader, body, stored []byte, decoded object.Object,
) ([]byte, error) {
	if reader == nil {
		return body, nil
	}
	present, needsObject := r.withReadRule(body)
	if len(present) == 0 {
		return body, nil
	}
	if decoded == nil && needsObject {
		var err error
		if decoded, err = object.Decode(stored); err != nil {
			return nil, err
		}
	}
	hidden, err := reader.Hidden(ctx, present, decoded)
	if err != nil || len(hidden) == 0 {
		return body, err
	}
	return object.Without(body, func(name string) bool { return slices.Contains(hidden, name) }), nil
}

// withReadRule returns the fields of a body that have a read rule, and whether one of the rules depends on the object.
func (r *Rules) withReadRule(body []byte) (present []string, needsObject bool) {
	_ = object.Each(body, func(name string, _ []byte) bool {
		if _, has := slices.BinarySearch(r.fields.Readers(), name); has {
			present = append(present, name)
			needsObject = needsObject || r.fields.NeedsObject(name)
		}
		return true
	})
	return present, needsObject
}

// MayRead reports whether a caller who may get a stored object may read a field of it.
func (r *Rules) MayRead(ctx context.Context, c Caller, field string, stored []byte) (bool, error) {
	if c.Client && r.Hidden(field) {
		return false, nil
	}
	reader := r.Reader(ctx, c)
	if reader == nil {
		return true, nil
	}
	o, err := object.Decode(stored)
	if err != nil {
		return false, err
	}
	return reader.MayRead(ctx, field, o)
}

// mayReadStored reports whether a client may get an object, and read a field of it.
func (r *Rules) mayReadStored(ctx context.Context, c Caller, name string, stored object.Object) (bool, error) {
	if c.NoGet || r.fields.Never(name) {
		return false, nil
	}
	if r.opts.Policy != nil && !r.opts.Policy.Open(policy.Get) {
		if err := r.Evaluate(ctx, policy.Get, r.Input(c, stored, nil)); err != nil {
			if IsForbidden(err) {
				return false, nil
			}
			return false, err
		}
	}
	if reader := r.Reader(ctx, c); reader != nil {
		if may, err := reader.MayRead(ctx, name, stored); !may || err != nil {
			return false, err
		}
	}
	return r.opts.Amended == nil || r.isShownAsIs(ctx, name, stored), nil
}

// isShownAsIs reports whether an interceptor of get leaves a field as it is. Where it refuses or fails it does not.
func (r *Rules) isShownAsIs(ctx context.Context, name string, stored object.Object) bool {
	seen, err := r.opts.Amended(ctx, stored)
	if err != nil {
		return false
	}
	value := object.Field(seen, name)
	return value != nil && object.SameValue(value, stored[name])
}

// ClosedFields returns the fields that a caller may not read, or not of every object. Lists by such a field would
// reveal its values.
func (r *Rules) ClosedFields(ctx context.Context, reader *policy.FieldReader) (map[string]bool, error) {
	if reader == nil {
		return nil, nil
	}
	closed := map[string]bool{}
	for _, name := range r.fields.Readers() {
		if !r.fields.NeedsObject(name) {
			may, err := reader.MayRead(ctx, name, nil)
			if err != nil {
				return nil, err
			}
			if may {
				continue
			}
		}
		closed[name] = true
	}
	return closed, nil
}

// ErrClosed says why a request does not use a closed field.
func (r *Rules) ErrClosed(c Caller, what, field string) error {
	switch {
	case r.fields.NeedsObject(field):
		return errs.New(errs.Invalid, "%s by %q: the permission to read it depends on the object", what, field)
	case c.User == nil:
		return errs.New(errs.Unauthenticated, "%s by %q without logging in: you may not read it", what, field)
	default:
		return errs.New(errs.Denied, "%s by %q: you may not read it", what, field)
	}
}

// ConcealUpdate returns the error of an update that does not fit the schema as its caller may see it. For a field
// that they may not read, the error says only that it does not fit, not its content. An update can reveal stored
// content: the object may be older than the schema, and a merge patch keeps parts of it. A value that replaces a
// field is the caller's own.
func (r *Rules) ConcealUpdate(ctx context.Context, c Caller, err error, stored, input object.Object, patch bool) error {
	if !c.Client {
		return err
	}
	return conceal(err, func(name string) bool {
		value, given := input[name]
		if given && (!patch || len(value) == 0 || value[0] != '{') {
			return true
		}
		if r.Hidden(name) {
			return false
		}
		may, err := r.mayReadStored(ctx, c, name, stored)
		return err == nil && may
	})
}

// Concealed returns an error of validation for any recipient outside the server. For a field that never leaves the
// server, the error says only that it does not fit, not its content.
func (r *Rules) Concealed(err error) error { return conceal(err, r.isExposed) }

// ConcealedFields is Concealed for the violations of an error.
func (r *Rules) ConcealedFields(found []errs.Field) []errs.Field {
	return concealFields(found, r.isExposed)
}

// isExposed reports whether a field may leave the server.
func (r *Rules) isExposed(name string) bool { return !r.Hidden(name) }

// conceal returns an error of validation without the details of fields that the caller may not know, except that they
// do not fit.
func conceal(err error, known func(name string) bool) error {
	var e *errs.Error
	if !errors.As(err, &e) || e.Kind != errs.Invalid || len(e.Fields) == 0 {
		return err
	}
	shown := *e
	shown.Fields = concealFields(e.Fields, known)
	return &shown
}

func concealFields(found []errs.Field, known func(name string) bool) (shown []errs.Field) {
	asked := map[string]bool{}
	for _, problem := range found {
		name := firstToken(problem.Pointer)
		may, decided := asked[name]
		if !decided {
			may = name == "" || known(name)
			asked[name] = may
		}
		if !may {
			problem = errs.Field{Pointer: object.Pointer(name), Message: "does not fit the schema"}
		}
		if !slices.Contains(shown, problem) {
			shown = append(shown, problem)
		}
	}
	return shown
}

// firstToken returns the first name of a JSON pointer; "" for the whole object.
func firstToken(pointer string) string {
	token, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return object.UnescapeToken(token)
}
