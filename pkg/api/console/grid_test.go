package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/query"
)

// typed is a schema that declares types.
type typed struct{}

func (typed) Types() map[string]string {
	return map[string]string{"title": "string", "year": "integer", "done": "boolean", "tags": "array", "due": "string"}
}

func (typed) Validate(_ context.Context, doc []byte) error {
	if year := object.Field(doc, "year"); len(year) > 0 && (year[0] < '0' || year[0] > '9') {
		return &errs.Error{Kind: errs.Invalid, Message: "the object does not fit the schema",
			Fields: []errs.Field{{Pointer: "/year", Message: "must be a number from 0"}}}
	}
	return nil
}

// startGrid starts a console with tasks, whose note is private and whose total is computed.
func startGrid(t *testing.T) *library {
	t.Helper()
	o := stores(t, nil, store.Options{Name: "Tasks", Schema: typed{}, Private: []string{"note"}, Computed: total(t),
		Indexes: []query.Index{query.NewIndex([]string{"year"}), query.NewIndex([]string{"tags[]"}),
			query.NewIndex([]string{"title"})}})
	return &library{set: o.Set, fixture: start(t, console.Options{Objects: o})}
}

const tasks = "/console/objects/Tasks"

func TestCellsFollowTheirValues(t *testing.T) {
	t.Parallel()
	l := startGrid(t)
	l.save("Tasks", "one", `{"title":"<b>One</b>","year":1990,"done":true,"due":"2026-01-02T03:04:05+02:00",
		"note":"secret","n":12345678901234567890,"a":{"b":1},"off":false}`)
	r := is(t, l.get(l.Admin, tasks+"?cols=title&cols=year&cols=done&cols=due&cols=n&cols=a&cols=off&cols=note&"+
		"cols=uuid"),
		http.StatusOK)
	shows(t, r, `<td class="num" data-edit="number" data-field="year" data-value="1990">1990</td>`,
		`<time datetime="2026-01-02T01:04:05Z" title="2026-01-02 01:04:05 UTC">2026-01-02 01:04:05</time>`,
		`<span aria-hidden="true">✓</span><span class="hidden">true</span>`,
		`<span aria-hidden="true">✗</span><span class="hidden">false</span>`, `>12345678901234567890</td>`,
		`<span class="mono">{&#34;b&#34;:1}</span>`, `&lt;b&gt;One`)
	for _, not := range []string{"secret", `"note"`, `data-field="uuid"`, "<b>One", `data-edit="JSON"`} {
		if strings.Contains(r.Text, not) {
			t.Errorf("the list has %q: %s", not, r.Text)
		}
	}
	// Chosen columns stay on other pages; none chosen are the usual ones.
	shows(t, r, `cols=title&amp;cols=year`, `name="cols" value="created"`,
		`href="/console/objects/Tasks">The usual ones`)
	shows(t, is(t, l.get(l.Admin, tasks), http.StatusOK), `data-column="updated"`)
	many := url.Values{}
	for i := range 500 {
		many.Add("cols", fmt.Sprintf("c%d", i))
	}
	if r := is(t, l.get(l.Admin, tasks+"?"+many.Encode()), http.StatusOK); strings.Count(r.Text, "data-column=") != 21 {
		t.Errorf("%d columns", strings.Count(r.Text, "data-column="))
	}
}

// An input in place would change these values by itself.
func TestCellsThatAreNotEditedInPlace(t *testing.T) {
	t.Parallel()
	l := startGrid(t)
	l.save("Tasks", "one", `{"title":"two\nlines","n":"a return\r","m":"\\n","year":1990}`)
	l.save("Tasks", "two", `{"title":"One","n":"one line","m":null}`)
	l.save("Tasks", "old", `{"title":5,"done":"yes"}`) // from before the schema
	r := is(t, l.get(l.Admin, tasks+"?cols=title&cols=n&cols=m&cols=year&cols=done"), http.StatusOK)
	if strings.Contains(r.Text, `data-value="5"`) || strings.Contains(r.Text, `data-value="&#34;yes&#34;"`) {
		t.Error("a value of another type than the declared one is edited in place")
	}
	for value, edited := range map[string]bool{`two\nlines`: false, `a return\r`: false, `\\n`: true, "one line": true} {
		if is := strings.Contains(r.Text, `data-value="&#34;`+value+`&#34;"`); is != edited {
			t.Errorf("%s is edited in place: %t", value, is)
		}
	}
}

