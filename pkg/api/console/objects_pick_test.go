package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/query"
)

// startKitchen starts a library with recipes that name a cook, who is required, and tasters.
func startKitchen(t *testing.T, change ...func(*console.Objects)) *library {
	t.Helper()
	nobody, problems := policy.Compile(policy.Rules{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	o := stores(t, []store.Mapping{{Source: "Recipes", Target: "Cooks", Key: "cook"}},
		store.Options{Name: "Cooks", Policy: nobody, Private: []string{"alias"},
			Indexes: []query.Index{{Name: "name", Fields: []string{"name"}}}},
		store.Options{Name: "Tools"},
		store.Options{Name: "Recipes",
			References: []store.Reference{
				{Field: "cook", Target: "Cooks", Required: true, Indexed: true, OnDelete: store.OnDeleteRestrict},
				{Field: "tasters", Target: "Cooks", OnDelete: store.OnDeleteKeep},
				{Field: "tool", Target: "Tools", OnDelete: store.OnDeleteKeep},
			},
		})
	for _, c := range change {
		c(o)
	}
	l := &library{set: o.Set, fixture: start(t, console.Options{Objects: o})}
	l.save("Cooks", "ada", `{"name":"Ada","alias":"aka"}`)
	l.save("Cooks", "adam", `{"name":"Adam & Eve"}`)
	l.save("Cooks", "bob", `{"name":"Bob"}`)
	l.save("Tools", "pan", `{"size":3,"title":"A small Pan"}`)
	return l
}

// pick sends a form with a button, as a script does.
func (l *library) pick(path, text string, more ...string) apitest.Reply {
	l.Helper()
	form := url.Values{"text": {text}, "revision": {"1"}}
	for i := 0; i < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	return l.post(l.Admin, path, form.Encode(), "Hx-Request", "true")
}

// lacks checks what a page does not have.
func lacks(t *testing.T, r apitest.Reply, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if strings.Contains(r.Text, text) {
			t.Errorf("%s shows %q: %s", r.Request.URL, text, r.Text)
		}
	}
}

// The form of an object finds what its references can name: by the beginning of an indexed field, whatever the rules
// for clients say, by the uuid, or else among the first objects.
func TestReferencesArePickedFromTheirStore(t *testing.T) {
	t.Parallel()
	l := startKitchen(t)
	const at = "/console/objects/Recipes/pick"
	shows(t, is(t, l.get(l.Admin, "/console/objects/Recipes/new"), http.StatusOK),
		`<span class="tag">required</span>`, `placeholder="Search Cooks"`, `placeholder="Search Tools"`)
	r := is(t, l.pick(at, "{}", "q.cook", "Ad", "search.cook", "yes"), http.StatusOK)
	shows(t, r, `name="choose.cook" value="ada"`, ">Ada</button>", `<span class="fine mono">ada</span>`,
		">Adam &amp; Eve</button>")
	lacks(t, r, "Bob", "aka", `name="choose.tasters"`)
	shows(t, l.pick(at, "{}", "q.cook", "bob", "search.cook", "yes"), `value="bob"`, ">Bob</button>")
	shows(t, l.pick(at, "{}", "search.cook", "yes"), `value="ada"`, `value="adam"`, `value="bob"`)
	shows(t, l.pick(at, "{}", "q.tool", "PAN", "search.tool", "yes"), `name="choose.tool" value="pan"`,
		">A small Pan</button>")
	shows(t, l.pick(at, "{}", "q.tool", "kettle", "search.tool", "yes"), "No object was found.")
	shows(t, l.pick(at, "{}", "q.cook", `"\ || true`, "search.cook", "yes"), "No object was found.")

	for i := range 30 {
		l.save("Cooks", fmt.Sprintf("c%02d", i), fmt.Sprintf(`{"name":"Cook %02d"}`, i))
	}
	r = l.pick(at, "{}", "q.cook", "Cook", "search.cook", "yes")
	shows(t, r, "There are more: type more of it.")
	if n := strings.Count(r.Text, `name="choose.cook"`); n != 20 {
		t.Errorf("%d are shown", n)
	}
	is(t, l.post(l.User, at, "text={}&search.cook=yes"), http.StatusForbidden)
	is(t, l.post(l.Admin, "/console/objects/_Sessions/pick", "text={}"), http.StatusNotFound)
}

// What is picked is written into the text, which keeps its other fields, their order and their digits.
func TestAPickedObjectIsNamedByTheText(t *testing.T) {
	t.Parallel()
	l := startKitchen(t)
	const at = "/console/objects/Recipes/pick"
	text := func(r apitest.Reply) string {
		t.Helper()
		_, after, _ := strings.Cut(is(t, r, http.StatusOK).Text, `<textarea id="text"`)
		_, after, _ = strings.Cut(after, ">")
		inner, _, _ := strings.Cut(after, "</textarea>")
		return strings.Join(strings.Fields(strings.ReplaceAll(inner, "&#34;", `"`)), "")
	}
	for _, c := range []struct{ text, button, uuid, several, want string }{
		{`{"z":1.50,"a":12345678901234567890}`, "choose.cook", "ada", "",
			`{"z":1.50,"a":12345678901234567890,"cook":"ada"}`},
		{`{"cook":"bob","z":1}`, "choose.cook", "ada", "", `{"cook":"ada","z":1}`},
		{`{"tasters":"bob"}`, "choose.tasters", "ada", "several.tasters", `{"tasters":["bob","ada"]}`},
		{`{"tasters":["bob","ada"]}`, "choose.tasters", "ada", "several.tasters", `{"tasters":["bob","ada"]}`},
		{`{"tasters":["bob","ada"]}`, "choose.tasters", "adam", "", `{"tasters":"adam"}`},
		{`{"tasters":["bob","ada"],"n":null}`, "remove.tasters", "bob", "", `{"tasters":["ada"],"n":null}`},
		{`{"cook":"bob","n":null}`, "remove.cook", "bob", "", `{"n":null}`},
		{`{"cook":"bob"`, "choose.cook", "ada", "", `{"cook":"bob"`}, // with the error,
	} {
		r := l.pick(at, c.text, c.button, c.uuid, c.several, "on")
		if got := text(r); got != c.want {
			t.Errorf("%s, %s %s: %s, want %s", c.text, c.button, c.uuid, got, c.want)
		}
	}
	// Without a script the whole page is shown again, with what was typed.
	r := l.post(l.Admin, at, url.Values{"text": {`{"title":"Soup"}`}, "choose.cook": {"ada"}}.Encode())
	if got := text(r); got != `{"title":"Soup","cook":"ada"}` {
		t.Errorf("the text is %s", got)
	}
	shows(t, r, "<h1>New object</h1>", `<a class="mono" href="/console/objects/Cooks/object/ada">ada</a>`, "Valid.")
	soup := l.save("Recipes", "soup", `{"cook":"ada","title":"Soup"}`)
	r = l.post(l.Admin, "/console/objects/Recipes/object/soup/pick", url.Values{
		"text": {`{"cook":"ada","title":"Stew"}`}, "q.cook": {"Bo"}, "revision": {fmt.Sprint(soup.Revision)}}.Encode())
	shows(t, is(t, r, http.StatusOK), `name="choose.cook" value="bob"`, "Stew",
		fmt.Sprintf(`name="revision" value="%d"`, soup.Revision))
	if o, err := l.set.Store("Recipes").Get(t.Context(), "soup"); err != nil || !strings.Contains(string(o.Body), "Soup") {
		t.Errorf("a search has changed the object: %s, %v", o.Body, err)
	}
}

// A reference that names nothing has its error beside it: while the text is edited, and after it was sent.
func TestTheErrorOfAReferenceIsAtItsField(t *testing.T) {
	t.Parallel()
	l := startKitchen(t)
	const wrong = "must name an object of Cooks that exists"
	shows(t, is(t, l.post(l.Admin, "/console/objects/Recipes/new", url.Values{"text": {`{"cook":"none"}`}}.Encode()),
		http.StatusUnprocessableEntity), `<p id="wrong-0" class="problem">`+wrong, `aria-invalid="true"`,
		`<p id="wrong-1" hidden>`)
	check := func(text string) apitest.Reply {
		return is(t, l.pick("/console/objects/Recipes/check", text), http.StatusOK)
	}
	shows(t, check(`{}`), `<p id="wrong-0" class="problem" hx-swap-oob="true">is required`)
	r := check(`{"cook":"ada"}`)
	shows(t, r, `<p id="wrong-0" hidden hx-swap-oob="true"></p>`, `href="/console/objects/Cooks/object/ada"`, "Valid.")
}

// Only stores that the console shows can be searched.
func TestAReferenceToAStoreThatIsNotShownIsNotPicked(t *testing.T) {
	t.Parallel()
	l := startKitchen(t, func(o *console.Objects) { o.Stores = o.Stores[1:] })
	r := is(t, l.get(l.Admin, "/console/objects/Recipes/new"), http.StatusOK)
	shows(t, r, "Search Tools")
	lacks(t, r, "Search Cooks")
	lacks(t, is(t, l.pick("/console/objects/Recipes/pick", "{}", "q.cook", "A", "search.cook", "yes"), http.StatusOK),
		"Ada")
}
