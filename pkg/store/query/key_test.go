package query_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/object"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
)

func TestPartsAreInTheOrderOfValues(t *testing.T) {
	long := strings.Repeat("x", driver.MaxPart)
	values := []string{
		``, `null`, `false`, `true`,
		`-1e999999999`, `-1e308`, `-9007199254740992`, `-2`, `-1.5`, `-1`, `-1e-300`, `0`, `1e-300`, `0.5`, `1`, `1.5`,
		`2`, `10`, `1e308`, `1e309`,
		`""`, `"A"`, `"a"`, `"a "`, `"ab"`, `"b"`, `"` + long + `"`, `"é"`, `"\uffff"`, `"😀"`,
		`{}`,
	}
	for i := range values[1:] {
		a, b := query.EncodePart([]byte(values[i])), query.EncodePart([]byte(values[i+1]))
		if bytes.Compare(a, b) >= 0 {
			t.Errorf("%.20s (%x) does not come before %.20s (%x)", values[i], a, values[i+1], b)
		}
	}
}

func TestEqualValuesHaveEqualParts(t *testing.T) {
	long := strings.Repeat("x", driver.MaxPart)
	for _, group := range [][]string{
		{`0`, `-0`, `0.0`, `-0e5`},
		{`1990`, `1990.0`, `1.99e3`},
		{`"é"`, `"\u00e9"`},
		{`[]`, `{}`, `{"a":[1]}`},
		{`"` + long + `"`, `"` + long + `y"`},
	} {
		for _, v := range group[1:] {
			if !bytes.Equal(query.EncodePart([]byte(group[0])), query.EncodePart([]byte(v))) {
				t.Errorf("%.20s and %.20s differ", group[0], v)
			}
		}
	}
	if !bytes.Equal(query.EncodePart(nil), query.EncodePart([]byte{})) {
		t.Error("two ways to say absent differ")
	}
}

// FuzzEncodePart: parts are bounded, never empty, and in the order of what
// they encode; those of different values may be alike.
func FuzzEncodePart(f *testing.F) {
	for _, seed := range [][2]string{{`1`, `2`}, {`"a"`, `"b"`}, {`-1.5e3`, `"x"`}, {`null`, `true`}, {``, `0`},
		{`[1]`, `{}`}, {`9007199254740993`, `9007199254740992`}} {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		x, y := query.EncodePart(a), query.EncodePart(b)
		if len(x) == 0 || len(x) > driver.MaxPart {
			t.Fatalf("a part of %d bytes", len(x))
		}
		va, okA := comparable(a)
		vb, okB := comparable(b)
		if !okA || !okB {
			return
		}
		if want, got := va.compare(vb), bytes.Compare(x, y); got != 0 && got != want {
			t.Fatalf("%s and %s compare as %d, their parts as %d", a, b, want, got)
		}
	})
}

// value is a JSON value in the order that listings have, by other means than
// the code under test.
type value struct {
	rank   int
	number *big.Rat
	text   string
}

func comparable(data []byte) (v value, ok bool) {
	if len(data) == 0 {
		return value{}, true
	}
	o, err := object.Parse(slices.Concat([]byte(`{"v":`), data, []byte(`}`)))
	if err != nil || len(o) != 1 || !bytes.Equal(o["v"], data) {
		return v, false
	}
	switch data[0] {
	case 'n':
		return value{rank: 1}, true
	case 'f':
		return value{rank: 2}, true
	case 't':
		return value{rank: 3}, true
	case '"':
		err := json.Unmarshal(data, &v.text)
		v.rank = 5
		return v, err == nil
	case '[', '{':
		return value{rank: 6}, true
	}
	if _, power, has := strings.Cut(strings.ToLower(string(data)), "e"); has && len(power) > 4 {
		return v, false // would be huge as a big.Rat
	}
	v.rank = 4
	v.number, ok = new(big.Rat).SetString(string(data))
	return v, ok
}

func (v value) compare(w value) int {
	switch {
	case v.rank != w.rank:
		return sign(v.rank - w.rank)
	case v.number != nil:
		return v.number.Cmp(w.number)
	default:
		return strings.Compare(v.text, w.text)
	}
}

func sign(n int) int {
	switch {
	case n < 0:
		return -1
	case n > 0:
		return 1
	default:
		return 0
	}
}

func TestKeys(t *testing.T) {
	body := []byte(`{"uuid":"u","author":"a","first-name":null,"room":1,"title":"t"}`)
	got := query.Keys(indexes, body)
	part := func(v string) []byte { return query.EncodePart([]byte(v)) }
	want := []driver.Key{
		{Index: "author-year", Parts: [][]byte{part(`"a"`), part(``)}},
		{Index: "year", Parts: [][]byte{part(``)}},
		{Index: "shelf", Parts: [][]byte{part(`1`), part(``), part(``), part(`"t"`)}},
		{Index: "first-name", Parts: [][]byte{part(`null`)}},
	}
	same := slices.EqualFunc(got, want, func(a, b driver.Key) bool {
		return a.Index == b.Index && slices.EqualFunc(a.Parts, b.Parts, bytes.Equal)
	})
	if !same {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestKeysOfNilBody(t *testing.T) {
	if keys := query.Keys(nil, []byte(`{"a":1}`)); keys != nil {
		t.Errorf("without indexes: %q", keys)
	}
	if keys := query.Keys(indexes, nil); keys != nil {
		t.Errorf("of a tombstone: %q", keys)
	}
	body := []byte(`{"a":1}`)
	if n := testing.AllocsPerRun(100, func() { query.Keys(nil, body) }); n != 0 {
		t.Errorf("without indexes: %v allocations", n)
	}
}

// keyedBody has fields of the indexes.
var keyedBody = []byte(
	`{"uuid":"0199f3a2-7c1e-7b52-9d0e-3f6a1b2c4d5e","author":"0199f3a2-1111-7b52-9d0e-3f6a1b2c4d5e","price":12.5,` +
		`"publisher":{"name":"Gollancz","city":"London"},"summary":"` + strings.Repeat("x", 180) +
		`","tags":["mystery","bells"],"title":"The Nine Tailors","year":1934}`)

// Each write computes the keys: they take memory for the values, the parts, their bytes, and the list of keys, however
// many fields the object and the indexes have.
func TestKeysTakeFewAllocations(t *testing.T) {
	prepared := query.Prepare([]query.Index{
		{Name: "author", Fields: []string{"author", "-year"}}, {Name: "city", Fields: []string{"publisher.city"}},
		{Name: "title", Fields: []string{"-title", "year", "missing"}},
	})
	if n := testing.AllocsPerRun(100, func() { query.Keys(prepared, keyedBody) }); n > 4 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkKeys(b *testing.B) {
	body := keyedBody
	prepared := query.Prepare(indexes[:2])
	b.ReportAllocs()
	for b.Loop() {
		query.Keys(prepared, body)
	}
}

func BenchmarkParse(b *testing.B) {
	prepared := query.Prepare(indexes)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := planOf(`author == "0199f3a2" && year >= 1990`, `-year`, prepared); err != nil {
			b.Fatal(err)
		}
	}
}
