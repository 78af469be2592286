package policy

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// Selection says by the terms of objects which of them a rule allows: see Selector. The zero value selects none.
type Selection struct {
	Every bool        `json:"every,omitempty"`
	Term  string      `json:"term,omitempty"` // those that have it
	Any   []Selection `json:"any,omitempty"`  // those that one of these selects
	All   []Selection `json:"all,omitempty"`  // those that all of these select
	Not   *Selection  `json:"not,omitempty"`  // those that this does not select
}

// None reports whether no object can be selected.
func (s Selection) None() bool {
	return !s.Every && s.Term == "" && len(s.Any) == 0 && len(s.All) == 0 && s.Not == nil
}

// Terms returns the number of terms to search for.
func (s Selection) Terms() int {
	n := 0
	if s.Term != "" {
		n++
	}
	for _, of := range slices.Concat(s.Any, s.All) {
		n += of.Terms()
	}
	if s.Not != nil {
		n += s.Not.Terms()
	}
	return n
}

func selectEvery(holds bool) Selection { return Selection{Every: holds} }

func anyOf(all ...Selection) Selection {
	all = slices.DeleteFunc(slices.Clone(all), Selection.None)
	switch {
	case slices.ContainsFunc(all, func(s Selection) bool { return s.Every }):
		return Selection{Every: true}
	case len(all) == 1:
		return all[0]
	default:
		return Selection{Any: all}
	}
}

func allOf(all ...Selection) Selection {
	if slices.ContainsFunc(all, Selection.None) {
		return Selection{}
	}
	all = slices.DeleteFunc(slices.Clone(all), func(s Selection) bool { return s.Every })
	switch len(all) {
	case 0:
		return Selection{Every: true}
	case 1:
		return all[0]
	default:
		return Selection{All: all}
	}
}

func selectNot(s Selection) Selection {
	switch {
	case s.Every:
		return Selection{}
	case s.None():
		return Selection{Every: true}
	case s.Not != nil:
		return *s.Not
	default:
		return Selection{Not: &s}
	}
}

// Selector divides a rule that depends on the object into terms and a selection. Terms belong to each object,
// independently of the caller. The selection combines such terms for each caller. So an index finds the objects that a
// caller may see without reading the others. The selection is exact, except for values that the rule distinguishes and
// a float64 does not.
type Selector struct {
	origins []origin
	allowed callerSelection
	key     string
}

// callerSelection is the part of a rule that depends on the caller: it returns the objects for which it holds.
type callerSelection func(*collector) (Selection, error)

// Key identifies the terms that objects have: other rules make others.
func (s *Selector) Key() string { return s.key }

// Select returns which objects the rule allows. An error is that of an ended context or a spent budget: see Allow.
func (s *Selector) Select(ctx context.Context, in Input) (Selection, error) {
	return s.allowed(newCollector(ctx, in))
}

// termOf returns the term of those objects for which a origin has a value.
func termOf(at int, value ref.Val) string {
	sum := sha256.Sum256([]byte(canonical(value)))
	return strconv.Itoa(at) + "=" + base64.RawURLEncoding.EncodeToString(sum[:16])
}

// knownOf returns the term of those objects for which a origin has anything.
func knownOf(at int) string { return strconv.Itoa(at) + "!" }

// canonical writes a value, such that those that rules take for equal are the same text.
func canonical(value ref.Val) string {
	switch v := value.(type) {
	case types.Null:
		return "null"
	case types.Bool:
		return strconv.FormatBool(bool(v))
	case types.String:
		return strconv.Quote(string(v))
	case types.Int:
		return canonicalNumber(float64(v))
	case types.Uint:
		return canonicalNumber(float64(v))
	case types.Double:
		return canonicalNumber(float64(v))
	case types.Bytes:
		return "b" + strconv.Quote(string(v))
	case types.Timestamp:
		return "t" + strconv.FormatInt(v.Unix(), 10) + "." + strconv.Itoa(v.Nanosecond())
	case types.Duration:
		return "d" + v.String()
	case traits.Mapper:
		var all []string
		for key := range elementsOf(v) {
			of, _ := v.Find(key)
			all = append(all, canonical(key)+":"+canonical(of))
		}
		slices.Sort(all)
		return "{" + strings.Join(all, ",") + "}"
	case traits.Lister:
		var all []string
		for element := range elementsOf(v) {
			all = append(all, canonical(element))
		}
		return "[" + strings.Join(all, ",") + "]"
	case nil:
		return "?"
	default:
		return "?" + v.Type().TypeName()
	}
}

func canonicalNumber(f float64) string {
	if f == 0 || math.IsNaN(f) { // there are two zeros
		f = math.Abs(f)
	}
	return strconv.FormatFloat(f, 'g', -1, 64)
}
