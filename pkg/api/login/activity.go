package login

import (
	"strconv"

	"belfry/pkg/account"
	"belfry/pkg/api/kit"
	"belfry/pkg/errs"
)

const (
	activityPage = 20 // by default
	maxActivity  = 100
)

// activity replies with the newest events about the security of the account of the user who is logged in.
func (h *handler) activity(x *kit.Exchange) error {
	session, err := h.requireLogin(x)
	if err != nil {
		return err
	}
	query, err := kit.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return err
	}
	limit, cursor := activityPage, ""
	for name, values := range query {
		switch {
		case len(values) > 1:
			return errs.New(errs.Invalid, "the query parameter %q occurs more than once", kit.Truncate(name, 64))
		case name == "cursor":
			cursor = values[0]
		case name == "limit":
			if limit, err = strconv.Atoi(values[0]); err != nil || limit < 1 || limit > maxActivity {
				return errs.New(errs.Invalid, "limit must be a whole number from 1 to %d", maxActivity)
			}
		default:
			return errs.New(errs.Invalid, "the query parameter %q is unknown; limit and cursor are known", kit.Truncate(name, 64))
		}
	}
	page, next, err := h.readActivity(x.Context(), session.User.UUID, cursor, limit)
	if err != nil {
		return err
	}
	type reply struct {
		Events []account.Activity `json:"events"`
		Cursor string             `json:"cursor,omitempty"`
	}
	return x.SendJSON(reply{page, next})
}
