package app

import (
	"context"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/computed"
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

// LoadSchema loads the schema of a store as the configuration has it; nil for none.
func LoadSchema(s *config.Store) (*schema.Schema, error) {
	if s.Schema == "" {
		return nil, nil
	}
	return schema.Load(s.Schema, schemaOptions(s.Defaults, s.Formats)...)
}

// Judge returns what validates objects as a store would, with the schema and what the configuration says of its properties.
func Judge(c *config.Config, name string) (store.Validator, error) {
	s := c.Stores[name]
	if s == nil {
		return nil, unknownStore(c, name)
	}
	p := &plan{config: c, open: map[string][]string{}}
	o, problems := p.compileStore(s)
	if len(problems) > 0 {
		return nil, problems
	}
	o.Arrays = computed.MappedArrays(c, name)
	p.stores = []store.Options{o}
	p.placeBinaries()
	return store.Judge(p.stores[0]), nil
}

// maintainedFields returns the properties that logins maintain in a store.
func maintainedFields(c *config.Config, name string) []string {
	users, idents := account.MaintainedFields()
	switch name {
	case c.Authentication.UserStore:
		return users
	case c.Authentication.IdentStore:
		return idents
	default:
		return nil
	}
}

func schemaOptions(defaults, formats bool) []schema.Option {
	var all []schema.Option
	if defaults {
		all = append(all, schema.Defaults)
	}
	if formats {
		all = append(all, schema.Formats)
	}
	return all
}

// maxSchemaQuestion is the most bytes of a SchemaQuestion: more than the largest schema in base64 has.
const maxSchemaQuestion = 1 << 20

// CheckSchema reads all objects of a store and reports those that a schema would refuse, by the belfry that serves the
// store if one does, and directly otherwise.
func CheckSchema(ctx context.Context, c *config.Config, q SchemaQuestion) (report *store.SchemaReport, err error) {
	if c.Stores[q.Store] == nil {
		return nil, unknownStore(c, q.Store)
	}
	if q.Name == "" && c.Stores[q.Store].Schema == "" {
		return nil, errs.New(errs.Invalid, "store %s has no schema: name one with --schema", q.Store)
	}
	if _, err := q.compile(c); err != nil {
		return nil, err
	}
	err = withStores(ctx, c, "schema check",
		func(_ *plan, set *store.Set) (err error) {
			report, err = checkSchema(ctx, c, set, q)
			return err
		},
		func(h Holder) (err error) {
			report, err = ask[store.SchemaReport](ctx, h, "/schema", q)
			return err
		})
	return report, err
}

// compile compiles the schema in question. That of the configuration is read again: the file may have changed since it
// was loaded.
func (q SchemaQuestion) compile(c *config.Config) (*schema.Schema, error) {
	if q.Name != "" {
		return schema.Compile(q.Name, q.Schema, schemaOptions(false, q.Formats)...)
	}
	configured := *c.Stores[q.Store]
	configured.Defaults = false
	return LoadSchema(&configured)
}

func checkSchema(ctx context.Context, c *config.Config, set *store.Set, q SchemaQuestion) (*store.SchemaReport, error) {
	s := set.Store(q.Store)
	if s == nil {
		return nil, unknownStore(c, q.Store)
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
