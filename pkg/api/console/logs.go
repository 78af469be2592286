package console

import (
	"fmt"
	"log/slog"
	"net/http"
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
	logPage     = 100  // lines
	maxFollowed = 1000 // lines of a page that adds new ones to itself
	maxLogQuery = 200  // bytes of a filter
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
	Chosen   string // level; "": all
	Request  string
	Words    string
	Filtered bool
	Found    []logLine
	Newer    string // path of newer lines, which the page adds to itself; "": it adds none
	Latest   string // path of the page without older lines, if more have come than the page adds
	Older    string // path of the page with older lines; "": no older lines
}

type logLevel struct {
	Name, Title, URL string
	Current          bool
}

func (v logsView) show(r *request) error {
	p := logsPage{Logs: v.Logs, Stats: v.Lines.Stats(), Most: logbuffer.Most,
		Request: strings.TrimSpace(r.Query("request")), Words: strings.TrimSpace(r.Query("q"))}
	if len(p.Request) > maxLogQuery || len(p.Words) > maxLogQuery {
		return errs.New(errs.Invalid, "a filter has at most %d bytes", maxLogQuery)
	}
	least := p.choose(r.Query("level"))
	before, err := numberOf(r, "before")
	if err != nil {
		return err
	}
	after, err := numberOf(r, "after")
	if err != nil {
		return err
	}
	shown, err := numberOf(r, "shown")
	if err != nil {
		return err
	}
	words := strings.ToLower(p.Words)
	found, more := v.Lines.Select(after, before, logPage, func(l *logbuffer.Line) bool {
		return l.Level >= least && (p.Request == "" || l.Request == p.Request) && (words == "" || contains(l, words))
	})
	last := p.Stats.Dropped + uint64(p.Stats.Lines) //nolint:gosec // a count
	if r.Partial() {
		if len(found) == 0 && after <= last {
			r.WriteHeader(http.StatusNoContent)
			return nil
		}
		// Lines were left out, or another process replies, or this one has restarted.
		if shown += uint64(len(found)); more || after > last || shown > maxFollowed {
			p.Latest = p.url(p.Chosen)
		}
	}
	for _, l := range found {
		p.Found = append(p.Found, shownLine(l, p.Request))
		last = max(last, l.Sequence)
	}
	if before == 0 && p.Latest == "" {
		p.Newer = p.url(p.Chosen, "after", last, "shown", max(shown, uint64(len(found))))
	}
	if r.Partial() {
		return r.Fragment("logs", "log_lines", p)
	}
	if more {
		p.Older = p.url(p.Chosen, "before", found[len(found)-1].Sequence)
	}
	return r.Page("logs", "Logs", p)
}

// choose chooses a level by its name, and returns the least one of lines.
func (p *logsPage) choose(name string) (least slog.Level) {
	least = logLevels[0].least
	for _, l := range logLevels[1:] {
		if l.Name == name {
			p.Chosen, least = l.Name, l.least
		}
	}
	for _, l := range logLevels {
		shown := l.Name
		if shown == debugLevel {
			shown = ""
		}
		p.Levels = append(p.Levels, logLevel{l.Name, l.Title, p.url(shown), shown == p.Chosen})
	}
	p.Filtered = p.Request != "" || p.Words != "" || p.Chosen != ""
	return least
}

// url returns the path of the page with a level and numbers by their names.
func (p *logsPage) url(level string, numbers ...any) string {
	query := parameters("level", level, "request", p.Request, "q", p.Words)
	for i := 0; i+1 < len(numbers); i += 2 {
		query.Set(fmt.Sprint(numbers[i]), fmt.Sprint(numbers[i+1]))
	}
	return withQuery(pathOf("logs"), query)
}

// numberOf returns a parameter that counts lines; 0 without it.
func numberOf(r *request, name string) (uint64, error) {
	text := r.Query(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, errs.New(errs.Invalid, "%s: expected the number of a line", name)
	}
	return n, nil
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
