package record

import (
	"encoding/json"

	"belfry/pkg/event"
	"belfry/pkg/store"
)

// Audit makes an event about the security of a user's account. It is written atomically with the record that it is
// about, so it is as durable as the record: every login leaves a trace.
func (s *Stores) Audit(name event.Name, user string, details event.AuthDetails) store.ExtraEvent {
	return func(e *event.Envelope) {
		text, _ := json.Marshal(details) // strings and a number
		*e = event.Envelope{
			ID: e.ID, Event: name, Time: e.Time, Store: s.Users.Store.Name(), UUID: user, Revision: e.Revision,
			Actor: e.Actor, Origin: e.Origin, Auth: text, Ctx: e.Ctx,
		}
	}
}

// Reasons of events: why a login failed, why a session ended, how a password was set.
const (
	ReasonPassword   = "password"      // it was wrong
	ReasonNoAdmin    = "no-admin"      // the password was right, at the login of admins
	ReasonDisabled   = "disabled"      // the account is disabled
	ReasonLogout     = "logout"        // the user logged out in this session
	ReasonRevoked    = "revoked"       // by the user in another session, or by an admin
	ReasonReplaced   = "replaced"      // by that of another login in the same browser
	ReasonTooMany    = "too-many"      // the user has newer ones
	ReasonCodeReplay = "code-replayed" // its code was used twice
	ReasonChange     = "change"        // by the user who had one
	ReasonFirst      = "first"         // the user had none
	ReasonRecovery   = "recovery"      // by the token of a mail
	ReasonAdmin      = "admin"         // by an admin, or a command
	ReasonEnded      = "session-ended" // the session that linked it had ended
)

// AuditEnd is the event of the end of a session.
func (s *Stores) AuditEnd(user, id, reason string) store.ExtraEvent {
	return s.Audit(event.AuthLoggedOut, user, event.AuthDetails{Session: id, Reason: reason})
}

// AuditPassword is the event of a new password of a user as they were before.
func (s *Stores) AuditPassword(user User, reason string) store.ExtraEvent {
	if user.Password == "" && reason == ReasonChange {
		reason = ReasonFirst
	}
	return s.Audit(event.AuthPasswordSet, user.UUID, event.AuthDetails{Reason: reason})
}

// AuditIdent is an event about an ident of a user.
func (s *Stores) AuditIdent(name event.Name, user string, ident Ident, reason string) store.ExtraEvent {
	return s.Audit(name, user, event.AuthDetails{Method: ident.Type, Factor: ident.UUID, Reason: reason})
}
