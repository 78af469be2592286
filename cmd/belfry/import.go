package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"belfry/config"
	"belfry/internal/count"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/operations/importer"
)

type importCmd struct {
	configuration
	Store string `arg:"" help:"Name of the store."`
	File  string `arg:"" help:"A JSON array or JSON lines; - is standard input."`

	URL         string `name:"url" help:"Where belfry is served, instead of the configured baseURL." placeholder:"URL"`
	Token       string `help:"Token of a session, to import as its user; better in the environment than on a command line." env:"BELFRY_TOKEN" placeholder:"TOKEN"`
	Concurrency int    `help:"Number of concurrent requests (${default})." default:"16" placeholder:"N"`
	Key         string `help:"Take the uuid from this field." placeholder:"FIELD"`
	Batch       string `help:"Distinguish objects without a uuid from equal ones of other imports." placeholder:"NAME"`
	Skip        int64  `help:"Skip this number of objects at the beginning." placeholder:"N"`
	Update      bool   `help:"Update objects that exist, instead of leaving them as they are."`
	DryRun      bool   `help:"Validate the whole file and send nothing."`
	Stop        bool   `help:"Stop at the first object that is rejected."`
	Secrets     bool   `help:"The file is an export with secrets: store its objects with all fields, by the data folder and not over HTTP."`
}

// errRejected ends an import that has reported the objects that were rejected.
var errRejected = errors.New("some objects were rejected; the messages above say which and why")

// Run imports objects, reports each that is rejected, and prints a summary.
func (c *importCmd) Run(ctx context.Context, s streams) error {
	if c.Concurrency < 1 || c.Concurrency > 1024 {
		return errs.New(errs.Invalid, "--concurrency: expected a number from 1 to 1024")
	}
	loaded, err := c.load("")
	if err != nil {
		return err
	}
	if c.Secrets {
		return c.withSecrets(ctx, s, loaded)
	}
	options, err := c.options(loaded)
	if err != nil {
		return err
	}
	input, size, err := c.open(ctx, s.in)
	if err != nil {
		return err
	}
	defer func() { _ = input.Close() }()

	name := c.File
	if name == "-" {
		name = "stdin"
	}
	show := newDisplay(s.err, name, size)
	options.OnFailure = show.failure
	i := importer.New(options)
	began := time.Now()
	stop := show.follow(i.Progress)
	err = i.Run(ctx, input)
	stop()

	p := i.Progress()
	if _, wrote := fmt.Fprintln(s.out, summary(p, time.Since(began))); wrote != nil && err == nil {
		err = wrote
	}
	if hint := c.resume(err, p); hint != "" {
		fmt.Fprintln(s.err, hint)
	}
	var syntax *importer.SyntaxError
	switch {
	case errors.As(err, &syntax):
		// Invalid content of a file is not a usage error.
		return fmt.Errorf("%s:%d:%d: %s", name, syntax.Line, syntax.Column, syntax.Message)
	case err == nil && p.Failed > 0:
		return errRejected
	}
	return err
}

// options returns the options of the flags and the configuration.
func (c *importCmd) options(loaded *config.Config) (importer.Options, error) {
	if c.Skip < 0 {
		return importer.Options{}, errs.New(errs.Invalid, "--skip: expected a number of objects, not %d", c.Skip)
	}
	o := importer.Options{
		Token: c.Token, Concurrency: c.Concurrency, Key: c.Key, Batch: c.Batch, Skip: c.Skip,
		Update: c.Update, StopOnFailure: c.Stop, DryRun: c.DryRun,
	}
	st := loaded.Stores[c.Store]
	if st == nil {
		return o, plan.UnknownStore(loaded, c.Store)
	}
	o.Omit, o.MaxSize = owned(loaded, st), int(st.MaxObjectSize)
	o.Refers = func(pointer string) bool {
		r, refers := st.References[strings.TrimPrefix(pointer, "/")]
		return refers && r.Store == st.Name
	}
	if c.DryRun {
		var err error
		o.Schema, err = plan.Judge(loaded, c.Store)
		return o, err
	}
	switch {
	case st.Expose == nil:
		return o, errs.New(errs.Invalid, "store %s has no HTTP routes to import through: configure stores.%s.expose",
			c.Store, c.Store)
	case st.Expose.Restrict.Create:
		return o, errs.New(errs.Invalid,
			"store %s accepts no new objects over HTTP: stores.%s.expose.restrict.create is true", c.Store, c.Store)
	}
	base := loaded.BaseURL
	if c.URL != "" {
		base = strings.TrimRight(c.URL, "/")
		if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return o, errs.New(errs.Invalid, "--url: expected a URL such as http://127.0.0.1:8080")
		}
	}
	o.URL = base + st.Expose.URL
	var err error
	o.RootCAs, err = plan.WebTrust(loaded)
	return o, err
}

