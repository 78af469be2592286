package store_test

import (
	"slices"
	"testing"

	"belfry/pkg/store"
)

func TestEntry(t *testing.T) {
	m := store.Mapping{Key: "author", Fields: []string{"title", "year", "uuid"}}
	for _, c := range []struct{ name, body, want string }{
		{"copies uuid and fields", `{"uuid":"b","author":"a","title":"T","year":1.50,"other":1}`, `{"uuid":"b","title":"T","year":1.50}`},
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
	if got := m.Entry("b", nil, store.Target{UUID: "a"}); got != nil {
		t.Errorf("a deleted object has an entry: %s", got)
	}
}

func TestKeyTargets(t *testing.T) {
	for value, want := range map[string][]string{
		`"a"`: {"a"}, `["a","b","a"]`: {"a", "b"}, `[]`: nil, `null`: nil, `""`: nil, `5`: nil,
		`["a",5,null,".x","b"]`: {"a", "b"}, `{"a":"b"}`: nil, `[["a"]]`: nil, "": nil,
	} {
		if got := store.KeyTargets([]byte(value)); !slices.Equal(got, want) {
			t.Errorf("%s names %v, want %v", value, got, want)
		}
	}
}
