package query

import (
	"slices"
	"strings"

	"belfry/pkg/errs"
)

// order is a sort order, the most significant field first.
type order []orderField

type orderField struct {
	name       string
	descending bool
}

func parseSort(sort string) (order, error) {
	if strings.TrimSpace(sort) == "" {
		return nil, nil
	}
	if len(sort) > maxExpression {
		return nil, errs.New(errs.Invalid, "sort: longer than %d bytes", maxExpression)
	}
	var o order
	for element := range strings.SplitSeq(sort, ",") {
		name, descending := strings.CutPrefix(strings.TrimSpace(element), "-")
		if name == "" {
			return nil, errs.New(errs.Invalid, `sort: a field's name is missing; for instance "year" or "-year" or "author,year" is expected`)
		}
		if slices.Contains(o.fields(), name) {
			return nil, errs.New(errs.Invalid, "sort: %s is named twice", name)
		}
		o = append(o, orderField{name, descending})
	}
	return o, nil
}

// isPrimary reports whether this is the order in which records lie.
func (o order) isPrimary() bool {
	return len(o) == 0 || len(o) == 1 && o[0] == orderField{name: "uuid"}
}

// without leaves out fields that a filter holds to one value.
func (o order) without(constant []string) order {
	return slices.DeleteFunc(slices.Clone(o), func(f orderField) bool { return slices.Contains(constant, f.name) })
}

// direction reports whether the order is descending. An index is read forwards
// or backwards, so all fields must agree.
func (o order) direction() (descending bool, err error) {
	for _, f := range o {
		if f.descending != o[0].descending {
			return false, errs.New(errs.Invalid, "sort: %s and %s go in different directions; an index is read in one: all fields with - or none", o[0].name, f.name)
		}
	}
	return len(o) > 0 && o[0].descending, nil
}

func (o order) fields() []string {
	names := make([]string, len(o))
	for i, f := range o {
		names[i] = f.name
	}
	return names
}
