package backends

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/query"
	"belfry/test/kit/hardtext"
)

// openFor opens a store with indexes.
func openFor(t *testing.T, backend driver.Backend, o store.Options, indexes ...string) *store.Store {
	t.Helper()
	for _, fields := range indexes {
		o.Indexes = append(o.Indexes, query.NewIndex(strings.Split(fields, ",")))
	}
	s, err := store.Open(t.Context(), backend, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func saveIn(t *testing.T, s *store.Store, uuid, body string) {
	t.Helper()
	o, err := object.Parse([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save(t.Context(), o, uuid); err != nil {
		t.Fatal(err)
	}
}

// textsAreFound: what one encoder has written is found by filters of the others, is unique by what it says, and is in
// the order of its characters, across pages.
func textsAreFound(t *testing.T, backend driver.Backend) {
	s := openFor(t, backend, store.Options{Name: "Texts", Unique: [][]string{{"text"}}}, "text", "tags[]")
	s.Claims().Trust(true)
	texts := hardtext.All()
	slices.Sort(texts)
	texts = slices.Compact(texts)
	var names, encoders []string
	for name := range hardtext.Encoders() {
		encoders = append(encoders, name)
	}
	slices.Sort(encoders)
	encode := func(i int) func(string) string { return hardtext.Encoders()[encoders[i%len(encoders)]] }
	for i, text := range texts {
		name, literal := fmt.Sprintf("t%03d", i), encode(i)(text)
		names = append(names, name)
		saveIn(t, s, name, `{"text":`+literal+`,"tags":[`+literal+`]}`)
	}
	if got := uuids(t.Context(), t, s, store.ListOptions{Sort: "text", Limit: 500}); !slices.Equal(got, names) {
		t.Errorf("sorted: %v", got)
	}
	for i, text := range texts {
		literal := encode(i + 1 + i/len(encoders))(text)
		if i%8 == 0 {
			for _, filter := range []string{"text == " + literal, literal + " in tags",
				`text in ["none of them", ` + literal + "]"} {
				if got := uuids(t.Context(), t, s, store.ListOptions{Filter: filter, Limit: 10}); !slices.Equal(got,
					names[i:i+1]) {
					t.Errorf("%s finds %v, want %s", filter, got, names[i])
				}
			}
		}
		if i%32 == 0 {
			o, err := object.Parse([]byte(`{"text":` + literal + `}`))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Save(t.Context(), o, "second"); !errors.Is(err, errs.Taken) {
				t.Errorf("two objects have the unique text %s: %v", literal, err)
			}
		}
	}
}

// numbersAreFound exactly, however large they are.
func numbersAreFound(t *testing.T, backend driver.Backend) {
	s := openFor(t, backend, store.Options{Name: "Numbers"}, "n")
	numbers := []string{
		"-1e400", "-9223372036854775809", "-9223372036854775808", "-0.10000000000000000000000000001", "0", "0.1",
		"0.10000000000000000000000000001",
		"9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808", "18446744073709551615",
		"18446744073709551616", "1e400", "1e401",
	}
	for i, n := range numbers {
		saveIn(t, s, fmt.Sprintf("n%02d", i), `{"n":`+n+`}`)
	}
	for i, n := range numbers {
		for op, want := range map[string]int{"==": 1, "<": i, "<=": i + 1, ">": len(numbers) - i - 1,
			">=": len(numbers) - i} {
			got := uuids(t.Context(), t, s, store.ListOptions{Filter: "n " + op + " " + n, Limit: 100})
			if len(got) != want || op == "==" && got[0] != fmt.Sprintf("n%02d", i) {
				t.Errorf("n %s %s finds %v, want %d", op, n, got, want)
			}
		}
	}
}

// timesAreFound as times, by an index, across pages.
func timesAreFound(t *testing.T, backend driver.Backend) {
	began := time.Date(2026, 1, 2, 3, 4, 35, 879_000_000, time.UTC)
	now := began
	s := openFor(t, backend, store.Options{Name: "Times", Now: func() time.Time { return now }}, "created", "updated")
	var all []string
	for i := range 9 {
		now = began.Add(time.Duration(i) * 500 * time.Microsecond)
		all = append(all, "t"+strconv.Itoa(i))
		saveIn(t, s, all[i], `{}`)
	}
	for filter, want := range map[string][]string{
		`>= "2026-01-02T03:04:35Z"`: all, `< "2026-01-02T03:04:35Z"`: nil, `>= "2026-01-02T03:04:35.879Z"`: all,
		`> "2026-01-02T03:04:35.879Z"`:      all[1:],
		`<= "2026-01-02T05:04:35.88+02:00"`: all[:3], `< "2026-01-01T22:34:35.8800000001-04:30"`: all[:3],
		`== "2026-01-02T03:04:35.8805Z"`: all[3:4],
		`in ["2026-01-02T03:04:35.8805Z", "2026-01-02T04:04:35.881+01:00", "2026-01-02"]`: all[3:5],
		`!= "2026-01-02T03:04:35.879Z"`:      all[1:],
		`== "2026-01-02T03:04:35.88050001Z"`: nil, `> "2026-01-02"`: all, `> "2026-01-03"`: nil, `== null`: nil,
	} {
		for _, field := range []string{"created", "updated"} {
			got := uuids(t.Context(), t, s, store.ListOptions{Filter: field + " " + filter, Sort: field, Limit: 2})
			if !slices.Equal(got, want) {
				t.Errorf("%s %s finds %v, want %v", field, filter, got, want)
			}
		}
	}
}
