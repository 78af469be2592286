package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/driver"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
	"belfry/pkg/store/schema"
)

// titled requires a title, as a schema would.
type titled struct{}

func (titled) Validate(_ context.Context, doc []byte) error {
	if text, ok := object.Text(object.Field(doc, "title")); !ok || text == "" {
		return &errs.Error{Kind: errs.Invalid, Message: "the object does not fit the schema",
			Fields: []errs.Field{{Pointer: "/title", Message: "must be a text"}}}
	}
	return nil
}

// outbox keeps the events of writes.
type outbox struct{ events []event.Envelope }

func (o *outbox) Committed(_ string, p driver.Pending) {
	if e, err := event.Decode(p.Payload); err == nil {
		o.events = append(o.events, e)
	}
}

// library is a fixture with authors, their books, which are theirs alone and have a schema, and chapters of books.
type library struct {
	*fixture
	set    *store.Set
	outbox *outbox
}

func startLibrary(t *testing.T, change ...func(*console.Objects)) *library {
	t.Helper()
	owner, problems := policy.Compile(policy.Rules{Owner: true, OwnerField: "user"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	l := &library{outbox: &outbox{}}
	o := stores(t, []store.Mapping{
		{Source: "Books", Target: "Authors", Key: "author", Array: "books", Fields: []string{"title"}, Cascade: true,
			Limit: 100},
		{Source: "Chapters", Target: "Books", Key: "book", Cascade: true},
	}, store.Options{Name: "Authors", Search: []string{"name"}, Searcher: found("austen")},
		store.Options{Name: "Books", Schema: titled{}, Policy: owner, Private: []string{"margin"}, Outbox: l.outbox,
			Indexes: []query.Index{{Name: "title", Fields: []string{"title"}}}},
		store.Options{Name: "Chapters"})
	for _, c := range change {
		c(o)
	}
	l.set = o.Set
	l.fixture = start(t, console.Options{Objects: o})
	return l
}

// save stores an object as the program itself.
func (l *library) save(name, uuid, text string) store.Stored {
	l.Helper()
	o, err := object.Parse([]byte(text))
	l.Must(err)
	stored, err := l.set.Store(name).Save(l.Context(), o, uuid)
	l.Must(err)
	return stored
}

func (l *library) read(name, uuid string) store.Stored {
	l.Helper()
	stored, err := l.set.Store(name).Get(l.Context(), uuid)
	l.Must(err)
	return stored
}

func form(pairs ...string) string {
	values := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return values.Encode()
}

const emma = "/console/objects/Books/object/emma"

func TestAdminsSeeAndChangeObjectsWhateverTheRules(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	stored := l.save("Books", "emma", `{"title":"Emma","user":"somebody","margin":"secret-note","author":"austen"}`)

	r := is(t, l.get(l.Admin, emma), http.StatusOK)
	shows(t, r, "&#34;title&#34;: &#34;Emma&#34;", `href="/console/objects/Authors/object/austen"`,
		"curl &#39;http://belfry.example.org/books/emma&#39;")
	if strings.Contains(r.Text, "secret-note") || strings.Contains(r.Text, "margin") {
		t.Error("a private field is shown")
	}
	r = l.post(l.Admin,
		emma, form("revision", fmt.Sprint(stored.Revision), "text",
			`{"title":"Emma, again","author":"austen","year":1815,"margin":"mine","_x":1}`))
	leads(t, r, emma)
	shows(t, l.get(l.Admin, emma, "Cookie", r.Cookies()[0].String()), "The object has been saved.")
	now := l.read("Books", "emma")
	for _, want := range []string{`"title":"Emma, again"`, `"year":1815`, `"margin":"secret-note"`} {
		if !strings.Contains(string(now.Body), want) {
			t.Errorf("the object lacks %s: %s", want, now.Body)
		}
	}
	if strings.Contains(string(now.Body), `"user"`) {
		t.Errorf("a field that was removed is still there: %s", now.Body)
	}
	e := l.outbox.events[len(l.outbox.events)-1]
	ada, err := l.Auth.Admin.FindUser(t.Context(), "ada@example.com")
	l.Must(err)
	if e.Event != event.StoreUpdated || e.Actor == nil || *e.Actor != ada.UUID || e.Origin != event.OriginHTTP {
		t.Errorf("the event of an edit: %+v", e)
	}
}

// TestAnEditWritesOtherDigits of a number, as of a key that names nothing because of its form; a field that is only in
// another place, or has other escapes, is not written.
func TestAnEditWritesOtherDigits(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	stored := l.save("Books", "emma", `{"title":"Emma","author":1.0,"n":{"a":1,"b":"é"}}`)
	leads(t, l.post(l.Admin, emma,
		form("revision", fmt.Sprint(stored.Revision), "text", `{"n":{"b":"\u00e9","a":1},"author":1,"title":"Emma"}`)),
		emma)
	if now := l.read("Books", "emma"); string(object.Field(now.Body, "author")) != "1" ||
		string(object.Field(now.Body, "n")) != `{"a":1,"b":"é"}` {
		t.Errorf("%s", now.Body)
	}
}

func TestOnlyAdminsReachObjects(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	stored := l.save("Books", "emma", `{"title":"Emma","user":"somebody"}`)
	body := form("revision", fmt.Sprint(stored.Revision), "text", `{"title":"X"}`)
	for _, path := range []string{"/console/objects/Books", emma, emma + "/history", emma + "/delete",
		emma + "/files/covers/0", "/console/objects/Books/new"} {
		if r := l.get("", path); r.StatusCode != http.StatusSeeOther || strings.Contains(r.Text, "Emma") {
			t.Errorf("GET %s of nobody: %d", path, r.StatusCode)
		}
		if r := l.get(l.User, path); r.StatusCode != http.StatusForbidden || strings.Contains(r.Text, "Emma") {
			t.Errorf("GET %s of a user: %d", path, r.StatusCode)
		}
	}
	for _, path := range []string{emma, emma + "/check", emma + "/delete", "/console/objects/Books/new",
		"/console/objects/Books/check", emma + "/files/covers"} {
		if r := l.post("", path, body); r.StatusCode != http.StatusSeeOther && r.StatusCode != http.StatusUnauthorized {
			t.Errorf("POST %s of nobody: %d", path, r.StatusCode)
		}
		is(t, l.post(l.User, path, body), http.StatusForbidden)
		is(t, l.post(l.Admin, path, body, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
	}
	if now := l.read("Books", "emma"); now.Revision != stored.Revision {
		t.Error("the object has been changed")
	}
}

func TestStoresThatAreNotShownCanNotBeReached(t *testing.T) {
	t.Parallel()
	l := startLibrary(t, func(o *console.Objects) { o.Stores = o.Stores[:2] })
	l.save("Chapters", "one", `{"text":"hidden-text","book":"emma"}`)
	for _, path := range []string{"/console/objects/Chapters", "/console/objects/Chapters/object/one",
		"/console/objects/Chapters/object/one/history"} {
		is(t, l.get(l.Admin, path), http.StatusNotFound)
	}
	is(t, l.post(l.Admin, "/console/objects/Chapters/new", form("text", "{}")), http.StatusNotFound)
	is(t, l.post(l.Admin, "/console/objects/Chapters/object/one/delete", form("revision", "1")), http.StatusNotFound)
	l.read("Chapters", "one")
}

func TestAnEditThatMeetsAnotherShowsBoth(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	first := l.save("Books", "emma", `{"title":"Emma"}`)
	_, err := l.set.Store("Books").Update(t.Context(), object.Object{"title": []byte(`"Theirs"`)},
		store.UpdateOptions{UUID: "emma"})
	l.Must(err)
	r := is(t, l.post(l.Admin, emma, form("revision", fmt.Sprint(first.Revision), "text", `{"title":"Mine"}`)),
		http.StatusPreconditionFailed)
	shows(t, r, "Nothing has been saved", "Theirs", "Mine", "Current version")
	if now := l.read("Books", "emma"); !strings.Contains(string(now.Body), "Theirs") {
		t.Fatalf("the other change is lost: %s", now.Body)
	}
	// What the page shows next can be saved: it has the current revision.
	revision := regexp.MustCompile(`name="revision" value="(\d+)"`).FindStringSubmatch(r.Text)[1]
	leads(t, l.post(l.Admin, emma, form("revision", revision, "text", `{"title":"Merged"}`)), emma)
	if now := l.read("Books", "emma"); !strings.Contains(string(now.Body), "Merged") {
		t.Errorf("%s", now.Body)
	}
}

func TestAnObjectThatDoesNotFitIsNotSavedAndStaysInTheEditor(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	stored := l.save("Books", "emma", `{"title":"Emma"}`)
	revision := fmt.Sprint(stored.Revision)
	for text, says := range map[string]string{
		`{"year":1815}`:           "<code>title</code>",
		"{\n\"title\": \n\"x\"":   "malformed JSON",
		`[1]`:                     "object",
		"{\n\"title\": \"x\",\n}": "Line 3",
	} {
		for path, status := range map[string]int{emma: http.StatusUnprocessableEntity,
			"/console/objects/Books/new": http.StatusUnprocessableEntity, emma + "/check": http.StatusOK,
			"/console/objects/Books/check": http.StatusOK} {
			if says == "Line 3" && status != http.StatusOK {
				continue
			}
			shows(t, is(t, l.post(l.Admin, path, form("revision", revision, "text", text)), status), "Not valid", says)
		}
	}
	shows(t, l.post(l.Admin, emma, form("revision", revision, "text", `{"year":1815}`)), "&#34;year&#34;:1815",
		`value="`+revision+`"`)
	shows(t, is(t, l.post(l.Admin, emma+"/check", form("text", `{"title":"x","created":"now","_a":1}`)), http.StatusOK),
		"Valid.", "_a", "created")
	is(t, l.post(l.Admin, emma, form("text", `{"title":"x"}`)), http.StatusBadRequest)
	if now := l.read("Books", "emma"); now.Revision != stored.Revision {
		t.Error("the object has been changed")
	}
}

func TestAdminsCreateObjects(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	leads(t, l.post(l.Admin, "/console/objects/Books/new", form("text", `{"uuid":"emma","title":"Emma"}`)), emma)
	l.read("Books", "emma")
	shows(t, is(t, l.post(l.Admin, "/console/objects/Books/new", form("text", `{"uuid":"emma","title":"Emma"}`)),
		http.StatusUnprocessableEntity), "already has an object")
}

func TestADeletionListsWhatItTakes(t *testing.T) {
	t.Parallel()
	l := startLibrary(t, func(o *console.Objects) { o.Stores = o.Stores[:2] })
	l.save("Authors", "austen", `{}`)
	l.save("Authors", "alone", `{}`)
	l.save("Books", "emma", `{"title":"Emma","author":"austen"}`)
	l.save("Books", "other", `{"title":"Other","author":"alone"}`)
	l.save("Chapters", "one", `{"book":"emma"}`)
	const austen = "/console/objects/Authors/object/austen"
	r := is(t, l.get(l.Admin, austen+"/delete"), http.StatusOK)
	shows(t, r, "2 other objects", emma, "Chapters: 1")
	if strings.Contains(r.Text, "/other") || strings.Contains(r.Text, "/object/one") {
		t.Errorf("lists what stays, or links to a store that is not shown: %s", r.Text)
	}
	for i := range 120 {
		l.save("Books", fmt.Sprintf("b%03d", i), `{"title":"B","author":"austen"}`)
	}
	r = is(t, l.get(l.Admin, austen+"/delete"), http.StatusOK)
	shows(t, r, "At least 100 other objects", "There are more")

	revision := regexp.MustCompile(`name="revision" value="(\d+)"`).FindStringSubmatch(r.Text)[1]
	is(t, l.post(l.Admin, austen+"/delete", form("revision", "5")), http.StatusPreconditionFailed)
	is(t, l.post(l.Admin, austen+"/delete", ""), http.StatusBadRequest)
	l.read("Authors", "austen")
	leads(t, l.post(l.Admin, austen+"/delete", form("revision", revision)), "/console/objects/Authors")
	is(t, l.get(l.Admin, austen), http.StatusNotFound)
}

func TestListsArePagesWithTheFilterOfTheAPI(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	for i := range 60 {
		l.save("Books", fmt.Sprintf("b%02d", i), fmt.Sprintf(`{"title":"Title %02d","margin":"private"}`, i))
	}
	const books = "/console/objects/Books"
	r := is(t, l.get(l.Admin, books+"?sort=-title"), http.StatusOK)
	shows(t, r, "Title 59", "Title 10",
		"curl -G &#39;http://belfry.example.org/books&#39; --data-urlencode &#39;sort=-title&#39;")
	if strings.Contains(r.Text, "Title 09") || strings.Contains(r.Text, "private") {
		t.Error("a page has too much")
	}
	next := regexp.MustCompile(`href="(/console/objects/Books\?[^"]*cursor=[^"]*)"`).FindStringSubmatch(r.Text)
	if next == nil {
		t.Fatalf("no next page: %s", r.Text)
	}
	shows(t, r, "How this page was read", "&#34;title&#34;", "&#34;returned&#34;: 50", "Count what matches")
	r = is(t, l.get(l.Admin, strings.ReplaceAll(next[1], "&amp;", "&")), http.StatusOK)
	shows(t, r, "Title 09", "Title 00", "First page", "Previous page")
	previous := regexp.MustCompile(`href="(/console/objects/Books\?[^"]*before=[^"]*)" rel="prev"`).
		FindStringSubmatch(r.Text)
	if previous == nil {
		t.Fatalf("no previous page: %s", r.Text)
	}
	r = is(t, l.get(l.Admin, strings.ReplaceAll(previous[1], "&amp;", "&")), http.StatusOK)
	shows(t, r, "Title 59", "Title 10", "Next page")
	if strings.Contains(r.Text, "Previous page") {
		t.Error("there is a page before the first")
	}
	shows(t, is(t, l.get(l.Admin, books+"?count=exact&filter="+url.QueryEscape(`title >= "Title 07"`)), http.StatusOK),
		"53 objects match.")
	shows(t, is(t, l.get(l.Admin, books+"?filter="+url.QueryEscape(`title == "Title 07"`)), http.StatusOK), "Title 07",
		`value="title == &#34;Title 07&#34;"`)
	shows(t, is(t, l.get(l.Admin, books+"?filter="+url.QueryEscape(`nothing == 1`)), http.StatusBadRequest),
		"The list can't be shown", "index", `value="nothing == 1"`)
	shows(t, is(t, l.get(l.Admin, books+"?cursor=x"), http.StatusBadRequest), "Cursor")
}

// found is a Searcher that finds one object for all words.
type found string

func (f found) Search(context.Context, string, store.TextSearch) ([]store.TextHit, bool, error) {
	return []store.TextHit{{UUID: string(f), Position: []byte("0")}}, false, nil
}

func TestListsFindWords(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.save("Authors", "austen", `{"name":"Jane <Austen>"}`)
	l.save("Authors", "melville", `{"name":"Herman Melville"}`)
	r := is(t, l.get(l.Admin, "/console/objects/Authors?q=%22jane+austen%22"), http.StatusOK)
	shows(t, r, "Jane &lt;Austen&gt;", `name="q"`, `value="&#34;jane austen&#34;"`, "Words in <code>name</code>",
		"--data-urlencode &#39;q=&#34;jane austen&#34;&#39;", "&#34;relevance&#34;")
	if strings.Contains(r.Text, "Melville") {
		t.Error("what was not found is shown")
	}
	if r = is(t, l.get(l.Admin, "/console/objects/Books"), http.StatusOK); strings.Contains(r.Text, `name="q"`) {
		t.Error("a store without search has a field for words")
	}
}

func TestHostileObjectsAreShownEscaped(t *testing.T) {
	t.Parallel()
	const script = `</textarea><script>alert(1)</script>`
	var events []console.LogEvent
	l := startLibrary(t, func(o *console.Objects) {
		o.History = func(context.Context, string, string, uint64, int) ([]console.LogEvent, error) {
			return events, nil
		}
	})
	l.save("Books", "emma", `{"title":"`+script+`","author":"austen","`+script+`":{"x":"`+script+`"}}`)
	l.save("Authors", "austen", `{"name":"`+script+`"}`)
	events = append(events,
		console.LogEvent{Sequence: 1, Envelope: event.Envelope{Event: event.StoreSaved, Origin: script, Time: script,
			Object: []byte(`{"title":"` + script + `","margin":"secret-note"}`)}})
	for _, path := range []string{"/console/objects/Books", emma, emma + "/history", emma + "/delete",
		"/console/objects/Authors/object/austen"} {
		r := is(t, l.get(l.Admin, path), http.StatusOK)
		if strings.Contains(r.Text, "<script>") || strings.Contains(r.Text, "secret-note") {
			t.Errorf("%s is not escaped, or shows what is private: %s", path, r.Text)
		}
	}
}

func TestNobodyWritesWhatAuthenticationAloneWrites(t *testing.T) {
	t.Parallel()
	l := startLibrary(t, func(o *console.Objects) {
		for i := range o.Stores {
			o.Stores[i].Fixed = o.Stores[i].Name == "Authors"
		}
	})
	const authors, austen = "/console/objects/Authors", "/console/objects/Authors/object/austen"
	stored := l.save("Authors", "austen", `{"name":"Jane"}`)
	for _, page := range []string{authors, austen} {
		if r := is(t, l.get(l.Admin, page), http.StatusOK); strings.Contains(r.Text, "Delete…") ||
			strings.Contains(r.Text, "New object") || strings.Contains(r.Text, "<textarea") {
			t.Errorf("%s offers changes", page)
		}
	}
	revision := fmt.Sprint(stored.Revision)
	is(t, l.get(l.Admin, authors+"/new"), http.StatusForbidden)
	is(t, l.get(l.Admin, austen+"/delete"), http.StatusForbidden)
	is(t, l.post(l.Admin, authors+"/new", form("text", `{"name":"Emily"}`)), http.StatusForbidden)
	is(t, l.post(l.Admin, austen, form("revision", revision, "text", `{"name":"Eve"}`)), http.StatusForbidden)
	is(t, l.post(l.Admin, austen+"/delete", form("revision", revision)), http.StatusForbidden)
	if now := l.read("Authors", "austen"); now.Revision != stored.Revision {
		t.Errorf("the object was changed: %s", now.Body)
	}
}

// Anybody can name an object as the target of theirs: those whose mapping asks for the same owner are not deleted with
// it, and a page does not read all of them to find out.
func TestBeforeADeletionOnlySoManyRecordsAreRead(t *testing.T) {
	t.Parallel()
	o := stores(t,
		[]store.Mapping{{Source: "Photos", Target: "Albums", Key: "album", Cascade: true, SourceOwner: "user",
			TargetOwner: "user"}},
		store.Options{Name: "Albums"}, store.Options{Name: "Photos"})
	l := &library{set: o.Set, fixture: start(t, console.Options{Objects: o})}
	l.save("Albums", "summer", `{"user":"ada"}`)
	const page = "/console/objects/Albums/object/summer/delete"
	for i := range 20 {
		l.save("Photos", fmt.Sprintf("p-%03d", i), `{"album":"summer","user":"bob"}`)
	}
	shows(t, is(t, l.get(l.Admin, page), http.StatusOK), "No other object")
	for i := range 500 {
		l.save("Photos", fmt.Sprintf("q-%03d", i), `{"album":"summer","user":"bob"}`)
	}
	shows(t, is(t, l.get(l.Admin, page), http.StatusOK), "may be deleted with it")
}

func TestAListOfWhichNothingMatchesYetSaysThatThereIsMore(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	long := strings.Repeat("x", 300)
	for i := range 22 {
		l.save("Books", fmt.Sprintf("b-%02d", i), `{"title":"`+long+`","pad":"`+strings.Repeat("x", 200<<10)+`"}`)
	}
	r := is(t, l.get(l.Admin, "/console/objects/Books?filter="+url.QueryEscape(`title == "`+long+`y"`)), http.StatusOK)
	shows(t, r, "the next page reads on", `rel="next"`)
}

// The editor says all that is wrong, beside the lines where it is, also of what was stored before the schema changed.
func TestViolationsAreShownBesideTheirLines(t *testing.T) {
	t.Parallel()
	compiled, err := schema.Compile("it.json",
		[]byte(`{"additionalProperties":{"maxLength":3},"properties":{"uuid":true,"margin":{"additionalProperties":{"maxLength":3}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	l := &library{}
	o := stores(t,
		nil, store.Options{Name: "Books", Schema: compiled, Private: []string{"margin"}, Unique: [][]string{{"slug"}},
			Computed: total(t)})
	o.Set.Store("Books").Claims().Trust(true)
	l.fixture = start(t, console.Options{Objects: o})
	l.set = store.NewSet([]*store.Store{o.Set.Store("Books").WithOptions(func(o *store.Options) { o.Schema = nil })},
		nil)
	l.save("Books", "other", `{"slug":"abc","margin":{}}`)
	stored := l.save("Books", "emma", `{"title":"Emma","n":2,"margin":{"1 May":"too-long"}}`)
	r := is(t, l.get(l.Admin, emma), http.StatusOK)
	shows(t, r, "Not valid, as it is stored.",
		`data-line="3">line 3</a> <code>title</code> must have at most 3 characters, has 4 <span class="tag">maxLength</span>`, `aria-invalid="true"`,
		"<code>margin</code> does not fit the schema", "Computed fields", "&#34;total&#34;: 4", "editor.")
	if strings.Contains(r.Text, "1 May") {
		t.Error("a name in a private field is shown")
	}
	if editor := regexp.MustCompile(`(?s)<textarea.*</textarea>`).FindString(r.Text); editor == "" ||
		strings.Contains(editor, "total") {
		t.Error("a computed field is in the editor")
	}
	shows(t, is(t, l.get(l.Admin, "/console/objects/Books/new"), http.StatusOK),
		"Each write computes <code>total</code>")

	revision := fmt.Sprint(stored.Revision)
	var many strings.Builder
	for i := range 120 {
		fmt.Fprintf(&many, ",\r\n\"f%03d\":\"long\"", i)
	}
	for path, status := range map[string]int{emma: http.StatusUnprocessableEntity, emma + "/check": http.StatusOK,
		"/console/objects/Books/check": http.StatusOK, "/console/objects/Books/new": http.StatusUnprocessableEntity} {
		r := is(t, l.post(l.Admin, path, form("revision", revision, "text", "{\"total\":9"+many.String()+"}")), status)
		if n := strings.Count(r.Text, `class="tag">maxLength`); n < 99 || n > 100 {
			t.Errorf("%s shows %d violations", path, n)
		}
		for _, found := range regexp.MustCompile(`data-line="(\d+)">line \d+</a> <code>f(\d+)</code>`).
			FindAllStringSubmatch(r.Text, -1) {
			line, _ := strconv.Atoi(found[1])
			if field, _ := strconv.Atoi(found[2]); line != field+2 {
				t.Errorf("%s: field %d is in line %d", path, field, line)
			}
		}
		if strings.Contains(r.Text, "1 May") {
			t.Errorf("%s shows a name in a private field", path)
		}
		if strings.HasSuffix(path, "check") {
			shows(t, r, "belfry keeps these fields itself", "<code>total</code>")
		}
	}

	// A value that must be unique: the field is named, and its line.
	books := o.Set.Store("Books")
	_, err = books.Save(t.Context(), object.Object{"n": []byte("1")}, "plain")
	l.Must(err)
	plain, err := books.Get(t.Context(), "plain")
	l.Must(err)
	const page = "/console/objects/Books/object/plain"
	for path, status := range map[string]int{page: http.StatusUnprocessableEntity, page + "/check": http.StatusOK,
		"/console/objects/Books/check": http.StatusOK, "/console/objects/Books/new": http.StatusUnprocessableEntity} {
		r := is(t, l.post(l.Admin, path,
			form("revision", fmt.Sprint(plain.Revision), "text", "{\"n\":1,\n\"slug\":\"abc\"}")), status)
		shows(t, r, "Another object of Books has the same slug",
			`data-line="2">line 2</a> <code>slug</code> must be unique`)
	}
}

func total(t *testing.T) *policy.Computed {
	t.Helper()
	c, problems := policy.CompileComputed(map[string]string{"total": "object.n * 2"}, policy.Known{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

// A list has columns for what its indexes name, in whatever way, and counts as the API does.
func TestListsFollowTheirIndexes(t *testing.T) {
	t.Parallel()
	o := stores(t,
		nil, store.Options{Name: "Books", Indexes: []query.Index{query.NewIndex([]string{"author", "-year"}),
			query.NewIndex([]string{"tags[]"}), query.NewIndex([]string{"address.city"})}})
	l := &library{set: o.Set, fixture: start(t, console.Options{Objects: o})}
	for i := range 60 {
		l.save("Books", fmt.Sprintf("b%02d", i),
			fmt.Sprintf(`{"author":"ada","year":%d,"tags":["red","n%d"],"address":{"city":"Rome %d"}}`, 1800+i, i, i))
	}
	const books = "/console/objects/Books"
	list := func(parameters ...string) string {
		t.Helper()
		return is(t, l.get(l.Admin, books+"?"+form(parameters...)), http.StatusOK).Text
	}
	has := func(text string, words ...string) {
		t.Helper()
		for _, word := range words {
			if !strings.Contains(text, word) {
				t.Errorf("the list has no %q: %s", word, text)
			}
		}
	}
	has(list(), `data-column="author"`, `data-column="year"`, `data-column="tags"`, `data-column="address.city"`,
		`data-field="year" data-value="1807">1807</td>`, "Rome 7<", `[&#34;red&#34;,&#34;n7&#34;]`)
	has(list("filter", `author == "ada" && (year < 1803 || year > 1857)`, "sort", "-year", "count", "exact"),
		"5 objects match.", "b59", "b00", "&#34;merged&#34;")
	has(list("filter", `"n7" in tags`), "b07", "&#34;tags[]&#34;")
	has(list("filter", `author in ["ada", "bob"] && !(year >= 1802)`), "b01")
	has(list("filter", `address.city.startsWith("Rome 5")`), "b59")
	estimate := list("count", "estimate")
	if has(estimate, "About 60 objects.", "count=exact"); strings.Contains(estimate, "count=estimate") {
		t.Error("an estimate leads to itself")
	}
	if exact := list("count", "exact"); strings.Contains(exact, "Count what matches") ||
		!strings.Contains(exact, "60 objects match.") {
		t.Error(exact)
	}
	shows(t, is(t, l.get(l.Admin, books+"?count=some"), http.StatusBadRequest), "exact or estimate is expected")
	refused := is(t, l.get(l.Admin, books+"?"+form("filter", `title == "x"`)), http.StatusBadRequest)
	shows(t, refused, "one on (title) is needed", "<code>indexes</code> of the store")
}
