package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Operation is the work of a command. The process that serves the stores does it, if there is one, and otherwise the command itself, with
// the stores open. The control request comes from this value, too:
//
//	command ──► Operation.Do ──► POST /{path} of the process that serves ──► Run
//	                         └─► the stores, opened ───────────────────────► Run
//
// The request has In as JSON. The reply has a line of JSON for each report of progress, P, and at last one with Out or the failure.
type Operation[In, Out, P any] struct {
	Name string // of the work: in the lock of the data folder, and in the log
	Path string // of the control request
	Max  int64  // bytes of In as JSON; 0: 4 KiB

	Check func(c *config.Config, in In) error // refuses what no store is opened for; nil: nothing
	Run   func(ctx context.Context, at *Place, in In, report func(P)) (*Out, error)
	Doing func(in In) string // the name in the log; nil: Name

	Input  func(*In) *io.Reader // what follows In in the request; nil: nothing
	Output func(*In) *io.Writer // takes the place of the lines of the reply; nil: nothing

	// Of a command that is no more than this operation: In has its flags. The output is Out as JSON, or its text.
	Help string                                                                    // "": the command is in cmd/belfry
	Show func(w io.Writer, terminal bool, in In) (report func(P), end func(error)) // shows the progress; nil: nothing

	Storeless bool   // no store is opened
	Broken    string // says of a reply that ends too early what that means; "": nothing
}

// none is the progress of work that reports none, and the request of what needs none.
type none = struct{}

// Request is an Operation, of whatever types.
type Request interface {
	Route() string
	Handle(log *slog.Logger, at func() *Place) http.HandlerFunc
	Line() Line
}

// Operations are those that the process serves.
func Operations() []Request {
	return []Request{&Verify, &Backup, &Export, &Import, &Access, &Schema, &Users, &Mail, &Keys, &Examine, &Reload}
}

// Ask does an Operation.
type Ask[In, Out, P any] func(ctx context.Context, in In, report ...func(P)) (*Out, error)

// Do does the operation for a configuration. Errors: those of Check, of opening the stores, and of Run; Unavailable if the process that
// serves does not reply.
func (o *Operation[In, Out, P]) Do(ctx context.Context, c *config.Config, in In, report ...func(P)) (out *Out, err error) {
	if o.Check != nil {
		if err := o.Check(c, in); err != nil {
			return nil, err
		}
	}
	err = o.With(ctx, c, false, func(ask Ask[In, Out, P]) error {
		out, err = ask(ctx, in, report...)
		return err
	})
	return out, err
}

// With calls do with what does the operation, as often as it likes. mayCreate says that the stores need not exist yet.
func (o *Operation[In, Out, P]) With(ctx context.Context, c *config.Config, mayCreate bool, do func(Ask[In, Out, P]) error) error {
	p, err := plan.Compile(c)
	if err == nil && !mayCreate && !o.Storeless {
		err = open.HasData(p)
	}
	if err != nil {
		return err
	}
	direct := func(set *store.Set) error {
		at := placeOf(p, set)
		return do(func(ctx context.Context, in In, report ...func(P)) (*Out, error) {
			return o.Run(ctx, at, in, all(report))
		})
	}
	served := func(h hold.Holder) error {
		return do(func(ctx context.Context, in In, report ...func(P)) (*Out, error) { return o.Ask(ctx, h, in, report...) })
	}
	if !o.Storeless {
		return open.WithStoresOf(ctx, p, o.Name, direct, served)
	}
	h, err := hold.HolderOf(p.Config.Data)
	switch {
	case err != nil:
		return err
	case h != nil && h.Control != "":
		return served(*h)
	}
	return direct(nil)
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

// Ask has a process that serves do the operation.
func (o *Operation[In, Out, P]) Ask(ctx context.Context, h hold.Holder, in In, report ...func(P)) (*Out, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var request io.Reader = bytes.NewReader(data)
	if o.Input != nil {
		request = io.MultiReader(request, *o.Input(&in))
	}
	body, err := hold.Control(ctx, h, o.Path, request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	broken := func(err error) error {
		return errs.Wrap(err, errs.Unavailable, "the reply of %s is incomplete: the connection was closed%s", h, o.Broken)
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
			return next.Answer, nil
		default:
			return nil, next.Err()
		}
	}
}

// Route is that of the control request.
func (o *Operation[In, Out, P]) Route() string { return "POST " + o.Path }

// Handle serves the control request. The work ends when its client disconnects.
func (o *Operation[In, Out, P]) Handle(log *slog.Logger, at func() *Place) http.HandlerFunc {
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
			last.Answer, err = o.Run(r.Context(), at(), in, func(p P) {
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

// write replies with what the operation writes. A failure after the first byte closes the connection, so that an incomplete reply is
// recognized.
func (o *Operation[In, Out, P]) write(log *slog.Logger, w http.ResponseWriter, r *http.Request, at func() *Place, in In, err error) {
	written := &counter{Writer: w}
	*o.Output(&in) = written
	if err == nil {
		_, err = o.Run(r.Context(), at(), in, func(P) {})
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

// counter counts what is written.
type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.Writer.Write(p)
	c.n += int64(n)
	return n, err
}
