package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Operation is the work of a command. The process that serves the stores does it, if there is one, and otherwise the
// command itself, with the stores open. The control request comes from this value, too:
//
//	command ──► Operation.Do ──► POST /{name} of the process that serves ──► Run
//	                         └─► the stores, opened ───────────────────────► Run
//
// The request has In as JSON. The reply has a line of JSON for each report of progress, P, and at last one with Out or
// the failure.
type Operation[In, Out, P any] struct {
	Name      string // of the work: in the lock of the data folder, in the log, and in the path of the control request
	Storeless bool   // no store is opened
	Own       bool   // every command does it itself, without the stores, also while they are served
	Served    string // only the process that serves does it; the text explains the consequence if no process serves
	Max       int64  // bytes of In as JSON; 0: 4 KiB

	// of the command, which does it on the bus as a user of its own; the process that serves has no part in it
	Bus  Connection
	Bare bool // the command needs no configuration

	Reads   func(in In) bool                    // it changes no object; nil: it may
	Creates func(in In) bool                    // the stores need not exist yet; nil: they do
	Check   func(c *config.Config, in In) error // validates the request before stores are opened; nil: no check
	Run     func(ctx context.Context, at *Place, in In, report func(P)) (*Out, error)
	Doing   func(in In) string // the name in the log; nil: Name

	Input  func(*In) *io.Reader // the data after In in the request; nil: none
	Output func(*In) *io.Writer // replaces the lines of the reply; nil: no output
	Broken string               // the consequence of a reply that ends too early, for the error; "": none

	// For the command line. An operation with a Help has a command of the same name. Its flags are the fields of In,
	// with tags of kong, and it prints Out by Text, or as JSON.
	Help     string
	Prints   Printed
	Text     func(w io.Writer, in In, out *Out) error
	Show     func(s Streams, in In) (report func(P), end func(error)) // shows the progress; nil: not shown
	Commands []Command[In, Out]                                       // with flags of their own

	Console *Console[In, Out] // nil: admins don't run it in the console
}

// Serving returns the place of a process that serves, until done is called. With reads it is for work that changes no
// object.
type Serving func(reads bool) (at *Place, done func())

// none is the progress of work without reports, and the request of an operation without parameters.
type none = struct{}

// Request is an Operation of any types.
type Request interface {
	// Route is the route of the control request, "" for none.
	Route() string
	Handle(log *slog.Logger, at Serving) http.HandlerFunc
	Lines() []Line
	Job(h *Host) *Job
}

// Operations are all operations, in the order of their commands.
var Operations = []Request{
	&Reload, &Verify, &Access, &Schema, &Users, &Mail, &Keys, &Import, &Export, &Migration, &Backup, &BackupList,
	&BackupVerify, &RestoreBackup, &Examine,
	&LetterList, &LetterShow, LetterRetry, LetterDrop, &ListenerList, &ListenerReset, &ListenerConfirm, &BusSetup,
	BusRole, BusAccount, &EventTail, &EventGet, &EventErase,
}

// Do does the operation for a configuration. Errors: those of Check, of opening the stores, and of Run; Unavailable if
// the process that serves does not reply.
func (o *Operation[In, Out, P]) Do(ctx context.Context, c *config.Config, in In,
	report ...func(P)) (out *Out, err error) {
	if o.Served != "" {
		return o.askServer(ctx, c.Data, in, report)
	}
	if o.Check != nil {
		if err := o.Check(c, in); err != nil {
			return nil, err
		}
	}
	p, err := plan.Compile(c)
	if err == nil && !o.Storeless && !o.Own && (o.Creates == nil || !o.Creates(in)) {
		err = open.HasData(p)
	}
	if err != nil {
		return nil, err
	}
	direct := func(set *store.Set) (err error) {
		out, err = o.Run(ctx, placeOf(p, set), in, all(report))
		return err
	}
	served := func(h hold.Holder) (err error) {
		out, err = o.Ask(ctx, h, in, report...)
		return err
	}
	switch {
	case o.Own:
		err = direct(nil)
	case o.Storeless:
		err = withoutStores(p.Config.Data, direct, served)
	default:
		err = open.WithStores(ctx, p, o.Name, direct, served)
	}
	return out, err
}

// withoutStores is open.WithStores for an operation without stores.
func withoutStores(folder string, direct func(*store.Set) error, served func(hold.Holder) error) error {
	h, err := hold.HolderOf(folder)
	switch {
	case err != nil:
		return err
	case h != nil && h.Control != "":
		return served(*h)
	}
	return direct(nil)
}

