package command

import (
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"
)

// Flags are the flags and arguments of a command: a pointer to a struct with the tags of kong. Each command line has a
// copy. They may have further methods: Show, as in an Operation, and Finish, which gets the error with which the
// command ends, and returns it.
type Flags[In, Out any] interface {
	// Request returns the request of the command. It is called before the configuration is read.
	Request(ctx context.Context, s Streams) (In, error)
	// Print prints the result.
	Print(s Streams, out *Out) error
}

// lineFlags are the flags of one command line, without their types.
type lineFlags struct {
	fields  any // a pointer to the struct with the tags of kong
	request func(ctx context.Context, s Streams) (in any, err error)
	print   func(s Streams, out any) error
	show    func(s Streams) (report func(any), end func(error)) // nil: as the operation does
}

// untypedFlags returns Flags without their types.
func untypedFlags[In, Out, P any](fields any) lineFlags {
	typed := fields.(Flags[In, Out])
	f := lineFlags{
		fields: fields,
		request: func(ctx context.Context, s Streams) (any, error) {
			in, err := typed.Request(ctx, s)
			return &in, err
		},
		print: func(s Streams, out any) error { return typed.Print(s, out.(*Out)) },
	}
	if own, ok := fields.(showing[P]); ok {
		f.show = func(s Streams) (func(any), func(error)) {
			report, end := own.Show(s)
			return ofReport(report), end
		}
	}
	return f
}

// showing are Flags that show the progress.
type showing[P any] interface {
	Show(s Streams) (report func(P), end func(error))
}

// Printed is how a command prints a result.
type Printed int

// How a command prints a result: as text or one JSON object, as text or lines of JSON, or as text alone.
const (
	PrintReport Printed = iota
	PrintLines          // Out is byLine
	PrintText
)

// byLine is a result that consists of many.
type byLine interface{ WriteLines(w io.Writer) error }

// Rows are results that a command prints while it reads them.
type Rows[T any] func(row func(T) error) error

func rows[T any](read Rows[T]) *Rows[T] { return &read }

// WriteLines implements byLine.
func (r *Rows[T]) WriteLines(w io.Writer) error {
	e := json.NewEncoder(w)
	return (*r)(func(one T) error { return e.Encode(one) })
}

// plainFlags are the flags of a command that is no more than its operation.
func (u *Untyped) plainFlags() lineFlags {
	in := fresh(u.request)
	text := func(w io.Writer, out any) error { return u.text(w, in, out) }
	f := lineFlags{request: func(context.Context, Streams) (any, error) { return in, nil }}
	switch u.prints {
	case PrintLines:
		fields := &rowsFlags{In: in}
		f.fields, f.print = fields, func(s Streams, out any) error {
			if lines, ok := out.(byLine); ok && fields.JSON {
				return lines.WriteLines(s.Out)
			}
			return text(s.Out, out)
		}
	case PrintText:
		f.fields, f.print = &textFlags{In: in}, func(s Streams, out any) error { return text(s.Out, out) }
	default:
		fields := &reportFlags{In: in}
		f.fields, f.print = fields, func(s Streams, out any) error { return WriteReport(s.Out, fields.JSON, out, text) }
	}
	return f
}

// textFlags are those of a command that prints text alone.
type textFlags struct {
	In any `embed:""`
}

// reportFlags are those of a command that prints one report.
type reportFlags struct {
	In any `embed:""`
	reportFlag
}

// rowsFlags are those of a command that prints many.
type rowsFlags struct {
	In any `embed:""`
	linesFlag
}

// reportFlag is a flag of commands that print one report.
type reportFlag struct {
	JSON bool `name:"json" help:"Report as JSON." json:"-"`
}

// linesFlag is a flag of commands that print a line for each item.
type linesFlag struct {
	JSON bool `name:"json" help:"One JSON object a line." json:"-"`
}

// WriteReport writes a report, as JSON or text, and returns ErrFound if it is not clean.
func WriteReport[R any](w io.Writer, asJSON bool, report R, write func(io.Writer, R) error) (err error) {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		err = e.Encode(report)
	} else {
		err = write(w, report)
	}
	if r, checks := any(report).(interface{ Clean() bool }); err == nil && checks && !r.Clean() {
		return ErrFound
	}
	return err
}

// encoder writes JSON for people and scripts, in which rules stay readable.
func encoder(w io.Writer) *json.Encoder {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	return e
}

// writeLinesOf writes one JSON object a line.
func writeLinesOf[T any](w io.Writer, rows []T) error {
	e := encoder(w)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// Sometimes returns a function that calls another one at the interval of lines about progress. It is safe for
// concurrent use.
func Sometimes[P any](report func(P)) func(P) {
	var mu sync.Mutex
	last := time.Now()
	return func(p P) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) >= lineInterval {
			last = time.Now()
			report(p)
		}
	}
}