func TestHeadersSortWhereAnIndexHasTheOrder(t *testing.T) {
	t.Parallel()
	l := startGrid(t)
	for i := range 3 {
		l.save("Tasks", fmt.Sprintf("t%d", i), fmt.Sprintf(`{"year":%d,"n":%d}`, 2000-i, i))
	}
	r := is(t, l.get(l.Admin, tasks+"?cols=year&cols=n&cols=tags"), http.StatusOK)
	shows(t, r, `data-column="year" class="num"><a href="/console/objects/Tasks?cols=year&amp;cols=n&amp;`+
		`cols=tags&amp;sort=year">`,
		`data-column="uuid"><a href="/console/objects/Tasks?cols=year&amp;cols=n&amp;cols=tags&amp;sort=uuid">`)
	if n := strings.Count(r.Text, "Another index is needed"); n != 2 {
		t.Errorf("%d columns lack an index: %s", n, r.Text)
	}
	r = is(t, l.get(l.Admin, tasks+"?sort=year"), http.StatusOK)
	shows(t, r, `aria-sort="ascending"><a href="/console/objects/Tasks?sort=-year">`)
	if strings.Index(r.Text, `data-uuid="t2"`) > strings.Index(r.Text, `data-uuid="t0"`) {
		t.Error("the order is another one")
	}
	shows(t, is(t, l.get(l.Admin, tasks+"?sort=-year"), http.StatusOK),
		`aria-sort="descending"><a href="/console/objects/Tasks?sort=year">`)
}

