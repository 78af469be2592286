package console

import (
	"context"
	"errors"
	"slices"
	"time"

	"belfry/internal/count"
	"belfry/pkg/errs"
	"belfry/pkg/store"
)

// schemasPath is the page of the operation that checks the objects of a store by its schema, whose progress and result
// are a store.SchemaReport.
const schemasPath = "schemas"

// schemasView adds what has become of the objects that a run has found.
type schemasView struct{ set *store.Set }

// schemaFound is what a run has found, as it is now.
type schemaFound struct {
	store.SchemaReport
	Outdated string // why what the run has found may be wrong now; "": it holds for the present schema
	Rows     []mismatchRow
}

// mismatchRow is an object that a run has found, as it is now.
type mismatchRow struct {
	store.FailingObject
	Now string // what has become of it; "": it does not match, or that is not known
}

// Found is how many objects do not match, in words.
func (f schemaFound) Found() string {
	return formatCount(int64(f.Failing)) + " " + count.Noun(f.Failing, "object does not match", "objects do not match")
}

// presentTime is how long a page waits for what has become of the objects that it lists.
const presentTime = time.Second

// present compares what a run has found with what there is now: another schema may be served, also by the process that
// ran it, fields may have become private, and objects have been changed.
func (v schemasView) present(ctx context.Context, p *operationPage) {
	if p.Run == nil {
		return
	}
	found := schemaFound{}
	found.SchemaReport, _ = p.Run.Progress.(store.SchemaReport)
	if out, ok := p.Run.Out.(*store.SchemaReport); ok {
		found.SchemaReport = *out
	}
	defer func() { p.Shown = found }()
	field := &p.Form[0]
	if field.Value == "" {
		field.Value = found.Store
	}
	st := v.set.Store(found.Store)
	switch {
	case found.Store == "":
		return // it has only begun
	case st == nil || !slices.Contains(field.Choices, found.Store):
		found.Outdated = "The store has no schema in the configuration that is served now."
		return
	case st.SchemaDigest() != found.Schema:
		found.Outdated = "The schema that is served now is another one: check again."
	}
	ctx, cancel := context.WithTimeout(store.WithCall(ctx, store.Call{}), presentTime)
	defer cancel()
	for _, o := range found.First {
		p.find(found.Store, o.UUID)
		row := mismatchRow{FailingObject: o}
		row.Errors = st.Rules().ConcealedFields(o.Errors)
		if !p.Run.Running() {
			row.Now = standing(ctx, st, o.UUID)
		}
		found.Rows = append(found.Rows, row)
	}
}

// standing says what has become of an object that did not match its schema; "" if that is still so, or is not known.
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
