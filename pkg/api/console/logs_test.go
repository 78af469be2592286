package console_test

import (
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"belfry/internal/logbuffer"
	"belfry/pkg/api/console"
)

// withLogs returns options with the view Logs, and the log that it shows.
func withLogs() (console.Options, *slog.Logger) {
	lines := logbuffer.New()
	return console.Options{Logs: &console.Logs{Lines: lines, Process: "process 7 on tower", Level: "info",
		File: "/etc/belfry.yaml"}}, slog.New(logbuffer.NewHandler(slog.NewTextHandler(io.Discard, nil), lines))
}

func TestTheLogIsFilteredByLevelAndRequest(t *testing.T) {
	t.Parallel()
	o, log := withLogs()
	f := start(t, o)
	shows(t, is(t, f.get(f.Admin, "/console/logs"), http.StatusOK), "Nothing has been logged yet", "process 7 on tower",
		"<strong>this process</strong>", "/etc/belfry.yaml")
	log.Info("a backup was made", "request", "r 1", "bytes", 7)
	log.Warn("a part does not work", "request", "r2", "part", "relay")
	log.Error(hostile+"\u202e", "request", "r2", "error", hostile+"\n2026 INFO forged")
	r := is(t, f.get(f.Admin, "/console/logs"), http.StatusOK)
	shows(t, r, "a backup was made", "bytes=7", `href="/console/logs?request=r&#43;1"`, "3 lines since",
		`<span class="tag bad">error</span>`, `\u202e`, `\n2026 INFO forged`)
	if strings.Contains(r.Text, hostile) || strings.Index(r.Text, "part=relay") > strings.Index(r.Text, "bytes=7") {
		t.Errorf("a text is not escaped, or the oldest is first: %s", r.Text)
	}
	lines := func(query string) (n int) {
		t.Helper()
		return strings.Count(is(t, f.get(f.Admin, "/console/logs"+query), http.StatusOK).Text, "<time>")
	}
	for query, want := range map[string]int{"?level=info": 3, "?level=warn": 2, "?level=error": 1, "?level=none": 3,
		"?request=r2": 2, "?request=r+1&level=warn": 0, "?q=BACKUP": 1, "?q=part%3Drelay": 1, "?before=2": 1,
		"?before=0": 3, "?before=99": 3, "?request=": 3} {
		if got := lines(query); got != want {
			t.Errorf("%s has %d lines, want %d", query, got, want)
		}
	}
	shows(t, is(t, f.get(f.Admin, "/console/logs?request=nothing"), http.StatusOK), "No line that is kept matches")
	for _, wrong := range []string{"?before=x", "?before=-1", "?q=" + strings.Repeat("a", 201),
		"?request=" + strings.Repeat("a", 201)} {
		is(t, f.get(f.Admin, "/console/logs"+wrong), http.StatusBadRequest)
	}
	for _, parameter := range []string{"after", "shown"} {
		is(t, f.get(f.Admin, "/console/logs?"+parameter+"=-1"), http.StatusBadRequest)
	}
	shows(t, is(t, f.get(f.Admin, "/console/logs?level=warn&q=part"), http.StatusOK),
		`<a href="/console/logs?level=error&amp;q=part">Errors</a>`,
		`<a href="/console/logs?level=warn&amp;q=part" aria-current="true">`, `<a href="/console/logs?q=part">All levels</a>`,
		`<input type="hidden" name="level" value="warn">`)
	is(t, f.get("", "/console/logs"), http.StatusSeeOther)
	is(t, f.get(f.User, "/console/logs"), http.StatusForbidden)
}

// The page adds new lines to itself, up to a bound.
func TestTheLogIsFollowed(t *testing.T) {
	t.Parallel()
	o, log := withLogs()
	f := start(t, o)
	log.Info("old")
	next := regexp.MustCompile(`hx-get="([^"]+)"`)
	at := "/console/logs?level=warn"
	follow := func(status int, has ...string) {
		t.Helper()
		r := is(t, f.get(f.Admin, at, "HX-Request", "true"), status)
		shows(t, r, has...)
		if found := next.FindStringSubmatch(r.Text); found != nil {
			at = html.UnescapeString(found[1])
		}
		if strings.Contains(r.Text, "old") || strings.Contains(r.Text, "<html") {
			t.Errorf("lines are repeated, or the reply is a page: %s", r.Text)
		}
	}
	page := is(t, f.get(f.Admin, at), http.StatusOK)
	at = html.UnescapeString(next.FindStringSubmatch(page.Text)[1])
	shows(t, page, `<li class="newer" hx-get="/console/logs?after=1&amp;level=warn&amp;shown=0"`)
	follow(http.StatusNoContent)
	log.Info("not of the level")
	follow(http.StatusNoContent)
	log.Warn("new")
	follow(http.StatusOK, "new", "after=3", "shown=1")
	follow(http.StatusNoContent)
	for range 100 {
		log.Warn("many")
	}
	follow(http.StatusOK, "many", "shown=101")
	for range 101 {
		log.Warn("too many at once")
	}
	follow(http.StatusOK, `<a href="/console/logs?level=warn">Show the latest lines</a>`)

	for _, end := range []string{"?after=99999", "?after=203&shown=999"} { // of another process; a long page
		log.Warn("one")
		log.Warn("two")
		r := is(t, f.get(f.Admin, "/console/logs"+end, "HX-Request", "true"), http.StatusOK)
		shows(t, r, "Show the latest lines")
		if strings.Contains(r.Text, "hx-get") {
			t.Errorf("%s continues: %s", end, r.Text)
		}
	}
	if r := f.get(f.Admin, "/console/logs?before=5"); strings.Contains(r.Text, "hx-get") {
		t.Errorf("a page of older lines gets newer ones: %s", r.Text)
	}
	is(t, f.get(f.User, "/console/logs?after=1", "HX-Request", "true"), http.StatusForbidden)
}

func TestTheLogHasPages(t *testing.T) {
	t.Parallel()
	o, log := withLogs()
	f := start(t, o)
	for i := range 250 {
		log.Info("line", "i", i, "request", fmt.Sprint("r", i%2))
	}
	older := regexp.MustCompile(`href="([^"]*before=[^"]*)">Older lines`)
	seen := map[string]bool{}
	pages := 0
	for next := "/console/logs?request=r1"; next != ""; pages++ {
		r := is(t, f.get(f.Admin, next), http.StatusOK)
		for _, found := range regexp.MustCompile(`request=r1 i=(\d+)`).FindAllStringSubmatch(r.Text, -1) {
			seen[found[1]] = true
		}
		next = ""
		if found := older.FindStringSubmatch(r.Text); found != nil {
			next = html.UnescapeString(found[1])
		}
	}
	if len(seen) != 125 || pages != 2 {
		t.Errorf("%d lines on %d pages", len(seen), pages)
	}
}

// The page of an error leads an admin, and nobody else, to what the log has about it.
func TestAnErrorLeadsToItsLog(t *testing.T) {
	t.Parallel()
	o, _ := withLogs()
	f := start(t, o)
	r := is(t, f.get(f.Admin, "/console/nothing"), http.StatusNotFound)
	id := r.Header.Get("X-Request-Id")
	shows(t, r, `<a href="/console/logs?request=`+url.QueryEscape(id)+`">`+id+`</a>`)
	if r := is(t, f.get(f.User, "/console/nothing"), http.StatusForbidden); strings.Contains(r.Text, "/console/logs") {
		t.Errorf("a user is led to the log: %s", r.Text)
	}
}
