package mongostore

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/store/driver"
)

// somePart is a part of few different bytes, those at the borders among them,
// so that parts often begin alike.
func somePart(random *rand.Rand) []byte {
	part := make([]byte, random.IntN(4))
	for i := range part {
		part[i] = "\x00\x1f !\"a}~\x7f\xff"[random.IntN(10)]
	}
	return part
}

func someParts(random *rand.Rand, n int) [][]byte {
	parts := make([][]byte, n)
	for i := range parts {
		parts[i] = somePart(random)
	}
	return parts
}

// TestKeysKeepTheOrderOfTheirParts: texts have the order of the parts that they encode.
func TestKeysKeepTheOrderOfTheirParts(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200_000 {
		n := 1 + random.IntN(4)
		a, b := someParts(random, n), someParts(random, n)
		want := slices.CompareFunc(a, b, bytes.Compare)
		if got := strings.Compare(encodeParts(a), encodeParts(b)); got != want {
			t.Fatalf("%q and %q compare as %d, their texts %q and %q as %d", a, b, want, encodeParts(a), encodeParts(b),
				got)
		}
	}
}

// TestSpanContainsTheSelectedKeys: the span of a query holds the keys that the query selects, followed
// by any uuid.
func TestSpanContainsTheSelectedKeys(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200_000 {
		parts := someParts(random, 1+random.IntN(3))
		q := driver.Query{Equal: someParts(random, random.IntN(len(parts)+1))}
		if random.IntN(2) == 0 {
			q.Equal = parts[:len(q.Equal)]
		}
		if len(q.Equal) < len(parts) {
			q.From, q.To = [][]byte{nil, somePart(random)}[random.IntN(2)],
				[][]byte{nil, somePart(random)}[random.IntN(2)]
		}
		for _, uuid := range []string{"", "0", "zz~"} {
			text, s := encodeParts(parts)+uuid, spanOf(q)
			if got := s.lower <= text && text < s.upper; got != selects(q, parts) {
				t.Fatalf("equal %q from %q to %q: the span %q holds %q: %v, want %v", q.Equal, q.From, q.To, s, text,
					got, !got)
			}
		}
	}
}

// selects is what package driver says of a query.
func selects(q driver.Query, parts [][]byte) bool {
	if !slices.EqualFunc(q.Equal, parts[:len(q.Equal)], bytes.Equal) {
		return false
	}
	if len(q.Equal) == len(parts) {
		return true
	}
	next := parts[len(q.Equal)]
	return bytes.Compare(next, q.From) >= 0 &&
		(q.To == nil || bytes.Compare(next, q.To) < 0)
}

// TestEscape: different names stay different, and are safe.
func TestEscape(t *testing.T) {
	seen := make(map[string]string)
	for _, name := range []string{"Books", "books", "a.b", "a,b", "a%2eb", "a%b", "system.users", "$cmd", "ä", "a:b",
		""} {
		safe := escape(name)
		if other, taken := seen[safe]; taken || strings.ContainsAny(safe, ".$:\x00 ") {
			t.Errorf("%q becomes %q, as %q does", name, safe, other)
		}
		seen[safe] = name
	}
}