// askServer requests the operation from the process that serves a data folder.
func (o *Operation[In, Out, P]) askServer(ctx context.Context, folder string, in In, report []func(P)) (*Out, error) {
	if _, err := os.Stat(folder); err != nil {
		return nil, errs.New(errs.Invalid, "there is no data folder %s; check --config and --data", folder)
	}
	h, err := hold.HolderOf(folder)
	switch {
	case err != nil:
		return nil, err
	case h == nil:
		return nil, errs.New(errs.Unavailable, "no belfry serves the data folder %s: %s", folder, o.Served)
	case h.Control == "":
		return nil, errs.New(errs.Unavailable,
			"the data folder %s is in use by %s, which does not serve; if it is starting or stopping, try again",
			folder, h)
	}
	return o.Ask(ctx, *h, in, report...)
}

// all is one function that calls all of them.
func all[P any](report []func(P)) func(P) {
	return func(p P) {
		for _, r := range report {
			r(p)
		}
	}
}

// line is one of the lines of a reply.
type line[Out, P any] struct {
	Progress *P   `json:"progress,omitempty"`
	Answer   *Out `json:"answer,omitempty"`
	hold.Failure
}

// Ask requests the operation from a process that serves.
func (o *Operation[In, Out, P]) Ask(ctx context.Context, h hold.Holder, in In, report ...func(P)) (*Out, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var request io.Reader = bytes.NewReader(data)
	if o.Input != nil {
		request = io.MultiReader(request, *o.Input(&in))
	}
	body, err := hold.Control(ctx, h, o.path(), request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	broken := func(err error) error {
		return errs.Wrap(err, errs.Unavailable, "the reply of %s is incomplete: the connection was closed%s", h,
			o.Broken)
	}
	if o.Output != nil {
		if _, err := io.Copy(*o.Output(&in), body); err != nil {
			return nil, broken(err)
		}
		return new(Out), nil
	}
	for lines := json.NewDecoder(body); ; {
		var next line[Out, P]
		switch err := lines.Decode(&next); {
		case err != nil:
			return nil, broken(err)
		case next.Progress != nil:
			all(report)(*next.Progress)
		case next.Answer != nil:
			if r, may := any(next.Answer).(interface{ refusal(of hold.Holder) error }); may {
				return next.Answer, r.refusal(h)
			}
			return next.Answer, nil
		default:
			return nil, next.Err()
		}
	}
}

// path is the path of the control request.
func (o *Operation[In, Out, P]) path() string { return "/" + strings.ReplaceAll(o.Name, " ", "-") }

// place returns the place of a process that serves for a request, until done is called.
func (o *Operation[In, Out, P]) place(serving Serving, in In) (at *Place, done func()) {
	return serving(o.Reads != nil && o.Reads(in))
}

// Route implements Request.
func (o *Operation[In, Out, P]) Route() string {
	if o.Own || o.Bare || o.Bus != NoConnection {
		return ""
	}
	return "POST " + o.path()
}

// Handle serves the control request. The work ends when its client disconnects.
func (o *Operation[In, Out, P]) Handle(log *slog.Logger, at Serving) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		limited := io.LimitReader(r.Body, cmp.Or(o.Max, 4<<10))
		decoder := json.NewDecoder(limited)
		err := decoder.Decode(&in)
		if o.Input != nil {
			*o.Input(&in) = io.MultiReader(decoder.Buffered(), r.Body)
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		if o.Output != nil {
			o.write(log, w, r, at, in, err)
			return
		}
		lines := json.NewEncoder(w)
		var last line[Out, P]
		if err == nil {
			place, done := o.place(at, in)
			defer done()
			last.Answer, err = o.Run(r.Context(), place, in, func(p P) {
				if lines.Encode(line[Out, P]{Progress: &p}) == nil {
					_ = http.NewResponseController(w).Flush()
				}
			})
		}
		if err != nil {
			last = line[Out, P]{Failure: hold.FailureOf(log, o.doing(in), err)}
		}
		_ = lines.Encode(last)
	}
}

// write replies with the output of the operation. A failure after the first byte closes the connection, so that an
// incomplete reply is recognized.
func (o *Operation[In, Out, P]) write(log *slog.Logger, w http.ResponseWriter, r *http.Request, at Serving, in In,
	err error) {
	written := &counter{Writer: w}
	*o.Output(&in) = written
	if err == nil {
		place, done := o.place(at, in)
		defer done()
		_, err = o.Run(r.Context(), place, in, func(P) {})
	}
	if err == nil {
		return
	}
	failure := hold.FailureOf(log, o.doing(in), err)
	if written.n > 0 {
		panic(http.ErrAbortHandler)
	}
	http.Error(w, failure.Detail, http.StatusNotFound)
}

func (o *Operation[In, Out, P]) doing(in In) string {
	if o.Doing != nil {
		return o.Doing(in)
	}
	return o.Name
}

// counter counts the written bytes.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}
