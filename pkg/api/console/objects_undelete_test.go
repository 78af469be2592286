package console_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/api/apitest"
	"belfry/pkg/api/console"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

const undelete = emma + "/undelete"

// startDeleted is a library whose log has deletions of the book Emma, as they were.
func startDeleted(t *testing.T, bodies ...string) *library {
	t.Helper()
	var books *store.Store
	return startLibrary(t, func(o *console.Objects) {
		books = o.Set.Store("Books")
		o.Stores[1].Title = []string{"title"}
		o.History = func(ctx context.Context, name, uuid string, _ uint64, _ int) (all []console.LogEvent, err error) {
			if name+"/"+uuid == "Books/emma" && len(bodies) > 0 {
				tombstone, _, err := books.Deleted(ctx, "emma")
				if err != nil {
					return nil, err
				}
				all = append(all, console.LogEvent{Sequence: 9, Envelope: event.Envelope{Event: event.StoreDeleted,
					Revision: tombstone.Revision, Object: []byte(bodies[0])}})
			}
			return all, nil
		}
	})
}

func TestADeletionIsUndone(t *testing.T) {
	t.Parallel()
	l := startDeleted(t, `{"uuid":"emma","title":"Emma","year":1815,"user":"jane","created":"x"}`)
	book := l.save("Books", "emma", `{"title":"Emma","year":1815,"user":"jane","_aggregates":{"Reviews":"x"}}`)
	if object.Field(l.read("Books", "emma").Body, store.AggregatesField) == nil {
		t.Fatal("the book lacks the field of belfry's own")
	}
	r := l.post(l.Admin, emma+"/delete", form("revision", strconv.FormatUint(book.Revision, 10)))
	leads(t, r, "/console/objects/Books")
	page := l.get("", "/console/objects/Books", "Cookie",
		"belfry="+l.Admin+"; belfry-console-notice="+noticeOf(t, r))
	shows(t, is(t, page, http.StatusOK), "Emma has been deleted.", `action="`+undelete+`"`, ">Undo<")

	is(t, l.post(l.User, undelete, ""), http.StatusForbidden)
	leads(t, l.post("", undelete, ""), "/console/login")
	is(t, l.post(l.Admin, undelete, "", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
	leads(t, l.post(l.Admin, undelete, ""), emma)
	body := l.read("Books", "emma").Body
	for field, want := range map[string]string{"title": `"Emma"`, "year": "1815", "user": `"jane"`} {
		if is := string(object.Field(body, field)); is != want {
			t.Errorf("%s is %s", field, is)
		}
	}
	is(t, l.post(l.Admin, undelete, ""), http.StatusConflict) // it exists
}

func TestADeletionIsNotUndoneWithLessThanThereWas(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a private field":            `{"title":"Emma","margin":"a note that never leaves the server"}`,
		"a field of an interceptor":  `{"title":"Emma","_note":"x"}`,
		"one beside a field of ours": `{"title":"Emma","_note":"x","_aggregates":{"Reviews":"x"}}`,
	} {
		l := startDeleted(t)
		book := l.save("Books", "emma", text)
		r := l.post(l.Admin, emma+"/delete", form("revision", strconv.FormatUint(book.Revision, 10)))
		leads(t, r, "/console/objects/Books")
		page := l.get("", "/console/objects/Books", "Cookie",
			"belfry="+l.Admin+"; belfry-console-notice="+noticeOf(t, r))
		if shows(t, page, "Emma has been deleted."); strings.Contains(page.Text, ">Undo<") {
			t.Errorf("an object with %s is offered to be created again without it", name)
		}
		shows(t, is(t, l.post(l.Admin, undelete, ""), http.StatusConflict), "the log does not have the deletion")
	}
}

// noticeOf returns the cookie of a notice.
func noticeOf(t *testing.T, r apitest.Reply) string {
	t.Helper()
	if value := stored(r, "belfry-console-notice"); value != "" {
		return value
	}
	t.Fatal("there is no notice")
	return ""
}

// A cookie can't make a notice send another form.
func TestANoticeOffersNoOtherForm(t *testing.T) {
	t.Parallel()
	f := start(t, withStores(t, "Books"))
	for text, shown := range map[string]bool{
		`{"text":"Done.","undo":{"path":"/console/pins","fields":{"store":"Books"}}}`:          true,
		`{"text":"Done.","undo":{"path":"/console/objects/Books/object/emma/undelete"}}`:       true,
		`{"text":"Done.","undo":{"path":"/console/objects/Books/object/emma/undo"}}`:           true,
		`{"text":"Done.","undo":{"path":"/console/users/x/admin","fields":{"admin":"true"}}}`:  false,
		`{"text":"Done.","undo":{"path":"/console/objects/Books/object/emma/delete"}}`:         false,
		`{"text":"Done.","undo":{"path":"https://evil.example.org/console/pins"}}`:             false,
		`{"text":"Done.","undo":{"path":"/console/pins/../users/x/admin"}}`:                    false,
		`{"text":"Done.","undo":{"path":"/console/objects/a%2f..%2fb/object/../../undelete"}}`: false,
		`{"text":"Done.","undo":{"path":"/console/objects/%2e%2e/object/emma/undelete"}}`:      false,
		`{"text":"Done.","undo":{"path":"/console/objects/a\\users/object/emma/undelete"}}`:    false,
	} {
		r := is(t, f.get("", "/console/objects", "Cookie", "belfry="+f.Admin+"; belfry-console-notice="+
			base64.RawURLEncoding.EncodeToString([]byte(text))), http.StatusOK)
		if shows(t, r, "Done."); strings.Contains(r.Text, ">Undo<") != shown {
			t.Errorf("%s is offered: %t", text, !shown)
		}
	}
}
