package login

import (
	"encoding/json"
	"net/http"

	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
	"belfry/pkg/object"
)

const deletionPath = "/auth/deletion"

// mountDeletion adds the routes by which users delete their accounts. Where they can't any more, they can take back what
// they have planned.
func (h *handler) mountDeletion(r *kit.Router) {
	r.HandleGet(deletionPath, h.calls.Limit(kit.Read, h.plannedDeletion))
	r.Handle(http.MethodDelete, deletionPath, h.calls.Limit(kit.Write, h.undoDeletion))
	if h.service.Deletion.Enabled() {
		r.Handle(http.MethodPost, deletionPath, h.calls.Limit(kit.Write, h.planDeletion))
	}
}

// plannedDeletion is the reply to who has planned the deletion of the account. A program gets the token of the session that
// replaces its own, where it prefers that.
type plannedDeletion struct {
	account.DeletionPlan
	*issued
}

func (h *handler) planDeletion(x *kit.Exchange) error {
	if h.isForm(x) {
		return h.deletionForm(x)
	}
	if _, err := h.requireLogin(x); err != nil {
		return err
	}
	f, err := readForm(x)
	if err != nil {
		return err
	}
	plan, session, err := h.planDeletionOf(x, f)
	if err != nil {
		return err
	}
	reply := plannedDeletion{DeletionPlan: plan}
	h.setAfterPlan(x, plan, session)
	if session.Token != "" {
		if reply.issued, err = h.issuedIfPreferred(x, session); err != nil {
			return err
		}
	}
	body, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	x.SetHeader("Cache-Control", kit.NoStore)
	x.Send(http.StatusAccepted, kit.JSON, body)
	return nil
}

// planDeletionOf plans the deletion by the fields of a form.
func (h *handler) planDeletionOf(x *kit.Exchange, f form) (account.DeletionPlan, account.IssuedSession, error) {
	password, err := f.takeOne("password")
	if err != nil {
		return account.DeletionPlan{}, account.IssuedSession{}, err
	}
	for name := range f.Object {
		return account.DeletionPlan{}, account.IssuedSession{}, &errs.Error{Kind: errs.Invalid, Message: "the account can't be deleted",
			Fields: []errs.Field{{Pointer: object.Pointer(name), Message: "is unknown; password is known"}}}
	}
	client, err := h.client(x)
	if err != nil {
		return account.DeletionPlan{}, account.IssuedSession{}, err
	}
	return h.service.Deletion.Plan(x.Context(), password, client)
}

// setAfterPlan sets the cookie of the session that continues after a deletion was planned, or removes it if none does.
func (h *handler) setAfterPlan(x *kit.Exchange, plan account.DeletionPlan, session account.IssuedSession) {
	switch {
	case session.Token != "":
		h.cookies.setSession(x, session)
	case plan.Deleted == plan.Planned:
		h.cookies.removeSession(x)
	}
}

func (h *handler) plannedDeletion(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	plan, err := h.service.Deletion.Planned(session)
	if err != nil {
		return err
	}
	return x.SendJSON(plan)
}

func (h *handler) undoDeletion(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	if err := h.service.Deletion.Undo(x.Context(), session); err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}
