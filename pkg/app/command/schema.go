package command

import (
	"context"

	"belfry/config"
	"belfry/pkg/app/hold"
	"belfry/pkg/app/open"
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

// MaxSchemaQuestion is the most bytes of a SchemaQuestion: more than the largest schema in base64 has.
const MaxSchemaQuestion = 1 << 20

// CheckSchema reads all objects of a store and reports those that a schema would refuse, by the belfry that serves the
// store if one does, and directly otherwise.
func CheckSchema(ctx context.Context, c *config.Config, q SchemaQuestion) (report *store.SchemaReport, err error) {
	if c.Stores[q.Store] == nil {
		return nil, plan.UnknownStore(c, q.Store)
	}
	if q.Name == "" && c.Stores[q.Store].Schema == "" {
		return nil, errs.New(errs.Invalid, "store %s has no schema: name one with --schema", q.Store)
	}
	if _, err := q.compile(c); err != nil {
		return nil, err
	}
	err = open.WithStores(ctx, c, "schema check",
		func(_ *plan.Plan, set *store.Set) (err error) {
			report, err = CheckSchemaIn(ctx, c, set, q)
			return err
		},
		func(h hold.Holder) (err error) {
			report, err = hold.Ask[store.SchemaReport](ctx, h, "/schema", q)
			return err
		})
	return report, err
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

// CheckSchemaIn is CheckSchema with open stores.
func CheckSchemaIn(ctx context.Context, c *config.Config, set *store.Set, q SchemaQuestion) (*store.SchemaReport, error) {
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
