package command

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/url"
	"strings"

	"belfry/config"
	"belfry/pkg/api/console"
	"belfry/pkg/app/plan"
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
}

// Job is an operation in the console of a process, for as long as that lives.
type Job struct {
	console.Operation
	Offered func(c *config.Config) bool
	Wait    func() // for the runs of this process
}

// Job returns the operation as the console has it; nil if admins don't run it.
func (o *Operation[In, Out, P]) Job(h *Host) *Job {
	c := o.Console
	if c == nil {
		return nil
	}
	name := strings.TrimPrefix(o.path(), "/")
	j := &Job{Offered: c.Offered, Wait: func() {}, Operation: console.Operation{
		Path: cmp.Or(c.Path, name), Title: c.Title, Kind: cmp.Or(c.Kind, o.Name), About: cmp.Or(c.About, o.Help),
		Button: cmp.Or(c.Button, "Run now"),
		Fields: func() []console.Field { return shownFields[In](h.Now().Plan, c.Choices) },
	}}
	if c.Done == nil {
		r := &consoleRuns[In, Out, P]{o, h, newRuns[state[In, Out, P]](h, j.Kind)}
		if c.Short != nil {
			r.short = func(s state[In, Out, P]) state[In, Out, P] {
				if s.Out != nil {
					short := c.Short(*s.Out)
					s.Out = &short
				}
				return s
			}
		}
		j.Runs, j.Wait = r, r.running.Wait
		return j
	}
	j.Do = func(ctx context.Context, form url.Values) (string, error) {
		in, err := readForm[In](form)
		if err != nil {
			return "", err
		}
		at, done := o.place(h.Serving, in)
		defer done()
		out, err := o.Run(ctx, at, in, func(P) {})
		if err != nil {
			return "", err
		}
		return c.Done(out), nil
	}
	return j
}

// state is what is kept of a run.
type state[In, Out, P any] struct {
	In       *In  `json:"in"` // nil: of a release that kept other states
	Progress P    `json:"progress"`
	Out      *Out `json:"out,omitempty"`
}

// consoleRuns implements console.Runs.
type consoleRuns[In, Out, P any] struct {
	of   *Operation[In, Out, P]
	host *Host
	*runs[state[In, Out, P]]
}

// Start implements console.Runs.
func (r *consoleRuns[In, Out, P]) Start(request context.Context, by, id string, form url.Values) error {
	in, err := readForm[In](form)
	if err != nil {
		return err
	}
	return r.start(request, by, id, state[In, Out, P]{In: &in},
		func(ctx context.Context, change func(func(*state[In, Out, P]))) error {
			at, done := r.of.place(r.host.Serving, in)
			defer done()
			at.Current = func() *store.Set { return r.host.Now().Set }
			out, err := r.of.Run(ctx, at, in, func(p P) {
				change(func(now *state[In, Out, P]) { now.Progress = p })
			})
			if err == nil {
				change(func(now *state[In, Out, P]) { now.Out = out })
			}
			return err
		})
}

// Last implements console.Runs.
func (r *consoleRuns[In, Out, P]) Last(ctx context.Context) (*console.Run, error) {
	last, err := r.current(ctx)
	if err != nil || last == nil || last.State.In == nil {
		return nil, err
	}
	shown, s := last.Run, last.State
	shown.In, shown.Progress = *s.In, s.Progress
	if s.Out != nil {
		shown.Out, shown.Write = s.Out, func(w io.Writer) error { return r.of.print(w, *s.In, s.Out) }
	}
	if stays := r.of.Console.Stays; stays != nil {
		shown.Stays = stays(*s.In)
	}
	return &shown, nil
}

// print writes a result for people.
func (o *Operation[In, Out, P]) print(w io.Writer, in In, out *Out) error {
	if o.Text != nil {
		return o.Text(w, in, out)
	}
	text, err := json.MarshalIndent(out, "", "  ")
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}
