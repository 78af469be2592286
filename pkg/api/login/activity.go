package login

import (
	"strconv"

	"belfry/internal/ordered"
	"belfry/pkg/account/sessions"
	"belfry/pkg/apimodel"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

const (
	activityPage = 20 // by default
	maxActivity  = 100
)

// activity replies with the newest events about the security of the logged-in user's account.
func (h *Handler) activity(x *httpkit.Exchange, me *sessions.Session) (o op.Outcome, err error) {
	query, err := httpkit.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return o, err
	}
	limit, cursor := activityPage, ""
	for name, values := range query {
		switch {
		case len(values) > 1:
			return o, errs.New(errs.Invalid, "the query parameter %q occurs more than once", httpkit.Truncate(name, 64))
		case name == "cursor":
			cursor = values[0]
		case name == "limit":
			if limit, err = strconv.Atoi(values[0]); err != nil || limit < 1 || limit > maxActivity {
				return o, errs.New(errs.Invalid, "limit must be a whole number from 1 to %d", maxActivity)
			}
		default:
			return o, errs.New(errs.Invalid, "the query parameter %q is unknown; limit and cursor are known",
				httpkit.Truncate(name, 64))
		}
	}
	page, next, err := h.readActivity(x.Context(), me.User.UUID, cursor, limit)
	if err != nil {
		return o, err
	}
	type reply struct {
		Events []sessions.Activity `json:"events"`
		Cursor string              `json:"cursor,omitempty"`
	}
	return op.Outcome{Body: reply{page, next}}, nil
}

// addActivity adds the operation that lists the events about the security of one's account.
func (h *Handler) addActivity(set *op.Set) {
	entry := op.Object("", 2,
		"event", op.OneOf(event.Auth(), ""), "time", apimodel.Time("The time of the event."),
		"by", op.OneOf([]string{"user", "admin"}, "The actor; absent if unknown."),
		"method", op.Text("The method by which the user logged in."), "factor",
		op.Text("The ident, the key or the kind of factor that the event is about."),
		"session", op.Text("The id of the session."), "aal", ordered.Of("type", "integer", "minimum", 1, "maximum", 2),
		"reason", op.Text("The reason, in a word."), "address", op.Text("The network address of the client."), "place",
		place(), "userAgent", op.Text("The User-Agent header of the client."), "device", device())
	page := op.Object("", 1, "events", op.List(entry), "cursor",
		op.Text("The cursor of the next page; absent at the end."))
	set.Get(op.Operation{
		Path: "/auth/activity", ID: "listActivity", Summary: "List the events about the security of one's account",
		Security: op.Needed(), Description: "As far as the log of events goes back.",
		Parameters: []any{
			op.Query("limit", "",
				ordered.Of("type", "integer", "minimum", 1, "maximum", maxActivity, "default", activityPage)),
			op.Query("cursor", "", op.Text("")),
		},
		Replies:  ordered.Of("200", op.Reply("The newest events first.", op.JSON(page), "Cache-Control")),
		Problems: []int{400, 401, 403, 429},
		Limit:    httpkit.Read, Run: h.owner(h.activity),
	})
}
