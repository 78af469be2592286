package console_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"belfry/pkg/account/admin"
	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

func TestTheHistoryShowsWhatEachEventChanged(t *testing.T) {
	t.Parallel()
	actor := "somebody"
	all := []console.LogEvent{ // the newest first
		{Sequence: 9, Envelope: event.Envelope{Event: event.StoreDeleted, Origin: "http",
			Object: []byte(`{"title":"Emma","year":1815}`)}},
		{Sequence: 7, Envelope: event.Envelope{Event: event.StoreUpdated, Origin: "mapping",
			Object: []byte(`{"title":"Emma","year":1815}`),
			Previous: object.Object{"title": []byte(`"Ema"`), "gone": []byte(`true`),
				"margin": []byte(`"secret-note"`)}, Actor: &actor}},
		{Sequence: 5, Envelope: event.Envelope{Event: event.StoreSaved, Origin: "go",
			Object: []byte(`{"title":"Ema","gone":true}`)}},
	}
	var asked [2]any
	l := startLibrary(t, func(o *console.Objects) {
		o.History = func(_ context.Context, name, uuid string, before uint64, n int) ([]console.LogEvent, error) {
			asked = [2]any{name + "/" + uuid, before}
			if before == 0 && n < 30 {
				return all, nil
			}
			many := []console.LogEvent{}
			for i := range n {
				many = append(many,
					console.LogEvent{Sequence: uint64(1000 - i), Envelope: event.Envelope{Event: event.StoreUpdated}})
			}
			return many, nil
		}
	})
	r := is(t, l.get(l.Admin, emma+"/history"), http.StatusOK)
	shows(t, r, "no longer exists", "Store.Deleted", "somebody", "mapping",
		`<del>-   &#34;title&#34;: &#34;Ema&#34;</del>`, `<ins>+   &#34;title&#34;: &#34;Emma&#34;,</ins>`,
		`<ins>+   &#34;year&#34;: 1815</ins>`, `<del>-   &#34;gone&#34;: true,</del>`)
	if strings.Contains(r.Text, "secret-note") {
		t.Error("the history shows a private field")
	}
	if strings.Contains(r.Text, "<del>- </del>") {
		t.Error("an object that was created shows an empty line that is removed")
	}
	r = is(t, l.get(l.Admin, emma+"/history?before=1001", "Hx-Request", "true"), http.StatusOK)
	shows(t, r, "before=981")
	if asked != [2]any{"Books/emma", uint64(1001)} || strings.Contains(r.Text, "<html") ||
		strings.Count(r.Text, "<li>") != 20 {
		t.Errorf("asked for %v: %s", asked, r.Text)
	}
}

// The event of a change is published after the change: until then the history says so, and asks again. The newest
// version in the log is not the current one then, and can be restored.
func TestAHistoryWaitsForTheLatestChange(t *testing.T) {
	t.Parallel()
	var all []console.LogEvent
	l := startLibrary(t, func(o *console.Objects) {
		o.History = func(context.Context, string, string, uint64, int) ([]console.LogEvent, error) { return all, nil }
	})
	const late, none, asks, restore = "is not in the log yet", "no events of this object", `hx-trigger="load delay:1s"`,
		emma + "/history/5"
	created := l.save("Books", "emma", `{"title":"Emma"}`)
	of := func(revision uint64) []console.LogEvent {
		return []console.LogEvent{{Sequence: 5, Envelope: event.Envelope{Event: event.StoreSaved, Revision: revision,
			Object: []byte(`{"title":"Emma"}`)}}}
	}
	for _, one := range []struct {
		name   string
		path   string
		events []console.LogEvent
		shows  []string
		hides  []string
	}{
		{"nothing yet", emma, nil, []string{late, asks}, []string{none}},
		{"the change before", emma, of(created.Revision - 1), []string{late, asks, "Store.Saved", restore}, nil},
		{"the latest change", emma, of(created.Revision), []string{"Store.Saved"}, []string{late, asks, restore}},
		{"no such object", strings.Replace(emma, "emma", "persuasion", 1), nil, []string{none}, []string{late, asks}},
	} {
		all = one.events
		for _, headers := range [][]string{nil, {"Hx-Request", "true"}} {
			r := is(t, l.get(l.Admin, one.path+"/history", headers...), http.StatusOK)
			shows(t, r, one.shows...)
			for _, text := range one.hides {
				if strings.Contains(r.Text, text) {
					t.Errorf("%s: shows %q:\n%s", one.name, text, r.Text)
				}
			}
		}
	}
	all = of(created.Revision - 1)
	if r := is(t, l.get(l.Admin, emma+"/history?before=9"), http.StatusOK); strings.Contains(r.Text, late) {
		t.Error("a page of older events waits for the latest")
	}
	l.Must(l.set.Store("Books").Delete(t.Context(), "emma", 0))
	all = of(created.Revision)
	shows(t, is(t, l.get(l.Admin, emma+"/history"), http.StatusOK), late, "no longer exists")
}

