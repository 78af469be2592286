package command

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"

	"belfry/pkg/app/hold"
	"belfry/pkg/errs"
)

// line is one of the lines of a reply. They are written from values of any type, and read as JSON.
type line[Data any] struct {
	Progress Data `json:"progress,omitempty"`
	Answer   Data `json:"answer,omitempty"`
	hold.Failure
}

// ask is Operation.Ask.
func (u *Untyped) ask(ctx context.Context, h hold.Holder, in any, report func(any)) (any, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	var request io.Reader = bytes.NewReader(data)
	if u.input != nil {
		request = io.MultiReader(request, *u.input(in))
	}
	body, err := hold.Control(ctx, h, u.path(), request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = body.Close() }()
	broken := func(err error) error {
		return errs.Wrap(err, errs.Unavailable, "the reply of %s is incomplete: the connection was closed%s", h,
			u.broken)
	}
	if u.output != nil {
		if _, err := io.Copy(*u.output(in), body); err != nil {
			return nil, broken(err)
		}
		return fresh(u.result), nil
	}
	for lines := json.NewDecoder(body); ; {
		var next line[json.RawMessage]
		if err := lines.Decode(&next); err != nil {
			return nil, broken(err)
		}
		p, out := fresh(u.progress), fresh(u.result)
		progress, err := readIf(next.Progress, p)
		if err != nil {
			return nil, broken(err)
		}
		answer, err := readIf(next.Answer, out)
		switch {
		case err != nil:
			return nil, broken(err)
		case progress:
			report(p)
		case answer:
			if r, may := out.(interface{ refusal(of hold.Holder) error }); may {
				return out, r.refusal(h)
			}
			return out, nil
		case next.Empty():
			return nil, h.OtherVersion()
		default:
			return nil, next.Err()
		}
	}
}

// readIf reads JSON, if there is some.
func readIf(data json.RawMessage, to any) (read bool, err error) {
	if len(data) == 0 || string(data) == "null" {
		return false, nil
	}
	return true, json.Unmarshal(data, to)
}

// path is the path of the control request.
func (u *Untyped) path() string { return "/" + strings.ReplaceAll(u.name, " ", "-") }

// place returns the place of a process that serves for a request, until done is called.
func (u *Untyped) place(serving Serving, in any) (at *Place, done func()) {
	return serving(u.reads != nil && u.reads(in))
}

// Route is the route of the control request, "" for none.
func (u *Untyped) Route() string {
	if u.own || u.bare || u.bus != NoConnection {
		return ""
	}
	return "POST " + u.path()
}

// Handle serves the control request. The work ends when its client disconnects.
func (u *Untyped) Handle(log *slog.Logger, at Serving) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in := fresh(u.request)
		limited := io.LimitReader(r.Body, cmp.Or(u.max, 4<<10))
		decoder := json.NewDecoder(limited)
		err := decoder.Decode(in)
		if u.input != nil {
			*u.input(in) = io.MultiReader(decoder.Buffered(), r.Body)
		}
		w.Header().Set("Content-Type", "application/x-ndjson")
		if u.output != nil {
			u.write(log, w, r, at, in, err)
			return
		}
		lines := json.NewEncoder(w)
		var last line[any]
		if err == nil {
			place, done := u.place(at, in)
			defer done()
			last.Answer, err = u.run(r.Context(), place, in, func(p any) {
				if lines.Encode(line[any]{Progress: p}) == nil {
					_ = http.NewResponseController(w).Flush()
				}
			})
			last.Answer = orNil(last.Answer)
		}
		if err != nil {
			last = line[any]{Failure: hold.FailureOf(log, u.describe(in), err)}
		}
		_ = lines.Encode(last)
	}
}

// write replies with the output of the operation. A failure after the first byte closes the connection, so that an
// incomplete reply is recognized.
func (u *Untyped) write(log *slog.Logger, w http.ResponseWriter, r *http.Request, at Serving, in any, err error) {
	written := &counter{Writer: w}
	*u.output(in) = written
	if err == nil {
		place, done := u.place(at, in)
		defer done()
		_, err = u.run(r.Context(), place, in, func(any) {})
	}
	if err == nil {
		return
	}
	failure := hold.FailureOf(log, u.describe(in), err)
	if written.n > 0 {
		panic(http.ErrAbortHandler)
	}
	http.Error(w, failure.Detail, http.StatusNotFound)
}

// describe returns the name of the work in the log.
func (u *Untyped) describe(in any) string {
	if u.doing != nil {
		return u.doing(in)
	}
	return u.name
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