// owned returns the fields that the server sets and ignores in requests. The output of `belfry export` has them.
func owned(c *config.Config, st *config.Store) func(string) bool {
	var fields []string
	for _, source := range c.Stores {
		if m, ok := source.Map[st.Name]; ok {
			fields = append(fields, m.Target)
		}
	}
	fields = append(fields, "created", "updated")
	fields = append(fields, slices.Collect(maps.Keys(st.Copies))...)
	fields = append(fields, st.Private...)
	return func(name string) bool { return strings.HasPrefix(name, "_") || slices.Contains(fields, name) }
}

// open opens the input; the size is -1 if it is unknown.
func (c *importCmd) open(ctx context.Context, in io.Reader) (io.ReadCloser, int64, error) {
	if c.File == "-" {
		return &interruptible{ctx: ctx, in: in}, -1, nil
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, 0, errs.Wrap(err, errs.Invalid, "can't read the file")
	}
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, errors.Join(err, f.Close())
	case info.IsDir():
		return nil, 0, errors.Join(errs.New(errs.Invalid, "%s is a folder; a file is expected", c.File), f.Close())
	case info.Mode().IsRegular():
		return f, info.Size(), nil
	default:
		return f, -1, nil
	}
}

// interruptible is a reader whose Read returns when a context ends, also if the terminal or pipe has no
// input. The goroutine that reads it remains blocked until the program ends.
type interruptible struct {
	ctx  context.Context // io.Reader takes none
	in   io.Reader
	read chan chunk
	rest []byte
	err  error
}

type chunk struct {
	data []byte
	err  error
}

func (r *interruptible) Read(p []byte) (int, error) {
	if r.read == nil {
		r.read = make(chan chunk)
		go r.pump()
	}
	for len(r.rest) == 0 && r.err == nil {
		select {
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		case c := <-r.read:
			r.rest, r.err = c.data, c.err
		}
	}
	n := copy(p, r.rest)
	if r.rest = r.rest[n:]; len(r.rest) > 0 {
		return n, nil
	}
	return n, r.err
}

func (r *interruptible) pump() {
	for {
		data := make([]byte, 64<<10)
		n, err := r.in.Read(data)
		select {
		case <-r.ctx.Done():
			return
		case r.read <- chunk{data[:n], err}:
		}
		if err != nil {
			return
		}
	}
}

// Close leaves standard input open.
func (r *interruptible) Close() error { return nil }

// summary returns the result in one line.
func summary(p importer.Progress, took time.Duration) string {
	parts := []string{count.Of(p.Read, "object") + " read"}
	for _, part := range []struct {
		n    int64
		what string
	}{
		{p.Skipped, "skipped"},
		{p.Created, "created"},
		{p.Updated, "updated"},
		{p.Existing, "existed already"},
		{p.Checked, "valid (nothing was sent)"},
		{p.Failed, "rejected"},
	} {
		if part.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.n, part.what))
		}
	}
	return fmt.Sprintf("%s, in %s (%.0f a second)", strings.Join(parts, ", "), took.Round(time.Millisecond),
		rate(p, took))
}

func rate(p importer.Progress, took time.Duration) float64 {
	return float64(p.Read-p.Skipped) / max(took.Seconds(), 0.001)
}

// resume explains how to continue an import that was interrupted.
func (c *importCmd) resume(err error, p importer.Progress) string {
	if c.DryRun || err == nil && (!c.Stop || p.Failed == 0) {
		return ""
	}
	hint := "To continue, run the same command again: objects that exist are skipped."
	if p.Complete > 0 && p.Failed == 0 {
		hint += fmt.Sprintf("\nWith --skip %d it does not send the first %s again.", p.Complete,
			count.Of(p.Complete, "object"))
	}
	return hint
}
