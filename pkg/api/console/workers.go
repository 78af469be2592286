package console

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/listener/deadletter"
	"belfry/pkg/listener/replay"
	"belfry/pkg/missed"
)

// Workers is the data of the view Workers: the listeners of the bus, belfry's own and others, and their dead letters.
type Workers interface {
	// Listeners returns the state of all listeners, by name.
	Listeners(ctx context.Context) ([]Worker, error)
	// Copies returns how far the copies of referenced objects are behind, as far as that can be read.
	Copies(ctx context.Context) []missed.CopyLag
	// Measured returns the listeners that History has states of, sorted. Neither sends requests to the bus.
	Measured() []string
	// History returns the states of a listener in the last hour, the oldest first.
	History(name string) []Sample
	// Reset moves a listener to a position in the log, as `belfry listener reset` takes it; Invalid, NotFound.
	Reset(ctx context.Context, name, from string) (sequence uint64, err error)

	// Letters returns dead letters after an id, the oldest first and without their data: of a listener, or of all for
	// "".
	Letters(ctx context.Context, listener string, after uint64,
		limit int) (page []*deadletter.Letter, more bool, err error)
	// Letter returns a dead letter with its data; NotFound.
	Letter(ctx context.Context, id uint64) (*deadletter.Letter, error)
	// Retry redelivers a dead letter to its listener, Drop deletes it; NotFound.
	Retry(ctx context.Context, id uint64) error
	Drop(ctx context.Context, id uint64) error
}

// Worker is the state of a listener.
type Worker struct {
	replay.Listener
	Missed string // what it has missed; "" for nothing
}

// Bounds of the pages.
const (
	lettersPerPage = 50
	maxBody        = 64 << 10 // of a dead letter that is shown, in bytes
)

func (c *Console) workers(w Workers) view {
	if w == nil {
		return view{}
	}
	v := workersView{w, c.names}
	return view{name: "workers", title: "Workers", routes: []route{
		get("/workers", v.list), get("/workers/:name", v.one), post("/workers/:name/reset", v.reset),
		get("/letters", v.letters), post("/letters", v.act), get("/letters/:id", v.letter),
	}}
}

type workersView struct {
	workers Workers
	names   *namer
}

// busTime is how long a view waits for the bus.
const busTime = time.Second

// busContext returns the context of the requests that a view sends to the bus.
func (r *request) busContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(r.Context(), busTime)
}

// withoutBus returns the message of an error of the bus, for views that show the rest without it. Other errors are
// returned.
func (r *request) withoutBus(err error) (problem string, other error) {
	if err == nil {
		return "", nil
	}
	switch kind := errs.KindOf(err); {
	case kind == errs.Unavailable:
		problem, _ = messageOf(err)
	case kind == errs.Canceled && r.Context().Err() == nil:
		problem = "the bus does not reply"
	default:
		return "", err
	}
	r.RecordError(err)
	return problem, nil
}

// workerRow is a listener with its lag over time.
type workerRow struct {
	Worker
	Lag      spark
	Measured time.Time // the time of the state if the bus is unavailable; else zero
}

// workersPage is the data of the page of all listeners.
type workersPage struct {
	Rows    []workerRow
	Problem string // why the bus did not reply; the rows are earlier measurements
	Copies  []missed.CopyLag
}

func (v workersView) list(r *request) error {
	ctx, cancel := r.busContext()
	defer cancel()
	all, err := v.workers.Listeners(ctx)
	var p workersPage
	if p.Problem, err = r.withoutBus(err); err != nil {
		return err
	}
	if p.Problem != "" {
		for _, name := range v.workers.Measured() {
			if row, known := v.measured(name); known {
				p.Rows = append(p.Rows, row)
			}
		}
	} else {
		for _, w := range all {
			p.Rows = append(p.Rows, workerRow{Worker: w, Lag: lagLine("lag of "+w.Name, v.workers.History(w.Name))})
		}
		p.Copies = v.workers.Copies(ctx)
	}
	if r.Partial() {
		return r.Fragment("workers", "listeners", p)
	}
	return r.Page("workers", "Workers and listeners", p)
}

// measured returns the last measured state of a listener, and false without one.
func (v workersView) measured(name string) (row workerRow, known bool) {
	history := v.workers.History(name)
	if len(history) == 0 {
		return row, false
	}
	last := history[len(history)-1]
	row = workerRow{Lag: lagLine("lag of "+name, history), Measured: last.At}
	row.Name, row.Worker.Lag, row.Unacked = name, last.Lag, int(last.Unacked) //nolint:gosec // a count
	return row, true
}

func (v workersView) one(r *request) error {
	name, err := r.PathParam("name")
	if err != nil {
		return err
	}
	ctx, cancel := r.busContext()
	defer cancel()
	all, err := v.workers.Listeners(ctx)
	failed := err
	p := workerPage{Chart: workerChart(v.workers.History(name)).draw(time.Now())}
	if p.Problem, err = r.withoutBus(err); err != nil {
		return err
	}
	if p.Problem != "" {
		var known bool
		if p.workerRow, known = v.measured(name); known {
			return r.Page("workers_one", name, p)
		}
		return failed
	}
	for _, w := range all {
		if w.Name == name {
			p.Worker = w
			return r.Page("workers_one", w.Name, p)
		}
	}
	return notFound("there is no listener %s: it has no consumer on the bus", httpkit.Truncate(name, 100))
}

// workerPage is the data of a listener's page.
type workerPage struct {
	workerRow
	Chart   drawnChart
	Problem string // why the bus did not reply; the state is an earlier measurement
}

