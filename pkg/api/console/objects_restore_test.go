package console_test

import (
	"context"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"belfry/pkg/api/console"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// startVersions is a library whose book Emma has a history.
func startVersions(t *testing.T, events ...console.LogEvent) *library {
	t.Helper()
	l := startLibrary(t, func(o *console.Objects) {
		o.Stores[1].Title = []string{"title"}
		o.History = func(_ context.Context, name, uuid string, before uint64,
			n int) (all []console.LogEvent, err error) {
			for _, e := range events {
				if name+"/"+uuid == "Books/emma" && (before == 0 || e.Sequence < before) && len(all) < n {
					all = append(all, e)
				}
			}
			return all, nil
		}
	})
	return l
}

func version(sequence uint64, name event.Name, origin, body string) console.LogEvent {
	return console.LogEvent{Sequence: sequence, Envelope: event.Envelope{Event: name, Origin: origin,
		Object: []byte(body), Previous: object.Object{}}}
}

// values returns the hidden fields of the form that restores a version.
func values(t *testing.T, page string) (pairs []string) {
	t.Helper()
	for _, field := range regexp.MustCompile(`type="hidden" name="(revision|text)" value="([^"]*)"`).
		FindAllStringSubmatch(page, -1) {
		pairs = append(pairs, field[1], html.UnescapeString(field[2]))
	}
	if len(pairs) != 4 {
		t.Fatalf("the form has %q", pairs)
	}
	return pairs
}

// A version is restored by an edit: fields that admins can't edit stay, private ones too.
func TestAVersionOfTheHistoryIsRestored(t *testing.T) {
	t.Parallel()
	const old = `{"uuid":"emma","created":"x","updated":"y","title":"Ema","author":"jane","margin":"former note",` +
		`"user":"other","_internal":1,"tags":["a","</script><b>"]}`
	events := []console.LogEvent{version(9, event.StoreUpdated, "http", `{"title":"Emma"}`),
		version(8, event.StoreUpdated, "mapping", old), version(5, event.StoreSaved, "http", old),
		{Sequence: 4, Envelope: event.Envelope{Event: event.StoreUpdated, ObjectOmitted: true}},
		version(3, event.StoreUpdated, "http", `{"author":"nobody"}`), version(2, event.StoreDeleted, "http", old)}
	l := startVersions(t, events...)
	saved := l.save("Books", "emma", `{"title":"Emma","margin":"secret-note","year":1815,"user":"jane"}`)
	events[0].Revision = saved.Revision
	r := is(t, l.get(l.Admin, emma+"/history"), http.StatusOK)
	for path, offered := range map[string]bool{"/9": false, "/8": true, "/5": true, "/4": false, "/3": true,
		"/2": false} {
		if strings.Contains(r.Text, `href="`+emma+"/history"+path+`"`) != offered {
			t.Errorf("%s is offered: %t", path, !offered)
		}
	}
	for _, gone := range []string{"/9999", "/7", "/0", "/x"} {
		is(t, l.get(l.Admin, emma+"/history"+gone), http.StatusNotFound)
	}
	is(t, l.get(l.Admin, emma+"/history/4"), http.StatusBadRequest)
	is(t, l.get(l.Admin, emma+"/history/2"), http.StatusBadRequest)
	is(t, l.get(l.Admin, "/console/objects/Books/object/none/history/5"), http.StatusNotFound)
	is(t, l.get(l.User, emma+"/history/5"), http.StatusForbidden)
	is(t, l.get("", emma+"/history/5"), http.StatusSeeOther)

	r = is(t, l.get(l.Admin, emma+"/history/5"), http.StatusOK)
	shows(t, r, "Restore a version of Emma", `<del>-   &#34;title&#34;: &#34;Emma&#34;,</del>`,
		`<ins>+   &#34;title&#34;: &#34;Ema&#34;,</ins>`, `<del>-   &#34;year&#34;: 1815</del>`)
	for _, s := range []string{"note", "_internal", "</script><b>"} {
		if strings.Contains(r.Text, s) {
			t.Errorf("the page has a private field, or markup: %s", r.Text)
		}
	}
	before, form5 := l.read("Books", "emma"), form(values(t, r.Text)...)
	leads(t, l.post(l.Admin, emma, form5), emma)
	after, err := l.read("Books", "emma").Object()
	l.Must(err)
	was, err := before.Object()
	l.Must(err)
	for name, want := range map[string]string{"title": `"Ema"`, "author": `"jane"`, "year": "",
		"margin": `"secret-note"`, "created": string(was["created"]), "_internal": ""} {
		if got := string(after[name]); got != want {
			t.Errorf("%s is %s, expected %s", name, got, want)
		}
	}

	// It is an edit of what was shown: another change since is not overwritten, and the schema decides.
	r = is(t, l.post(l.Admin, emma, form5), http.StatusPreconditionFailed)
	shows(t, r, "Somebody else has changed the object", "Current version")
	shows(t, is(t, l.get(l.Admin, emma+"/history/5"), http.StatusOK), "have the same values now")
	r = is(t, l.get(l.Admin, emma+"/history/3"), http.StatusOK)
	r = is(t, l.post(l.Admin, emma, form(values(t, r.Text)...)), http.StatusUnprocessableEntity)
	shows(t, r, "Not valid", "nobody")
	if got := string(l.read("Books", "emma").Body); !strings.Contains(got, `"Ema"`) {
		t.Errorf("a version that does not match the schema was saved: %s", got)
	}
	l.Must(l.set.Store("Books").Delete(t.Context(), "emma", 0))
	is(t, l.get(l.Admin, emma+"/history/5"), http.StatusNotFound)
	if r = l.get(l.Admin, emma+"/history"); strings.Contains(r.Text, "Restore") {
		t.Error("a version of a deleted object is offered")
	}
}

// What people did stands before what workers did after it, which is folded.
func TestTheHistoryFoldsWhatWorkersDid(t *testing.T) {
	t.Parallel()
	one := func(sequence uint64, name event.Name, origin string) console.LogEvent {
		return version(sequence, name, origin, `{"title":"Emma"}`)
	}
	l := startVersions(t, one(9, event.StoreUpdated, "mapping"), one(8, event.StoreUpdated, "copy"),
		one(7, event.StoreUpdated, "http"), one(6, event.StoreUpdated, "bus"), one(5, event.StoreUpdated, "compute"),
		one(4, event.StoreDeleted, "cascade"), one(3, event.StoreUpdated, "aggregate"))
	l.save("Books", "emma", `{"title":"Emma"}`)
	r := is(t, l.get(l.Admin, emma+"/history", "Hx-Request", "true"), http.StatusOK)
	var order []string
	shown := regexp.MustCompile(`event (\d+)<|<(details)><summary>([^<]*)`)
	for _, found := range shown.FindAllStringSubmatch(r.Text, -1) {
		order = append(order, found[1]+found[3])
	}
	const want = "7, 2 updates by workers after it, 9, 8, 6, 4, 1 update by workers after it, 5, 1 update by workers, 3"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("%s\nexpected\n%s", got, want)
	}
}

