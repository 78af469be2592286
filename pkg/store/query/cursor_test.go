package query_test

import (
	"bytes"
	"errors"
	"net/url"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store/query"
)

func TestCursorRoundTrip(t *testing.T) {
	p := plan(t, `year > 5`, `year`)
	place := []byte("\x00\xff any bytes")
	cursor := p.Cursor(place)
	if cursor != url.QueryEscape(cursor) {
		t.Errorf("%q is not safe in a URL", cursor)
	}
	if got, err := plan(t, `year > 5`, `year`).After(cursor); err != nil || !bytes.Equal(got, place) {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestNilPlaceIsNoCursor(t *testing.T) {
	p := plan(t, ``, ``)
	if cursor := p.Cursor(nil); cursor != "" {
		t.Errorf("cursor %q", cursor)
	}
	if place, err := p.After(""); place != nil || err != nil {
		t.Errorf("place %q, %v", place, err)
	}
}

func TestCursorOfAnotherListingIsRejected(t *testing.T) {
	cursor := plan(t, `year > 5`, `year`).Cursor([]byte("place"))
	for _, p := range []*query.Plan{
		plan(t, `year > 6`, `year`), plan(t, `year > 5`, `-year`), plan(t, `year > 5`, ``), plan(t, ``, ``),
	} {
		if _, err := p.After(cursor); !errors.Is(err, errs.Invalid) {
			t.Errorf("accepted: %v", err)
		}
	}
	other, err := planOf(`year > 5`, `year`, []query.Index{{Name: "year,title", Fields: []string{"year", "title"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.After(cursor); !errors.Is(err, errs.Invalid) {
		t.Errorf("accepted when the index has changed: %v", err)
	}
}

func TestInvalidCursorsAreRejected(t *testing.T) {
	p := plan(t, `year > 5`, `year`)
	good := p.Cursor([]byte("place"))
	for _, cursor := range []string{
		"x", "====", good + "=", good + "\n", good[:8], p.Cursor([]byte{}), "é", "\x00", strings.Repeat("A", 1<<20),
		"../../etc/passwd",
	} {
		if place, err := p.After(cursor); !errors.Is(err, errs.Invalid) {
			t.Errorf("%.20q gives %q, %v", cursor, place, err)
		}
	}
}

// FuzzCursor: any text is refused as invalid or is the only cursor of a place.
func FuzzCursor(f *testing.F) {
	p := plan(f, `year > 5`, `year`)
	f.Add(p.Cursor([]byte("place")))
	f.Add("")
	f.Add("AAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, cursor string) {
		place, err := p.After(cursor)
		if err != nil {
			if !errors.Is(err, errs.Invalid) {
				t.Fatal(err)
			}
			return
		}
		if again := p.Cursor(place); again != cursor {
			t.Fatalf("%q and %q are one place", cursor, again)
		}
	})
}

// FuzzFilter: any filter is refused as invalid or becomes a plan whose query
// finds every object that it matches.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{
		`year == 5`, `1.5 <= year && year < 1e300`, `year.startsWith("x")`, `author == "a" && year > "b"`,
		`object["first-name"] == null`,
		`year == true || year != 2`, `((((`, `year == -0x7f`, `year == r"\"`, `a.b.c(d)`, `[1,2].map(x, x)`,
		`"\U0010ffff" < year`, "year == '''\n'''",
	} {
		f.Add(seed, "", "1990")
		f.Add(seed, "-year", `"abc"`)
	}
	f.Fuzz(func(t *testing.T, filter, sort, year string) {
		p, err := planOf(filter, sort, indexes)
		if err != nil {
			if !errors.Is(err, errs.Invalid) {
				t.Fatalf("%v", err)
			}
			return
		}
		if _, ok := comparable([]byte(year)); !ok || year == "" {
			year = "absent"
		}
		if o := withYear(year); p.Match(o) && !within(p, o) {
			t.Fatalf("filter %q: the query does not find %s", filter, o.Encode())
		}
	})
}