// workerChart is the chart of a listener's lag and of its events in flight.
func workerChart(history []Sample) Chart {
	lag, flight := Series{Name: "lag"}, Series{Name: "in flight"}
	for _, s := range history {
		lag.Points = append(lag.Points, Point{s.At, float64(s.Lag)})
		flight.Points = append(flight.Points, Point{s.At, float64(s.Unacked)})
	}
	return Chart{ID: "history", Title: "Lag", Unit: "events", Series: []Series{lag, flight}}
}

func (v workersView) reset(r *request) error {
	name, err := r.PathParam("name")
	if err != nil {
		return err
	}
	form, err := r.Form()
	if err != nil {
		return err
	}
	from := strings.TrimSpace(form.Get("from"))
	if from == "" {
		return errs.New(errs.Invalid,
			"enter where the listener begins: a sequence, a time, an age such as 36h, all, or new")
	}
	sequence, err := v.workers.Reset(r.Context(), name, from)
	if err != nil {
		return err
	}
	r.Log(slog.LevelInfo, "a listener was reset in the console", slog.String("listener", name),
		slog.Uint64("sequence", sequence), slog.String("actor", r.Session.User.UUID))
	return r.Redirect(pathOf("workers", name), fmt.Sprintf("%s reads the log from sequence %d on.", name, sequence))
}

// letterRow is a dead letter with its object.
type letterRow struct {
	*deadletter.Letter
	Object named
}

func (v workersView) row(l *deadletter.Letter) letterRow {
	row := letterRow{l, v.names.of(l.Store, l.UUID)}
	row.Object.Linked = true
	return row
}

// letterPage is a page of dead letters.
type letterPage struct {
	Listener string
	Letters  []letterRow
	Next     string // URL of the next page; "" for none
	First    bool
}

// objects implements showsObjects.
func (p letterPage) objects() (all []*named) {
	for i := range p.Letters {
		all = append(all, &p.Letters[i].Object)
	}
	return all
}

func (v workersView) letters(r *request) error {
	p := letterPage{Listener: r.Query("listener"), First: true}
	var after uint64
	if text := r.Query("after"); text != "" {
		var err error
		if after, err = strconv.ParseUint(text, 10, 63); err != nil {
			return errs.New(errs.Invalid, "after is the number of a dead letter")
		}
		p.First = false
	}
	ctx, cancel := r.busContext()
	defer cancel()
	page, more, err := v.workers.Letters(ctx, p.Listener, after, lettersPerPage)
	if err != nil {
		return err
	}
	for _, l := range page {
		p.Letters = append(p.Letters, v.row(l))
	}
	if more {
		p.Next = lettersURL(p.Listener, page[len(page)-1].ID)
	}
	return r.Page("letters", "Dead letters", p)
}

// lettersURL is the URL of a page of dead letters.
func lettersURL(listener string, after uint64) string {
	query := url.Values{}
	if listener != "" {
		query.Set("listener", listener)
	}
	if after > 0 {
		query.Set("after", strconv.FormatUint(after, 10))
	}
	if len(query) == 0 {
		return pathOf("letters")
	}
	return pathOf("letters") + "?" + query.Encode()
}

func (v workersView) letter(r *request) error {
	text, err := r.PathParam("id")
	if err != nil {
		return err
	}
	id, err := strconv.ParseUint(text, 10, 63)
	if err != nil || id == 0 { // the bus treats 0 as no number
		return notFound("there is no dead letter with this number")
	}
	ctx, cancel := r.busContext()
	defer cancel()
	l, err := v.workers.Letter(ctx, id)
	if err != nil {
		return err
	}
	one := oneLetter{v.row(l), readable(l.Data, maxBody)}
	return r.Page("letters_one", fmt.Sprintf("Dead letter %d", l.ID), &one)
}

// oneLetter is the data of the page of a dead letter.
type oneLetter struct {
	letterRow
	Body string
}

// objects implements showsObjects.
func (l *oneLetter) objects() []*named { return []*named{&l.Object} }

// act retries or drops the dead letters of a form.
func (v workersView) act(r *request) error {
	form, err := r.Form()
	if err != nil {
		return err
	}
	do, done := v.workers.Retry, "to be redelivered"
	switch form.Get("act") {
	case "retry":
	case "drop":
		do, done = v.workers.Drop, "dropped"
	default:
		return errs.New(errs.Invalid, "choose what to do with the dead letters: retry or drop")
	}
	ids := form["id"]
	if len(ids) == 0 || len(ids) > lettersPerPage {
		return errs.New(errs.Invalid, "choose 1 to %d dead letters", lettersPerPage)
	}
	n, problem := 0, ""
	for _, text := range ids {
		id, err := strconv.ParseUint(text, 10, 63)
		if err != nil || id == 0 {
			return errs.New(errs.Invalid, "ids: expected the numbers of dead letters")
		}
		err = do(r.Context(), id)
		switch errs.KindOf(err) {
		case errs.NotFound, errs.TooLarge:
			problem = " " + err.Error() + "."
			continue
		}
		if err != nil {
			return err // the next one would fail, too
		}
		n++
	}
	r.Log(slog.LevelInfo, "dead letters were handled in the console", slog.String("act", form.Get("act")),
		slog.Any("ids", ids), slog.Int("done", n), slog.String("actor", r.Session.User.UUID))
	return r.Redirect(lettersURL(form.Get("listener"), 0),
		fmt.Sprintf("%d of %s %s.%s", n, count.Of(len(ids), "dead letter"), done, problem))
}
