package console_test

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"belfry/pkg/api/console"
	"belfry/pkg/operations/backup"
	"belfry/pkg/walk"
)

// aSystem has something of everything.
func aSystem() *console.System {
	now := time.Now()
	points := func(values ...float64) (all []console.Point) {
		for i, v := range values {
			all = append(all, console.Point{At: now.Add(time.Duration(i-len(values)) * time.Minute), Value: v})
		}
		return all
	}
	return &console.System{
		Facts: []console.Fact{{Name: "Version", Value: "<b>1.2.3</b>"}}, ConfigFile: "/etc/belfry.yaml",
		Config: func() string { return "password: \"[secret]\"\nnote: </pre><script>alert(1)</script>\n" },
		Checks: func(context.Context) []console.Check {
			return []console.Check{
				{Name: "Backend main", Kind: "mongodb", OK: true, Took: 1500 * time.Microsecond},
				{Name: "Bus", Kind: "external", Says: "it does not <reply>"},
			}
		},
		Disks: func() []console.Disk {
			return []console.Disk{{What: "data", Folder: "/var/lib/belfry", Free: 5 << 30, Total: 100 << 30},
				{What: "backend x", Folder: "/x", Free: 50 << 30, Total: 100 << 30}}
		},
		Walks: func() []walk.Status {
			return []walk.Status{
				{Kind: walk.Mapping, Name: "Books in Authors.books", Filled: true, Repairing: true, Running: true,
					Total: 1200, Counts: walk.Counts{Done: 17}},
				{Kind: walk.Search, Name: "Books", Filled: true, Total: 5, Counts: walk.Counts{Done: 5}},
				{Kind: walk.Unique, Name: "Users", Filled: true, Total: 5, Counts: walk.Counts{Done: 5, Failed: 3}},
			}
		},
		Ready:    func(context.Context) string { return "" },
		Backups:  func(context.Context) console.Backups { return console.Backups{} },
		Reload:   func() *console.Reload { return nil },
		Warnings: func(context.Context) []string { return []string{"listener audit has missed events"} },
		Charts: func() []console.Chart {
			return []console.Chart{
				{ID: "requests", Title: "Requests", Unit: "a second", Series: []console.Series{
					{Name: "all", Points: points(1, 2, math.NaN(), 3, math.NaN(), 40, 50)},
					{Name: "failed <x>", Points: points(0, 0)},
				}},
				{ID: "memory", Title: "Memory", Unit: "bytes",
					Series: []console.Series{{Name: "resident", Points: points(50<<20, 60<<20)}}},
				{ID: "idle", Title: "Nothing yet", Series: []console.Series{{Name: "x", Points: points(math.NaN())}}},
			}
		},
	}
}

func TestOnlyAdminsSeeTheSystem(t *testing.T) {
	t.Parallel()
	f := start(t, console.Options{System: aSystem()})
	for _, path := range []string{"/console/system", "/console/system/charts"} {
		is(t, f.get("", path), http.StatusSeeOther)
		if r := is(t, f.get(f.User, path), http.StatusForbidden); strings.Contains(r.Text, "mongodb") ||
			strings.Contains(r.Text, "<svg") {
			t.Errorf("%s shows the system", path)
		}
	}
}

func TestTheSystemIsShown(t *testing.T) {
	t.Parallel()
	f := start(t, console.Options{System: aSystem()})
	r := is(t, f.get(f.Admin, "/console/system"), http.StatusOK)
	shows(t, r, "degraded", "A part fails, and requests that can do without it are served", "Backend main", "1.5 ms",
		"it does not &lt;reply&gt;", "95 %, nearly full", "50 %", "5.0 GiB", "listener audit has missed events",
		"1 complete, 2 not", "Books in Authors.books", "repairing after missed events", "17 of 1,200",
		"complete, but for some", `<td class="num">3</td>`,
		"/etc/belfry.yaml", "&lt;b&gt;1.2.3", "[secret]", "&lt;/pre&gt;&lt;script&gt;")
	for _, raw := range []string{"<script>alert", "<b>1.2.3"} {
		if strings.Contains(r.Text, raw) {
			t.Errorf("%s is not escaped", raw)
		}
	}
}

func TestTheLastReloadIsShown(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 23, 7, 0, 0, 0, time.UTC)
	for says, reload := range map[string]*console.Reload{
		"none since the start": nil,
		"2026-11-23 07:00:00 UTC by <code>SIGHUP</code>: nothing had changed": {At: at, By: "SIGHUP"},
		"changed <code>limits</code>, <code>log</code>": {At: at, By: "SIGHUP",
			Changed: []string{"limits", "log"}},
		"Indexes were to be built: <code>Books.user</code>": {At: at, By: "belfry reload", Changed: []string{"stores"},
			Building: []string{"Books.user"}},
		"was refused, and belfry serves with the configuration of before:</p>\n<pre class=\"code\" tabindex=\"0\" " +
			"aria-label=\"Why the reload was refused\">data: can&#39;t &lt;change&gt;": {At: at, By: "belfry reload",
			Refused: "data: can't <change>"},
	} {
		o := aSystem()
		o.Reload = func() *console.Reload { return reload }
		f := start(t, console.Options{System: o})
		shows(t, is(t, f.get(f.Admin, "/console/system"), http.StatusOK), says)
	}
}

