package store

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store/query"
)

// constraint is a list of fields whose values no two objects have in common.
type constraint struct {
	name     string   // the fields, sorted: their order does not matter
	fields   []string // sorted
	declared []string // the fields as they were declared
}

func constraintsOf(unique [][]string) []constraint {
	var all []constraint
	for _, fields := range unique {
		sorted := slices.Sorted(slices.Values(fields))
		all = append(all, constraint{name: strings.Join(sorted, ","), fields: sorted, declared: fields})
	}
	return all
}

// ConstraintName identifies unique fields in any order.
func ConstraintName(fields []string) string { return constraintsOf([][]string{fields})[0].name }

// id is the uuid of the claim for the values of an object. It is a hash, so that it has one length and does not reveal
// the values. It is "" for an unconstrained object: one of the fields is missing or null.
func (c *constraint) id(body []byte) string {
	if body == nil {
		return ""
	}
	text := append([]byte(c.name), 0)
	for _, field := range c.fields {
		value, ok := query.AppendExact(nil, object.Field(body, field))
		if !ok {
			return ""
		}
		text = append(binary.AppendUvarint(text, uint64(len(value))), value...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// errTaken is the error for an object with unique values of another object. It does not say of which: the caller may
// have no right to know of these objects.
func (c *Claims) errTaken(all []*constraint) error {
	e := &errs.Error{Kind: errs.Taken}
	same := make([]string, len(all))
	for i, on := range all {
		same[i] = "the same " + enumerate(on.declared)
		for _, field := range on.declared {
			message := "must be unique"
			isField := func(f string) bool { return f == field }
			if others := slices.DeleteFunc(slices.Clone(on.declared), isField); len(others) > 0 {
				message += " together with " + enumerate(others)
			}
			e.Fields = append(e.Fields, errs.Field{Pointer: object.Pointer(field), Message: message})
		}
	}
	subject := "another object of " + c.name + " has "
	if len(all) > 1 {
		subject = "other objects of " + c.name + " have "
	}
	e.Message = subject + strings.Join(same, ", or ")
	return e
}

// enumerate joins names as a sentence does.
func enumerate(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
