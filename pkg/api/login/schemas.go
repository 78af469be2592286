package login

import (
	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
)

// addComponents names the schemas that operations share.
func addComponents(set *op.Set) {
	set.Component("Provider", op.Object("A login provider.", 2,
		"name", op.Text(""), "url", op.Text("The path to open, or for email, to send a form to.")))
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
	return ordered.Of("type", "object", "description", "A session of the user who is logged in.",
		"required", []string{"id", "current", "type", "created", "lastUsed", "expires", "aal", "authenticatedAt"},
		"properties", ordered.Of(
			"id", apimodel.UUID("What ends it."),
			"current", op.Flag("It is that of this request."),
			"type", op.Text("The provider by which it began."),
			"application", op.Text("The configured redirect of the application that it is of."),
			"created", apimodel.Time("When it began."),
			"lastUsed", apimodel.Time("When it was last used, to about an hour."),
			"expires", apimodel.Time("When it ends unless it is used."),
			"address", op.Text("The network address that it began at."),
			"place", place(),
			"userAgent", op.Text("The browser or program that it began in."),
			"device", device(),
			"methods", ordered.Of("type", "array", "items", op.Text(""), "description", "How its user has proven who they are: password, totp, recovery, passkey, link, code, or the name of a provider."),
			"aal", ordered.Of("type", "integer", "enum", []any{1, 2}, "description", "2 with a second factor."),
			"authenticatedAt", apimodel.Time("When its user has last proven who they are."),
		))
}

// place is that of a network address.
func place() *ordered.Object {
	return op.Object("Where the address is used, where a database of places is configured and has it.", 0,
		"city", op.Text("In English."), "country", op.Text("In English."), "countryCode", op.Text("ISO 3166-1, two letters."))
}

func device() *ordered.Object {
	return ordered.Of("type", "string", "description", "The browser and the system that the user agent names; absent for other programs.", "examples", []any{"Firefox on Linux"})
}

func keySchema() *ordered.Object {
	return ordered.Of("type", "object", "description", "An API key of the user who is logged in.",
		"required", []string{"id", "name", "created"},
		"properties", ordered.Of(
			"id", apimodel.UUID("What revokes it."),
			"name", op.Text("What it is for."),
			"rule", op.Text("The requests that it allows; without it, any."),
			"created", apimodel.Time("When it was made."),
			"lastUsed", apimodel.Time("When it was last used, to about an hour; absent before the first use."),
			"expires", apimodel.Time("When it expires; absent: never."),
		))
}

func passkeySchema() *ordered.Object {
	return ordered.Of("type", "object", "required", []string{"uuid", "type", "name", "created", "backedUp"}, "properties", ordered.Of(
		"uuid", op.Text("Of the ident."), "type", op.Only("passkey"), "name", op.Text("Chosen by its user."), "created", apimodel.Time("When it was added."),
		"lastUsed", apimodel.Time("The last login with it."), "backedUp", op.Flag("Its user has copies elsewhere, as the authenticator said last."),
		"cloneSuspected", apimodel.Time("When its signature counter went back: somebody may have a copy."),
	))
}

// deletionSchema is that of a planned deletion.
func deletionSchema() *ordered.Object {
	return op.Object("", 2,
		"planned", apimodel.Time("When the user has asked for it."), "deleted", apimodel.Time("When the account is deleted, unless that is taken back before."))
}

// issuedSchema is that of a session that has just begun.
func issuedSchema(users *apimodel.Store) *ordered.Object {
	return op.Object("A session that has just begun.", 3,
		"token", op.Text("For Authorization: Bearer. After a login it is the cookie's value."),
		"expires", apimodel.Time("When the session ends unless it is used."),
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
	return ordered.Of("description", "What went wrong (RFC 6749), as a problem too.", "allOf", []any{apimodel.Ref("Problem"), op.Object("", 2,
		"error", op.OneOf([]any{"invalid_request", "invalid_client", "invalid_grant", "unsupported_grant_type"}, ""),
		"error_description", op.Text(""),
	)})
}