func TestFiltersAreBuilt(t *testing.T) {
	t.Parallel()
	l := startGrid(t)
	l.save("Tasks", "one", `{"title":"One \"quoted\" \\ | && x","year":1990,"tags":["red"]}`)
	l.save("Tasks", "two", `{"title":"Two","year":2000,"tags":["red","blue"]}`)
	build := func(triples ...string) string {
		q := url.Values{}
		for i := 0; i < len(triples); i += 3 {
			q.Add("field", triples[i])
			q.Add("op", triples[i+1])
			q.Add("value", triples[i+2])
		}
		return tasks + "?" + q.Encode()
	}
	for _, c := range []struct {
		rows   []string
		filter string
		finds  string // the uuids
	}{
		{[]string{"year", "==", "1990"}, `year == 1990`, "one"},
		{[]string{"year", ">=", "1990", "year", "<", "2000"}, `year >= 1990 && year < 2000`, "one"},
		{[]string{"year", "in", "1990, 2000"}, `year in [1990, 2000]`, "one two"},
		{[]string{"title", "==", `One "quoted" \ | && x`}, `title == "One \"quoted\" \\ | && x"`, "one"},
		{[]string{"title", "starts", "T"}, `title.startsWith("T")`, "two"},
		{[]string{"tags", "element", "blue"}, `"blue" in tags`, "two"},
		{[]string{"tags[]", "element", "red", "", "==", ""}, `"red" in tags`, "one two"},
		{[]string{"title", "has", ""}, `has(title)`, "one two"},
		{[]string{"title", "no such", "Two"}, `title == "Two"`, "two"},
	} {
		r := is(t, l.get(l.Admin, build(c.rows...)), http.StatusOK)
		doc := strings.NewReplacer("&#34;", `"`, "&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(r.Text)
		if !strings.Contains(doc, `name="filter" value="`+c.filter+`"`) {
			t.Errorf("%v does not become %s: %s", c.rows, c.filter, doc)
		}
		for _, uuid := range []string{"one", "two"} {
			if has := strings.Contains(r.Text, `data-uuid="`+uuid+`"`); has != strings.Contains(c.finds, uuid) {
				t.Errorf("%v finds %s: %t", c.rows, uuid, has)
			}
		}
	}
	shows(t, is(t, l.get(l.Admin, build("year", "==", "many")), http.StatusOK),
		"This field has numbers: &#34;many&#34; is not a number.", `aria-invalid="true"`, `data-uuid="one"`)
	shows(t, is(t, l.get(l.Admin, build("odd name", "==", "x")), http.StatusBadRequest),
		`object[&#34;odd name&#34;] == &#34;x&#34;`)
	more := is(t, l.get(l.Admin, build("year", "==", "1990")+"&row=1"), http.StatusOK)
	if shows(t, more, `id="field-1"`); strings.Contains(more.Text, `id="field-2"`) {
		t.Error("two rows were added")
	}
	var all []string
	for range 50 {
		all = append(all, "year", "==", "1990")
	}
	full := is(t, l.get(l.Admin, build(all...)+"&row=1"), http.StatusOK)
	if strings.Contains(full.Text, `id="field-10"`) || strings.Contains(full.Text, "Add a condition") {
		t.Error("there are more rows than ten")
	}
}

func TestCellsAreChangedInPlace(t *testing.T) {
	t.Parallel()
	l := startGrid(t)
	stored := l.save("Tasks", "one", `{"title":"One","year":1990,"note":"secret","tags":[]}`)
	edit := func(status int, field, value string, revision uint64) string {
		t.Helper()
		return is(t, l.post(l.Admin, tasks+"/object/one/cell", form("field", field, "value", value, "revision",
			fmt.Sprint(revision), "cols", "title")+"&cols=year&cols=total"), status).Text
	}
	row := edit(http.StatusOK, "title", `"Two <i>"`, stored.Revision)
	now := l.read("Tasks", "one")
	for _, want := range []string{`data-value="&#34;Two &lt;i&gt;&#34;">Two &lt;i&gt;</td>`,
		fmt.Sprintf(`data-revision="%d"`, now.Revision), "1990"} {
		if !strings.HasPrefix(row, "<tr") || !strings.Contains(row, want) {
			t.Errorf("the row lacks %q: %s", want, row)
		}
	}
	if title, _ := object.Text(object.Field(now.Body, "title")); title != "Two <i>" {
		t.Errorf("it is %s", now.Body)
	}
	// Another admin came first.
	if text := edit(http.StatusPreconditionFailed, "title", `"Three"`, stored.Revision); !strings.Contains(text,
		"somebody else has changed the object") {
		t.Error(text)
	}
	if text := edit(http.StatusBadRequest, "year", "-1", now.Revision); !strings.Contains(text,
		"must be a number from 0") {
		t.Error(text)
	}
	for _, value := range []string{"{}", "[]", "1,\"note\":2", "nul", `"`, "\x00"} {
		edit(http.StatusBadRequest, "year", value, now.Revision)
	}
	for _, field := range []string{"note", "total", "uuid", "created", "tags", "_x", ""} {
		if text := edit(http.StatusForbidden, field, "1", now.Revision); strings.Contains(text, "secret") {
			t.Error(text)
		}
	}
	edit(http.StatusBadRequest, "year", "1", 0)
	edit(http.StatusOK, "year", "", now.Revision)
	if last := l.read("Tasks", "one"); object.Field(last.Body, "year") != nil ||
		string(object.Field(last.Body, "note")) != `"secret"` {
		t.Errorf("%s", last.Body)
	}
	is(t, l.post("", tasks+"/object/one/cell", "field=year&value=1&revision=1"), http.StatusUnauthorized)
	is(t, l.post(l.User, tasks+"/object/one/cell", "field=year&value=1&revision=1"), http.StatusForbidden)
	is(t, l.post(l.Admin, tasks+"/object/one/cell", "field=year&value=1&revision=1", "Origin", "https://evil.example"),
		http.StatusForbidden)
	is(t, l.post(l.Admin, tasks+"/object/none/cell", "field=year&value=1&revision=1"), http.StatusNotFound)
}

func TestObjectsAreDuplicated(t *testing.T) {
	t.Parallel()
	l := startGrid(t)
	l.save("Tasks", "one", `{"title":"One","year":1990,"note":"secret","n":2}`)
	r := is(t, l.get(l.Admin, tasks+"/new?from=one"), http.StatusOK)
	shows(t, r, `&#34;title&#34;: &#34;One&#34;`, `&#34;n&#34;: 2`)
	for _, not := range []string{"secret", "total&#34;", "created&#34;", "uuid&#34;: &#34;one"} {
		if strings.Contains(r.Text, not) {
			t.Errorf("the text has %s: %s", not, r.Text)
		}
	}
	is(t, l.get(l.Admin, tasks+"/new?from=none"), http.StatusNotFound)
	is(t, l.get(l.Admin, tasks+"/new?from="+strings.Repeat("x", 300)), http.StatusBadRequest)
}
