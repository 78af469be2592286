package store_test

import (
	"context"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

func TestProjection(t *testing.T) {
	const body = `{"uuid":"a","address":{"city":"Leeds","zip":7},"books":[{"title":"x","year":1},{"year":2},3],"n":null,"title":"T"}`
	for fields, want := range map[string]string{
		"":                         body,
		" ":                        body,
		"uuid":                     `{"uuid":"a"}`,
		"title":                    `{"uuid":"a","title":"T"}`,
		" title , n ":              `{"uuid":"a","n":null,"title":"T"}`,
		"none":                     `{"uuid":"a"}`,
		"address":                  `{"uuid":"a","address":{"city":"Leeds","zip":7}}`,
		"address.city":             `{"uuid":"a","address":{"city":"Leeds"}}`,
		"address.zip,address.city": `{"uuid":"a","address":{"city":"Leeds","zip":7}}`,
		"address.none":             `{"uuid":"a","address":{}}`,
		"address,address.city":     `{"uuid":"a","address":{"city":"Leeds","zip":7}}`,
		"address.city,address":     `{"uuid":"a","address":{"city":"Leeds","zip":7}}`,
		"books.title":              `{"uuid":"a","books":[{"title":"x"},{}]}`,
		"title.length":             `{"uuid":"a"}`,
		"n.x,uuid":                 `{"uuid":"a"}`,
		"title," + strings.Repeat("title,", 90) + "n": `{"uuid":"a","n":null,"title":"T"}`,
	} {
		p, err := store.ParseProjection(fields)
		if err != nil {
			t.Fatalf("%s: %v", fields, err)
		}
		if got := string(p.Apply([]byte(body))); got != want {
			t.Errorf("%s: %s, want %s", fields, got, want)
		}
	}
	for fields, says := range map[string]string{
		"title,": "name is missing", ",": "name is missing", "a.": "name is missing", ".a": "name is missing",
		"a.b.c":                         "one level",
		strings.Repeat("a,", 100) + "a": "more than 100", strings.Repeat("a", 5000): "at most", "\xff": "UTF-8",
	} {
		if _, err := store.ParseProjection(fields); err == nil || errs.KindOf(err) != errs.Invalid ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%.20q: %v, want an invalid that says %q", fields, err, says)
		}
	}
}

// TestProjectionsShowNoHiddenFields: naming a field that the caller may not see gives what naming one that is not there
// gives.
func TestProjectionsShowNoHiddenFields(t *testing.T) {
	s, _ := open(t, store.Options{
		Private: []string{"secret"},
		Fields:  fieldsOf(t, map[string]policy.FieldRule{"salary": {Read: `user.uuid == "ada"`}}),
		Indexes: []query.Index{query.NewIndex([]string{"n"})},
	})
	save(t, s, "x", `{"n":1,"secret":"s","salary":5,"_internal":1,"title":"T"}`)
	const fields = "title,secret,salary,_internal"
	for who, c := range map[string]struct {
		ctx  context.Context
		want string
	}{
		"ada": {as(t.Context(), "ada"), `{"uuid":"x","salary":5,"title":"T"}`},
		"bob": {as(t.Context(), "bob"), `{"uuid":"x","title":"T"}`},
	} {
		got, err := s.GetView(c.ctx, "x", store.View{Fields: fields})
		if err != nil || string(got.Body) != c.want || !got.Viewed {
			t.Errorf("%s gets %s, %v, want %s", who, got.Body, err, c.want)
		}
		list, err := s.List(c.ctx, store.ListOptions{Fields: fields, Filter: "n == 1"})
		if err != nil || len(list.Objects) != 1 || string(list.Objects[0].Body) != c.want {
			t.Errorf("%s lists %s, %v, want %s", who, list.Encode("items"), err, c.want)
		}
	}
	_, err := s.GetView(t.Context(), "x", store.View{Fields: ","})
	kind(t, err, errs.Invalid)
	_, err = s.List(t.Context(), store.ListOptions{Fields: "a.b.c"})
	kind(t, err, errs.Invalid)
}
