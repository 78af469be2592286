package views

import (
	"context"
	"maps"
	"slices"
	"time"

	"belfry/config"
	"belfry/internal/backoff"
	"belfry/pkg/api/console"
	"belfry/pkg/app/serving"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// schemaChecks implements console.SchemaChecker.
type schemaChecks struct {
	*runs[console.SchemaChecked]
	store func(name string) *store.Store // as it is served now; nil if it does not exist
}

var _ console.SchemaChecker = (*schemaChecks)(nil)

func newSchemaChecks(ctx context.Context, v *Views) *schemaChecks {
	return &schemaChecks{
		runs:  newRuns[console.SchemaChecked](ctx, v, "schema check", "schema-check", nil),
		store: func(name string) *store.Store { return v.Served.Now().Set.Store(name) },
	}
}

// Start implements console.SchemaChecker.
func (c *schemaChecks) Start(request context.Context, by, id, name string) error {
	st := c.store(name)
	if st == nil || st.Schema() == nil {
		return errs.New(errs.Invalid, "store %s has no schema", name)
	}
	first := console.SchemaChecked{Store: name, Schema: st.SchemaDigest()}
	return c.start(request, by, id, first, func(ctx context.Context, change func(func(*console.SchemaChecked))) error {
		about := aboutObjects(ctx, st)
		change(func(now *console.SchemaChecked) { now.About = about })
		began := time.Now()
		_, err := st.CheckSchema(ctx, st.Schema(), func(r store.SchemaReport) error {
			found := mismatches(r.First)
			change(func(now *console.SchemaChecked) { now.Objects, now.Failing, now.First = r.Objects, r.Failing, found })
			if now := c.store(name); now == nil || now.SchemaDigest() != first.Schema {
				return errs.New(errs.Canceled, "the configuration was reloaded meanwhile, with another schema of %s: check again", name)
			}
			// A pause as long as each step leaves half of the time of the backend and the processors to others.
			if err := backoff.Sleep(ctx, time.Since(began)); err != nil {
				return err
			}
			began = time.Now()
			return nil
		})
		return err
	})
}

// countTimeout is how long a run waits for the number of objects: some backends would have to read all objects to count
// them.
const countTimeout = time.Second

// aboutObjects returns the number of objects by the backend, 0 if it is not known at once.
func aboutObjects(ctx context.Context, st *store.Store) int64 {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	n, _, err := st.Count(ctx)
	if err != nil {
		return 0
	}
	return n
}

// mismatches returns the kept data of objects that do not match.
func mismatches(first []store.FailingObject) []console.Mismatch {
	all := make([]console.Mismatch, len(first))
	for i, o := range first {
		all[i] = console.Mismatch{UUID: o.UUID, Message: o.Message, Errors: o.Errors}
		if more := len(o.Errors) - console.MaxMismatchErrors; more > 0 {
			all[i].Errors, all[i].More = o.Errors[:console.MaxMismatchErrors], more
		}
	}
	return all
}

// Last implements console.SchemaChecker.
func (c *schemaChecks) Last(ctx context.Context) (*console.SchemaCheck, error) {
	last, err := c.current(ctx)
	if last == nil || err != nil {
		return nil, err
	}
	return &console.SchemaCheck{Run: last.Run, SchemaChecked: last.State}, nil
}

// consoleSchemas returns the options of the view Schemas.
func (v *Views) consoleSchemas(g *serving.Generation) *console.Schemas {
	s := &console.Schemas{Checks: v.measured.schemas, Set: g.Set}
	for _, name := range slices.Sorted(maps.Keys(g.Config.Stores)) {
		if !config.Internal(name) && g.Config.Stores[name].Schema != "" {
			s.Stores = append(s.Stores, name)
		}
	}
	return s
}
