package login

import (
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/api/kit"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/op"
)

// addSessions adds the operations on sessions and idents.
func (h *Handler) addSessions(set *op.Set) {
	set.Get(op.Operation{
		Path: "/auth/sessions", ID: "listSessions", Summary: "List one's sessions", Security: op.Needed(),
		Replies:  ordered.Of("200", op.Reply("The sessions, the oldest first.", op.JSON(op.Object("", 1, "sessions", op.List(model.Ref("Session")))), "Cache-Control")),
		Problems: []int{401, 429},
		Limit:    kit.Read, Run: h.sessions,
	})
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: "/auth/sessions/{uuid}", ID: "endSession", Summary: "End a session", Security: op.Needed(),
		Parameters: op.Parameters("UUID"),
		Replies:    ordered.Of("204", op.Reply("It has ended.", nil, "Cache-Control", "Set-Cookie")),
		Problems:   []int{400, 401, 403, 404, 409, 429},
		Limit:      kit.Write, Run: h.revoke,
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/sessions/{uuid}", ID: "endSessionByForm", Summary: "End a session, by an HTML form", Security: op.Needed(),
		Parameters: op.Parameters("UUID"),
		Body:       op.HTMLForm([]string{"remove"}, "remove", op.Flag("true.")),
		Replies:    ordered.Of("303", op.Redirect("To the page of the account.", "Set-Cookie")),
		Problems:   []int{403, 408},
		Limit:      kit.Write, Run: h.endSessionForm,
	})
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: "/auth/idents/{uuid}", ID: "unlinkIdent", Summary: "Unlink an ident", Security: op.Needed(),
		Description: "The last one can't be unlinked: 409.",
		Parameters:  op.Parameters("UUID", "Prefer"),
		Replies:     ordered.Of("204", done("It is unlinked.")),
		Problems:    []int{400, 401, 403, 404, 409, 429},
		Limit:       kit.Write, Run: h.unlink,
	})
}
