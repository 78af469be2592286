package console

import (
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// duplicated returns the text of a new object with the fields of the one that the query names as from, which an admin
// can set; "" if it names none.
func (v *objectsView) duplicated(r *request, st *store.Store) (string, error) {
	from := r.Query("from")
	if from == "" {
		return "", nil
	}
	if err := object.CheckUUID(from); err != nil {
		return "", errs.Wrap(err, errs.Invalid, "from: %v", err)
	}
	ctx, err := r.Call()
	if err != nil {
		return "", err
	}
	shown, err := st.Get(ctx, from)
	if err != nil {
		return "", err
	}
	text, _, _, err := split(st, shown.Body)
	return text, err
}
