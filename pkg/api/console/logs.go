package console

import (
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"belfry/internal/logbuffer"
	"belfry/pkg/errs"
)

// Logs is the data of the view Logs: the latest lines that this process has logged.
type Logs struct {
	Lines   *logbuffer.Buffer
	Process string // names the process among others: "belfry-1, process 7, started ..."
	Level   string // from which on it logs
	File    string // of the configuration
}

const (
	logPage     = 100 // lines
	maxLogQuery = 200 // bytes of a filter
	debugLevel  = "all"
)

// logLevels are the choices of the filter, by the least level that they show.
var logLevels = []struct {
	Name, Title string
	least       slog.Level
}{
	{debugLevel, "All levels", slog.LevelDebug - 1000},
	{"info", "Info and above", slog.LevelInfo},
	{"warn", "Warnings and errors", slog.LevelWarn},
	{"error", "Errors", slog.LevelError},
}

func (c *Console) logs(o *Logs) view {
	if o == nil || o.Lines == nil {
		return view{}
	}
	v := logsView{*o}
	return view{name: "logs", title: "Logs", routes: []route{get("/logs", v.show)}}
}

type logsView struct{ Logs }

// logLine is a line as the page shows it.
type logLine struct {
	logbuffer.Line
	Name  string // of the level
	Class string // of the tag
	Of    string // path of the page with the lines of the same request; "": no request, or the page has them
}

// logsPage is the data of the page.
type logsPage struct {
	Logs
	Stats    logbuffer.Stats
	Most     int64
	Levels   []logLevel
	Request  string
	Words    string
	Filtered bool
	Found    []logLine
	Older    string // path of the page with older lines; "": no older lines
}

type logLevel struct {
	Name, Title string
	Current     bool
}

func (v logsView) show(r *request) error {
	p := logsPage{Logs: v.Logs, Stats: v.Lines.Stats(), Most: logbuffer.Most,
		Request: strings.TrimSpace(r.Query("request")), Words: strings.TrimSpace(r.Query("q"))}
	if len(p.Request) > maxLogQuery || len(p.Words) > maxLogQuery {
		return errs.New(errs.Invalid, "a filter has at most %d bytes", maxLogQuery)
	}
	chosen, least := debugLevel, logLevels[0].least
	for _, l := range logLevels {
		if l.Name == r.Query("level") {
			chosen, least = l.Name, l.least
		}
	}
	for _, l := range logLevels {
		p.Levels = append(p.Levels, logLevel{l.Name, l.Title, l.Name == chosen})
	}
	var before uint64
	if text := r.Query("before"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return errs.New(errs.Invalid, "before: expected the number of a line")
		}
		before = n
	}
	p.Filtered = p.Request != "" || p.Words != "" || chosen != debugLevel
	words := strings.ToLower(p.Words)
	found, more := v.Lines.Select(before, logPage, func(l *logbuffer.Line) bool {
		return l.Level >= least && (p.Request == "" || l.Request == p.Request) && (words == "" || contains(l, words))
	})
	for _, l := range found {
		p.Found = append(p.Found, shownLine(l, p.Request))
	}
	if more {
		older := url.Values{"level": {chosen}, "request": {p.Request}, "q": {p.Words},
			"before": {strconv.FormatUint(found[len(found)-1].Sequence, 10)}}
		p.Older = pathOf("logs") + "?" + older.Encode()
	}
	return r.Page("logs", "Logs", p)
}

// contains reports whether a line has a text in lower case.
func contains(l *logbuffer.Line, words string) bool {
	return strings.Contains(strings.ToLower(l.Message), words) || strings.Contains(strings.ToLower(l.Attrs), words)
}

func shownLine(l logbuffer.Line, request string) logLine {
	shown := logLine{Line: l, Name: strings.ToLower(l.Level.String())}
	switch {
	case l.Level >= slog.LevelError:
		shown.Class = "bad"
	case l.Level >= slog.LevelWarn:
		shown.Class = "warn"
	}
	if l.Request != "" && l.Request != request {
		shown.Of = logOf(l.Request)
	}
	return shown
}

// logOf returns the path of the page with the lines of a request.
func logOf(request string) string { return pathOf("logs") + "?request=" + url.QueryEscape(request) }

// Moment is the time of a line to the millisecond, in UTC.
func (l logLine) Moment() string { return l.At.UTC().Format("2006-01-02 15:04:05.000") }

// Since is the time of the oldest line that is kept.
func (p logsPage) Since() string {
	if p.Stats.Oldest.IsZero() {
		return ""
	}
	return p.Stats.Oldest.UTC().Format(time.DateTime)
}

// logOfFailure returns the path of the page with the lines about a failed request; "" for clients who may not see it.
func (r *request) logOfFailure() string {
	if !r.admin {
		return ""
	}
	for _, l := range r.console.nav {
		if l.view == "logs" {
			return logOf(r.ID)
		}
	}
	return ""
}
