package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

func TestEntry(t *testing.T) {
	m := store.Mapping{Key: "author", Fields: []string{"title", "year", "uuid"}}
	for _, c := range []struct{ name, body, want string }{
		{"copies uuid and fields", `{"uuid":"b","author":"a","title":"T","year":1.50,"other":1}`,
			`{"uuid":"b","title":"T","year":1.50}`},
		{"leaves out what is absent", `{"uuid":"b","author":"a","year":1}`, `{"uuid":"b","year":1}`},
		{"keeps null", `{"uuid":"b","author":"a","title":null}`, `{"uuid":"b","title":null}`},
		{"finds the target among several", `{"uuid":"b","author":["x","a","a"]}`, `{"uuid":"b"}`},
		{"has none for another target", `{"uuid":"b","author":"x"}`, ""},
		{"has none without a key", `{"uuid":"b"}`, ""},
		{"has none for a key that is no uuid", `{"uuid":"b","author":{"uuid":"a"}}`, ""},
	} {
		if got := string(m.Entry("b", []byte(c.body), store.Target{UUID: "a"})); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	for _, key := range []string{`"7"`, `7`, `["x",7]`} {
		if got := string(m.Entry("b", []byte(`{"uuid":"b","author":`+key+`}`),
			store.Target{UUID: "7"})); got != `{"uuid":"b"}` {
			t.Errorf("the entry of %s is %s", key, got)
		}
	}
	if got := m.Entry("b", nil, store.Target{UUID: "a"}); got != nil {
		t.Errorf("a deleted object has an entry: %s", got)
	}
}

// What is copied is nested a few levels deeper in the target, which has to be an object that clients may send.
func TestWhatIsCopiedIsNotNestedTooDeeply(t *testing.T) {
	s, _ := open(t,
		store.Options{Maps: []store.Mapping{{Source: "Books", Target: "Authors", Key: "author", Array: "books",
			Fields: []string{"title", "tags"}, Limit: 9}}})
	nested := func(field string, levels int) object.Object {
		return parse(t, `{"author":"ada","`+field+`":`+strings.Repeat("[", levels)+strings.Repeat("]", levels)+`}`)
	}
	for _, c := range []struct {
		field  string
		levels int
		ok     bool
	}{{"tags", object.MaxCopyDepth, true}, {"tags", object.MaxCopyDepth + 1, false},
		{"other", object.MaxDepth - 1, true}} {
		o, err := s.Save(t.Context(), nested(c.field, c.levels), "")
		var found *errs.Error
		if c.ok && err != nil ||
			!c.ok && (!errors.As(err, &found) || found.Kind != errs.Invalid || found.Fields[0].Pointer != "/tags") {
			t.Errorf("%s, %d levels: %v", c.field, c.levels, err)
		}
		if !c.ok {
			continue
		}
		entry := s.Maps()[0].Entry(o.UUID, o.Body, store.Target{UUID: "ada"})
		if _, err := object.Parse([]byte(`{"books":[` + string(entry) + `]}`)); err != nil {
			t.Errorf("%s, %d levels: the target is %v", c.field, c.levels, err)
		}
	}
}

func TestKeyTargets(t *testing.T) {
	for value, want := range map[string][]string{
		`"a"`: {"a"}, `["a","b","a"]`: {"a", "b"}, `[]`: nil, `null`: nil, `""`: nil, `5`: {"5"}, `5.0`: nil,
		`["a",5,null,".x","b",5,"5",-1]`: {"a", "5", "b"}, `{"a":"b"}`: nil, `[["a"]]`: nil, "": nil,
	} {
		if got := store.KeyTargets([]byte(value)); !slices.Equal(got, want) {
			t.Errorf("%s names %v, want %v", value, got, want)
		}
	}
}

// A rule that compares a key with what is stored holds for 1.0 where 1 is stored, and only 1 names an object: whoever
// may not change what is named does not take it away by another way of writing it.
func TestAKeyOfTheSameValueStillNamesWhatItNamed(t *testing.T) {
	s, _ := open(t,
		store.Options{
			Maps: []store.Mapping{{Source: "Books", Target: "Authors", Key: "author", Array: "books", Limit: 9}}})
	for _, c := range []struct{ before, given, want string }{
		{`1`, `1.0`, `1`}, {`1`, `1e0`, `1`}, {`[1,"a"]`, `[1.0,"a"]`, `[1,"a"]`}, {`0`, `-0`, `0`},
		{`1`, `"1"`, `"1"`}, {`1`, `2.0`, `2.0`}, {`1.0`, `1`, `1`}, {`1`, `null`, `null`},
	} {
		o, err := s.Save(t.Context(), parse(t, `{"author":`+c.before+`}`), "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Update(client(t.Context()), parse(t, `{"author":`+c.given+`}`),
			store.UpdateOptions{UUID: o.UUID}); err != nil {
			t.Fatal(err)
		}
		if o, err = s.Get(t.Context(), o.UUID); err != nil {
			t.Fatal(err)
		}
		if got := string(object.Field(o.Body, "author")); c.want != "" && got != c.want {
			t.Errorf("%s over %s is %s, want %s", c.given, c.before, got, c.want)
		}
	}
}
