package query_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/filestore"
	"belfry/pkg/store/query"
	"belfry/pkg/store/storetest"
	"belfry/test/kit"
)

// The library is objects of all sorts of values in few fields, and a store that
// lists them.
var libraryIndexes = []query.Index{
	{Name: "a", Fields: []string{"a"}},
	{Name: "a,b", Fields: []string{"a", "b"}},
	{Name: "b,c,a", Fields: []string{"b", "c", "a"}},
	{Name: "c,b", Fields: []string{"c", "b"}},
}

func libraryValues() []string {
	long := strings.Repeat("x", driver.MaxPart-2)
	return []string{
		"", "null", "true", "false", "[]", `{"a":1}`,
		"0", "-0", "1", "1.0", "-1", "0.1", "0.10", "1e3", "-1e3", "1e400", "-1e400", "9007199254740992",
		"9007199254740993", "18446744073709551615", "18446744073709551616", "-9223372036854775809",
		`""`, `"a"`, `"A"`, `"ab"`, `"a "`, `"b"`, `"\u0001"`, `"a\u0001"`, `"é"`, `"😀"`, `"￿"`, `"\"\\"`,
		`"` + long + `"`, `"` + long + `y"`, `"` + long + `yy"`, `"` + long + `yz"`, `"` + long + `yyé"`,
		`"` + long + `é"`,
	}
}

// openStore opens a store in a folder of its own.
func openStore(t *testing.T, name string, indexes []query.Index) *store.Store {
	t.Helper()
	return openStores(t, name, indexes)[0]
}

// openStores opens a store in a folder of its own, and the same one as a backend has it that intersects no indexes.
func openStores(t *testing.T, name string, indexes []query.Index) (stores []*store.Store) {
	t.Helper()
	backend, err := filestore.Open(t.TempDir(), filestore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := backend.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, b := range []driver.Backend{backend, storetest.OneIndex{Backend: backend}} {
		s, err := store.Open(t.Context(), b, store.Options{Name: name, Indexes: indexes})
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, s)
	}
	return stores
}

func openLibrary(t *testing.T, r *rand.Rand, size int) (*store.Store, []object.Object) {
	t.Helper()
	s := openStore(t, "Library", libraryIndexes)
	values := libraryValues()
	objects := make([]object.Object, size)
	for i := range objects {
		o := object.Object{"uuid": []byte(strconv.Quote(fmt.Sprintf("u%03d", i)))}
		for _, field := range []string{"a", "b", "c"} {
			// Few values in b and c, so that many objects agree in them.
			from := values
			if field != "a" {
				from = values[r.IntN(len(values)-4):][:4]
			}
			if v := from[r.IntN(len(from))]; v != "" {
				o[field] = []byte(v)
			}
		}
		if _, err := s.Save(t.Context(), o, ""); err != nil {
			t.Fatal(err)
		}
		objects[i] = o
	}
	return s, objects
}

// comparison is a condition and what it means, by other means than the code
// under test.
type comparison struct {
	field, op, literal string
}

func (c comparison) text() string {
	if c.op == "startsWith" {
		return c.field + ".startsWith(" + c.literal + ")"
	}
	return c.field + " " + c.op + " " + c.literal
}

func (c comparison) holds(o object.Object) bool {
	have, ok := comparable(o[c.field])
	want, ok2 := comparable([]byte(c.literal))
	if !ok || !ok2 {
		panic("a value of the test can't be compared: " + c.literal)
	}
	if have.rank != want.rank {
		return false
	}
	order := have.compare(want)
	switch c.op {
	case "==":
		return order == 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	default:
		return strings.HasPrefix(have.text, want.text)
	}
}

// listing is a question that an index answers.
type listing struct {
	conditions []comparison
	sort       []string
	descending bool
}

func (l listing) filter() string {
	var all []string
	for _, c := range l.conditions {
		all = append(all, c.text())
	}
	return strings.Join(all, " && ")
}

func (l listing) order() string {
	var all []string
	for _, field := range l.sort {
		if l.descending {
			field = "-" + field
		}
		all = append(all, field)
	}
	return strings.Join(all, ",")
}

