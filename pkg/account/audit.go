package account

import (
	"encoding/json"

	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/pkg/store/object"
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

// Reasons of events: why a login failed, why a session ended, how a password was set.
const (
	reasonPassword   = "password"      // it was wrong
	reasonNoAdmin    = "no-admin"      // the password was right, at the login of admins
	reasonDisabled   = "disabled"      // the account is
	reasonLogout     = "logout"        // the user logged out in this session
	reasonRevoked    = "revoked"       // by the user in another session, or by an admin
	reasonReplaced   = "replaced"      // by that of another login in the same browser
	reasonTooMany    = "too-many"      // the user has newer ones
	reasonCodeReplay = "code-replayed" // its code was used twice
	reasonChange     = "change"        // by the user who had one
	reasonFirst      = "first"         // the user had none
	reasonRecovery   = "recovery"      // by the token of a mail
	reasonAdmin      = "admin"         // by an admin, or a command
	reasonEnded      = "session-ended" // the session that linked it had ended
)

// auditEnd is the event of the end of a session.
func (s *Service) auditEnd(user, id, reason string) store.ExtraEvent {
	return s.audit(event.AuthLoggedOut, user, event.AuthDetails{Session: id, Reason: reason})
}

// auditPassword is the event of a new password of a user as they were before.
func (s *Service) auditPassword(user store.Stored, reason string) store.ExtraEvent {
	if current, _ := object.Text(object.Field(user.Body, fieldPassword)); current == "" && reason == reasonChange {
		reason = reasonFirst
	}
	return s.audit(event.AuthPasswordSet, user.UUID, event.AuthDetails{Reason: reason})
}

// auditIdent is an event about an ident of a user.
func (s *Service) auditIdent(name event.Name, user string, ident store.Stored, reason string) store.ExtraEvent {
	provider, _ := object.Text(object.Field(ident.Body, "type"))
	return s.audit(name, user, event.AuthDetails{Method: provider, Factor: ident.UUID, Reason: reason})
}
