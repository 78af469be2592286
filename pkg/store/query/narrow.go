package query

import (
	"errors"
	"math"
	"slices"
	"strconv"

	"belfry/pkg/errs"
	"belfry/pkg/store/policy"
)

// MaxValueReads is how many ranges a list reads at most for values that a user has any number of. The next object of
// each is in memory.
const MaxValueReads = 100

// Narrow returns a plan for the objects of p that have one of the values, in the order of p. It may read more of them.
// It is nil if one of the values has no index.
//
// If needs.Varies, the cursors of the plan are Places, which stay valid when the values of the user with the uuid who
// change; too many values are errs.Invalid.
func (p *Plan) Narrow(needs policy.Needs, who string, indexes []Index) (*Plan, error) {
	n := &Plan{filter: p.filter, sort: p.sort, fingerprint: p.fingerprint, exact: true}
	if needs.Varies {
		n.maxRanges = MaxValueReads
	}
	var fields []string
	parts := map[string]domain{}
	for _, v := range needs.Values {
		if !IsTopLevel(v.Field) {
			return nil, nil // the rule means a field of this name
		}
		if !slices.Contains(fields, v.Field) {
			fields = append(fields, v.Field)
		}
		parts[v.Field] = append(parts[v.Field], partsOf(v.JSON)...)
		if !needs.Varies {
			n.fingerprint = n.fingerprintOf(v.Field, string(v.JSON))
		}
	}
	for _, name := range fields {
		for _, c := range p.conjunctions {
			needed := condition{field: parseField(name), parts: union(parts[name]...)}
			n.conjunctions = append(n.conjunctions, append(c[:len(c):len(c)], needed))
		}
	}
	if len(n.conjunctions) > maxConjunctions {
		return nil, nil
	}
	n.withDomains = newConjunctions(n.conjunctions)
	switch err := n.choose(indexes); {
	case errors.Is(err, errTooManyReads) && needs.Varies:
		return nil, errs.New(errs.Invalid,
			"the rule of this store allows you objects with more than %d values of %s: name some in the "+
				"filter, as in %s",
			n.maxRanges, fields[0], fields[0]+" == ...")
	case err != nil:
		return nil, nil //nolint:nilerr // no index supports it
	}
	if n.places = needs.Varies && !n.inTurn; n.places {
		// The indexes that are read are those of the values that there are now.
		n.fingerprint = fingerprintOf(string(p.fingerprint[:])+who, "places", n.orderNames())
		return n, nil
	}
	if len(n.reads) > maxReads {
		return nil, nil
	}
	n.fingerprint = n.fingerprintOf("", "")
	return n, nil
}

// orderNames are the fields of the order, uuids included, with their directions.
func (p *Plan) orderNames() (names []string) {
	for _, f := range append(p.order[:len(p.order):len(p.order)], field{name: "uuid", descending: p.descending}) {
		names = append(names, order{f}.text())
	}
	return names
}

// HasPlaces reports whether cursors of the list are Places, so that they hold for other values of its rule too.
func (p *Plan) HasPlaces() bool { return p.places }

// partsOf returns the parts of the values that a rule takes for equal to a value: rules compare numbers as
// a float64, to which also those that are a little less or more are rounded.
func partsOf(value []byte) domain {
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil {
		return union(point(EncodePart(value)))
	}
	below := append(appendFloat(nil, math.Nextafter(f, math.Inf(-1))), partInexact)
	return union(point(below), point(appendFloat(nil, f)), point(append(appendFloat(nil, f), partInexact)))
}
