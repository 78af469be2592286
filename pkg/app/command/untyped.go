package command

import (
	"context"
	"io"
	"reflect"

	"belfry/config"
)

// Untyped is an Operation without its types. The code of commands, control requests and the console is compiled once
// for all operations, and only the functions of Operation.Untyped for each.
//
// Requests, results and reports of progress are pointers: *In, *Out and *P. A result is nil, or a nil *Out, for none.
type Untyped struct {
	name      string
	storeless bool
	own       bool
	served    string
	max       int64
	bus       Connection
	bare      bool
	broken    string
	help      string
	prints    Printed

	request, result, progress reflect.Type // In, Out and P

	// As those of the Operation. run alone is never nil.
	run     untypedWork
	reads   func(in any) bool
	creates func(in any) bool
	check   func(c *config.Config, in any) error
	doing   func(in any) string
	input   func(in any) *io.Reader
	output  func(in any) *io.Writer
	text    func(w io.Writer, in, out any) error
	show    func(s Streams, in any) (report func(any), end func(error))

	commands []untypedCommand
	console  *untypedConsole
}

type untypedWork func(ctx context.Context, at *Place, in any, report func(any)) (out any, err error)

// Untyped returns the operation without its types. It has the Run that the operation has when it runs.
func (o *Operation[In, Out, P]) Untyped() *Untyped {
	u := &Untyped{
		name: o.Name, storeless: o.Storeless, own: o.Own, served: o.Served, max: o.Max, bus: o.Bus, bare: o.Bare,
		broken: o.Broken, help: o.Help, prints: o.Prints,
		request: reflect.TypeFor[In](), result: reflect.TypeFor[Out](), progress: reflect.TypeFor[P](),
		run:   untypedRun(&o.Run),
		reads: ofValue(o.Reads), creates: ofValue(o.Creates), doing: ofValue(o.Doing),
		input: ofPointer(o.Input), output: ofPointer(o.Output),
		check: untypedCheck(o.Check), text: untypedText(o.Text), show: untypedShow(o.Show),
	}
	for _, c := range o.Commands {
		u.commands = append(u.commands, untypedCommand{c.Words, c.Help, c.Default, c.Flags, untypedFlags[In, Out, P]})
	}
	if c := o.Console; c != nil {
		u.console = &untypedConsole{title: c.Title, path: c.Path, kind: c.Kind, about: c.About, button: c.Button,
			offered: c.Offered, choices: c.Choices, done: ofPointer(c.Done), short: untypedShort(c.Short),
			stays: ofValue(c.Stays)}
	}
	return u
}

// ofValue is a function of a value, for a pointer to it of any type.
func ofValue[In, R any](f func(In) R) func(in any) R {
	if f == nil {
		return nil
	}
	return func(in any) R { return f(*in.(*In)) }
}

// ofPointer is a function of a pointer, for a pointer of any type.
func ofPointer[Pointer, R any](f func(Pointer) R) func(in any) R {
	if f == nil {
		return nil
	}
	return func(in any) R { return f(in.(Pointer)) }
}

// untypedRun reads the function when it is called.
func untypedRun[In, Out, P any](run *func(context.Context, *Place, In, func(P)) (*Out, error)) untypedWork {
	return func(ctx context.Context, at *Place, in any, report func(any)) (any, error) {
		return (*run)(ctx, at, *in.(*In), untypedReport[P](report))
	}
}

func untypedReport[P any](report func(any)) func(P) { return func(p P) { report(&p) } }

func untypedCheck[In any](check func(*config.Config, In) error) func(*config.Config, any) error {
	if check == nil {
		return nil
	}
	return func(c *config.Config, in any) error { return check(c, *in.(*In)) }
}

// untypedText has the pointer to the result as a type: all pointers have the same code.
func untypedText[In, Result any](text func(io.Writer, In, Result) error) func(w io.Writer, in, out any) error {
	if text == nil {
		return nil
	}
	return func(w io.Writer, in, out any) error { return text(w, *in.(*In), out.(Result)) }
}

func untypedShow[In, P any](show func(Streams, In) (func(P), func(error))) func(Streams, any) (func(any), func(error)) {
	if show == nil {
		return nil
	}
	return func(s Streams, in any) (func(any), func(error)) {
		report, end := show(s, *in.(*In))
		return ofReport(report), end
	}
}

func ofReport[P any](report func(P)) func(any) { return func(p any) { report(*p.(*P)) } }

func untypedShort[Out any](short func(Out) Out) func(out any) any {
	if short == nil {
		return nil
	}
	return func(out any) any {
		s := short(*out.(*Out))
		return &s
	}
}

// fresh returns a pointer to a new value.
func fresh(t reflect.Type) any { return reflect.New(t).Interface() }

// valueOf returns the value of a pointer.
func valueOf(pointer any) any { return reflect.ValueOf(pointer).Elem().Interface() }

// orNil returns a result, and nil for a nil pointer, which JSON would have as null.
func orNil(out any) any {
	if out == nil || reflect.ValueOf(out).IsNil() {
		return nil
	}
	return out
}
