package sessions

import (
	"encoding/json"

	"belfry/pkg/event"
)

// Activity is an event about the security of an account as its user sees it: what happened, from where, and by whom.
type Activity struct {
	Event event.Name `json:"event"`
	Time  string     `json:"time"`
	By    string     `json:"by,omitempty"` // user or admin; absent where that is not known, as of a failed login
	event.AuthDetails
	Origin
}

// Who has caused an activity.
const (
	byUser  = "user"
	byAdmin = "admin"
)

// ActivityOf returns an event as its user sees it.
func (s *Sessions) ActivityOf(e *event.Envelope) Activity {
	a := Activity{Event: e.Event, Time: e.Time}
	_ = json.Unmarshal(e.Auth, &a.AuthDetails)
	switch {
	case e.Actor != nil && *e.Actor == e.UUID:
		a.By = byUser
	case e.Actor != nil || e.Origin == event.OriginCommand:
		a.By = byAdmin
		return a // where an admin works is no business of the user
	}
	a.Origin = s.OriginOf(e.Ctx.Address, e.Ctx.UserAgent)
	return a
}
