package console_test

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/pkg/store/schema"
)

const dishes = `{"type":"object","required":["title"],"properties":{
	"title":{"type":"string","maxLength":10,"description":"<b>Its</b> name"},
	"minutes":{"type":"integer","minimum":1,"default":30},
	"vegan":{"type":"boolean"},
	"tags":{"type":"array","items":{"type":"string"}},
	"cook":{"type":"string"},
	"steps":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string","minLength":2}}}},
	"margin":{"type":"string"},
	"upper":{"type":"string"}}}`

// startDishes starts a library with dishes, which have a schema with defaults, and name a cook.
func startDishes(t *testing.T, change ...any) *library {
	t.Helper()
	compiled, err := schema.Compile("dishes.json", []byte(dishes), schema.Defaults)
	if err != nil {
		t.Fatal(err)
	}
	upper, problems := policy.CompileComputed(map[string]string{"upper": "object.title"}, policy.Known{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	o := stores(t, nil, store.Options{Name: "Cooks"},
		store.Options{Name: "Dishes", Schema: compiled, Defaults: compiled, Private: []string{"margin"},
			Computed:   upper,
			References: []store.Reference{{Field: "cook", Target: "Cooks", OnDelete: store.OnDeleteKeep}}})
	l := &library{set: o.Set, fixture: start(t, console.Options{Objects: o}, change...)}
	l.save("Cooks", "ada", `{"name":"Ada"}`)
	return l
}

var (
	anInput = regexp.MustCompile(`<(?:input|textarea|select)\b[^>]*>`)
	aName   = regexp.MustCompile(`\bname="([^"]*)"`)
	aValue  = regexp.MustCompile(`\bvalue="([^"]*)"`)
)

// inputs returns the inputs of a page's form, with the text.
func inputs(t *testing.T, r apitest.Reply) url.Values {
	t.Helper()
	values := url.Values{}
	for _, tag := range anInput.FindAllString(r.Text, -1) {
		name := aName.FindStringSubmatch(tag)
		if name == nil || strings.Contains(tag, "checkbox") && !strings.Contains(tag, " checked") {
			continue
		}
		value := ""
		if found := aValue.FindStringSubmatch(tag); found != nil {
			value = found[1]
		}
		if strings.HasPrefix(tag, "<select") {
			_, rest, _ := strings.Cut(r.Text, tag)
			options, _, _ := strings.Cut(rest, "</select>")
			if found := regexp.MustCompile(`value="([^"]*)" selected`).FindStringSubmatch(options); found != nil {
				value = found[1]
			}
		}
		if strings.HasPrefix(tag, "<textarea") {
			_, rest, _ := strings.Cut(r.Text, tag)
			value, _, _ = strings.Cut(strings.TrimPrefix(rest, "\n"), "</textarea>")
		}
		values.Set(html.UnescapeString(name[1]), html.UnescapeString(value))
	}
	return values
}

func TestObjectsAreMadeAndChangedByForms(t *testing.T) {
	t.Parallel()
	l := startDishes(t)
	page := is(t, l.get(l.Admin, "/console/objects/Dishes/new"), http.StatusOK)
	shows(t, page, `name="/title"`, `value="30"`, "&lt;b&gt;Its&lt;/b&gt; name", `name="q.cook"`, "Save and new",
		"Edit as JSON", "It is at least 1.")
	lacks(t, page, `name="/margin"`, `name="/upper"`, "<b>Its", `name="/uuid"`)
	values := inputs(t, page)
	if values.Get("mode") != "form" || values.Get("base") != `{"minutes":30}` {
		t.Errorf("%v", values)
	}

	// A row is added, and nothing is saved.
	values.Set("/title", "Soup")
	values.Set("add", "/tags")
	page = is(t, l.post(l.Admin, "/console/objects/Dishes/pick", values.Encode()), http.StatusOK)
	values = inputs(t, page)
	if values.Get("/title") != "Soup" || values.Get("rows:/tags") != "0" || !values.Has("/tags/0") {
		t.Errorf("%v", values)
	}
	values.Set("/tags/0", "hot")
	values.Set("choose.cook", "ada")
	page = is(t, l.post(l.Admin, "/console/objects/Dishes/pick", values.Encode()), http.StatusOK)
	values = inputs(t, page)
	values.Set("/vegan", "false")
	values.Set("text", `{"title":"not this"}`)
	values.Set("then", "new")
	leads(t, l.post(l.Admin, "/console/objects/Dishes/new", values.Encode()), "/console/objects/Dishes/new")
	var uuid string
	made, err := l.set.Store("Dishes").List(t.Context(), store.ListOptions{})
	l.Must(err)
	for _, o := range made.Objects {
		uuid = o.UUID
		for _, want := range []string{`"title":"Soup"`, `"tags":["hot"]`, `"cook":"ada"`, `"minutes":30`,
			`"vegan":false`} {
			if !strings.Contains(string(o.Body), want) {
				t.Errorf("%s lacks %s", o.Body, want)
			}
		}
	}
	one := "/console/objects/Dishes/object/" + uuid
	values = inputs(t, is(t, l.get(l.Admin, one), http.StatusOK))
	values.Set("/minutes", "")
	values.Set("/tags/0", "cold")
	leads(t, l.post(l.Admin, one, values.Encode()), one)
	body := string(l.read("Dishes", uuid).Body)
	if !strings.Contains(body, `["cold"]`) || strings.Contains(body, "minutes") {
		t.Error(body)
	}
}

// TestWhatIsWrongIsAtItsField, and what was typed is still there.
func TestWhatIsWrongIsAtItsField(t *testing.T) {
	t.Parallel()
	l := startDishes(t)
	stored := l.save("Dishes", "soup", `{"title":"Soup","tags":["a"],"other":{"x":1.0},"steps":[{"text":"ab"}]}`)
	const one = "/console/objects/Dishes/object/soup"
	page := is(t, l.get(l.Admin, one), http.StatusOK)
	shows(t, page, "Other fields", `{&#34;other&#34;:{&#34;x&#34;:1.0}}`)
	values := inputs(t, page)
	values.Set("/title", "a title that is too long")
	values.Set("/steps/0/text", "a")
	page = is(t, l.post(l.Admin, one, values.Encode()), http.StatusUnprocessableEntity)
	shows(t, page, `data-unsaved="edited"`, "a title that is too long")
	for _, name := range []string{"/title", "/steps/0/text"} {
		tag := regexp.MustCompile(`<input id="([^"]*)" name="` + name + `"[^>]*>`).FindStringSubmatch(page.Text)
		if tag == nil || !strings.Contains(tag[0], `aria-invalid="true"`) {
			t.Fatalf("%s: %v", name, tag)
		}
		wrong := regexp.MustCompile(`<p id="` + tag[1] + `-wrong"[^>]*>([^<]+)`)
		if !wrong.MatchString(page.Text) {
			t.Errorf("%s has no message", name)
		}
	}
	values.Set("/title", "Soup")
	values.Set("/steps/0/text", "ab")
	values.Set("/minutes", "ten")
	page = is(t, l.post(l.Admin, one, values.Encode()), http.StatusUnprocessableEntity)
	shows(t, page, "expected a whole number", `value="ten"`)
	values.Set("/minutes", "10")
	values.Set("/nothing", "x")
	page = is(t, l.post(l.Admin, one, values.Encode()), http.StatusUnprocessableEntity)
	shows(t, page, "has no field", "/nothing")
	if now := l.read("Dishes", "soup"); now.Revision != stored.Revision {
		t.Errorf("written: %s", now.Body)
	}
	values.Del("/nothing")
	leads(t, l.post(l.Admin, one, values.Encode()), one)
	if body := string(l.read("Dishes", "soup").Body); !strings.Contains(body, `"other":{"x":1.0}`) ||
		!strings.Contains(body, `"minutes":10`) {
		t.Error(body)
	}
}

// TestFormAndJSONAreInStep: the server makes one of the other while either is edited.
func TestFormAndJSONAreInStep(t *testing.T) {
	t.Parallel()
	l := startDishes(t)
	const at = "/console/objects/Dishes/check"
	values := inputs(t, l.get(l.Admin, "/console/objects/Dishes/new"))
	values.Set("/title", "Soup & <bread>")
	r := is(t, l.post(l.Admin, at, values.Encode(), "Hx-Request", "true"), http.StatusOK)
	shows(t, r, `id="editor" hx-swap-oob="innerHTML"`, "&#34;title&#34;: &#34;Soup &amp; &lt;bread&gt;&#34;",
		"Not valid", `-wrong" data-wrong`)
	lacks(t, r, `id="fields"`, " readonly")
	values.Set("mode", "json")
	values.Set("text", `{"title":"Stew","tags":["x","y"]}`)
	r = is(t, l.post(l.Admin, at, values.Encode(), "Hx-Request", "true"), http.StatusOK)
	shows(t, r, `id="fields" hx-swap-oob="innerHTML"`, `name="/tags/1" value="y"`, "Valid.")
	lacks(t, r, `id="editor"`, " disabled")
	values.Set("text", `{"title":`)
	shows(t, l.post(l.Admin, at, values.Encode(), "Hx-Request", "true"), "The form comes back")

	// Without a script one of both is edited at a time.
	values.Set("text", `{"title":"Stew"}`)
	values.Set("to", "form")
	page := is(t, l.post(l.Admin, "/console/objects/Dishes/pick", values.Encode()), http.StatusOK)
	shows(t, page, `name="/title" value="Stew"`, " readonly", "Edit as JSON", `name="mode" value="form"`)
	values = inputs(t, page)
	values.Set("/title", "Broth")
	values.Set("to", "json")
	page = is(t, l.post(l.Admin, "/console/objects/Dishes/pick", values.Encode()), http.StatusOK)
	shows(t, page, "&#34;Broth&#34;", " disabled", "Edit as form", `name="mode" value="json"`)
	lacks(t, page, " readonly")
}

// TestAConflictKeepsTheForm with what was typed in it.
func TestAConflictKeepsTheForm(t *testing.T) {
	t.Parallel()
	l := startDishes(t)
	l.save("Dishes", "soup", `{"title":"Soup"}`)
	const one = "/console/objects/Dishes/object/soup"
	values := inputs(t, l.get(l.Admin, one))
	_, err := l.set.Store("Dishes").Update(t.Context(), object.Object{"title": []byte(`"Stew"`)},
		store.UpdateOptions{UUID: "soup"})
	l.Must(err)
	values.Set("/title", "Broth")
	page := is(t, l.post(l.Admin, one, values.Encode()), http.StatusPreconditionFailed)
	shows(t, page, "Nothing has been saved", "Stew", `name="/title" value="Broth"`)
	values = inputs(t, page)
	leads(t, l.post(l.Admin, one, values.Encode()), one)
	if body := string(l.read("Dishes", "soup").Body); !strings.Contains(body, "Broth") {
		t.Error(body)
	}
}

// TestHostileValuesInForms are shown escaped, and as JSON where they have hidden characters.
func TestHostileValuesInForms(t *testing.T) {
	t.Parallel()
	l := startDishes(t)
	const hostile = `</textarea><script>alert(1)</script>`
	stored := l.save("Dishes", "evil", fmt.Sprintf(
		`{"title":%q,"tags":[%q,"a\u202eb","\njavascript:x"],"\"><i>":1}`, "<i>", hostile))
	page := is(t, l.get(l.Admin, "/console/objects/Dishes/object/evil"), http.StatusOK)
	lacks(t, page, "<script>alert", "<i>", "\u202e")
	values := inputs(t, page)
	leads(t, l.post(l.Admin, "/console/objects/Dishes/object/evil", values.Encode()),
		"/console/objects/Dishes/object/evil")
	for _, name := range []string{"title", "tags", `"><i>`} {
		if before, now := object.Field(stored.Body, name), object.Field(l.read("Dishes", "evil").Body, name); string(
			before) != string(now) {
			t.Errorf("%s became %s", before, now)
		}
	}
}