// randomListing makes one up: equalities on an index's leading fields, ranges
// on the next, sorted by those that follow.
func randomListing(r *rand.Rand) listing {
	var l listing
	var scalars, ordered []string
	for _, v := range libraryValues() {
		switch {
		case v == "", v == "1e400", v == "-1e400", v == "18446744073709551615", v[0] == '[', v[0] == '{':
		default:
			scalars = append(scalars, v)
			if v[0] == '"' || v[0] == '-' || v[0] >= '0' && v[0] <= '9' {
				ordered = append(ordered, v)
			}
		}
	}
	index := libraryIndexes[r.IntN(len(libraryIndexes))]
	equal := r.IntN(len(index.Fields) + 1)
	for _, field := range index.Fields[:equal] {
		l.conditions = append(l.conditions, comparison{field, "==", scalars[r.IntN(len(scalars))]})
	}
	rest := index.Fields[equal:]
	if len(rest) > 0 {
		for range r.IntN(3) {
			c := comparison{rest[0], []string{"<", "<=", ">", ">=", "startsWith"}[r.IntN(5)],
				ordered[r.IntN(len(ordered))]}
			if c.op == "startsWith" && c.literal[0] != '"' {
				c.op = ">="
			}
			l.conditions = append(l.conditions, c)
		}
		l.sort = rest[:r.IntN(len(rest)+1)]
	}
	r.Shuffle(len(l.conditions), func(i, j int) { l.conditions[i], l.conditions[j] = l.conditions[j], l.conditions[i] })
	l.descending = len(l.sort) > 0 && r.IntN(2) == 0
	return l
}

// roundDown returns the greatest float64 that is not above a number, and 1 if it is below, else 0.
func roundDown(number *big.Rat) (f float64, more int) {
	f, exact := number.Float64()
	if exact {
		return f, 0
	}
	if math.IsInf(f, 1) || !math.IsInf(f, -1) && new(big.Rat).SetFloat64(f).Cmp(number) > 0 {
		f = math.Nextafter(f, math.Inf(-1))
	}
	return f, 1
}

// compareListed compares two values by their places in a listing: long strings are compared by their
// beginnings only, numbers rounded down to a float64, arrays and objects not at all.
func compareListed(a, b []byte) int {
	x, _ := comparable(a)
	y, _ := comparable(b)
	if x.rank != y.rank || x.rank == 6 {
		return cmp.Compare(x.rank, y.rank)
	}
	if x.number != nil {
		f, more := roundDown(x.number)
		g, also := roundDown(y.number)
		return cmp.Or(cmp.Compare(f, g), cmp.Compare(more, also))
	}
	cut := func(s string) string { return s[:min(len(s), driver.MaxPart-2)] }
	return cmp.Compare(cut(x.text), cut(y.text))
}

func (l listing) options(limit int) store.ListOptions {
	return store.ListOptions{Filter: l.filter(), Sort: l.order(), Limit: limit}
}

// pages returns the objects of all pages, each of which is from one of the stores in turn: these have the same objects,
// and their cursors are alike. From each page one goes back to the one before, and their number is counted.
func pages(ctx context.Context, o store.ListOptions, stores ...*store.Store) (found []object.Object, err error) {
	o.Count, o.Explain = store.CountExact, true
	var before store.List
	for n := 0; ; n++ {
		page, err := stores[n%len(stores)].List(ctx, o)
		if err != nil {
			return nil, err
		}
		if page.Back != "" {
			turned := o
			turned.Cursor, turned.Before, turned.Count = "", page.Back, ""
			back, err := stores[n/2%len(stores)].List(ctx, turned)
			if err != nil {
				return nil, err
			}
			if !slices.EqualFunc(back.Objects, before.Objects,
				func(a, b store.Stored) bool { return a.UUID == b.UUID }) {
				return nil, fmt.Errorf("the page before has %d other objects than that from which one came, with %d",
					len(back.Objects), len(before.Objects))
			}
		}
		if before = page; o.Count != "" {
			defer func(c store.Count) {
				if err == nil && (c.Accuracy != store.Exact || c.Value != int64(len(found))) {
					err = fmt.Errorf("counted %+v, found %d", c, len(found))
				}
			}(*page.Count)
		}
		o.Count = ""
		for _, stored := range page.Objects {
			decoded, err := object.Decode(stored.Body)
			if err != nil {
				return nil, err
			}
			found = append(found, decoded)
		}
		if page.Next == "" && len(page.Objects) == 0 && o.Cursor != "" {
			return nil, errors.New("the last page is empty")
		}
		if page.Next == "" {
			return found, nil
		}
		o.Cursor = page.Next
	}
}

