package command

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"sync"
	"time"

	"belfry/config"
	"belfry/pkg/bus"
)

// ErrFound is the error of a command that has printed its findings, such as differences or a denied access.
var ErrFound = errors.New("differences were found")

// Streams are the streams of a command, and its prompts.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool // Err is one
	Password func(ctx context.Context) (string, error)
	Confirm  func(ctx context.Context, question string) error
}

// Command is a command of the command line that does an operation.
type Command[In, Out any] struct {
	Words, Help string // "user create"
	Default     bool   // the words without the last run it, too
	Flags       Flags[In, Out]
}

// Flags are the flags and arguments of a command: a pointer to a struct with the tags of kong. Each command line has a
// copy. They may have further methods: Show, as in an Operation, and Finish, which gets the error with which the
// command ends, and returns it.
type Flags[In, Out any] interface {
	// Request returns the request of the command. It is called before the configuration is read.
	Request(ctx context.Context, s Streams) (In, error)
	// Print prints the result.
	Print(s Streams, out *Out) error
}

// Line is a Command of any types.
type Line struct {
	Words, Help     string
	Default, Folder bool // Folder: the command only needs the data folder
	Bare            bool // no configuration has to be known
	Flags           any

	// Run does the operation with the flags, for the configuration that load reads.
	Run func(ctx context.Context, load func() (*config.Config, error), s Streams) error
}

// checked is a request that can be refused before the configuration is read.
type checked interface{ Valid() error }

// confirmed is a request that a person has to confirm; with a question "" they have by a flag.
type confirmed interface{ Question() string }

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

// Lines are the commands of the operation.
func (o *Operation[In, Out, P]) Lines() (all []Line) {
	commands := o.Commands
	if o.Help != "" {
		commands = append(commands, Command[In, Out]{Words: o.Name, Help: o.Help, Flags: o.plainFlags()})
	}
	for _, c := range commands {
		of := reflect.ValueOf(c.Flags).Elem()
		fresh := reflect.New(of.Type())
		fresh.Elem().Set(of)
		flags := fresh.Interface().(Flags[In, Out])
		l := Line{Words: c.Words, Help: c.Help, Default: c.Default, Folder: o.Served != "", Bare: o.Bare, Flags: flags}
		var user *BusUser
		if o.Bus != NoConnection {
			on := &busFlags{Flags: flags}
			l.Flags, user = on, &on.BusUser
		}
		l.Run = func(ctx context.Context, load func() (*config.Config, error), s Streams) error {
			return o.runLine(ctx, flags, user, load, s)
		}
		all = append(all, l)
	}
	return all
}

func (o *Operation[In, Out, P]) runLine(ctx context.Context, flags Flags[In, Out], user *BusUser,
	load func() (*config.Config, error), s Streams) (err error) {
	in, err := flags.Request(ctx, s)
	if err != nil {
		return err
	}
	if q, ok := any(in).(checked); ok {
		if err := q.Valid(); err != nil {
			return err
		}
	}
	if f, ok := flags.(interface{ Finish(err error) error }); ok {
		defer func() { err = f.Finish(err) }()
	}
	show := func(do func(report func(P)) (*Out, error)) error {
		report, end := o.shown(flags, s, in)
		out, err := do(report)
		if end(err); err != nil {
			return err
		}
		return flags.Print(s, out)
	}
	switch {
	case o.Bare:
		return show(func(report func(P)) (*Out, error) { return o.Run(ctx, &Place{}, in, report) })
	case user != nil:
		return o.onBus(ctx, *user, in, load, s, func(ctx context.Context, at *Place) error {
			return show(func(report func(P)) (*Out, error) { return o.Run(ctx, at, in, report) })
		})
	}
	c, err := load()
	if err != nil {
		return err
	}
	return show(func(report func(P)) (*Out, error) { return o.Do(ctx, c, in, report) })
}

// shown returns what shows the progress.
func (o *Operation[In, Out, P]) shown(flags Flags[In, Out], s Streams, in In) (report func(P), end func(error)) {
	if f, ok := flags.(interface {
		Show(s Streams) (func(P), func(error))
	}); ok {
		return f.Show(s)
	}
	if o.Show != nil {
		return o.Show(s, in)
	}
	return func(P) {}, func(error) {}
}

// onBus calls a function with the place of an operation on the bus, while the command is connected.
func (o *Operation[In, Out, P]) onBus(ctx context.Context, user BusUser, in In, load func() (*config.Config, error),
	s Streams, do func(context.Context, *Place) error) error {
	at := &Place{}
	read := func() (c *config.Config, err error) {
		if at.Config == nil {
			at.Config, err = load()
		}
		return at.Config, err
	}
	if o.Check != nil {
		c, err := read()
		if err == nil {
			err = o.Check(c, in)
		}
		if err != nil {
			return err
		}
	}
	options, err := user.Options(read)
	if err != nil {
		return err
	}
	if q, ok := any(in).(confirmed); ok && q.Question() != "" {
		if err := s.Confirm(ctx, q.Question()); err != nil {
			return err
		}
	}
	return o.Bus.connect(ctx, options, func(ctx context.Context, b *bus.Client) error {
		at.Bus = b
		return do(ctx, at)
	})
}

// plainFlags are those of a command that is no more than its operation.
func (o *Operation[In, Out, P]) plainFlags() Flags[In, Out] {
	plain := textFlags[In, Out]{text: o.Text}
	switch o.Prints {
	case PrintLines:
		return &rowsFlags[In, Out]{textFlags: plain}
	case PrintText:
		return &plain
	default:
		return &reportFlags[In, Out]{textFlags: plain}
	}
}

// textFlags are those of a command that prints text alone.
type textFlags[In, Out any] struct {
	In   In `embed:""`
	text func(w io.Writer, in In, out *Out) error
}

// Request implements Flags.
func (f *textFlags[In, Out]) Request(context.Context, Streams) (In, error) { return f.In, nil }

// Print implements Flags.
func (f *textFlags[In, Out]) Print(s Streams, out *Out) error { return f.text(s.Out, f.In, out) }

// reportFlags are the flags of a command that prints one report.
type reportFlags[In, Out any] struct {
	textFlags[In, Out]
	reportFlag
}

// Print implements Flags.
func (f *reportFlags[In, Out]) Print(s Streams, out *Out) error {
	return WriteReport(s.Out, f.JSON, out, func(w io.Writer, out *Out) error { return f.text(w, f.In, out) })
}

// rowsFlags are those of a command that prints many.
type rowsFlags[In, Out any] struct {
	textFlags[In, Out]
	linesFlag
}

// Print implements Flags.
func (f *rowsFlags[In, Out]) Print(s Streams, out *Out) error {
	if lines, ok := any(out).(byLine); ok && f.JSON {
		return lines.WriteLines(s.Out)
	}
	return f.textFlags.Print(s, out)
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
