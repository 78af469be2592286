package console

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// Schemas are the options of the view Schemas.
type Schemas struct {
	Checks SchemaChecker
	Set    *store.Set
	Stores []string // stores of the view Objects that have a schema
}

// SchemaChecker counts the objects of a store that its schema would refuse, one run at a time, in all processes that share the
// stores.
type SchemaChecker interface {
	// Start starts a run; Conflict while one is in progress. The run outlives ctx. Its error is logged with the
	// attributes of ctx.
	Start(ctx context.Context, by, request, store string) error
	// Stop ends the run that is in progress, if any, in any process.
	Stop(ctx context.Context) error
	// Last returns the run in progress, or else the last one, of all processes; nil if there was no run.
	Last(ctx context.Context) (*SchemaCheck, error)
}

// SchemaCheck is a run of a SchemaChecker.
type SchemaCheck struct {
	Run
	SchemaChecked
}

// SchemaChecked is the subject of a run, and its findings so far.
type SchemaChecked struct {
	Store   string
	Schema  string     // store.SchemaDigest of the schema that objects are checked by
	About   int64      // the number of objects by the backend; 0 if it is unknown
	Objects int        // that were read
	Failing int        // of them
	First   []Mismatch `json:",omitempty"` // of those that fail
}

// Mismatch is an object that does not match its schema.
type Mismatch struct {
	UUID, Message string
	Errors        []errs.Field `json:",omitempty"`
	More          int          `json:",omitempty"` // violations that are not among Errors
}

// MaxMismatchErrors is how many violations of one object a run keeps: the page of the object has up to 100.
const MaxMismatchErrors = 10

// Problem describes Err for people; "" without an error.
func (c *SchemaCheck) Problem() string { return c.problem("") }

// Found is the number of objects that do not match, in words.
func (c *SchemaCheck) Found() string {
	return formatCount(int64(c.Failing)) + " " + count.Noun(c.Failing, "object does not match", "objects do not match")
}

func (c *Console) schemas(o *Schemas) view {
	if o == nil {
		return view{}
	}
	v := schemasView{o}
	return view{name: "schemas", title: "Schemas", routes: []route{
		get("/schemas", v.show), post("/schemas", v.start), post("/schemas/stop", v.stop),
	}}
}

type schemasView struct{ *Schemas }

// schemasPage is the data of the page.
type schemasPage struct {
	Stores   []string
	Chosen   string // of Stores, for the next run
	Check    *SchemaCheck
	Outdated string // why the findings may be wrong now; "" if they are of the present schema
	Rows     []mismatchRow
}

// mismatchRow is an object that a run has found, in its present state.
type mismatchRow struct {
	Mismatch
	Now string // its present state; "" if it still does not match, or that is unknown
}

func (v schemasView) show(r *request) error {
	last, err := v.Checks.Last(r.Context())
	if err != nil {
		return err
	}
	p := schemasPage{Stores: v.Stores, Chosen: r.Query("store"), Check: last}
	if last != nil {
		if p.Chosen == "" {
			p.Chosen = last.Store
		}
		v.present(r.Context(), &p)
	}
	if r.Partial() {
		return r.Fragment("schemas", "state", p)
	}
	return r.Page("schemas", "Schemas", p)
}

// presentTime is how long a page waits for the present state of the objects that it lists.
const presentTime = time.Second

// present compares the findings of a run with the present state. Since the run, the schema may have changed, also in
// the process that ran it, fields may have become private, and objects may have been written.
func (v schemasView) present(ctx context.Context, p *schemasPage) {
	st := v.Set.Store(p.Check.Store)
	if st == nil || !slices.Contains(v.Stores, p.Check.Store) {
		p.Outdated = "The store has no schema in the configuration that is served now."
		return
	}
	if st.SchemaDigest() != p.Check.Schema {
		p.Outdated = "The schema that is served now is another one: check again."
	}
	ctx, cancel := context.WithTimeout(store.WithCall(ctx, store.Call{}), presentTime)
	defer cancel()
	for _, m := range p.Check.First {
		row := mismatchRow{Mismatch: m}
		row.Errors = st.Rules().ConcealedFields(m.Errors)
		if !p.Check.Running() {
			row.Now = standing(ctx, st, m.UUID)
		}
		p.Rows = append(p.Rows, row)
	}
}

// standing describes the present state of an object that did not match its schema; "" if it still does not, or that is
// unknown.
func standing(ctx context.Context, st *store.Store, uuid string) string {
	stored, err := st.Get(ctx, uuid)
	if errors.Is(err, errs.NotFound) {
		return "deleted since"
	}
	if err != nil {
		return ""
	}
	if mismatch, err := st.SchemaMismatch(ctx, stored); err != nil || mismatch != nil {
		return ""
	}
	return "matches now"
}

func (v schemasView) start(r *request) error {
	form, err := r.Form()
	if err != nil {
		return err
	}
	name := form.Get("store")
	if !slices.Contains(v.Stores, name) {
		return errs.New(errs.Invalid, "choose a store that has a schema")
	}
	if err := v.Checks.Start(r.Context(), r.name(), r.ID, name); err != nil {
		return err
	}
	r.Log(slog.LevelInfo, "a schema check was started in the console", slog.String("store", name), slog.String("actor", r.Session.User.UUID))
	return r.Redirect(pathOf("schemas"), "")
}

func (v schemasView) stop(r *request) error {
	if err := v.Checks.Stop(r.Context()); err != nil {
		return err
	}
	return r.Redirect(pathOf("schemas"), "The run is being stopped.")
}
