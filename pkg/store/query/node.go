package query

import (
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

// kind is the kind of a node of a filter.
type kind uint8

const (
	single kind = iota // a condition
	and
	or
	not
)

// node is a part of a filter.
type node struct {
	kind      kind
	args      []*node // none of a condition, one of not
	condition condition
}

func leaf(c condition, err error) (*node, error) { return &node{condition: c}, err }

// match reports whether an object meets the filter.
func (n *node) match(o object.Object) bool {
	switch n.kind {
	case and, or:
		for _, arg := range n.args {
			if arg.match(o) == (n.kind == or) {
				return n.kind == or
			}
		}
		return n.kind == and
	case not:
		return !n.args[0].match(o)
	default:
		return n.condition.match(o)
	}
}

// eachField calls f with the field of each condition. A filter that is nil has no condition.
func (n *node) eachField(f func(field)) {
	if n == nil {
		return
	}
	if n.kind == single {
		f(n.condition.field)
	}
	for _, arg := range n.args {
		arg.eachField(f)
	}
}

// size returns how many conditions the filter has.
func (n *node) size() int {
	if n.kind == single {
		return 1
	}
	sum := 0
	for _, arg := range n.args {
		sum += arg.size()
	}
	return sum
}

// maxConjunctions bounds the conjunctions of a filter.
const maxConjunctions = maxReads

// conjunctions returns lists of conditions of which an object meets one whole, if it meets the filter, or if
// negated its negation.
func (n *node) conjunctions(negated bool) ([][]condition, error) {
	switch {
	case n.kind == single:
		c := n.condition
		c.negated = c.negated != negated
		return [][]condition{{c}}, nil
	case n.kind == not:
		return n.args[0].conjunctions(!negated)
	case n.kind == or != negated:
		var all [][]condition
		for _, arg := range n.args {
			some, err := arg.conjunctions(negated)
			if err != nil {
				return nil, err
			}
			if all = append(all, some...); len(all) > maxConjunctions {
				return nil, errTooManyReads
			}
		}
		return all, nil
	}
	all := [][]condition{nil}
	for _, arg := range n.args {
		some, err := arg.conjunctions(negated)
		if err != nil {
			return nil, err
		}
		if len(all)*len(some) > maxConjunctions {
			return nil, errTooManyReads
		}
		all = product(all, some)
	}
	return all, nil
}

// product returns each list of a with each of b behind it.
func product[T any](a, b [][]T) [][]T {
	var all [][]T
	for _, first := range a {
		for _, second := range b {
			all = append(all, append(first[:len(first):len(first)], second...))
		}
	}
	return all
}

// errTooManyReads is the error of a list that would read more ranges than it may.
var errTooManyReads = errs.New(errs.Invalid, "filter: it reads more than %d ranges of indexes: ask for less at once",
	maxReads)
