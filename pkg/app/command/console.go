package command

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/plan"
	"belfry/pkg/operations/bulk"
	"belfry/pkg/store"
)

// Console is how admins run an operation in the console. Their form has the fields of In, see formFields. The console
// has a page for it, and one run at a time in all processes that share the stores; or, with a Done, a form alone.
type Console[In, Out any] struct {
	Title  string // of the page, which the navigation has; "" with a Done
	Path   string // below /console; "": the name. Without a page it begins with the view that has the form
	Kind   string // what a run is: "verification"; "": the name
	About  string // what a run does; "": the help of the command
	Button string // "": "Run now"

	Offered func(c *config.Config) bool               // with which configurations; nil: with all
	Choices func(p *plan.Plan, field string) []string // of the texts; nil: they are free
	// of an operation that is quick: what happened, which the next page shows
	Done  func(out *Out) string
	Short func(out Out) Out // what other processes show of a result; nil: all of it
	// what stays of a run that ends early, as a sentence; nil: nothing
	Stays func(in In) string
}

// Host is the process whose console runs operations.
type Host struct {
	Ctx     context.Context // ends the runs
	Log     *slog.Logger
	Now     func() *Place       // with what is served now
	Serving Serving             // the same, which stays complete meanwhile
	Records func() *store.Store // has the state of runs, for all processes
	Uploads *bulk.Uploads       // that the console has received
}

// Job is an operation in the console of a process, for as long as that lives.
type Job struct {
	console.Operation
	Offered func(c *config.Config) bool
	Wait    func() // for the runs of this process
}

// untypedConsole is a Console without its types.
type untypedConsole struct {
	title, path, kind, about, button string

	offered func(c *config.Config) bool
	choices func(p *plan.Plan, field string) []string
	done    func(out any) string
	short   func(out any) any
	stays   func(in any) string
}

// Job returns the operation as the console has it; nil if admins don't run it.
func (u *Untyped) Job(h *Host) *Job {
	c := u.console
	if c == nil {
		return nil
	}
	name := strings.TrimPrefix(u.path(), "/")
	j := &Job{Offered: c.offered, Wait: func() {}, Operation: console.Operation{
		Path: cmp.Or(c.path, name), Title: c.title, Kind: cmp.Or(c.kind, u.name), About: cmp.Or(c.about, u.help),
		Button: cmp.Or(c.button, "Run now"),
		Fields: func() []console.Field { return shownFields(u.request, h.Now().Plan, c.choices) },
	}}
	if c.done == nil {
		r := &consoleRuns{u, h, newRuns(h, j.Kind)}
		r.short = c.short
		j.Runs, j.Wait = r, r.running.Wait
		return j
	}
	var last atomic.Pointer[console.Done]
	j.Last = last.Load
	j.Do = func(ctx context.Context, form url.Values) (string, error) {
		says, err := u.atOnce(ctx, h, form)
		last.Store(&console.Done{At: time.Now(), Says: says, Err: err})
		return says, err
	}
	return j
}

// atOnce does an operation that has no runs, and returns what happened.
func (u *Untyped) atOnce(ctx context.Context, h *Host, form url.Values) (string, error) {
	in, err := readForm(u.request, form)
	if err != nil {
		return "", err
	}
	at, done := u.place(h.Serving, in)
	defer done()
	out, err := u.run(ctx, at, in, func(any) {})
	if err != nil {
		return "", err
	}
	return u.console.done(out), nil
}

// consoleRuns implements console.Runs.
type consoleRuns struct {
	of   *Untyped
	host *Host
	*runs
}

// Start implements console.Runs.
func (r *consoleRuns) Start(request context.Context, by, id string, form url.Values) error {
	in, err := readForm(r.of.request, form)
	if err != nil {
		return err
	}
	return r.start(request, by, id, state{In: in, Progress: fresh(r.of.progress)},
		func(ctx context.Context, change func(func(*state))) error {
			at, done := r.of.place(r.host.Serving, in)
			defer done()
			at.Uploads = r.host.Uploads
			at.Current = func() *store.Set { return r.host.Now().Set }
			out, err := r.of.run(ctx, at, in, func(p any) {
				change(func(now *state) { now.Progress = p })
			})
			if err == nil {
				change(func(now *state) { now.Out = orNil(out) })
			}
			return err
		})
}

// Last implements console.Runs.
func (r *consoleRuns) Last(ctx context.Context) (*console.Run, error) {
	last, err := r.current(ctx, r.of.readState)
	if err != nil || last == nil || last.State.In == nil {
		return nil, err
	}
	shown, s := last.Run, last.State
	shown.In, shown.Progress = valueOf(s.In), valueOf(s.Progress)
	if s.Out != nil {
		shown.Out, shown.Write = s.Out, func(w io.Writer) error { return r.of.print(w, s.In, s.Out) }
	}
	if stays := r.of.console.stays; stays != nil {
		shown.Stays = stays(s.In)
	}
	return &shown, nil
}

// readState reads the state of a run of another process.
func (u *Untyped) readState(data json.RawMessage) (s state, err error) {
	var parts struct {
		In       json.RawMessage `json:"in"`
		Progress json.RawMessage `json:"progress"`
		Out      json.RawMessage `json:"out"`
	}
	if _, err := readIf(data, &parts); err != nil {
		return s, err
	}
	in, out := fresh(u.request), fresh(u.result)
	s.Progress = fresh(u.progress)
	if read, err := readIf(parts.In, in); err != nil {
		return s, err
	} else if read {
		s.In = in
	}
	if _, err := readIf(parts.Progress, s.Progress); err != nil {
		return s, err
	}
	if read, err := readIf(parts.Out, out); err != nil {
		return s, err
	} else if read {
		s.Out = out
	}
	return s, nil
}

// print writes a result for people.
func (u *Untyped) print(w io.Writer, in, out any) error {
	if u.text != nil {
		return u.text(w, in, out)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}
