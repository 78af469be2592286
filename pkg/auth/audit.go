package auth

import (
	"encoding/json"

	"belfry/pkg/event"
	"belfry/pkg/store"
)

// audit makes an event about the security of a user's account. It is written atomically with the record of the write
// that it is about, so it is as durable as that: nobody logs in without a trace.
func (s *Service) audit(name event.Name, user string, details event.AuthDetails) store.ExtraEvent {
	return func(e *event.Envelope) {
		text, _ := json.Marshal(details) // strings and a number
		*e = event.Envelope{
			ID: e.ID, Event: name, Time: e.Time, Store: s.users.Name(), UUID: user, Revision: e.Revision,
			Actor: e.Actor, Origin: e.Origin, Auth: text, Ctx: e.Ctx,
		}
	}
}
