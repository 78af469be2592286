package console_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/errs"
	"belfry/pkg/listener/deadletter"
	"belfry/pkg/listener/replay"
	"belfry/pkg/missed"
)

// listeners are listeners in memory, and what was done with them.
type listeners struct {
	all     []console.Worker
	letters map[uint64]*deadletter.Letter
	done    []string
	failing error
	hangs   bool // the bus does not reply
}

func (l *listeners) Listeners(ctx context.Context) ([]console.Worker, error) {
	if l.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return l.all, l.failing
}

func (l *listeners) Copies(context.Context) []missed.CopyLag {
	return []missed.CopyLag{{Copies: "Books.author", Source: "Authors", Seconds: 83.2},
		{Copies: "Books.press", Source: "Presses"}}
}

func (l *listeners) Measured() []string { return []string{"mapping"} }

func (l *listeners) History(name string) []console.Sample {
	if name != "mapping" {
		return nil
	}
	now := time.Now()
	return []console.Sample{{At: now.Add(-30 * time.Minute), Lag: 4, Unacked: 1},
		{At: now.Add(-15 * time.Minute), Lag: 1200}, {At: now, Lag: 7, Unacked: 3}}
}

func (l *listeners) Reset(_ context.Context, name, from string) (uint64, error) {
	if from == "nonsense" {
		return 0, errs.New(errs.Invalid, "%q is no position", from)
	}
	l.done = append(l.done, "reset "+name+" "+from)
	return 42, nil
}

func (l *listeners) Letters(_ context.Context, name string, after uint64,
	limit int) (page []*deadletter.Letter, more bool, err error) {
	for id := after + 1; id <= uint64(len(l.letters))+after; id++ {
		if m := l.letters[id]; m != nil && (name == "" || m.Listener == name) {
			if len(page) == limit {
				return page, true, nil
			}
			page = append(page, m)
		}
	}
	return page, false, nil
}

func (l *listeners) Letter(_ context.Context, id uint64) (*deadletter.Letter, error) {
	if m := l.letters[id]; m != nil {
		return m, nil
	}
	return nil, errs.New(errs.NotFound, "there is no dead letter %d", id)
}

func (l *listeners) act(what string, id uint64) error {
	if l.letters[id] == nil {
		return errs.New(errs.NotFound, "there is no dead letter %d", id)
	}
	l.done = append(l.done, fmt.Sprint(what, " ", id))
	return nil
}

func (l *listeners) Retry(_ context.Context, id uint64) error { return l.act("retry", id) }
func (l *listeners) Drop(_ context.Context, id uint64) error  { return l.act("drop", id) }

const hostile = `<script>alert("x")</script>`

func someListeners() *listeners {
	l := &listeners{letters: map[uint64]*deadletter.Letter{}, all: []console.Worker{
		{Listener: replay.Listener{Name: "mapping", Lag: 1234, Unacked: 3, Letters: 60, Ordered: true,
			Last: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, Missed: "at most 5 events"},
		{Listener: replay.Listener{Name: "mail", PausedUntil: time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC)}},
	}}
	for id := range uint64(60) {
		l.letters[id+1] = &deadletter.Letter{ID: id + 1, Listener: "mapping", Reason: hostile, Attempts: 5,
			Event: "Store.Saved", Store: "Books", UUID: "emma",
			Data: []byte(`{"object":{"title":"` + strings.ReplaceAll(hostile, `"`, `\"`) + `"}}`)}
	}
	return l
}

