package console_test

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// edited is a library whose log has what its stores have published, but the newest events.
type edited struct {
	*library
	lacks  func(e event.Envelope) bool // what the log lacks; nil: nothing
	behind int                         // how many events it lacks, one fewer with each read
}

func startEdited(t *testing.T) *edited {
	t.Helper()
	l := &edited{}
	l.library = startLibrary(t, func(o *console.Objects) {
		o.History = func(_ context.Context, name, uuid string, before uint64, n int) (all []console.LogEvent, err error) {
			for i, e := range l.outbox.events[:len(l.outbox.events)-l.behind] {
				if at := uint64(i + 1); e.Store+"/"+e.UUID == name+"/"+uuid && (before == 0 || at < before) &&
					(l.lacks == nil || !l.lacks(e)) {
					all = append(all, console.LogEvent{Sequence: at, Envelope: e})
				}
			}
			l.behind = max(0, l.behind-1)
			slices.Reverse(all)
			return all[:min(n, len(all))], nil
		}
	})
	l.save("Books", "emma", `{"title":"Emma","year":1815,"user":"jane","margin":"secret-note"}`)
	return l
}

// edit sends the form of the book, and returns what undoes that.
func (l *edited) edit(text string) (undo string) {
	l.Helper()
	revision := strconv.FormatUint(l.read("Books", "emma").Revision, 10)
	r := l.post(l.Admin, emma, form("revision", revision, "text", text))
	leads(l.T, r, emma)
	return l.offered(r)
}

// offered returns the form that a notice of a reply has; "" for none.
func (l *edited) offered(r apitest.Reply) string {
	l.Helper()
	page := is(l.T, l.get("", emma, "Cookie", "belfry="+l.Admin+"; belfry-console-notice="+noticeOf(l.T, r)),
		http.StatusOK)
	if !strings.Contains(page.Text, ">Undo<") {
		return ""
	}
	revision := form("revision", strconv.FormatUint(l.read("Books", "emma").Revision, 10))
	shows(l.T, page, `action="`+undoing+`"`, `name="revision" value="`+strings.TrimPrefix(revision, "revision="))
	return revision
}

const undoing = emma + "/undo"

// has checks fields of the book, "" for one that it lacks.
func (l *edited) has(pairs ...string) {
	l.Helper()
	body := l.read("Books", "emma").Body
	for pair := range slices.Chunk(pairs, 2) {
		if got := string(object.Field(body, pair[0])); got != pair[1] {
			l.Errorf("%s is %s, want %s", pair[0], got, pair[1])
		}
	}
}

func TestAnEditIsUndone(t *testing.T) {
	t.Parallel()
	l := startEdited(t)
	undo := l.edit(`{"title":"Emma II","tags":["new"],"user":"jane"}`)
	l.has("title", `"Emma II"`, "year", "", "tags", `["new"]`)

	is(t, l.post(l.User, undoing, undo), http.StatusForbidden)
	leads(t, l.post("", undoing, undo), "/console/login")
	is(t, l.post(l.Admin, undoing, undo, "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
	is(t, l.post(l.Admin, undoing, ""), http.StatusBadRequest)
	is(t, l.post(l.Admin, "/console/objects/Books/object/none/undo", undo), http.StatusNotFound)
	l.has("title", `"Emma II"`)

	// Workers have written since, and the log does not have the edit yet.
	_, err := store.NewWorker(l.set.Store("Books")).CompareAndSet(t.Context(), l.read("Books", "emma"),
		object.Object{"_owners": []byte(`{}`)})
	l.Must(err)
	l.behind = 2
	r := l.post(l.Admin, undoing, undo)
	leads(t, r, emma)
	l.has("title", `"Emma"`, "year", "1815", "tags", "", "user", `"jane"`, "margin", `"secret-note"`, "_owners", `{}`)
	if l.behind != 0 {
		t.Error("the log was not read again")
	}

	// An undo is an edit, which can be undone.
	shows(t, is(t, l.post(l.Admin, undoing, undo), http.StatusConflict), "has been changed since")
	leads(t, l.post(l.Admin, undoing, l.offered(r)), emma)
	l.has("title", `"Emma II"`, "year", "", "tags", `["new"]`)
}

func TestAnEditIsNotUndoneIntoAnotherVersion(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		change func(l *edited)
		says   string
	}{
		"somebody else has changed the object": {func(l *edited) {
			o, err := object.Parse([]byte(`{"title":"Emma","year":1816,"user":"jane"}`))
			l.Must(err)
			_, err = l.set.Store("Books").Update(l.Context(), o, store.UpdateOptions{UUID: "emma"})
			l.Must(err)
		}, "has been changed since"},
		"the log has no longer the version before": {func(l *edited) {
			l.lacks = func(e event.Envelope) bool { return e.Event == event.StoreSaved }
		}, "does not have the object as it was before"},
		"the log lacks the edit": {func(l *edited) {
			l.lacks = func(e event.Envelope) bool { return e.Event == event.StoreUpdated }
		}, "does not have the object as it was before"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := startEdited(t)
			undo := l.edit(`{"title":"Emma II","user":"jane"}`)
			one.change(l)
			before := l.read("Books", "emma")
			shows(t, is(t, l.post(l.Admin, undoing, undo), http.StatusConflict), one.says)
			if l.read("Books", "emma").Revision != before.Revision {
				t.Error("the object was changed")
			}
		})
	}
	l := startEdited(t)
	if l.edit(`{"title":"Emma","year":1815,"user":"jane"}`) != "" {
		t.Error("an edit that changed nothing can be undone, and the edit before it would be")
	}
}
