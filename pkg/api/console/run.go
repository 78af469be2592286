package console

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"belfry/pkg/errs"
)

// Operation is an operation that admins run. Its form, its page and its runs come from the value of the operation.
type Operation struct {
	Path   string // below /console
	Title  string // of its page, which the navigation has; "": the view that the path begins with has them
	Kind   string // what a run is: "verification"
	About  string // what a run does
	Button string
	Fields func() []Field // of the form

	Runs Runs // in the background
	// without Runs: at once, and returns what happened
	Do func(ctx context.Context, form url.Values) (done string, err error)
	// how Do has ended the last time in this process; nil: it has not been called
	Last func() *Done
}

// Done is how an operation without runs has ended.
type Done struct {
	At   time.Time
	Says string
	Err  error
}

// Text is what people are shown.
func (d *Done) Text() string {
	if d.Err == nil {
		return d.Says
	}
	message, _ := messageOf(d.Err)
	return message
}

// Field is a field of the form of an operation.
type Field struct {
	Name, Label, Help, Placeholder string

	Kind     string // FieldText, …
	Required bool
	Max      int      // bytes; 0: no limit of its own
	Choices  []string // of a FieldChoice
	Value    string
}

// Kinds of fields. The others are types of an HTML input.
const (
	FieldFlag   = "checkbox"
	FieldChoice = "select"
	FieldButton = "button" // a flag that the form lacks: another button of the page sets it
)

// Runs are the runs of an operation. One is in progress at a time in all processes that share the stores.
type Runs interface {
	// Start starts a run with the fields of a form; Conflict while one is in progress. The cause of a failure is logged
	// with the attributes of ctx, which ends before.
	Start(ctx context.Context, by, request string, form url.Values) error
	// Stop ends the run that is in progress, if there is one, in any process.
	Stop(ctx context.Context) error
	// Last returns the run that is in progress, or else the last one, of all processes; nil: none.
	Last(ctx context.Context) (*Run, error)
}

// Run is a run in the background that an admin has started.
type Run struct {
	By           string    // who started it
	Request      string    // the id of the request that started it, under which the log has the cause of Err
	Began, Ended time.Time // Ended is zero while it is in progress
	Err          error
	Lost         bool // its process has ended without a word: Progress is of a time before that

	In, Progress any                   // what it was started with, and how far it is
	Out          any                   // its result; nil while it is in progress, and after an error
	Stays        string                // what stays of a run that ends early, as a sentence; "" for nothing
	Write        func(io.Writer) error // writes the result for people
}

// Text is the result for people; "" for none.
func (r *Run) Text() (string, error) {
	var b strings.Builder
	if r.Write == nil {
		return "", nil
	}
	err := r.Write(&b)
	return b.String(), err
}

// Running reports whether the run is in progress.
func (r *Run) Running() bool { return r.Ended.IsZero() }

// Took is how long a run took, or takes already.
func (r *Run) Took() time.Duration {
	if r.Running() {
		return time.Since(r.Began).Round(time.Second)
	}
	return r.Ended.Sub(r.Began).Round(time.Millisecond)
}

// Problem is what people are shown of Err; "" for none.
func (r *Run) Problem() string {
	if r.Err == nil {
		return ""
	}
	stays := ""
	if r.Stays != "" {
		stays = " " + r.Stays
	}
	text := "The server failed during the run."
	message, _ := messageOf(r.Err)
	switch errs.KindOf(r.Err) {
	case errs.Canceled:
		return strings.TrimSuffix(message, ".") + "." + stays
	case errs.Internal:
	default:
		text = "The run ended early: " + strings.TrimSuffix(message, ".") + "."
	}
	text += stays
	if r.Request != "" {
		text += " The log has the cause under the request " + r.Request + "."
	}
	return text + " Try again."
}

// operation returns the operation at a path; nil: no operation has it.
func (o Options) operation(path string) *Operation {
	at := slices.IndexFunc(o.Operations, func(op Operation) bool { return op.Path == path })
	if at < 0 {
		return nil
	}
	return &o.Operations[at]
}

// runs returns the runs of an operation; nil without it.
func (o *Operation) runs() Runs {
	if o == nil {
		return nil
	}
	return o.Runs
}

// last returns the last run of an operation; nil also without the operation.
func (o *Operation) last(ctx context.Context) (*Run, error) {
	if o == nil {
		return nil, nil
	}
	return o.Runs.Last(ctx)
}

// operations are the views of operations with a page, and below the names of other views the routes of those without.
func (c *Console) operations(o Options) (views []view, within map[string][]route) {
	within = map[string][]route{}
	for _, op := range o.Operations {
		v := operationView{Operation: op, names: c.names, present: presentCopies}
		if op.Title == "" && op.Runs != nil {
			continue // its view has the form, and the page
		}
		if op.Title == "" {
			of, _, _ := strings.Cut(op.Path, "/")
			within[of] = append(within[of], post("/"+op.Path, v.start))
			continue
		}
		if op.Path == schemasPath && o.Objects != nil {
			v.present = schemasView{o.Objects.Set}.present
		}
		if op.Path == BackupPath && o.Backups != nil {
			all := newBackupsView(v, o.operation(BackupVerifyPath), o.Backups)
			views = append(views, view{name: op.Path, title: op.Title, routes: all.routes()})
			continue
		}
		views = append(views, view{name: op.Path, title: op.Title, routes: []route{
			get("/"+op.Path, v.show), post("/"+op.Path, v.start), post("/"+op.Path+"/stop", v.stop),
		}})
	}
	return views, within
}

