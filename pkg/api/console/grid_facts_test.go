package console_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// described is a schema with a text.
type described struct{ typed }

func (described) Text() []byte {
	return []byte(`{"type":"object","properties":{"title":{"type":"string","enum":["one","<b>two"]},
		"year":{"type":"integer","minimum":0,"maximum":9},"done":{"type":"boolean"},
		"due":{"type":"string","format":"date"},"tags":{"type":"array"}}}`)
}

// A cell is entered as the schema of its field says.
func TestListsSayHowTheirFieldsAreEntered(t *testing.T) {
	t.Parallel()
	o := stores(t, nil, store.Options{Name: "Tasks", Schema: described{}})
	l := &library{set: o.Set, fixture: start(t, console.Options{Objects: o})}
	l.save("Tasks", "a", `{"title":"one","year":1,"done":true,"due":"2026-01-02","free":1}`)
	r := is(t, l.get(l.Admin, tasks+"?cols=title&cols=year&cols=due&cols=done&cols=free"), http.StatusOK)
	shows(t, r, `data-column="title" data-input="choice" data-choices="&#34;one&#34;&#10;&#34;&lt;b&gt;two&#34;">`,
		`data-input="number" data-bounds="at least 0, at most 9"`, `data-column="due" data-input="date"`,
		`data-edit="boolean"`, `data-column="free">`)
}

// Where the model can be edited, the header of a column leads to where an index is added.
func TestHeadersLeadToTheFormOfIndexes(t *testing.T) {
	t.Parallel()
	for _, editing := range []bool{true, false} {
		o := stores(t, nil, store.Options{Name: "Tasks"}, store.Options{Name: "Idents"})
		o.Stores[0].Modeled, o.Stores[1].Modeled, o.Stores[1].Fixed = true, true, true
		options := console.Options{Objects: o, Model: &console.Model{
			Stores: func() []console.ModelStore { return []console.ModelStore{{Name: "Tasks"}} }}}
		if editing {
			options.Model.Editing = &console.ModelEditing{}
		}
		l := &library{set: o.Set, fixture: start(t, options)}
		for _, name := range []string{"Tasks", "Idents"} {
			l.save(name, "a", `{"title":"x"}`)
			r := is(t, l.get(l.Admin, "/console/objects/"+name+"?cols=title"), http.StatusOK)
			link := strings.Contains(r.Text, `href="/console/configuration/stores/`+name+`/edit/indexes"`)
			if link != (editing && name == "Tasks") || !link && !strings.Contains(r.Text, "no index</span>") {
				t.Errorf("%s, editing %t: a link %t", name, editing, link)
			}
		}
	}
}

func TestListsShowPictures(t *testing.T) {
	t.Parallel()
	l := startShelf(t)
	const png, list = "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "/console/objects/Books?cols=covers&cols=margin"
	for _, uuid := range []string{"emma", "none", "text"} {
		_, err := l.set.Store("Books").Save(t.Context(), object.Object{}, uuid)
		l.Must(err)
	}
	at := func(uuid string) string { return "/console/objects/Books/object/" + uuid }
	leads(t, l.upload(l.Admin, at("text")+"/files/covers", "a", "text/plain", "x"), at("text"))
	leads(t, l.upload(l.Admin, emma+"/files/covers", "a", "text/plain", "x"), emma)
	leads(t, l.upload(l.Admin, emma+"/files/covers", "<b>&cover.png", "image/png", png), emma)
	r := is(t, l.get(l.Admin, list), http.StatusOK)
	shows(t, r, `<img class="thumbnail" src="`+emma+`/files/covers/1/preview?small=true" alt="&lt;b&gt;&amp;cover.png" `+
		`width="48" height="48" loading="lazy" decoding="async"> <span class="fine">and 1 more</span>`)
	if n := strings.Count(r.Text, "<img class=\"thumbnail\""); n != 1 || strings.Contains(r.Text, "margin") ||
		strings.Contains(r.Text, `data-edit="string" data-field="covers"`) {
		t.Errorf("%d pictures: %s", n, r.Text)
	}
	is(t, l.get(l.User, list), http.StatusForbidden)
}

// What is wrong with a bulk change is said in its form, which keeps what was entered.
func TestFormsOfBulkChangesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	l, v := startRuns(t, console.BulkPath)
	l.save("Tasks", "a", `{"n":1}`)
	for form, says := range map[string][]string{
		"action=set&field=n&value=%3Cb%3E&uuid=a": {"The value is not JSON", `value="&lt;b&gt;"`,
			`name="uuid" value="a"`},
		"action=set&value=1&uuid=a": {"Name the field that is to be changed"},
		"action=delete&filter=n+%3D%3D+1": {"No object is chosen", `value="n == 1"`,
			`value="delete" selected`},
		"action=set&field=note&value=1&uuid=a":    {"belfry keeps the field"},
		"action=delete&all=true&filter=nonsense(": {`value="nonsense("`, `name="all" value="true" checked`},
	} {
		for _, path := range []string{"/bulk", "/bulk/run"} {
			if path == "/bulk/run" && strings.Contains(form, "nonsense") {
				continue // a run reads the list
			}
			r := is(t, l.post(l.Admin, tasks+path, form), http.StatusBadRequest)
			shows(t, r, append(says, `action="/console/objects/Tasks/bulk"`, "Nothing was changed.")...)
			if strings.Contains(r.Text, "<b>") {
				t.Error(r.Text)
			}
		}
	}
	v.last = &console.Run{Began: time.Now()}
	shows(t, is(t, l.post(l.Admin, tasks+"/bulk/run", "action=delete&uuid=a"), http.StatusConflict),
		"in progress already", `href="/console/objects/Tasks/bulk"`, `name="uuid" value="a"`)
}
