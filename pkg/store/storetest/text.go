package storetest

import (
	"fmt"
	"slices"
	"strings"

	"belfry/pkg/store/driver"
	"belfry/test/kit/hardtext"
)

func textTests() []test {
	return []test{
		{"bodies and keys have any text", anyText},
		{"numbers beyond 64 bits stay as they are written", anyNumber},
	}
}

var byText = driver.Index{Name: "text", Parts: 1}

// saying is a doc with a text.
func (d *doc) saying(text string) *doc {
	d.Text = text
	return d
}

// anyText has each text in a body, and after a type in a key, as package store encodes it.
func anyText(f *fixture) {
	texts := hardtext.All()
	slices.Sort(texts)
	texts = slices.Compact(texts)
	part := func(text string) string { return "P" + text[:min(len(text), driver.MaxPart-2)] }
	s := f.open("Books", byText)
	var names []string
	for i, text := range texts {
		name := fmt.Sprintf("t%03d", i)
		names = append(names, name)
		s.put(name, 0, uint64(i+1), keyed("text", part(text)).saying(text))
	}
	s.wantMatches(driver.Query{Index: "text", Limit: 1000}, strings.Join(names, " ")) // in the order of their bytes
	for i, text := range texts {
		if i%8 != 0 {
			continue
		}
		s.wantRecord(names[i], uint64(i+1), keyed("text", part(text)).saying(text))
		s.wantMatches(driver.Query{Index: "text", Equal: parts(part(text))}, names[i])
		from := driver.Query{Index: "text", From: []byte(part(text)), Limit: 1000}
		s.wantMatches(from, strings.Join(names[i:], " "))
	}
}

func anyNumber(f *fixture) {
	s := f.open("Books")
	for i, number := range []string{"1.50", "1E+02", "-0", "9223372036854775808", "-9223372036854775809", "1e400",
		"1e999999999", "0.10000000000000000000000000001"} {
		w := driver.Write{UUID: "n", IfRevision: uint64(i), Revision: uint64(i + 1),
			Body: []byte(`{"text":"` + number + `","number":` + number + `}`), Event: eventOf("n", uint64(i+1))}
		f.must(s.Put(f.ctx, w))
		got, ok, err := s.Get(f.ctx, "n")
		if err != nil || !ok || string(got.Body) != string(w.Body) {
			f.Fatalf("got %s, %v, %v, want %s", got.Body, ok, err, w.Body)
		}
	}
}
