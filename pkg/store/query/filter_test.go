package query_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/query"
	"belfry/test/kit"
)

// The shelf is objects with fields at two levels and arrays, and indexes of all kinds.
var shelfIndexes = []query.Index{
	query.NewIndex([]string{"a"}),
	query.NewIndex([]string{"b", "-a"}),
	query.NewIndex([]string{"-b", "a"}),
	query.NewIndex([]string{"-c"}),
	query.NewIndex([]string{"n.x"}),
	query.NewIndex([]string{"a", "n.x"}),
	query.NewIndex([]string{"tags[]"}),
	query.NewIndex([]string{"b", "tags[]"}),
	query.NewIndex([]string{"c", "-a"}),
	query.NewIndex([]string{"tags[]", "-a"}),
	query.NewIndex([]string{"n.x", "-a"}),
}

// often are values that many objects have, so that they meet several conditions at once.
var often = []string{"1", "true", `"a"`, "0.1"}

func openShelf(t *testing.T, r *rand.Rand, size int) ([]*store.Store, []object.Object) {
	t.Helper()
	stores := openStores(t, "Shelf", shelfIndexes)
	values := libraryValues()
	pick := func() string {
		if r.IntN(2) == 0 {
			return often[r.IntN(len(often))]
		}
		return values[r.IntN(len(values))]
	}
	objects := make([]object.Object, size)
	for i := range objects {
		o := object.Object{"uuid": []byte(strconv.Quote(fmt.Sprintf("u%03d", i)))}
		for _, field := range []string{"a", "b", "c"} {
			if v := pick(); v != "" {
				o[field] = []byte(v)
			}
		}
		switch r.IntN(4) {
		case 0:
			o["n"] = []byte(`{}`)
		case 1:
			o["n"] = []byte(pick())
		default:
			o["n"] = []byte(`{"x":` + strings.TrimSpace(pick()+" ") + `,"y":1}`)
			if strings.HasPrefix(string(o["n"]), `{"x":,`) {
				o["n"] = []byte(`{"y":1}`)
			}
		}
		if len(o["n"]) == 0 {
			delete(o, "n")
		}
		var tags []string
		for range r.IntN(4) {
			if v := pick(); v != "" {
				tags = append(tags, v)
			}
		}
		o["tags"] = []byte("[" + strings.Join(tags, ",") + "]")
		if r.IntN(8) == 0 {
			o["tags"] = []byte(`"no array"`)
		}
		if _, err := stores[0].Save(t.Context(), o, ""); err != nil {
			t.Fatal(err)
		}
		objects[i] = o
	}
	return stores, objects
}

// valueIn returns the value of a field by other means than the code under test.
func valueIn(o object.Object, field string) []byte {
	top, sub, nested := strings.Cut(field, ".")
	if !nested {
		return o[top]
	}
	inner, err := object.Parse(o[top])
	if err != nil {
		return nil
	}
	return inner[sub]
}

// expression is a filter and what it means.
type expression struct {
	text  string
	holds func(object.Object) bool
}

func (c comparison) expression() expression {
	return expression{c.text(), func(o object.Object) bool {
		return c.holds(object.Object{c.field: valueIn(o, c.field)})
	}}
}

func randomExpression(r *rand.Rand, depth int) expression {
	literals := filterLiterals()
	field := []string{"a", "b", "c", "n.x", "uuid"}[r.IntN(5)]
	if depth > 0 && r.IntN(3) > 0 {
		a, b := randomExpression(r, depth-1), randomExpression(r, depth-1)
		switch r.IntN(5) {
		case 0:
			return expression{"!(" + a.text + ")", func(o object.Object) bool { return !a.holds(o) }}
		case 1:
			return a.or(b)
		default:
			return a.and(b)
		}
	}
	literal := literals[r.IntN(len(literals))]
	if field == "uuid" {
		literal = fmt.Sprintf(`"u%03d"`, r.IntN(150))
	}
	equal := comparison{field, "==", literal}.expression()
	switch r.IntN(7) {
	case 0:
		return expression{field + " != " + literal, func(o object.Object) bool { return !equal.holds(o) }}
	case 1:
		other := literals[r.IntN(len(literals))]
		also := comparison{field, "==", other}.expression()
		return expression{field + " in [" + literal + ", " + other + "]",
			func(o object.Object) bool { return equal.holds(o) || also.holds(o) }}
	case 2:
		return expression{"has(" + field + ")", func(o object.Object) bool { return len(valueIn(o, field)) > 0 }}
	case 3:
		return hasElement(literal)
	case 4, 5:
		op := []string{"<", "<=", ">", ">=", "startsWith"}[r.IntN(5)]
		if literal[0] != '"' && (op == "startsWith" || strings.ContainsAny(literal[:1], "tfn")) {
			return equal
		}
		return comparison{field, op, literal}.expression()
	default:
		return equal
	}
}

func hasElement(literal string) expression {
	return expression{literal + " in tags", func(o object.Object) bool {
		found := false
		object.Elements(o["tags"], func(v []byte) bool {
			found = found || comparison{"v", "==", literal}.holds(object.Object{"v": v})
			return true
		})
		return found
	}}
}