func TestAHistoryThatCannotBeReadIsSaidInItsPlace(t *testing.T) {
	t.Parallel()
	var fails error
	l := startLibrary(t, func(o *console.Objects) {
		o.History = func(ctx context.Context, _, _ string, _ uint64, _ int) ([]console.LogEvent, error) {
			if fails == nil {
				<-ctx.Done() // the bus does not reply: the page gives up
				return nil, ctx.Err()
			}
			return nil, fails
		}
	})
	l.save("Books", "emma", `{"title":"Emma"}`)
	for _, fails = range []error{nil,
		errs.Wrap(errors.New("dial nats://ada:secret@bus"), errs.Unavailable, "the bus is unavailable")} {
		for _, headers := range [][]string{nil, {"Hx-Request", "true"}} {
			r := is(t, l.get(l.Admin, emma+"/history", headers...), http.StatusOK)
			shows(t, r, "The history can't be read: the bus ")
			if strings.Contains(r.Text, "secret") || strings.Contains(r.Text, "has no events") {
				t.Error(r.Text)
			}
		}
	}
	fails = errs.New(errs.Internal, "broken")
	is(t, l.get(l.Admin, emma+"/history"), http.StatusInternalServerError)
}

// The header and the history name users by the address of a login: what else a user is called they choose themselves.
// Only the uuid is left of a user who does not exist any more.
func TestUsersAreShownByTheirAddresses(t *testing.T) {
	t.Parallel()
	actors := []string{"", "gone", "somebody's program"}
	l := startLibrary(t, func(o *console.Objects) {
		o.History = func(context.Context, string, string, uint64, int) (all []console.LogEvent, err error) {
			for i := range actors {
				all = append(all, console.LogEvent{Sequence: uint64(i + 1),
					Envelope: event.Envelope{Event: event.StoreDeleted, Actor: &actors[i]}})
			}
			return all, nil
		}
	})
	bob, err := l.Auth.Admin.FindUser(t.Context(), "bob@example.com")
	l.Must(err)
	actors[0] = bob.UUID
	_, err = l.Auth.Admin.CreateUser(t.Context(),
		admin.NewUser{Login: "eve@example.com", Password: "a third password", Admin: true, Validated: true,
			Fields: object.Object{"name": []byte(`"ada@example.com"`)}})
	l.Must(err)
	r := is(t, l.get(l.LogIn("eve@example.com", "a third password"), emma+"/history"), http.StatusOK)
	shows(t, r, `title="eve@example.com">eve@example.com</span>`,
		`by <a href="/console/users/`+bob.UUID+`" title="`+bob.UUID+`">bob@example.com</a>`,
		`by <span class="mono">gone</span>`, `by <span class="mono">somebody&#39;s program</span>`)

	machine, err := l.Auth.Admin.CreateUser(t.Context(), admin.NewUser{Machine: true})
	l.Must(err)
	address, err := l.Auth.Users.Address(t.Context(), machine.UUID)
	if l.Must(err); address != "" {
		t.Errorf("a machine has the address %q", address)
	}
}