// All copies and references of an object are reached, some at a time.
func TestCopiesAndReferencesHavePages(t *testing.T) {
	t.Parallel()
	l := startNamed(t)
	var uuids []string
	for i := range 120 {
		uuids = append(uuids, fmt.Sprintf(`"c%03d"`, i))
		l.save("Cooks", fmt.Sprintf("c%03d", i), fmt.Sprintf(`{"title":"Cook %d"}`, i))
	}
	l.save("Recipes", "stew", `{"title":"Stew","tasters":[`+strings.Join(uuids, ",")+`]}`)
	const page = "/console/objects/Recipes/object/stew"
	list := regexp.MustCompile(`(?s)<div id="names-1">.*?</div>`)
	for query, c := range map[string]struct {
		has, lacks []string
	}{
		"": {[]string{"/c000", "/c049", "?names-1=50#names-1", "and 70 more"}, []string{"/c050", "Previous"}},
		"?names-1=50": {[]string{"/c050", "/c099", "?names-1=0#names-1", "?names-1=100#names-1"},
			[]string{"/c049", "/c100"}},
		"?names-1=100": {[]string{"/c100", "/c119", "100 before these", "?names-1=50#names-1"},
			[]string{"/c099", "Next"}},
		"?names-1=77":    {[]string{"/c050", "/c099"}, []string{"/c100"}},
		"?names-1=5000":  {[]string{"/c000"}, []string{"/c050"}},
		"?names-1=-1":    {[]string{"/c000"}, []string{"/c050"}},
		"?names-1=<b>&x": {[]string{"/c000"}, []string{"/c050", "<b>"}},
	} {
		r := is(t, l.get(l.Admin, page+strings.ReplaceAll(query, "<b>", "%3Cb%3E")), http.StatusOK)
		text := list.FindString(r.Text)
		for _, s := range c.has {
			if !strings.Contains(text, s) {
				t.Errorf("%q lacks %s: %s", query, s, text)
			}
		}
		for _, s := range c.lacks {
			if strings.Contains(text, s) {
				t.Errorf("%q has %s: %s", query, s, text)
			}
		}
	}
	l.becomes(page+"?names-1=100", ">Cook 119</a>")
}

// The page before a deletion has the number and the button first, and the list folded.
func TestADeletionAsksBeforeItLists(t *testing.T) {
	t.Parallel()
	l := startLibrary(t)
	l.save("Authors", "austen", `{}`)
	for i := range 3 {
		l.save("Books", fmt.Sprintf("b%d", i), `{"title":"B","author":"austen"}`)
	}
	text := is(t, l.get(l.Admin, "/console/objects/Authors/object/austen/delete"), http.StatusOK).Text
	at := -1
	for _, s := range []string{"3 other objects", `class="danger">Delete<`, "<details><summary>Which objects",
		"/console/objects/Books/object/b0", "</details>"} {
		if next := strings.Index(text, s); next <= at {
			t.Errorf("%s is at %d, expected it after %d: %s", s, next, at, text)
		} else {
			at = next
		}
	}
}