// randomIntersection is conditions that several indexes have together, perhaps with others.
func randomIntersection(r *rand.Rand) expression {
	e := randomEquality(r)
	for range 1 + r.IntN(2) {
		e = e.and(randomEquality(r))
	}
	switch r.IntN(6) {
	case 0:
		return e.and(randomExpression(r, 1))
	case 1:
		return e.or(randomIntersection(r))
	default:
		return e
	}
}

// randomEquality is a condition of which an index has one key, or two.
func randomEquality(r *rand.Rand) expression {
	field, literal, also := []string{"a", "b", "c", "n.x", "tags"}[r.IntN(5)], often[r.IntN(len(often))],
		often[r.IntN(len(often))]
	of := func(literal string) expression {
		if field == "tags" {
			return hasElement(literal)
		}
		return comparison{field, "==", literal}.expression()
	}
	if r.IntN(4) == 0 {
		return of(literal).or(of(also))
	}
	return of(literal)
}

func (e expression) and(f expression) expression {
	return expression{"(" + e.text + " && " + f.text + ")",
		func(o object.Object) bool { return e.holds(o) && f.holds(o) }}
}

func (e expression) or(f expression) expression {
	return expression{"(" + e.text + " || " + f.text + ")",
		func(o object.Object) bool { return e.holds(o) || f.holds(o) }}
}

// filterLiterals are the values that are strings, numbers, true, false and null.
func filterLiterals() []string {
	return slices.DeleteFunc(libraryValues(), func(v string) bool { return v == "" || v[0] == '[' || v[0] == '{' })
}

func randomOrder(r *rand.Rand) []string {
	var o []string
	for range r.IntN(3) {
		f := []string{"a", "b", "c", "n.x", "uuid"}[r.IntN(5)]
		if !slices.ContainsFunc(o, func(have string) bool { return strings.TrimPrefix(have, "-") == f }) {
			o = append(o, []string{"", "-"}[r.IntN(2)]+f)
		}
	}
	return o
}

// TestSoakFiltersEqualAnEvaluationOfEachObject compares what indexes answer with an evaluation of the filter on every
// object.
func TestSoakFiltersEqualAnEvaluationOfEachObject(t *testing.T) {
	answered, found, intersected, inCommon := 0, 0, 0, 0
	for soak := kit.Soak(t, 1); soak.More(); {
		seed := soak.Seed()
		r := rand.New(rand.NewPCG(seed, 2))
		stores, objects := openShelf(t, r, 150)
		for n := range 1000 {
			e, sort, limit := randomExpression(r, 3), randomOrder(r), 1+r.IntN(40)
			if n%2 == 0 {
				e = randomIntersection(r)
			}
			about := fmt.Sprintf("seed %d: filter %.400q sort %q limit %d", seed, e.text, sort, limit)
			o := store.ListOptions{Filter: e.text, Sort: strings.Join(sort, ","), Limit: limit}
			p, err := planOf(o.Filter, o.Sort, shelfIndexes)
			if errs.KindOf(err) == errs.Invalid {
				continue // no index supports it
			}
			from := stores
			if err == nil && len(p.Reads()) > 1 {
				from = stores[:1]
			}
			got, err := pages(t.Context(), o, from...)
			if err != nil {
				t.Fatalf("%s: %v", about, err)
			}
			answered++
			var want []object.Object
			for _, o := range objects {
				if e.holds(o) {
					want = append(want, o)
				}
			}
			found += len(want)
			names := uuidsOf(got)
			slices.Sort(names)
			if !slices.Equal(names, uuidsOf(want)) {
				t.Fatalf("%s:\nfound %v\nwant  %v", about, names, uuidsOf(want))
			}
			if !slices.IsSortedFunc(got, func(a, b object.Object) int { return compareBy(sort, a, b) }) {
				t.Fatalf("%s: not sorted: %v", about, uuidsOf(got))
			}
			if !p.Intersecting(shelfIndexes).Intersects() {
				continue
			}
			intersected++
			inCommon += len(got)
			single, err := pages(t.Context(), o, stores[1])
			if err != nil || !slices.Equal(uuidsOf(single), uuidsOf(got)) {
				t.Fatalf("%s: one index finds %v, %v; an intersection %v", about, uuidsOf(single), err, uuidsOf(got))
			}
			o.Limit = store.MaxPage
			if got, err = pages(t.Context(), o, stores[0]); err != nil || !slices.Equal(uuidsOf(single), uuidsOf(got)) {
				t.Fatalf("%s: one index finds %v; an intersection in one page %v, %v", about, uuidsOf(single),
					uuidsOf(got), err)
			}
		}
	}
	if answered < 100 || found < 100 || intersected < 100 || inCommon < 100 {
		t.Errorf("%d filters were answered, with %d objects; %d by intersections, with %d", answered, found,
			intersected, inCommon)
	}
}

func compareBy(sort []string, a, b object.Object) int {
	for _, text := range sort {
		field, descending := strings.CutPrefix(text, "-")
		c := compareListed(valueIn(a, field), valueIn(b, field))
		if descending {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}
