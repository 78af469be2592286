package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"belfry/internal/count"

	"belfry/config"
	"belfry/pkg/app/plan"
	"belfry/pkg/errs"
	"belfry/pkg/store"
	"belfry/pkg/store/schema"
)

// SchemaQuestion asks which objects of a store don't match a schema.
type SchemaQuestion struct {
	Store   string `json:"store"`
	Name    string `json:"name,omitempty"`    // of the schema, for messages; "": that of the configuration
	Schema  []byte `json:"schema,omitempty"`  // its text
	Formats bool   `json:"formats,omitempty"` // its format is asserted
}

// Schema reads all objects of a store and reports those that a schema would refuse.
var Schema = Operation[SchemaQuestion, store.SchemaReport, none]{
	Name: "schema check", Max: 1 << 20, // more than the largest schema in base64 has
	Reads: func(SchemaQuestion) bool { return true },
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
	Run: func(ctx context.Context, at *Place, q SchemaQuestion, _ func(none)) (*store.SchemaReport, error) {
		return checkSchema(ctx, at.Plan.Config, at.Set, q)
	},
	Commands: []Command[SchemaQuestion, store.SchemaReport]{{
		Words: "schema check", Help: "Count the objects of a store that its schema would refuse, and show the first ten.", Flags: &schemaFlags{},
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
			return q, errs.New(errs.Invalid, "--formats is for --schema: the configuration says whether its schema asserts formats")
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
	_, err := fmt.Fprintf(w, "%s of %s checked, %s the schema\n", count.Of(r.Objects, "object"), f.Store, count.Of(r.Failing, "does not match", "do not match"))
	return err
}

// compile compiles the schema in question. That of the configuration is read again: the file may have changed since it
// was loaded.
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
		return nil, errs.New(errs.Invalid, "store %s has no schema in the configuration that is served: name one with --schema, or reload", q.Store)
	}
	return s.CheckSchema(ctx, compiled, nil)
}
