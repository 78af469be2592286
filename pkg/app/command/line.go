package command

import (
	"context"
	"errors"
	"io"
	"reflect"

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

// Line is a Command of any types.
type Line struct {
	Words, Help     string
	Default, Folder bool // Folder: the command only needs the data folder
	Bare            bool // no configuration has to be known
	Flags           any

	// Run does the operation with the flags, for the configuration that load reads.
	Run func(ctx context.Context, load func() (*config.Config, error), s Streams) error
}

// checked is a request that can be refused before the configuration is read. Run has what Valid keeps of it.
type checked interface{ Valid() error }

// confirmed is a request that a person has to confirm; with a question "" they have by a flag.
type confirmed interface{ Question() string }

// untypedCommand is a Command without its types.
type untypedCommand struct {
	words, help string
	standard    bool // Default
	flags       any  // Flags
	typed       func(flags any) lineFlags
}

// Lines are the commands of the operation.
func (u *Untyped) Lines() (all []Line) {
	for _, c := range u.commands {
		of := reflect.ValueOf(c.flags).Elem()
		own := reflect.New(of.Type())
		own.Elem().Set(of)
		l := u.line(c.typed(own.Interface()))
		l.Words, l.Help, l.Default = c.words, c.help, c.standard
		all = append(all, l)
	}
	if u.help != "" {
		l := u.line(u.plainFlags())
		l.Words, l.Help = u.name, u.help
		all = append(all, l)
	}
	return all
}

// line is a command with flags.
func (u *Untyped) line(f lineFlags) Line {
	l := Line{Folder: u.served != "", Bare: u.bare, Flags: f.fields}
	var user *BusUser
	if u.bus != NoConnection {
		on := &busFlags{Flags: f.fields}
		l.Flags, user = on, &on.BusUser
	}
	l.Run = func(ctx context.Context, load func() (*config.Config, error), s Streams) error {
		return u.runLine(ctx, f, user, load, s)
	}
	return l
}

func (u *Untyped) runLine(ctx context.Context, flags lineFlags, user *BusUser, load func() (*config.Config, error),
	s Streams) (err error) {
	in, err := flags.request(ctx, s)
	if err != nil {
		return err
	}
	if q, ok := in.(checked); ok {
		if err := q.Valid(); err != nil {
			return err
		}
	}
	if f, ok := flags.fields.(interface{ Finish(err error) error }); ok {
		defer func() { err = f.Finish(err) }()
	}
	show := func(do func(report func(any)) (any, error)) error {
		report, end := u.shown(flags, s, in)
		out, err := do(report)
		if end(err); err != nil {
			return err
		}
		return flags.print(s, out)
	}
	switch {
	case u.bare:
		return show(func(report func(any)) (any, error) { return u.run(ctx, &Place{}, in, report) })
	case user != nil:
		return u.onBus(ctx, *user, in, load, s, func(ctx context.Context, at *Place) error {
			return show(func(report func(any)) (any, error) { return u.run(ctx, at, in, report) })
		})
	}
	c, err := load()
	if err != nil {
		return err
	}
	return show(func(report func(any)) (any, error) { return u.do(ctx, c, in, report) })
}

// shown returns what shows the progress.
func (u *Untyped) shown(flags lineFlags, s Streams, in any) (report func(any), end func(error)) {
	switch {
	case flags.show != nil:
		return flags.show(s)
	case u.show != nil:
		return u.show(s, in)
	}
	return func(any) {}, func(error) {}
}

// onBus calls a function with the place of an operation on the bus, while the command is connected.
func (u *Untyped) onBus(ctx context.Context, user BusUser, in any, load func() (*config.Config, error), s Streams,
	do func(context.Context, *Place) error) error {
	at := &Place{}
	read := func() (c *config.Config, err error) {
		if at.Config == nil {
			at.Config, err = load()
		}
		return at.Config, err
	}
	if u.check != nil {
		c, err := read()
		if err == nil {
			err = u.check(c, in)
		}
		if err != nil {
			return err
		}
	}
	options, err := user.Options(read)
	if err != nil {
		return err
	}
	if q, ok := in.(confirmed); ok && q.Question() != "" {
		if err := s.Confirm(ctx, q.Question()); err != nil {
			return err
		}
	}
	return u.bus.connect(ctx, options, func(ctx context.Context, b *bus.Client) error {
		at.Bus = b
		return do(ctx, at)
	})
}
