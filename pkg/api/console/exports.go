package console

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/operations/table"
	"belfry/pkg/store"
)

const (
	exportPage    = 200 // objects that are read at a time
	maxExported   = 500 // columns
	exportRecheck = 10 * time.Second
)

// exportTypes are the formats of exports with their media types.
var exportTypes = map[string]string{
	"csv": "text/csv; charset=utf-8; header=present", "json": "application/json", "ndjson": "application/x-ndjson",
}

// exportView sends the objects of a list as a file.
type exportView struct{ objects *objectsView }

func (v exportView) routes() []route {
	return []route{sendingFile(limitedAs(httpkit.List, get("/objects/:store/export", v.export)))}
}

// encoder writes objects in a format.
type encoder interface {
	begin() error
	object(body []byte) error
	end() error
}

// export sends the objects that match, page by page. An error after the beginning cuts the connection, so that the
// browser does not take a part for the whole.
func (v exportView) export(r *request) error {
	info, st, err := v.objects.store(r)
	if err != nil {
		return err
	}
	ctx, err := r.Call()
	if err != nil {
		return err
	}
	format := r.Query("format")
	if exportTypes[format] == "" {
		return errs.New(errs.Invalid, "choose a format: csv, json or ndjson")
	}
	options := store.ListOptions{Words: strings.TrimSpace(r.Query("q")), Filter: strings.TrimSpace(r.Query("filter")),
		Sort: strings.TrimSpace(r.Query("sort")), Limit: exportPage, MaxBytes: maxListBytes}
	page, err := st.List(ctx, options)
	if err != nil {
		return err
	}
	columns := chosenColumns(st, r.Exchange.Query()["cols"])
	if r.Query("which") != "shown" {
		columns = nil
	} else if len(columns) == 0 {
		columns = usual(info, st, page.Objects)
	}
	r.sendsFile(exportTypes[format], info.Name+"."+format)
	// If the connection does not support deadlines, the server's deadline applies.
	_ = http.NewResponseController(r.Exchange).SetWriteDeadline(time.Now().Add(transferTime))
	r.WriteHeader(http.StatusOK)
	if r.Request.Method == http.MethodHead {
		return nil
	}
	httpkit.Reads(r.Context())
	if format == "csv" && columns == nil {
		columns = slices.DeleteFunc(offered(info, st, page.Objects, maxExported),
			func(name string) bool { return strings.Contains(name, ".") })
	}
	if err := v.send(ctx, r, st, options, page, encoderOf(format, columns, r.Exchange)); err != nil {
		r.RecordError(err)
		panic(http.ErrAbortHandler)
	}
	return nil
}

// send writes a page of objects and those that follow, as long as the user is an admin.
func (v exportView) send(ctx context.Context, r *request, st *store.Store, o store.ListOptions, page store.List,
	to encoder) error {
	if err := to.begin(); err != nil {
		return err
	}
	began := time.Now()
	for checked := began; ; {
		for _, x := range page.Objects {
			if err := to.object(x.Body); err != nil {
				return err
			}
		}
		if o.Cursor = page.Next; o.Cursor == "" {
			return to.end()
		}
		now := time.Now()
		if now.Sub(began) > transferTime {
			return errs.New(errs.Canceled, "the export took longer than %s", transferTime)
		}
		var err error
		if now.Sub(checked) > exportRecheck {
			checked = now
			if ctx, err = r.renew(ctx); err != nil {
				return err
			}
		}
		if page, err = st.List(ctx, o); err != nil {
			return err
		}
	}
}

// encoderOf returns the encoder of a format, of some fields besides the uuid; nil: all.
func encoderOf(format string, columns []string, to io.Writer) encoder {
	if format == "csv" {
		e := &csvEncoder{to: to, columns: append([]string{"uuid"}, columns...)}
		e.csv = csv.NewWriter(&e.line)
		return e
	}
	return &jsonEncoder{to: to, lines: format == "ndjson", columns: columns}
}

// csvEncoder writes a line of each object, with a header. Objects and arrays in fields are JSON in a text.
type csvEncoder struct {
	to      io.Writer
	columns []string
	csv     *csv.Writer // into line
	line    bytes.Buffer
}

func (e *csvEncoder) begin() error {
	header := make([]string, len(e.columns))
	for i, name := range e.columns {
		header[i] = table.Harmless(name)
	}
	return e.write(header)
}

func (e *csvEncoder) object(body []byte) error {
	line := make([]string, len(e.columns))
	for i, name := range e.columns {
		line[i] = csvCell(valueAt(body, name))
	}
	return e.write(line)
}

func (e *csvEncoder) end() error { return nil }

// write writes a line that ends as in RFC 4180. Lines within a text end as they do there: csv.Writer would change them,
// too.
func (e *csvEncoder) write(cells []string) error {
	e.line.Reset()
	err := e.csv.Write(cells)
	e.csv.Flush() // into memory, which does not fail
	e.line.Truncate(max(e.line.Len()-len("\n"), 0))
	if err == nil {
		_, err = e.to.Write(append(e.line.Bytes(), "\r\n"...))
	}
	return err
}

// csvCell returns a value as CSV has it. Numbers stay as they are.
func csvCell(value json.RawMessage) string {
	if text, ok := object.Text(value); ok {
		return table.Harmless(text)
	}
	return string(value)
}

// jsonEncoder writes an array of objects, or a line of each.
type jsonEncoder struct {
	to      io.Writer
	lines   bool
	columns []string // nil: all
	some    bool     // an object has been written
}

func (e *jsonEncoder) begin() error {
	if e.lines {
		return nil
	}
	return e.write([]byte("["))
}

func (e *jsonEncoder) object(body []byte) error {
	if e.columns != nil {
		body = object.Without(body, func(name string) bool {
			return name != "uuid" && !slices.ContainsFunc(e.columns, func(c string) bool {
				return c == name || topLevel(c) == name
			})
		})
	}
	before, after := "", "\n"
	if !e.lines {
		if before, after = "\n", ""; e.some {
			before = ",\n"
		}
	}
	e.some = true
	return e.write([]byte(before), body, []byte(after))
}

func (e *jsonEncoder) end() error {
	if e.lines {
		return nil
	}
	return e.write([]byte("\n]\n"))
}

func (e *jsonEncoder) write(parts ...[]byte) error {
	_, err := e.to.Write(slices.Concat(parts...))
	return err
}