func TestTheSystemSaysWhyAProcessIsNotReady(t *testing.T) {
	t.Parallel()
	o := aSystem()
	o.Ready = func(context.Context) string { return "backend <main> is unavailable" }
	f := start(t, console.Options{System: o})
	shows(t, is(t, f.get(f.Admin, "/console/system"), http.StatusOK), "This process is not ready",
		"backend &lt;main&gt; is unavailable")
}

func TestTheSystemShowsBackups(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 11, 23, hour, 0, 0, 0, time.UTC) }
	for name, c := range map[string]struct {
		backups console.Backups
		want    []string
	}{
		"no place": {console.Backups{}, []string{"No place for backups is configured: set <code>backup</code>"}},
		"no error": {console.Backups{Error: "the <backend> is unavailable"},
			[]string{"the &lt;backend&gt; is unavailable"}},
		"none yet": {console.Backups{Place: "/var/<backups>"},
			[]string{"/var/&lt;backups&gt;", "There is none yet", "There is no schedule"}},
		"running": {console.Backups{Place: "/b", Running: "by belfry on castle"},
			[]string{"One is being made by belfry on castle"}},
		"some": {
			console.Backups{Place: "/b", Next: at(9), Recent: []backup.Attempt{
				{Began: at(8), Ended: at(8).Add(3 * time.Second), Scheduled: true, Error: "the disk is <full>"},
				{ID: "b", Began: at(7), Ended: at(7).Add(1500 * time.Millisecond), Scheduled: true, Size: 3 << 30,
					Added: 5 << 20, Problems: 2},
				{ID: "a", Began: at(6), Ended: at(6).Add(time.Second), Size: 2 << 30},
			}},
			[]string{"The next is due 2026-11-23 09:00:00 UTC", "The latest was begun 2026-11-23 07:00:00 UTC",
				"failed", "the disk is &lt;full&gt;", "lacks 2", "3.0 GiB", "5.0 MiB", "schedule", "command", "made"},
		},
	} {
		o := aSystem()
		o.Backups = func(context.Context) console.Backups { return c.backups }
		f := start(t, console.Options{System: o})
		t.Log(name)
		shows(t, is(t, f.get(f.Admin, "/console/system"), http.StatusOK), c.want...)
	}
}

func TestChartsAreDrawnAndSaid(t *testing.T) {
	t.Parallel()
	f := start(t, console.Options{System: aSystem()})
	r := is(t, f.get(f.Admin, "/console/system/charts", "Hx-Request", "true"), http.StatusOK)
	if strings.Contains(r.Text, "<html") {
		t.Error("htmx gets a whole page")
	}
	shows(t, r,
		`aria-labelledby="requests-title requests-summary"`,
		"The last hour. all: now 50, at least 1, median 3, at most 50; failed &lt;x&gt;: now 0",
		"now 60 MiB", "No values yet.", `<th scope="row">failed &lt;x&gt;</th>`, `class="line line-2"`)
	// A gap ends a line, and a value alone is a dot.
	if lines, dots := strings.Count(r.Text, "<polyline"), strings.Count(r.Text, "<circle"); lines != 4 || dots != 1 {
		t.Errorf("%d lines and %d dots: %s", lines, dots, r.Text)
	}
	// Times go from left to right, and larger values are higher.
	points := regexp.MustCompile(`points="([\d.]+),([\d.]+) ([\d.]+),([\d.]+)"`).FindStringSubmatch(r.Text)
	if points == nil || len(points[1]) == len(points[3]) && points[1] >= points[3] || points[2] <= points[4] {
		t.Errorf("points %v", points)
	}
	// A chart begins about when its values do: of 15 minutes for values of 7, of 3 minutes for values of 2.
	all := regexp.MustCompile(`points="([\d.]+),`).FindAllStringSubmatch(r.Text, -1)
	for i, want := range map[int]float64{0: 304.8, len(all) - 1: 216} {
		if x, err := strconv.ParseFloat(all[i][1], 64); err != nil || math.Abs(x-want) > 20 {
			t.Errorf("line %d begins at %v, not at %v", i, x, want)
		}
	}
	if strings.Contains(r.Text, "NaN") || strings.Contains(r.Text, "Inf") {
		t.Error("a chart has no numbers")
	}
}
