package console

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestTheNameOfAnObject(t *testing.T) {
	t.Parallel()
	titled := StoreInfo{Title: []string{"title", "name"}}
	users := StoreInfo{Users: true, ByAddress: true, Title: []string{"nick"}}
	text := func(s string) string {
		encoded, _ := json.Marshal(s)
		return `{"title":` + string(encoded) + `,"name":"other"}`
	}
	for _, c := range []struct {
		info       StoreInfo
		body, name string
	}{
		{titled, `{"name":"N","title":"T"}`, "T"},
		{titled, `{"name":"N"}`, "N"},
		{titled, `{"name":"N","title":""}`, "N"},
		{titled, `{"name":"N","title":null}`, "N"},
		{titled, `{"name":"N","title":7}`, "N"},
		{titled, `{"name":"N","title":["T"]}`, "N"},
		{titled, `{"name":"N","title":{"name":"T"}}`, "N"},
		{titled, text(" \n\t "), "other"},
		{titled, text("\u200b\u2060"), "other"}, // nothing to be seen
		{titled, text(" a\n  b\tc "), "a b c"},
		{titled, text("a\u202eb\u0000"), `a\u202eb\u0000`},
		{titled, text("<b>&"), "<b>&"},
		{titled, text(strings.Repeat("é", 80)), strings.Repeat("é", 80)},
		{titled, text(strings.Repeat("é", 81)), strings.Repeat("é", 80) + "…"},
		{titled, text(strings.Repeat(" ", 1<<20) + "a"), "a"},
		{titled, text("a" + strings.Repeat(" ", 1<<20) + "b"), "a…"},
		{titled, text(strings.Repeat("x", 1<<20)), strings.Repeat("x", 80) + "…"},
		{titled, `{"label":"L"}`, ""},
		{titled, ``, ""},
		{titled, `[`, ""},
		{StoreInfo{}, `{"title":"T","name":"N"}`, ""},
		{users, `{"idents":[{"uuid":"ada@example.com_email"},{"uuid":"1_github"}],"name":"Ada","nick":"a"}`,
			"ada@example.com"},
		{users, `{"idents":[],"name":"Ada","nick":"a"}`, "a"},
		{users, `{"idents":7,"name":"Ada"}`, "Ada"},
		{StoreInfo{Users: true, Title: []string{"nick"}}, `{"idents":[{"uuid":"a@b_email"}],"name":"Ada"}`, ""},
	} {
		got := nameOf(c.info, []byte(c.body))
		if got != c.name {
			t.Errorf("%.80s: %q, expected %q", c.body, got, c.name)
		}
		if !utf8.ValidString(got) {
			t.Errorf("%.80s: %q is no text", c.body, got)
		}
	}
}
