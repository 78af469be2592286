package query

import (
	"slices"
	"strings"

	"belfry/pkg/errs"
)

// order is a sort order, the most significant field first.
type order []field

func parseSort(sort string) (order, error) {
	if strings.TrimSpace(sort) == "" {
		return nil, nil
	}
	if len(sort) > maxExpression {
		return nil, errs.New(errs.Invalid, "sort: longer than %d bytes", maxExpression)
	}
	var o order
	for element := range strings.SplitSeq(sort, ",") {
		f := parseField(strings.TrimSpace(element))
		switch {
		case f.name == "":
			return nil, errs.New(errs.Invalid, `sort: a field's name is missing; for instance "year" or "-year" or "+
				""author,year" is expected`)
		case f.elements:
			return nil, errs.New(errs.Invalid, "sort: %s: the elements of an array have no order", f.name)
		case o.index(f.name) >= 0:
			return nil, errs.New(errs.Invalid, "sort: %s is named twice", f.name)
		}
		o = append(o, f)
	}
	return o, nil
}

// isPrimary reports whether this is the order in which records lie.
func (o order) isPrimary() bool {
	return len(o) == 0 || len(o) == 1 && o[0].name == "uuid" && !o[0].descending
}

// index returns the place of a field, -1 for none.
func (o order) index(name string) int {
	return slices.IndexFunc(o, func(f field) bool { return f.name == name })
}

// without leaves out fields.
func (o order) without(leave func(name string) bool) order {
	return slices.DeleteFunc(slices.Clone(o), func(f field) bool { return leave(f.name) })
}

// reversed returns the exact reverse order.
func (o order) reversed() order {
	r := slices.Clone(o)
	for i := range r {
		r[i].descending = !r[i].descending
	}
	return r
}

// isPrefixOf reports whether an order by other fields begins with this one.
func (o order) isPrefixOf(other order) bool {
	return len(o) <= len(other) && slices.EqualFunc(o, other[:len(o)], func(a, b field) bool {
		return a.name == b.name && a.descending == b.descending
	})
}

// text writes the order as requests do.
func (o order) text() string {
	names := make([]string, len(o))
	for i, f := range o {
		if names[i] = f.name; f.descending {
			names[i] = "-" + f.name
		}
	}
	return strings.Join(names, ", ")
}
