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
	Flags           any

	// Run does the operation with the flags, for the configuration that load reads.
	Run func(ctx context.Context, load func() (*config.Config, error), s Streams) error
}

// Lines returns the commands of the operation.
func (o *Operation[In, Out, P]) Lines() (all []Line) {
	commands := o.Commands
	if o.Help != "" {
		commands = append(commands, Command[In, Out]{Words: o.Name, Help: o.Help, Flags: &plainFlags[In, Out]{text: o.Text}})
	}
	for _, c := range commands {
		of := reflect.ValueOf(c.Flags).Elem()
		fresh := reflect.New(of.Type())
		fresh.Elem().Set(of)
		flags := fresh.Interface().(Flags[In, Out])
		all = append(all, Line{c.Words, c.Help, c.Default, o.Served != "", flags, func(ctx context.Context, load func() (*config.Config, error), s Streams) error {
			return o.runLine(ctx, flags, load, s)
		}})
	}
	return all
}

func (o *Operation[In, Out, P]) runLine(ctx context.Context, flags Flags[In, Out], load func() (*config.Config, error), s Streams) (err error) {
	in, err := flags.Request(ctx, s)
	if err != nil {
		return err
	}
	if f, ok := flags.(interface{ Finish(err error) error }); ok {
		defer func() { err = f.Finish(err) }()
	}
	c, err := load()
	if err != nil {
		return err
	}
	report, end := func(P) {}, func(error) {}
	if f, ok := flags.(interface {
		Show(s Streams) (func(P), func(error))
	}); ok {
		report, end = f.Show(s)
	} else if o.Show != nil {
		report, end = o.Show(s, in)
	}
	out, err := o.Do(ctx, c, in, report)
	if end(err); err != nil {
		return err
	}
	return flags.Print(s, out)
}

// plainFlags are the flags of a command that only runs its operation.
type plainFlags[In, Out any] struct {
	In In `embed:""`
	reportFlag
	text func(w io.Writer, in In, out *Out) error
}

// Request implements Flags.
func (f *plainFlags[In, Out]) Request(context.Context, Streams) (In, error) { return f.In, nil }

// Print implements Flags.
func (f *plainFlags[In, Out]) Print(s Streams, out *Out) error {
	return WriteReport(s.Out, f.JSON, out, func(w io.Writer, out *Out) error { return f.text(w, f.In, out) })
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