type operationView struct {
	Operation
	names   *namer
	present func(context.Context, *operationPage) // adds what the page shows besides
}

// operationPage is what a page shows.
type operationPage struct {
	Operation
	Form  []Field
	Run   *Run // nil: none
	Shown any  // see operationView.present

	found []*named // the objects of the result
	names *namer
}

// find adds objects of the result, whose names are read.
func (p *operationPage) find(store string, uuids ...string) {
	for _, uuid := range uuids {
		if uuid != "" {
			one := p.names.of(store, uuid)
			one.Linked = true
			p.found = append(p.found, &one)
		}
	}
}

// Object returns an object of the result.
func (p operationPage) Object(store, uuid string) named {
	for _, one := range p.found {
		if one.Store == store && one.UUID == uuid {
			return *one
		}
	}
	return named{Store: store, UUID: uuid, Linked: true}
}

// objects implements showsObjects.
func (p operationPage) objects() []*named { return p.found }

// Row reports whether the form is one line.
func (p operationPage) Row() bool { return len(p.Form) == 1 && p.Form[0].Kind != FieldFlag }

func (v operationView) show(r *request) error {
	last, err := v.Runs.Last(r.Context())
	if err != nil {
		return err
	}
	p := operationPage{Operation: v.Operation, Form: v.Fields(), Run: last, names: v.names}
	for i, f := range p.Form {
		p.Form[i].Value = cmp.Or(r.Query(f.Name), f.Value)
	}
	v.present(r.Context(), &p)
	name := v.Path
	if loadPages(r.Base())[name] == nil {
		name = "run"
	}
	if r.Partial() {
		return r.Fragment(name, "state", p)
	}
	return r.Page(name, v.Title, p)
}

// read checks the fields of a form, and returns them with the attributes for the log: what was chosen, and no text.
func (v operationView) read(r *request) (form url.Values, log []slog.Attr, err error) {
	sent, err := r.Form()
	if err != nil {
		return nil, nil, err
	}
	form = url.Values{}
	for _, f := range v.Fields() {
		value := strings.TrimSpace(sent.Get(f.Name))
		switch {
		case f.Kind == FieldFlag, f.Kind == FieldButton:
			log = append(log, slog.Bool(f.Name, value == strconv.FormatBool(true)))
		case f.Kind == FieldChoice:
			if !slices.Contains(f.Choices, value) {
				return nil, nil, errs.New(errs.Invalid, "%s: choose one of those that the form has", f.Label)
			}
			log = append(log, slog.String(f.Name, value))
		case f.Required && value == "":
			return nil, nil, errs.New(errs.Invalid, "%s: enter a value", f.Label)
		case f.Max > 0 && len(value) > f.Max:
			return nil, nil, errs.New(errs.Invalid, "%s: at most %d bytes are allowed", f.Label, f.Max)
		}
		if value != "" {
			form.Set(f.Name, value)
		}
	}
	return form, append(log, slog.String("actor", r.Session.User.UUID)), nil
}

func (v operationView) start(r *request) error {
	form, log, err := v.read(r)
	if err != nil {
		return err
	}
	if v.Runs == nil {
		r.Log(slog.LevelInfo, "a "+v.Kind+" was requested in the console", log...)
		done, err := v.Do(r.Context(), form)
		if err != nil {
			return err
		}
		of, _, _ := strings.Cut(v.Path, "/")
		return r.Redirect(pathOf(of), strings.ToUpper(done[:1])+done[1:]+".")
	}
	if err := v.Runs.Start(r.Context(), r.name(), r.ID, form); err != nil {
		return err
	}
	r.Log(slog.LevelInfo, "a "+v.Kind+" was started in the console", log...)
	return r.Redirect(pathOf(v.Path), "")
}

func (v operationView) stop(r *request) error {
	if err := v.Runs.Stop(r.Context()); err != nil {
		return err
	}
	return r.Redirect(pathOf(v.Path), "The run is being stopped.")
}

// pair is a field of a value.
type pair struct{ Name, Value string }

// pairs are the fields of a struct that have values which fit into a line, by their names in JSON; or a value alone.
func pairs(value any) (all []pair) {
	v := reflect.Indirect(reflect.ValueOf(value))
	if v.Kind() != reflect.Struct {
		if text := inLine(v); text != "" {
			all = append(all, pair{"So far", text})
		}
		return all
	}
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || f.Anonymous || len(f.Index) > 1 || name == "-" {
			continue
		}
		if text := inLine(v.FieldByIndex(f.Index)); text != "" {
			all = append(all, pair{cmp.Or(name, f.Name), text})
		}
	}
	return all
}

// inLine is a value as a text; "" for one without a value, and for what is not one text or number.
func inLine(v reflect.Value) string {
	switch {
	case !v.IsValid() || v.IsZero():
		return ""
	case v.CanInt():
		return formatCount(v.Int())
	case v.CanUint():
		return formatCount(int64(min(v.Uint(), 1<<62))) //nolint:gosec // bounded
	case v.Kind() == reflect.String, v.Kind() == reflect.Bool:
		return fmt.Sprint(v.Interface())
	}
	return ""
}