func uuidsOf(objects []object.Object) []string {
	var all []string
	for _, o := range objects {
		all = append(all, string(o["uuid"]))
	}
	return all
}

// TestSoakListsEqualAFullScan compares pages from indexes with a scan of every
// object.
func TestSoakListsEqualAFullScan(t *testing.T) {
	for soak := kit.Soak(t, 1); soak.More(); {
		seed := soak.Seed()
		r := rand.New(rand.NewPCG(seed, 1))
		s, objects := openLibrary(t, r, 250)
		found := 0
		for range 60 {
			l := randomListing(r)
			limit := 1 + r.IntN(40)
			about := fmt.Sprintf("seed %d: filter %.200q sort %q limit %d", seed, l.filter(), l.order(), limit)
			got, err := pages(t.Context(), l.options(limit), s)
			if err != nil {
				t.Fatalf("%s: %v", about, err)
			}
			var want []object.Object
			for _, o := range objects {
				if !slices.ContainsFunc(l.conditions, func(c comparison) bool { return !c.holds(o) }) {
					want = append(want, o)
				}
			}
			names := uuidsOf(got)
			slices.Sort(names)
			if !slices.Equal(names, uuidsOf(want)) {
				t.Fatalf("%s:\nfound %v\nwant  %v", about, names, uuidsOf(want))
			}
			found += len(got)
			sorted := slices.IsSortedFunc(got, func(a, b object.Object) int {
				for _, field := range l.sort {
					if c := compareListed(a[field], b[field]); c != 0 {
						if l.descending {
							return -c
						}
						return c
					}
				}
				return 0
			})
			if !sorted {
				t.Fatalf("%s: not sorted: %v", about, uuidsOf(got))
			}
			if again, err := pages(t.Context(), l.options(500), s); err != nil ||
				!slices.Equal(uuidsOf(again), uuidsOf(got)) {
				t.Fatalf("%s: in one page %v, %v; in many %v", about, uuidsOf(again), err, uuidsOf(got))
			}
		}
		if found == 0 {
			t.Errorf("seed %d: nothing is ever found", seed)
		}
	}
}

// TestForgedCursorsAreHarmless: whatever place a client makes up, it gets an error or
// objects that meet the filter, and no more than the limit.
func TestForgedCursorsAreHarmless(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	s, _ := openLibrary(t, r, 60)
	for range 600 {
		l := randomListing(r)
		p, err := planOf(l.filter(), l.order(), libraryIndexes)
		if err != nil {
			t.Fatal(err)
		}
		place := make([]byte, 1+r.IntN(40))
		for i := range place {
			place[i] = []byte{0, 1, 2, 0x10, 0x40, 0x50, 'a', 'u', 0xff}[r.IntN(9)]
		}
		o := store.ListOptions{Filter: l.filter(), Sort: l.order(), Limit: 5, Cursor: p.Cursor(place)}
		page, err := s.List(t.Context(), o)
		if err != nil && !errors.Is(err, errs.Invalid) || len(page.Objects) > 5 {
			t.Fatalf("%+v: %d objects, %v", o, len(page.Objects), err)
		}
		for _, stored := range page.Objects {
			decoded, err := object.Decode(stored.Body)
			if err != nil || !p.Match(decoded) {
				t.Fatalf("%+v: got %s, %v", o, stored.Body, err)
			}
		}
	}
}
