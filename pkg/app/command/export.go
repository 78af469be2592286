package command

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"

	"belfry/pkg/errs"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/store"
)

// ExportRequest requests the objects of a store.
type ExportRequest struct {
	Store   string    `json:"store"`
	Secrets bool      `json:"secrets,omitempty"` // with all fields: hashes of passwords, and internal ones
	To      io.Writer `json:"-"`
}

// Export writes every object of a store as JSON lines in the order of their
// uuids, without the fields that never leave the server.
var Export = Operation[ExportRequest, none, none]{
	Name: "export", Broken: "; the export lacks objects",
	Reads: func(ExportRequest) bool { return true },
	Check: func(c *config.Config, q ExportRequest) error {
		if c.Stores[q.Store] == nil {
			return plan.UnknownStore(c, q.Store)
		}
		return nil
	},
	Output: func(q *ExportRequest) *io.Writer { return &q.To },
	Run: func(ctx context.Context, at *Place, q ExportRequest, _ func(none)) (*none, error) {
		s := at.Set.Store(q.Store)
		if s == nil {
			return nil, plan.UnknownStore(at.Plan.Config, q.Store)
		}
		return &none{}, writeLines(ctx, s, q.To, q.Secrets)
	},
	Commands: []Command[ExportRequest, none]{{Words: "export", Help: "Write every object of a store as JSON lines.",
		Flags: &exportFlags{}}},
}

type exportFlags struct {
	Store  string `arg:"" help:"Name of the store."`
	Output string `short:"o" help:"File to write; standard output when not given." placeholder:"FILE"`

	Secrets bool `help:"With the fields that never leave the server otherwise, hashes of passwords among them."`

	finish func(err error) error // completes the output, or removes an incomplete one
}

// Request implements Flags.
func (f *exportFlags) Request(_ context.Context, s Streams) (q ExportRequest, err error) {
	q = ExportRequest{Store: f.Store, Secrets: f.Secrets, To: s.Out}
	f.finish = func(err error) error { return err }
	if f.Output == "" {
		return q, nil
	}
	info, err := os.Stat(f.Output)
	switch {
	case err != nil || info.Mode().IsRegular():
		q.To, err = f.replace()
	case info.IsDir():
		err = errs.New(errs.Invalid, "--output: %s is a folder; a file is expected", f.Output)
	default:
		q.To, err = f.pour()
	}
	return q, err
}

// replace opens a temporary file in the same folder, which is renamed when it is complete.
func (f *exportFlags) replace() (io.Writer, error) {
	file, err := os.CreateTemp(filepath.Dir(f.Output), filepath.Base(f.Output)+".*")
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "--output: can't write a file beside %s", f.Output)
	}
	w := bufio.NewWriterSize(file, 1<<20)
	f.finish = func(err error) error {
		defer func() { _ = os.Remove(file.Name()) }()
		if err = errors.Join(err, w.Flush(), file.Sync(), file.Close()); err != nil {
			return err
		}
		return os.Rename(file.Name(), f.Output)
	}
	return w, nil
}

// pour opens a pipe or a device, which must not be replaced.
func (f *exportFlags) pour() (io.Writer, error) {
	file, err := os.OpenFile(f.Output, os.O_WRONLY, 0)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "--output: can't write to %s", f.Output)
	}
	f.finish = func(err error) error { return errors.Join(err, file.Close()) }
	return file, nil
}

// Finish implements Flags.
func (f *exportFlags) Finish(err error) error { return f.finish(err) }

// Print implements Flags: everything is in the output.
func (f *exportFlags) Print(Streams, *none) error { return nil }

// writeLines writes every object of a store as lines of JSON; see Export.
func writeLines(ctx context.Context, s *store.Store, w io.Writer, secrets bool) error {
	const pageSize = 500
	out := bufio.NewWriterSize(w, 64<<10)
	for o, err := range s.All(ctx, pageSize) {
		if err != nil {
			return err
		}
		if !secrets {
			o.Body = s.Rules().Visible(o.Body)
		}
		if _, err := out.Write(append(slices.Clip(o.Body), '\n')); err != nil {
			return err
		}
	}
	return out.Flush()
}
