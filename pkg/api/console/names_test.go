package console_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/app/command"
	"belfry/pkg/event"
	"belfry/pkg/listener/deadletter"
	"belfry/pkg/mapping/verify"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
	"belfry/test/kit"
)

// markup is a name that a page must escape.
const markup = `<img src=x onerror=alert(1)>`

// startNamed starts a front with cooks and recipes, whose objects have names.
func startNamed(t *testing.T) *library {
	t.Helper()
	fields, problems := policy.CompileFields(policy.Rules{}, map[string]policy.FieldRule{
		"name": {Read: "user.role == 'nobody'"}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	l := &library{}
	o := stores(t, []store.Mapping{
		{Source: "Recipes", Target: "Cooks", Key: "cook", Array: "recipes", Fields: []string{"text"}, Limit: 1000},
		{Source: "Notes", Target: "Recipes", Key: "recipe", Cascade: true},
	},
		store.Options{Name: "Cooks", Private: []string{"secret"}, Fields: fields},
		store.Options{Name: "Recipes", References: []store.Reference{
			{Field: "cook", Target: "Cooks", Indexed: true, OnDelete: store.OnDeleteRestrict},
			{Field: "tasters", Target: "Cooks"},
		}},
		store.Options{Name: "Notes"})
	for i, title := range [][]string{{"title", "name"}, {"title"}, {"text"}} {
		o.Stores[i].Title = title
	}
	o.History = func(_ context.Context, _, uuid string, _ uint64, _ int) ([]console.LogEvent, error) {
		deleted := event.Envelope{Event: event.StoreDeleted, Origin: "http", Object: []byte(`{"title":"What was"}`)}
		return []console.LogEvent{{Sequence: 2, Envelope: deleted}}, nil
	}
	l.set = o.Set
	letter := &deadletter.Letter{ID: 1, Listener: "a", Event: event.StoreSaved, Store: "Cooks", UUID: "ada",
		Time: time.Now()}
	report := &verify.Report{Differences: []verify.Difference{{Kind: verify.Missing, Source: "Recipes", UUID: "soup",
		Target: "Cooks", Holder: "ada", Array: "recipes"}}}
	v := &runs{last: &console.Run{Began: time.Now(), Ended: time.Now(), In: command.VerifyRequest{},
		Out: &command.Report{Report: report}}}
	l.fixture = start(t, console.Options{Objects: o, Workers: &listeners{letters: map[uint64]*deadletter.Letter{1: letter}},
		Live:       &console.Live{Stores: []string{"Cooks", "Notes"}},
		Operations: []console.Operation{operation(command.Verify.Untyped(), v)}})
	l.save("Cooks", "ada", `{"name":"Ada `+markup+`","secret":"hush"}`)
	l.save("Cooks", "bob", `{"secret":"hush"}`)
	l.save("Recipes", "soup", `{"title":"Soup","cook":"ada","tasters":["ada","bob","gone"]}`)
	l.save("Notes", "n1", `{"text":"Too salty","recipe":"soup"}`)
	return l
}

// becomes requests a page until it shows texts: a page has names as far as they could be read in time.
func (f *fixture) becomes(path string, texts ...string) string {
	f.Helper()
	var text string
	kit.WaitFor(f, path+" with "+strings.Join(texts, ", "), func() bool {
		text = is(f.T, f.get(f.Admin, path), http.StatusOK).Text
		return !slices.ContainsFunc(texts, func(s string) bool { return !strings.Contains(text, s) })
	})
	return text
}

// Each page that shows an object shows its name, as text, and the uuid beside it.
func TestPagesShowTheNamesOfObjects(t *testing.T) {
	t.Parallel()
	l := startNamed(t)
	const (
		escaped = "Ada &lt;img src=x onerror=alert(1)&gt;"
		ada     = `<a href="/console/objects/Cooks/object/ada">` + escaped +
			`</a> <span class="fine mono parts">ada</span>`
		bob  = `<a class="mono" href="/console/objects/Cooks/object/bob">bob</a>`
		gone = `<a class="mono" href="/console/objects/Cooks/object/gone">gone</a>`
		soup = `<a href="/console/objects/Recipes/object/soup">Soup</a>`
	)
	for path, texts := range map[string][]string{
		"/console/objects/Cooks/object/ada":        {"<title>" + escaped + " · Cooks", "<h1>" + escaped + "</h1>", `<code id="uuid">ada</code>`},
		"/console/objects/Cooks/object/bob":        {`<h1 class="mono">bob</h1>`},
		"/console/objects/Recipes/object/soup":     {"<h1>Soup</h1>", ada, bob, gone, "Remove " + escaped + " from cook"},
		"/console/objects/Cooks/object/ada/delete": {"<h1>Delete " + escaped + "?</h1>", soup},
		"/console/objects/Recipes/object/soup/delete": {"<h1>Delete Soup?</h1>",
			`<a href="/console/objects/Notes/object/n1">Too salty</a>`},
		"/console/objects/Recipes/object/soup/history": {"<h1>History of Soup</h1>"},
		"/console/objects/Recipes/object/none/history": {"<h1>History of What was</h1>", "no longer exists"},
		"/console/letters":   {"Cooks " + ada},
		"/console/letters/1": {"Cooks " + ada},
		"/console/verify":    {"Cooks " + ada, "Recipes " + soup},
		"/console/live":      {`data-titles="{&#34;Cooks&#34;:[&#34;title&#34;,&#34;name&#34;],&#34;Notes&#34;:[&#34;text&#34;]}"`},
	} {
		if text := l.becomes(path, texts...); strings.Contains(text, markup) || strings.Contains(text, "hush") {
			t.Errorf("%s has markup of others, or a private field: %s", path, text)
		}
	}
	r := is(t, l.post(l.Admin, "/console/objects/Recipes/pick", form("text", `{}`, "q.cook", "", "search.cook",
		"yes")), http.StatusOK)
	shows(t, r, `value="ada"`, ">"+escaped+"</button>")
	l.save("Cooks", "eve", `{"title":"Eve"}`)
	r = l.post(l.Admin, "/console/objects/Cooks/object/eve/delete", form("revision", fmt.Sprint(l.read("Cooks",
		"eve").Revision)))
	leads(t, r, "/console/objects/Cooks")
	for _, c := range r.Cookies() {
		if c.Name == "belfry-console-notice" {
			shows(t, l.get(l.Admin, "/console/objects/Cooks", "Cookie", "belfry-console-notice="+c.Value),
				"Eve has been deleted.")
		}
	}
}

// A page reads the names of 100 objects at most.
func TestThePagesReadFewNames(t *testing.T) {
	t.Parallel()
	l := startNamed(t)
	var uuids []string
	for i := range 120 {
		uuids = append(uuids, fmt.Sprintf(`"c%03d"`, i))
		l.save("Cooks", fmt.Sprintf("c%03d", i), fmt.Sprintf(`{"title":"Cook %d"}`, i))
	}
	l.save("Recipes", "b", `{"cook":[`+strings.Join(uuids[:30], ",")+`],"tasters":[`+
		strings.Join(uuids[30:], ",")+`]}`)
	l.becomes("/console/objects/Recipes/object/b", ">Cook 29<", ">Cook 79<")
	names := regexp.MustCompile(`>Cook \d+</a>`)
	text := is(t, l.get(l.Admin, "/console/objects/Recipes/object/b"), http.StatusOK).Text
	if n := len(names.FindAllString(text, -1)); n > 3*100 || n == 0 {
		t.Errorf("%d names", n)
	}
}

// An object of which a body is too large, or not an object of the store's, has no name; the page is shown.
func TestObjectsWithoutNamesAreShownByUUID(t *testing.T) {
	t.Parallel()
	l := startNamed(t)
	l.save("Cooks", "huge", `{"title":"`+strings.Repeat("A", 100<<10)+`"}`)
	l.save("Recipes", "x", `{"cook":"huge","tasters":"bad uuid/../","title":7}`)
	text := l.becomes("/console/objects/Recipes/object/x", `<h1 class="mono">x</h1>`, strings.Repeat("A", 80)+"…</a>")
	if strings.Contains(text, strings.Repeat("A", 81)) {
		t.Error("a name is not shortened")
	}
}
