package asyncapi

import (
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/event"
	"belfry/pkg/op"
)

// authDetails is the schema of the details of an event Auth.*.
const authDetails = "AuthDetails"

// securitySummaries describe the events Auth.*.
func securitySummaries() map[event.Name]string {
	return map[event.Name]string{
		event.AuthLoggedIn:        "A session of the user began.",
		event.AuthLoginFailed:     "A login to the account failed, or a proof of the user's identity in a session.",
		event.AuthLoggedOut:       "A session of the user ended before it expired.",
		event.AuthSessionsEnded:   "All sessions and API keys of the user ended.",
		event.AuthSteppedUp:       "The user authenticated again in a session.",
		event.AuthPasswordSet:     "A password was set.",
		event.AuthFactorAdded:     "A second factor or a passkey was added.",
		event.AuthFactorRemoved:   "A second factor or a passkey was removed.",
		event.AuthRecoveryCodes:   "Recovery codes were created.",
		event.AuthLoginLinked:     "An ident was added to the account.",
		event.AuthLoginUnlinked:   "An ident was removed from the account.",
		event.AuthAddressChanged:  "The e-mail address was changed, or the change was undone.",
		event.AuthKeyCreated:      "An API key was created.",
		event.AuthKeyRevoked:      "An API key was revoked.",
		event.AuthExported:        "The user downloaded their data.",
		event.AuthDeletionPlanned: "The user planned the deletion of the account.",
		event.AuthDeletionUndone:  "The deletion of the account was canceled.",
		event.AuthCloneSuspected:  "The signature counter of a passkey decreased.",
		event.AuthImpersonated:    "An admin began to see what the user may read.",
	}
}

// security adds the events about the security of accounts, and about changes of the configuration. Their objects are
// the users.
func (d *document) security(users *apimodel.Store) {
	d.schemas.Set(authDetails,
		op.Payload("The fields depend on the event. They never contain a password, a token, a code or a hash.", 0,
			"method", op.Text("The method: password, passkey, totp, recovery, email, link or the name of a provider; "+
				"several are separated by spaces."),
			"factor", op.Text("The type of the factor, the uuid of the ident or the id of the key that the event "+
				"is about."),
			"session", op.Text("The session's id."),
			"aal", ordered.Of("type", "integer", "minimum", 1, "maximum", 2, "description",
				"The assurance level of the session: 2 with a second factor."),
			"reason", op.Text("The reason, in a word: docs/reference/events.md lists them."),
			"due", apimodel.Time("The time of the planned action, in UTC."),
		))
	summaries := securitySummaries()
	for _, name := range event.Auth() {
		k := kind{event: name, suffix: strings.ReplaceAll(string(name), ".", ""), summary: summaries[name],
			durable: true}
		d.event(users, k, ordered.Of("auth", apimodel.Ref(authDetails)))
	}
	d.event(users, kind{event: event.ConfigChanged, suffix: "ConfigChanged", durable: true,
		summary: "The user, an admin, changed the configuration in the console."},
		ordered.Of("changed", ordered.Of("type", "array", "items", op.Text("A key of the configuration."))))
}
