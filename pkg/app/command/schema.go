package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/internal/count"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/schema"
)

// SchemaQuestion requests the objects of a store that don't match a schema.
type SchemaQuestion struct {
	Store   string `json:"store"`
	Name    string `json:"name,omitempty" console:"-"`    // of the schema, for messages; "": that of the configuration
	Schema  []byte `json:"schema,omitempty"`              // its text
	Formats bool   `json:"formats,omitempty" console:"-"` // its format is asserted
}

// Schema reads all objects of a store and reports those that a schema would refuse.
var Schema = Operation[SchemaQuestion, store.SchemaReport, store.SchemaReport]{
	Name:  "schema check",
	Reads: func(SchemaQuestion) bool { return true },
	Max:   1 << 20, // more than the largest schema in base64 has
	Check: func(c *config.Config, q SchemaQuestion) error {
		if c.Stores[q.Store] == nil {
			return plan.UnknownStore(c, q.Store)
		}
		if q.Name == "" && c.Stores[q.Store].Schema == "" {
			return errs.New(errs.Invalid, "store %s has no schema: name one with --schema", q.Store)
		}
		_, err := q.compile(c)
		return err
	},
	Run: func(ctx context.Context, at *Place, q SchemaQuestion,
		report func(store.SchemaReport)) (*store.SchemaReport, error) {
		if at.Current != nil {
			return followSchema(ctx, at, q.Store, report)
		}
		return checkSchema(ctx, at.Plan.Config, at.Set, q)
	},
	Commands: []Command[SchemaQuestion, store.SchemaReport]{{
		Words: "schema check",
		Help:  "Count the objects of a store that its schema would refuse, and show the first ten.",
		Flags: &schemaFlags{},
	}},
	Console: &Console[SchemaQuestion, store.SchemaReport]{Title: "Schemas", Path: "schemas", Button: "Check now",
		Choices: func(p *plan.Plan, _ string) (all []string) {
			for _, name := range slices.Sorted(maps.Keys(p.Config.Stores)) {
				if !config.Internal(name) && p.Config.Stores[name].Schema != "" {
					all = append(all, name)
				}
			}
			return all
		}},
}

type schemaFlags struct {
	Store   string `required:"" help:"Name of the store." placeholder:"NAME"`
	Schema  string `help:"A JSON Schema to check instead of that of the configuration." placeholder:"FILE" type:"existingfile"`
	Formats bool   `help:"With --schema: assert format, as with formats in the configuration."`
	JSON    bool   `name:"json" help:"Print one JSON object."`
}

// Request implements Flags.
func (f *schemaFlags) Request(context.Context, Streams) (SchemaQuestion, error) {
	q := SchemaQuestion{Store: f.Store, Formats: f.Formats}
	if f.Schema == "" {
		if f.Formats {
			return q, errs.New(errs.Invalid,
				"--formats is for --schema: formats in the configuration applies to the configured schema")
		}
		return q, nil
	}
	text, err := schema.Read(f.Schema)
	if err != nil {
		return q, errs.Wrap(err, errs.Invalid, "--schema can't be read")
	}
	q.Name, q.Schema = filepath.Base(f.Schema), text
	return q, nil
}

// Print implements Flags.
func (f *schemaFlags) Print(s Streams, r *store.SchemaReport) (err error) {
	if f.JSON {
		err = json.NewEncoder(s.Out).Encode(r)
	} else {
		err = f.write(s.Out, r)
	}
	if err == nil && r.Failing > 0 {
		return ErrFound
	}
	return err
}

func (f *schemaFlags) write(w io.Writer, r *store.SchemaReport) error {
	for _, o := range r.First {
		fmt.Fprintf(w, "%s %s: %s\n", f.Store, o.UUID, o.Message)
		for _, e := range o.Errors {
			fmt.Fprintf(w, "  %s (%s)\n", e, e.Keyword)
		}
	}
	if more := r.Failing - len(r.First); more > 0 {
		fmt.Fprintf(w, "and %d more\n", more)
	}
	_, err := fmt.Fprintf(w, "%s of %s checked, %s the schema\n", count.Of(r.Objects, "object"), f.Store,
		count.Of(r.Failing, "does not match", "do not match"))
	return err
}

// compile compiles the schema in question. The configured schema is read again: the file may have changed since it was
// loaded.
func (q SchemaQuestion) compile(c *config.Config) (*schema.Schema, error) {
	if q.Name != "" {
		return schema.Compile(q.Name, q.Schema, plan.SchemaOptions(false, q.Formats)...)
	}
	configured := *c.Stores[q.Store]
	configured.Defaults = false
	return plan.LoadSchema(&configured)
}

// checkSchema checks the objects of open stores.
func checkSchema(ctx context.Context, c *config.Config, set *store.Set, q SchemaQuestion) (*store.SchemaReport, error) {
	s := set.Store(q.Store)
	if s == nil {
		return nil, plan.UnknownStore(c, q.Store)
	}
	compiled, err := q.compile(c)
	if err != nil {
		return nil, errs.Wrap(err, errs.Invalid, "%v", err)
	}
	if compiled == nil {
		return nil, errs.New(errs.Invalid,
			"store %s has no schema in the configuration that is served: name one with --schema, or reload", q.Store)
	}
	return s.CheckSchema(ctx, compiled, nil)
}

// followSchema checks the objects of a store by the schema that is served, for a person who follows it in the console.
func followSchema(ctx context.Context, at *Place, name string,
	report func(store.SchemaReport)) (*store.SchemaReport, error) {
	s := at.Set.Store(name)
	if s == nil || s.Schema() == nil {
		return nil, errs.New(errs.Invalid, "store %s has no schema", name)
	}
	of := store.SchemaReport{Store: name, Schema: s.SchemaDigest()}
	report(of)
	of.About = aboutObjects(ctx, s)
	began := time.Now()
	last, err := s.CheckSchema(ctx, s.Schema(), func(r store.SchemaReport) error {
		report(keptSchemaReport(r, of))
		if now := at.Current().Store(name); now == nil || now.SchemaDigest() != of.Schema {
			return errs.New(errs.Canceled,
				"the configuration was reloaded meanwhile, with another schema of %s: check again", name)
		}
		// Others have the backend and the processors for half of the time, at any cost of a page.
		if err := backoff.Sleep(ctx, time.Since(began)); err != nil {
			return err
		}
		began = time.Now()
		return nil
	})
	if err != nil {
		return nil, err
	}
	kept := keptSchemaReport(*last, of)
	return &kept, nil
}

// countTimeout is how long a run waits for the number of objects: a backend that would have to read them does not know
// it at once.
const countTimeout = time.Second

// aboutObjects returns how many objects there are as the backend has it, 0 if that is not known at once.
func aboutObjects(ctx context.Context, s *store.Store) int64 {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	n, _, err := s.Count(ctx)
	if err != nil {
		return 0
	}
	return n
}

// maxViolations is how many violations of one object a run of the console keeps: the page of the object has up to 100.
const maxViolations = 10

// keptSchemaReport is what a run of the console keeps of a report, with what it is of.
func keptSchemaReport(r, of store.SchemaReport) store.SchemaReport {
	r.Store, r.Schema, r.About, r.First = of.Store, of.Schema, of.About, slices.Clone(r.First)
	for i := range r.First {
		o := &r.First[i]
		o.Errors, o.More = shorten(o.Errors, o.More, maxViolations)
	}
	return r
}
