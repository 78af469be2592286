package login

import (
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/account/flow/deletion"
	"belfry/pkg/account/sessions"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

const deletionPath = "/auth/deletion"

type deletionForm struct {
	op.Input
	Password string `form:"password,password" doc:"The password of the user, if there is one."`
	Undo     bool   `form:"undo,html" doc:"Cancel the deletion."`
}

// addDeletion adds the operations by which users delete their accounts. If this is no longer configured, users can
// still cancel a planned deletion.
func (h *Handler) addDeletion(set *op.Set) {
	set.Get(op.Operation{
		Path: deletionPath, ID: "getDeletion", Summary: "Read the planned deletion of one's account",
		Security: op.Needed(),
		Replies: ordered.Of("200",
			op.Reply("The deletion is planned.", op.JSON(apimodel.Ref("Deletion")), "Cache-Control")),
		Problems: []int{401, 403, 404, 429},
		Limit:    httpkit.Read, Run: h.owner(h.plannedDeletion),
	})
	if set.Contract.Login.Deletion {
		set.Add(op.Operation{
			Method: http.MethodPost, Path: deletionPath, ID: "planDeletion",
			Summary: "Delete one's account, after a grace period", Security: op.Needed(),
			Description: "Needs a login of the last 10 minutes. All other sessions and all API keys end; with " +
				"`Prefer: return=representation` the reply has the token of the session that continues. An admin " +
				"gets 409.",
			Parameters: op.Parameters("PreferSession"),
			Body:       op.Form[deletionForm](),
			Replies: ordered.Of("303", op.Redirect("After an HTML form: to the page of the account.", "Set-Cookie"),
				"202", op.Reply("The deletion is planned.", op.JSON(deletionWithSession(set)),
					"Cache-Control", "Set-Cookie", "Preference-Applied")),
			Problems: formProblems(),
			Limit:    httpkit.Write, Run: ownerForm(h, h.isForm, h.planDeletion),
		})
	}
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: deletionPath, ID: "undoDeletion",
		Summary: "Cancel the deletion of one's account", Security: op.Needed(),
		Replies:  ordered.Of("204", op.Reply("The account is kept.", nil, "Cache-Control")),
		Problems: []int{401, 403, 404, 409, 429},
		Limit:    httpkit.Write, Run: h.owner(h.undoDeletion),
	})
}

// deletionWithSession is a planned deletion, with the continued session if it was requested.
func deletionWithSession(set *op.Set) *ordered.Object {
	schema := deletionSchema()
	for _, m := range issuedSchema(set.Contract.Login.Users).Object("properties").Members() {
		schema.Object("properties").Set(m.Name, m.Value)
	}
	return schema
}

// plannedDeletion is the reply to the user who has planned the deletion of the account. A program with the preference
// return=representation gets the token of the session that replaces its own.
type plannedDeletion struct {
	deletion.Plan
	*issued
}

// planDeletion plans the deletion of the account. An HTML form, which can't DELETE, can also cancel it.
func (h *Handler) planDeletion(x *httpkit.Exchange, me *sessions.Session, in deletionForm) (op.Outcome, error) {
	if in.Undo {
		return h.ofAccount("deletion-undone"), h.service.Deletion.Undo(x.Context(), me)
	}
	for name := range in.Rest {
		return op.Outcome{}, fieldError("the account can't be deleted", name, "is unknown; password is known")
	}
	client, err := h.client(x)
	if err != nil {
		return op.Outcome{}, err
	}
	plan, session, err := h.service.Deletion.Plan(x.Context(), in.Password, client)
	if err != nil {
		return op.Outcome{Failed: h.accountForm("deletion")}, err
	}
	o, reply := h.ofAccount("deletion-planned"), plannedDeletion{Plan: plan}
	switch {
	case session.Token != "":
		h.cookies.setSession(x, session)
		if reply.issued, err = h.issuedIfPreferred(x, in.HTML, session); err != nil {
			return op.Outcome{}, err
		}
	case plan.Deleted == plan.Planned:
		h.cookies.removeSession(x)
	}
	o.Status, o.Body = http.StatusAccepted, reply
	return o, nil
}

func (h *Handler) plannedDeletion(_ *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	plan, err := h.service.Deletion.Planned(me)
	return op.Outcome{Body: plan}, err
}

func (h *Handler) undoDeletion(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	return op.Outcome{}, h.service.Deletion.Undo(x.Context(), me)
}
