package login

import (
	"encoding/json"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/op"
)

const deletionPath = "/auth/deletion"

// addDeletion adds the operations by which users delete their accounts. Where they can't any more, they can take back what
// they have planned.
func (h *Handler) addDeletion(set *op.Set) {
	set.Get(op.Operation{
		Path: deletionPath, ID: "getDeletion", Summary: "Read when one's account is deleted", Security: op.Needed(),
		Replies:  ordered.Of("200", op.Reply("The deletion is planned.", op.JSON(model.Ref("Deletion")), "Cache-Control")),
		Problems: []int{401, 403, 404, 429},
		Limit:    kit.Read, Run: h.plannedDeletion,
	})
	if set.Contract.Login.Deletion {
		set.Add(op.Operation{
			Method: http.MethodPost, Path: deletionPath, ID: "planDeletion", Summary: "Delete one's account, after a grace period", Security: op.Needed(),
			Description: "Needs a login of the last 10 minutes. All other sessions and all API keys end; with `Prefer: return=representation` the reply has the token of the session that continues. An admin gets 409.",
			Parameters:  op.Parameters("PreferSession"),
			Body: op.InHTML(op.Form(nil, "password", op.Password("That of the user, if there is one.")), nil,
				"undo", op.Flag("The deletion is taken back.")),
			Replies: ordered.Of("303", op.Redirect("Of an HTML form: to the page of the account.", "Set-Cookie"), "202", op.Reply("The deletion is planned.", op.JSON(deletionWithSession(set)),
				"Cache-Control", "Set-Cookie", "Preference-Applied")),
			Problems: formProblems(),
			Limit:    kit.Write, Run: h.planDeletion,
		})
	}
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: deletionPath, ID: "undoDeletion", Summary: "Take back the deletion of one's account", Security: op.Needed(),
		Replies:  ordered.Of("204", op.Reply("The account stays.", nil, "Cache-Control")),
		Problems: []int{401, 403, 404, 409, 429},
		Limit:    kit.Write, Run: h.undoDeletion,
	})
}

// deletionWithSession is a planned deletion, with the session that continues where it was asked for.
func deletionWithSession(set *op.Set) *ordered.Object {
	schema := deletionSchema()
	for _, m := range issuedSchema(set.Contract.Login.Users).Object("properties").Members() {
		schema.Object("properties").Set(m.Name, m.Value)
	}
	return schema
}

// plannedDeletion is the reply to who has planned the deletion of the account. A program gets the token of the session that
// replaces its own, where it prefers that.
type plannedDeletion struct {
	account.DeletionPlan
	*issued
}

func (h *Handler) planDeletion(x *kit.Exchange) error {
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
func (h *Handler) planDeletionOf(x *kit.Exchange, f form) (account.DeletionPlan, account.IssuedSession, error) {
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
func (h *Handler) setAfterPlan(x *kit.Exchange, plan account.DeletionPlan, session account.IssuedSession) {
	switch {
	case session.Token != "":
		h.cookies.setSession(x, session)
	case plan.Deleted == plan.Planned:
		h.cookies.removeSession(x)
	}
}

func (h *Handler) plannedDeletion(x *kit.Exchange) error {
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

func (h *Handler) undoDeletion(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	if err := h.service.Deletion.Undo(x.Context(), session); err != nil {
		return err
	}
	return x.SendStatus(http.StatusNoContent)
}
