package console

import (
	"context"

	"belfry/pkg/errs"
	"belfry/pkg/httpkit"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// edit changes one field of an object at the revision that the list has shown, and replies with the row as it is now.
func (v gridView) edit(r *request) error {
	info, st, err := v.objects.writable(r)
	if err != nil {
		return err
	}
	uuid, err := r.UUID()
	if err != nil {
		return err
	}
	form, ctx, err := r.Submitted()
	if err != nil {
		return err
	}
	revision, err := r.revision()
	if err != nil {
		return err
	}
	name, e := form.Get("field"), v.objects.cellEditor(info, st)
	if name == "" || !e.may(name) {
		return errs.New(errs.Denied, "%s can't be changed here: open the object",
			httpkit.Truncate(legible(name), maxCell))
	}
	value, err := scalar(form.Get("value"))
	if err != nil {
		return err
	}
	if err := setField(ctx, st, uuid, revision, object.Object{name: value}); err != nil {
		return err
	}
	shown, err := st.Get(ctx, uuid)
	if err != nil {
		return err
	}
	row := gridRow{named: v.objects.names.named(info.Name, shown), Revision: shown.Revision, Bulk: v.bulk,
		Cells: e.cells(shown, chosenColumns(st, form["cols"]))}
	return r.Fragment("objects_list", "row", row)
}

// scalar parses the text of a single value; "" removes the field.
func scalar(text string) ([]byte, error) {
	if text == "" {
		return nil, nil
	}
	o, err := object.Parse([]byte(`{"value":` + text + `}`))
	if err != nil || len(o) != 1 || o["value"] == nil {
		return nil, errs.New(errs.Invalid, "expected a number such as 12 or 0.5")
	}
	if c := o["value"][0]; c == '{' || c == '[' {
		return nil, errs.New(errs.Invalid, "only a text, a number, true or false can be entered here")
	}
	return o["value"], nil
}

// setField changes fields of an object at a revision; later writes of workers alone do not count.
func setField(ctx context.Context, st *store.Store, uuid string, revision uint64, fields object.Object) error {
	_, err := st.Mutate(ctx, uuid, func(now store.Stored) (store.Mutation, error) {
		if now.Revision != revision && !store.OnlyWorkersSince(now, revision) {
			return store.Mutation{}, errs.New(errs.Mismatch,
				"somebody else has changed the object since the list was shown: load the list again")
		}
		return store.Mutation{Fields: fields}, nil
	})
	return st.Rules().Concealed(err)
}
