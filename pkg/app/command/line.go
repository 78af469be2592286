package command

import (
	"context"
	"io"

	"belfry/config"
)

// Line is an operation for a command line.
type Line struct {
	Name, Help string // no Help: the operation has a command of its own
	In         any    // a pointer to the request, whose fields are flags

	// Do does the operation with what In has, and shows its progress.
	Do func(ctx context.Context, c *config.Config, progress io.Writer, terminal bool) (Result, error)
}

// Result is what a command prints: as JSON, or as text.
type Result interface{ WriteText(w io.Writer) error }

// Line is the operation for a command line.
func (o *Operation[In, Out, P]) Line() Line {
	in := new(In)
	return Line{o.Name, o.Help, in, func(ctx context.Context, c *config.Config, progress io.Writer, terminal bool) (Result, error) {
		report, end := func(P) {}, func(error) {}
		if o.Show != nil {
			report, end = o.Show(progress, terminal, *in)
		}
		out, err := o.Do(ctx, c, *in, report)
		if end(err); err != nil {
			return nil, err
		}
		return any(out).(Result), nil
	}}
}
