package console

import (
	"net/http"
	"strconv"

	"belfry/pkg/errs"
)

// changes lists the latest changes of the configuration.
func (v *modelEdit) changes(r *request) error {
	all, err := v.options.Editor.Versions(r.Context())
	if err != nil {
		return err
	}
	return r.Page("model_changes", "Changes of the configuration", all)
}

// number returns the number of the change that the path names.
func (v *modelEdit) number(r *request) (int, error) {
	text, err := r.PathParam("number")
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		return 0, notFound("there is no such change")
	}
	return n, r.console.service.Sessions.RequireFresh(r.Context(), r.Session)
}

// askUndo shows what the reverse of a change would change.
func (v *modelEdit) askUndo(r *request) error {
	n, err := v.number(r)
	if err != nil {
		return err
	}
	return v.showUndo(r, n, nil)
}

func (v *modelEdit) showUndo(r *request, n int, failed error) error {
	p, err := v.options.Editor.ProposeUndo(r.Context(), n)
	if err != nil {
		return err
	}
	page := modelConfirmPage{modelForm: &modelForm{Title: "Undo change " + strconv.Itoa(n), Back: Path + changesPath},
		Document: &ModelDocument{Base: p.Base}, Proposal: p, Action: Path + changesPath + "/" + strconv.Itoa(n),
		Files: diffsOf(p), Undo: true}
	status := http.StatusOK
	if failed != nil {
		r.RecordError(failed)
		page.Problem, page.Wrong = messageOf(failed)
		status = http.StatusUnprocessableEntity
	}
	for _, problem := range p.Problems {
		page.Wrong = append(page.Wrong, errs.Field{Pointer: "/" + problem.Key, Message: problem.Message})
	}
	return r.page(status, "model_confirm", page.Title, page)
}

// undo makes the reverse of a change.
func (v *modelEdit) undo(r *request) error {
	n, err := v.number(r)
	if err != nil {
		return err
	}
	values, err := r.Form()
	if err != nil {
		return err
	}
	if _, err := v.options.Editor.Undo(r.Context(), n, values.Get("document"), r.actor()); err != nil {
		switch errs.KindOf(err) {
		case errs.Invalid, errs.Denied, errs.Mismatch:
			return v.showUndo(r, n, err)
		}
		return err
	}
	return r.Redirect(Path+changesPath, "Change "+strconv.Itoa(n)+" has been undone.")
}