func TestWorkersAndDeadLettersAreShown(t *testing.T) {
	t.Parallel()
	l := someListeners()
	f := start(t, console.Options{Workers: l})
	shows(t, is(t, f.get(f.Admin, "/console/workers"), http.StatusOK), "1234", "ordered", "missed events",
		`<span class="tag bad">paused</span>`, "2026-01-02 03:04:05", "never",
		`aria-label="lag of mapping: 7 now, at most 1,200 in the last hour"`, "/console/letters?listener=mapping")
	part := is(t, f.get(f.Admin, "/console/workers", "Hx-Request", "true"), http.StatusOK)
	shows(t, part, `<th scope="row">Books.author</th><td>Authors</td>`, `<span class="tag warn">1m23s</span>`,
		`<th scope="row">Books.press</th><td>Presses</td><td class="num">0s</td>`)
	if shows(t, part, "1234"); strings.Contains(part.Text, "<html") {
		t.Error("htmx gets a whole page")
	}
	shows(t, is(t, f.get(f.Admin, "/console/workers/mapping"), http.StatusOK), "at most 5 events",
		"lag: now 7, at least 4", "in flight: now 3", "<polyline", `action="/console/workers/mapping/reset"`)
	shows(t, is(t, f.get(f.Admin, "/console/workers/mail"), http.StatusOK), "is paused until 2031-01-02 03:04:05")
	is(t, f.get(f.Admin, "/console/workers/none"), http.StatusNotFound)

	first := is(t, f.get(f.Admin, "/console/letters?listener=mapping"), http.StatusOK)
	shows(t, first, `value="50"`, "/console/letters?after=50&amp;listener=mapping", "&lt;script&gt;")
	second := is(t, f.get(f.Admin, "/console/letters?after=50&listener=mapping"), http.StatusOK)
	shows(t, second, `value="51"`, `value="60"`)
	if strings.Contains(first.Text, `value="51"`) || strings.Contains(second.Text, `value="50"`) ||
		strings.Contains(second.Text, "Next page") {
		t.Error("pages overlap")
	}
	shows(t, is(t, f.get(f.Admin, "/console/letters?listener=mail"), http.StatusOK), "no dead letters")
	one := is(t, f.get(f.Admin, "/console/letters/7"), http.StatusOK)
	shows(t, one, "Dead letter 7", "&#34;title&#34;", "Store.Saved")
	for _, r := range []string{first.Text, one.Text} {
		if strings.Contains(r, hostile) {
			t.Error("what an event has is not escaped")
		}
	}
	for path, status := range map[string]int{"/console/letters/99": 404, "/console/letters/x": 404,
		"/console/letters?after=x": 400, "/console/letters/-1": 404} {
		is(t, f.get(f.Admin, path), status)
	}
	l.failing = errs.New(errs.Unavailable, "the bus is unavailable")
	for range 2 {
		for _, path := range []string{"/console/workers", "/console/workers/mapping"} {
			r := is(t, f.get(f.Admin, path), http.StatusOK)
			shows(t, r, "can't be read:</strong> the bus ", "easured", ">7<")
			if strings.Contains(r.Text, "/reset") || strings.Contains(r.Text, "1234") {
				t.Errorf("%s shows what only the bus knows", path)
			}
		}
		shows(t, is(t, f.get(f.Admin, "/console/workers", "Hx-Request", "true"), http.StatusOK),
			"can't be read:</strong> the bus ")
		is(t, f.get(f.Admin, "/console/workers/mail"), http.StatusServiceUnavailable)
		l.failing, l.hangs = nil, true // until the page gives up
	}
}

func TestOnlyAdminsActOnListeners(t *testing.T) {
	t.Parallel()
	l := someListeners()
	f := start(t, console.Options{Workers: l})
	for _, c := range [][2]string{{"/console/workers/mapping/reset", "from=all"}, {"/console/letters", "act=drop&id=1"},
		{"/console/letters", "act=retry&id=1"}} {
		is(t, f.post("", c[0], c[1]), http.StatusSeeOther)
		is(t, f.post(f.User, c[0], c[1]), http.StatusForbidden)
		is(t, f.post(f.Admin, c[0], c[1], "Sec-Fetch-Site", "cross-site"), http.StatusForbidden)
	}
	for _, path := range []string{"/console/workers", "/console/workers/mapping", "/console/letters",
		"/console/letters/1"} {
		if r := is(t, f.get(f.User, path), http.StatusForbidden); strings.Contains(r.Text, "mapping") {
			t.Errorf("%s shows what it is for", path)
		}
		is(t, f.get("", path), http.StatusSeeOther)
	}
	if len(l.done) > 0 {
		t.Fatalf("done: %v", l.done)
	}
	leads(t, f.post(f.Admin, "/console/workers/mapping/reset", "from=+36h+"), "/console/workers/mapping")
	leads(t, f.post(f.Admin, "/console/letters", "act=retry&id=1&id=3&listener=mapping"),
		"/console/letters?listener=mapping")
	r := f.post(f.Admin, "/console/letters", "act=drop&id=2&id=99")
	leads(t, r, "/console/letters")
	shows(t, f.get(f.Admin, "/console/letters", "Cookie", r.Header.Get("Set-Cookie")), "1 of 2 dead letters dropped",
		"no dead letter 99")
	for path, form := range map[string]string{"/console/workers/mapping/reset": "from=",
		"/console/workers/mail/reset": "from=nonsense"} {
		is(t, f.post(f.Admin, path, form), http.StatusBadRequest)
	}
	for _, form := range []string{"act=drop", "id=1", "act=burn&id=1", "act=drop&id=x",
		"act=drop&id=1" + strings.Repeat("&id=1", 50)} {
		is(t, f.post(f.Admin, "/console/letters", form), http.StatusBadRequest)
	}
	if want := []string{"reset mapping 36h", "retry 1", "retry 3", "drop 2"}; !slices.Equal(l.done, want) {
		t.Errorf("done: %v", l.done)
	}
}
