package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"belfry/test/kit"
)

// In development a list without an index names the one to declare, in the reply and in the log. A reload that ends
// development refuses it, as everywhere else.
func TestAListWithoutAnIndexIsForDevelopmentAlone(t *testing.T) {
	const text = `
listen: 127.0.0.1:0
bus: {listen: ""}
development: true
stores: {Books: {expose: {list: true}, policy: {default: allow}}}
`
	p := newPlace(t, text)
	a, _ := p.reloadable()
	for _, body := range []string{`{"uuid":"a","year":3}`, `{"uuid":"b","year":1}`, `{"uuid":"c","year":2}`} {
		p.want(a, "POST", "/books", strings.Replace(body, `"uuid"`, `"name"`, 1), http.StatusCreated)
	}
	var got string
	kit.WaitFor(t, "all are listed", func() bool {
		status, reply := p.do(a, "GET", "/books?sort=-year&limit=2", "")
		got = reply
		return status == http.StatusOK && gjson.Get(reply, "items.#").Int() == 2
	})
	if years := gjson.Get(got, "items.#.year").Raw; years != "[3,2]" ||
		!strings.Contains(gjson.Get(got, "warning").String(), `stores.Books.indexes: ["year"]`) ||
		gjson.Get(got, "cursor").String() == "" {
		t.Errorf("the list is %s", got)
	}
	if log := p.logged.String(); !strings.Contains(log, "a list has no index") ||
		!strings.Contains(log, "store=Books") {
		t.Errorf("the log is %s", log)
	}
	p.reload(a, strings.Replace(text, "development: true", "", 1))
	if status, reply := p.do(a, "GET", "/books?sort=-year", ""); status != http.StatusBadRequest ||
		!strings.Contains(reply, "one on (year) is needed") {
		t.Errorf("elsewhere: %d %s", status, reply)
	}
}
