package store

import (
	"context"
	"errors"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/access"
	"belfry/pkg/store/driver"
)

// A schema validates the fields that callers write. Fields that belfry maintains count as present, but the schema does
// not validate their values: it sees the object without them.

// PartValidator is a Validator that knows which fields of an object are left out.
type PartValidator interface {
	Validator

	// ValidatePart is Validate of an object without some of its fields: those for which present holds count as present.
	// If the object still has one of these, only the declaration of that field applies to its value.
	ValidatePart(ctx context.Context, doc []byte, present func(name string) bool) error

	// Declares reports whether the schema declares a field by its name, and Knows whether the schema mentions it, by a
	// pattern for names, too.
	Declares(name string) bool
	Knows(name string) bool
}

// validate validates an object by a schema, as the store has it or as it will.
func (c *checks) validate(ctx context.Context, schema Validator, o object.Object) error {
	maintained := c.maintainedOf(schema, o)
	judged := make(object.Object, len(o))
	for name, value := range o {
		if !maintained(name) {
			judged[name] = value
		}
	}
	if part, ok := schema.(PartValidator); ok {
		// A uuid that is declared in one part of the schema must be allowed in others: every object has one.
		return part.ValidatePart(ctx, judged.Encode(),
			func(name string) bool { return name == "uuid" || maintained(name) })
	}
	return schema.Validate(ctx, judged.Encode())
}

// maintainedOf returns which fields a schema does not judge in some objects, which are states of one: those that belfry
// maintains. A uuid that the schema declares is judged, as a client may choose it. Files that are not in a property
// that the configuration names for them (Binaries) may be where the schema declares something else, so only a property
// of which it says nothing is maintained while it holds files.
func (c *checks) maintainedOf(schema Validator, states ...object.Object) func(name string) bool {
	part, _ := schema.(PartValidator)
	holdsFiles := map[string]bool{}
	for _, o := range states {
		for name := range access.Binaries(o) {
			holdsFiles[name] = part != nil && !part.Knows(name)
		}
	}
	declaresUUID := part == nil || part.Declares("uuid")
	return func(name string) bool {
		if name == "uuid" {
			return !declaresUUID
		}
		return c.rules.Maintains(name) || holdsFiles[name]
	}
}

// mayMismatch reports whether a schema may judge an object otherwise once some of its fields have changed.
func (c *checks) mayMismatch(schema Validator, before, after, changed object.Object) bool {
	maintained := c.maintainedOf(schema, before, after)
	for name := range changed {
		if !maintained(name) {
			return true
		}
	}
	return false
}

// InputValidator returns a validator of objects as clients send them to a store with these options: what Save does with
// the defaults and the schema, without a store.
func InputValidator(o Options) Validator {
	o = o.normalized()
	return inputValidator{newChecks(&o, access.New(o.rules()), newIndexing(&o, nil), &requirements{})}
}

type inputValidator struct{ checks *checks }

// Validate validates an object with its uuid.
func (j inputValidator) Validate(ctx context.Context, doc []byte) error {
	if j.checks.schema == nil {
		return nil
	}
	o, err := object.Decode(doc)
	if err != nil {
		return err
	}
	return j.checks.validate(ctx, j.checks.schema, j.checks.withDefaults(o))
}

// SchemaReport says which objects of a store don't match a schema.
type SchemaReport struct {
	Objects int             `json:"objects"` // that were read
	Failing int             `json:"failing"`
	First   []FailingObject `json:"first,omitempty"` // the first of them, in the order of their uuids

	// Of a check that people follow while it runs.
	Store  string `json:"store,omitempty"`
	Schema string `json:"schema,omitempty"` // its SchemaDigest
	About  int64  `json:"about,omitempty"`  // how many objects the backend says that there are; 0: not known
}

// FailingObject is an object that does not match a schema.
type FailingObject struct {
	UUID    string       `json:"uuid"`
	Message string       `json:"message"`
	Errors  []errs.Field `json:"errors,omitempty"`
	More    int          `json:"more,omitempty"` // violations that were left out of Errors
}

const (
	maxFailing    = 10 // of SchemaReport.First
	checkPageSize = 500

	// maxReported is how much of a pointer and of a message a report has, in bytes: names of properties can be as long
	// as an object.
	maxReported = 256
)

// report reads all objects, and validates them by a schema as their next update would. See Store.CheckSchema.
func (c *checks) report(
	ctx context.Context, from driver.Store, schema Validator, progress func(SchemaReport) error,
) (*SchemaReport, error) {
	report := &SchemaReport{}
	for after := []byte(nil); ; {
		page, err := from.Scan(ctx, after, checkPageSize)
		if err != nil {
			return nil, err
		}
		for _, r := range page.Records {
			failing, err := c.mismatch(ctx, schema, toStored(r))
			if err != nil {
				return nil, err
			}
			report.Objects++
			if failing == nil {
				continue
			}
			if report.Failing++; len(report.First) < maxFailing {
				report.First = append(report.First, *failing)
			}
		}
		if progress != nil {
			if err := progress(*report); err != nil {
				return nil, err
			}
		}
		if after = page.Next; after == nil {
			return report, nil
		}
	}
}

// digest identifies the requirements of the schema; "" without a schema, or for one without a digest.
func (c *checks) digest() string {
	if schema, ok := c.schema.(interface{ Digest() string }); ok {
		return schema.Digest()
	}
	return ""
}

// mismatch returns the mismatch of a schema with an object as it is stored; nil if it matches, or there is no schema.
func (c *checks) mismatch(ctx context.Context, schema Validator, stored Stored) (*FailingObject, error) {
	if schema == nil {
		return nil, nil
	}
	o, err := object.Decode(stored.Body)
	if err != nil {
		return nil, err
	}
	err = c.validate(ctx, schema, o)
	if err == nil {
		return nil, nil
	}
	var found *errs.Error
	if !errors.As(c.rules.Concealed(err), &found) || found.Kind != errs.Invalid && found.Kind != errs.TooLarge {
		return nil, err
	}
	failing := &FailingObject{UUID: stored.UUID, Message: found.Message}
	for _, f := range found.Fields {
		f.Pointer, f.Message = truncate(f.Pointer), truncate(f.Message)
		failing.Errors = append(failing.Errors, f)
	}
	return failing, nil
}

// truncate returns a pointer or a message, of a long one the beginning.
func truncate(text string) string {
	if len(text) <= maxReported {
		return text
	}
	return strings.ToValidUTF8(text[:maxReported], "") + "..."
}
