package store

import (
	"context"
	"fmt"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
)

// checks are the requirements of a write by any caller: the limits of the size and the keys of an object, values that
// can be unique and copied, and the schema.
type checks struct {
	name     string // of the store
	rules    *access.Rules
	indexing *indexing
	maxSize  int
	maps     []Mapping
	// fields that objects of other stores have copies of
	copiedFrom []string
	unique     []constraint
	required   *requirements
	schema     Validator // nil: any object
	defaults   Filler    // of new objects; nil: none
}

func newChecks(o *Options, rules *access.Rules, x *indexing, required *requirements) *checks {
	return &checks{
		name: o.Name, rules: rules, indexing: x, maxSize: o.MaxSize, maps: o.Maps, unique: constraintsOf(o.Unique),
		required: required, schema: o.Schema, defaults: o.Defaults, copiedFrom: o.CopiedFrom,
	}
}

// checkInput refuses what can't lead to an object of the largest size, before it is merged and rules are evaluated on
// it. Fields that a patch removes count for neither, so there may be some.
func (c *checks) checkInput(input object.Object) error { return c.checkSize(input, 2*c.maxSize) }

// checkSize refuses an object of which callers have set more bytes than limit.
func (c *checks) checkSize(o object.Object, limit int) error {
	if size := c.size(o); size > limit {
		return errs.New(errs.TooLarge, "the object would have %d bytes; %s takes at most %d", size, c.name, c.maxSize)
	}
	return nil
}

// size returns how many bytes the fields take as JSON that belfry does not maintain.
func (c *checks) size(o object.Object) int {
	size := len("{") // and each field ends with a comma or with the final brace
	for name, value := range o {
		if !c.rules.OwnedByStore(name) {
			size += len(`"":,`) + len(name) + len(value)
		}
	}
	return max(size, len("{}"))
}

// check checks what the callers of a store are responsible for: the size,
// the keys, the schema, required references. stored is the object before; nil for a new one.
func (c *checks) check(ctx context.Context, stored, next object.Object) error {
	if err := c.checkLimits(stored, next); err != nil {
		return err
	}
	if c.schema != nil {
		if err := c.validate(ctx, c.schema, next); err != nil {
			return err
		}
	}
	return c.required.check(ctx, stored, next)
}

// checkMutation is check for a change of some fields. If belfry itself maintains all of them, limits do not apply, and
// the schema sees no change: a user must be disabled even if a later schema rejects the object.
func (c *checks) checkMutation(ctx context.Context, stored, next, changed object.Object) error {
	if !c.ownsAll(changed) {
		if err := c.checkLimits(stored, next); err != nil {
			return err
		}
	}
	if err := c.required.check(ctx, stored, next); err != nil {
		return err
	}
	if c.schema == nil || !c.mayMismatch(c.schema, stored, next, changed) {
		return nil
	}
	return c.validate(ctx, c.schema, next)
}

// ownsAll reports whether belfry itself maintains all fields of a mutation.
func (c *checks) ownsAll(fields object.Object) bool {
	for name := range fields {
		if !c.rules.OwnedByStore(name) {
			return false
		}
	}
	return true
}

// checkLimits checks the size of an object, and its values that are indexed, unique or copied. An unchanged value never
// exceeds a limit, even one that was configured after it was written: a write of other values must not fail.
func (c *checks) checkLimits(stored, next object.Object) error {
	if err := c.indexing.check(stored, next); err != nil {
		return err
	}
	if err := c.checkUnique(stored, next); err != nil {
		return err
	}
	if err := c.checkCopied(stored, next); err != nil {
		return err
	}
	return c.checkSize(next, c.maxSize)
}

// checkUnique rejects values that can't be unique, unless they were there before.
func (c *checks) checkUnique(stored, o object.Object) error {
	for i := range c.unique {
		for _, field := range c.unique[i].fields {
			if value := o[field]; len(value) > 0 && (value[0] == '[' || value[0] == '{') &&
				!isUnchanged(stored, o, field) {
				const message = "must be a string, a number, true, false or null, since it is unique"
				return &errs.Error{
					Kind: errs.Invalid, Message: "the object has a value that can't be unique",
					Fields: []errs.Field{{Pointer: object.Pointer(field), Message: message}},
				}
			}
		}
	}
	return nil
}

// checkCopied rejects values that are nested too deeply to be copied: the objects that have the copies could not be
// sent back, nor imported, and their clients have done nothing wrong. A value that was there before it was to be copied
// may stay.
func (c *checks) checkCopied(stored, o object.Object) error {
	for i := range c.maps {
		for _, name := range c.maps[i].Fields {
			if err := checkDepth(stored, o, name, "objects of "+c.maps[i].Target); err != nil {
				return err
			}
		}
	}
	for _, name := range c.copiedFrom {
		if err := checkDepth(stored, o, name, "other objects"); err != nil {
			return err
		}
	}
	return nil
}

func checkDepth(stored, o object.Object, name, into string) error {
	value := o[name]
	if len(value) <= object.MaxCopyDepth || object.CheckCopied(value) == nil || isUnchanged(stored, o, name) {
		return nil
	}
	message := fmt.Sprintf("is nested more than %d levels deep, and is copied into %s", object.MaxCopyDepth, into)
	return &errs.Error{
		Kind: errs.Invalid, Message: "the object has a value that can't be copied",
		Fields: []errs.Field{{Pointer: object.Pointer(name), Message: message}},
	}
}

// isUnchanged reports whether a field has the value that it had.
func isUnchanged(stored, next object.Object, name string) bool {
	return stored[name] != nil && object.SameValue(stored[name], next[name])
}

// withDefaults returns a new object with the defaults of the fields that its caller has left out. Fields that the store
// maintains have no default.
func (c *checks) withDefaults(input object.Object) object.Object {
	if c.defaults == nil {
		return input
	}
	next := input.Clone()
	c.defaults.Fill(next)
	next.Canonicalize()
	for name := range next {
		_, given := input[name]
		if !given && (name == "uuid" || c.rules.Maintains(name)) {
			delete(next, name)
		}
	}
	return next
}
