package login

import (
	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
)

// addComponents adds the schemas that operations share.
func addComponents(set *op.Set) {
	set.Component("Provider", op.Object("A login provider.", 2,
		"name", op.Text(""), "url", op.Text("The path to open; for email, the path to send a form to.")))
	set.Component("Session", sessionSchema())
	set.Component("APIKey", keySchema())
	set.Component("Deletion", deletionSchema())
	set.Component("Passkey", passkeySchema())
	addWebauthn(set)
	set.Component("IssuedSession", issuedSchema(set.Contract.Login.Users))
	set.Component("AccessToken", accessToken())
	set.Component("ProtocolError", protocolError())
}

func sessionSchema() *ordered.Object {
	return ordered.Of("type", "object", "description", "A session of the logged-in user.",
		"required", []string{"id", "current", "type", "created", "lastUsed", "expires", "aal", "authenticatedAt"},
		"properties", ordered.Of(
			"id", apimodel.UUID("The id by which the session can be ended."),
			"current", op.Flag("Whether it is the session of this request."),
			"type", op.Text("The provider or method of the login."),
			"application", op.Text("The configured redirect of the session's application."),
			"created", apimodel.Time("The time of the login."),
			"lastUsed", apimodel.Time("The time of the last use, to about an hour."),
			"expires", apimodel.Time("The time at which the session ends unless it is used."),
			"address", op.Text("The network address of the login."),
			"place", place(),
			"userAgent", op.Text("The browser or program of the login."),
			"device", device(),
			"methods", ordered.Of("type", "array", "items", op.Text(""), "description",
				"The methods of the login: password, totp, recovery, passkey, link, code, or the name of a provider."),
			"aal", ordered.Of("type", "integer", "enum", []any{1, 2}, "description", "2 with a second factor."),
			"authenticatedAt", apimodel.Time("The time of the user's last authentication."),
		))
}

// place is the schema of the place of a network address.
func place() *ordered.Object {
	return op.Object("The place of the network address, if a database of places is configured and has it.", 0,
		"city", op.Text("In English."), "country", op.Text("In English."), "countryCode",
		op.Text("ISO 3166-1, two letters."))
}

func device() *ordered.Object {
	return ordered.Of("type", "string", "description",
		"The browser and the system that the user agent names; absent for other programs.", "examples",
		[]any{"Firefox on Linux"})
}

func keySchema() *ordered.Object {
	return ordered.Of("type", "object", "description", "An API key of the logged-in user.",
		"required", []string{"id", "name", "created"},
		"properties", ordered.Of(
			"id", apimodel.UUID("The id by which the key can be revoked."),
			"name", op.Text("The purpose of the key."),
			"rule", op.Text("The requests that it allows; absent: all."),
			"created", apimodel.Time("The time of its creation."),
			"lastUsed", apimodel.Time("The time of the last use, to about an hour; absent before the first use."),
			"expires", apimodel.Time("The time at which it expires; absent: never."),
		))
}

func passkeySchema() *ordered.Object {
	return ordered.Of("type", "object", "required", []string{"uuid", "type", "name", "created", "backedUp"},
		"properties", ordered.Of(
			"uuid", op.Text("The uuid of the ident."), "type", op.Only("passkey"), "name",
			op.Text("The name that the user chose."), "created", apimodel.Time("The time at which it was added."),
			"lastUsed", apimodel.Time("The time of the last login with it."), "backedUp",
			op.Flag("Whether there are copies of it, as last reported by the authenticator."),
			"cloneSuspected",
			apimodel.Time("The time at which its signature counter decreased: somebody may have a copy."),
		))
}

// deletionSchema is the schema of a planned deletion.
func deletionSchema() *ordered.Object {
	return op.Object("", 2,
		"planned", apimodel.Time("The time of the user's request."), "deleted",
		apimodel.Time("The time at which the account is deleted, unless the deletion is canceled."))
}

// issuedSchema is the schema of a session that has just begun.
func issuedSchema(users *apimodel.Store) *ordered.Object {
	return op.Object("A session that has just begun.", 3,
		"token", op.Text("For Authorization: Bearer. After a login it is the cookie's value."),
		"expires", apimodel.Time("The time at which the session ends unless it is used."),
		"user", users.Shown())
}

// accessToken is the reply of RFC 6749, section 5.1.
func accessToken() *ordered.Object {
	return op.Object("The token of an application (RFC 6749).", 3,
		"access_token", op.Text("For Authorization: Bearer."),
		"token_type", op.Only("Bearer"),
		"expires_in", ordered.Of("type", "integer", "description", "Seconds until the session ends unless it is used."))
}

// protocolError is an error of RFC 6749, section 5.2, which is a problem as well.
func protocolError() *ordered.Object {
	return ordered.Of("description", "The error (RFC 6749), as a problem too.", "allOf",
		[]any{apimodel.Ref("Problem"), op.Object("", 2,
			"error", op.OneOf([]any{"invalid_request", "invalid_client", "invalid_grant", "unsupported_grant_type"},
				""),
			"error_description", op.Text(""),
		)})
}
