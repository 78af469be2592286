package login

import (
	"context"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/account/sessions"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// removeForm is a form that can only remove: HTML forms can't DELETE.
type removeForm struct {
	Remove bool `form:"remove,required" doc:"true."`
}

// addSessions adds the operations on sessions and idents.
func (h *Handler) addSessions(set *op.Set) {
	set.Get(op.Operation{
		Path: "/auth/sessions", ID: "listSessions", Summary: "List one's sessions", Security: op.Needed(),
		Replies: ordered.Of("200", op.Reply("The sessions, the oldest first.",
			op.JSON(op.Object("", 1, "sessions", op.List(apimodel.Ref("Session")))), "Cache-Control")),
		Problems: []int{401, 429},
		Limit:    httpkit.Read, Run: h.owner(h.sessions),
	})
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: "/auth/sessions/{uuid}", ID: "endSession", Summary: "End a session",
		Security: op.Needed(), Parameters: op.Parameters("UUID"),
		Replies:  ordered.Of("204", op.Reply("The session has ended.", nil, "Cache-Control", "Set-Cookie")),
		Problems: []int{400, 401, 403, 404, 409, 429},
		Limit:    httpkit.Write, Run: h.owner(h.endSession),
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/sessions/{uuid}", ID: "endSessionByForm",
		Summary: "End a session, by an HTML form", Security: op.Needed(), Parameters: op.Parameters("UUID"),
		Body:     op.HTMLForm[removeForm](),
		Replies:  ordered.Of("303", op.Redirect("To the page of the account.", "Set-Cookie")),
		Problems: []int{403, 408},
		Limit:    httpkit.Write, Run: ownerForm(h, always, h.endSessionByForm),
	})
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: "/auth/idents/{uuid}", ID: "unlinkIdent", Summary: "Unlink an ident",
		Security: op.Needed(), Description: "The last ident can't be unlinked: 409.",
		Parameters: op.Parameters("UUID", "Prefer"),
		Replies:    ordered.Of("204", writtenReply("The ident is unlinked.")),
		Problems:   []int{400, 401, 403, 404, 409, 429},
		Limit:      httpkit.Write, Run: h.owner(h.unlink),
	})
}

func (h *Handler) sessions(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	list, err := h.service.Sessions.List(x.Context(), me)
	return op.Outcome{Body: map[string]any{"sessions": list}}, err
}

func (h *Handler) endSession(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	id, err := x.UUID()
	if err != nil {
		return op.Outcome{}, err
	}
	err = h.service.Sessions.RevokeOwn(x.Context(), me, id)
	if err == nil && id == me.ID {
		h.cookies.removeSession(x)
	}
	return op.Outcome{}, err
}

func (h *Handler) endSessionByForm(x *httpkit.Exchange, me *sessions.Session, in removeForm) (op.Outcome, error) {
	if !in.Remove {
		return op.Outcome{}, fieldError("a field is missing", "remove", "must be true")
	}
	_, err := h.endSession(x, me)
	if err != nil {
		return op.Outcome{}, err
	}
	return h.ofAccount("session-ended"), nil
}

func (h *Handler) unlink(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
	uuid, err := x.UUID()
	if err != nil {
		return op.Outcome{}, err
	}
	return op.Outcome{}, h.write(x, func(ctx context.Context) error { return h.service.Links.Unlink(ctx, me, uuid) })
}
