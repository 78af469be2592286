package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
)

// applications adds the routes of applications that log users in with a code: RFC 6749 and RFC 7636.
func (d *document) applications() {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	query := func(name string, required bool, schema *ordered.Object) *ordered.Object {
		p := ordered.Of("name", name, "in", "query", "schema", schema)
		if required {
			p.Set("required", true)
		}
		return p
	}
	d.add(operation{
		method: "get", path: "/auth/authorize", tag: loginTag, id: "authorize", summary: "Log in for an application", security: open(),
		description: "For browsers, which applications open. A page asks for the login; then the browser is sent to `redirect_uri` with a code.",
		parameters: []any{
			query("response_type", true, only("code")),
			query("redirect_uri", true, text("One of `authentication.redirects` of the configuration.")),
			query("code_challenge", true, text("The SHA-256 of code_verifier in base64url.")),
			query("code_challenge_method", true, only("S256")),
			query("state", false, text("Is returned as it is.")),
			query("client_id", false, text("The exchange has to repeat it.")),
			query("provider", false, text("By which to log in.")),
		},
		replies: ordered.Of(
			"200", reply("A page that asks for the login.", as("text/html", ordered.Of("type", "string")), "Cache-Control"),
			"302", redirectTo("To the provider, or to the application with what is wrong.", "Set-Cookie"),
		),
		problems: []int{400, 403, 500, 503},
	})
	reply400 := reply("The code can't be exchanged, or the request is not valid.", ordered.Of(
		jsonType, ordered.Of("schema", model.Ref("ProtocolError")), problemType, ordered.Of("schema", model.Ref("Problem"))), "Cache-Control", "Link=Help")
	d.add(operation{
		method: "post", path: "/auth/token", tag: loginTag, id: "exchangeCode", summary: "Exchange the code of a login for a token", security: open(),
		description: "A code is used once; a second use ends the session of the first. The client may be named by HTTP Basic, with an empty password, instead of `client_id`.",
		parameters:  parameters("PreferSession"),
		body: form([]string{"grant_type", "code", "redirect_uri", "code_verifier"}, true, "grant_type", only("authorization_code"), "code", text("That of the login."),
			"redirect_uri", text("That of the login."), "code_verifier", text("43 to 128 characters, whose SHA-256 was code_challenge."), "client_id", text("That of the login, if it had one.")),
		replies: ordered.Of(
			"200", reply("The token; with `Prefer: return=representation` in the form of a login.", asJSON(ordered.Of("anyOf", []any{model.Ref("AccessToken"), model.Ref("IssuedSession")})), "Cache-Control", "Pragma", "Preference-Applied"),
			"400", reply400,
			"401", reply("The client is not named as at the login, or by a secret. The code is not used up.", ordered.Of(
				jsonType, ordered.Of("schema", model.Ref("ProtocolError"))), "Cache-Control", "Link=Help", "Www-Authenticate"),
		),
		problems: []int{403, 408, 413, 415, 429, 500, 503},
	})
}

// accessToken is the reply of RFC 6749, section 5.1.
func accessToken() *ordered.Object {
	return ordered.Of("type", "object", "description", "The token of an application (RFC 6749).", "required", []string{"access_token", "token_type", "expires_in"},
		"properties", ordered.Of(
			"access_token", ordered.Of("type", "string", "description", "For Authorization: Bearer."),
			"token_type", ordered.Of("type", "string", "const", "Bearer"),
			"expires_in", ordered.Of("type", "integer", "description", "Seconds until the session ends unless it is used."),
		))
}

// protocolError is an error of RFC 6749, section 5.2, which is a problem as well.
func protocolError() *ordered.Object {
	return ordered.Of("description", "What went wrong (RFC 6749), as a problem too.", "allOf", []any{model.Ref("Problem"), ordered.Of("type", "object",
		"required", []string{"error", "error_description"},
		"properties", ordered.Of(
			"error", ordered.Of("type", "string", "enum", []any{"invalid_request", "invalid_client", "invalid_grant", "unsupported_grant_type"}),
			"error_description", ordered.Of("type", "string"),
		))})
}

// loggedIn is a session that has just begun.
func (d *document) loggedIn() *ordered.Object {
	return ordered.Of("type", "object", "description", "A session that has just begun.", "required", []string{"token", "expires", "user"}, "properties", ordered.Of(
		"token", ordered.Of("type", "string", "description", "For Authorization: Bearer. After a login it is the cookie's value."),
		"expires", model.Time("When the session ends unless it is used."),
		"user", shown(d.contract.Login.Users),
	))
}
