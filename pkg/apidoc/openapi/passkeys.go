package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
)

// passkeys adds the routes of passkeys.
func (d *document) passkeys() {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	answer := func(schema string) []any {
		return []any{"credential", model.Ref(schema), "secret", text("That of the options, for clients without cookies.")}
	}
	options := func(description, schema string) *ordered.Object {
		return ordered.Of("200", reply(description, asJSON(model.Ref(schema)), "Cache-Control", "Set-Cookie", "Preference-Applied"))
	}
	d.add(operation{
		method: "post", path: "/auth/passkey/options", tag: loginTag, id: "beginPasskeyLogin", summary: "Ask for the challenge of a login by passkey", security: maybe(),
		parameters: parameters("Prefer"), replies: options("For navigator.credentials.get.", "PasskeyLoginOptions"),
		problems: []int{403, 429, 500, 503},
	})
	d.add(operation{
		method: "post", path: "/auth/passkey", tag: loginTag, id: "loginByPasskey", summary: "Log in by passkey", security: maybe(),
		parameters: parameters("Prefer"), body: inHTML(form([]string{"credential"}, false, answer("PasskeyAssertion")...), nil, credentialText()...),
		replies: ordered.Of(
			"200", d.issued("Logged in, with `Prefer: return=representation`."),
			"204", reply("Logged in.", nil, "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"303", redirectTo("After an HTML form: to the page of success, or of failure, or to the application.", "Set-Cookie"),
		),
		problems: []int{400, 403, 408, 409, 413, 415, 429, 500, 503},
	})
	list := ordered.Of("type", "object", "required", []string{"passkeys"},
		"properties", ordered.Of("passkeys", ordered.Of("type", "array", "items", model.Ref("Passkey"))))
	d.get(operation{
		path: "/auth/passkeys", tag: loginTag, id: "listPasskeys", summary: "List one's passkeys", security: needed(),
		replies:  ordered.Of("200", reply("The passkeys, the oldest first.", asJSON(list), "Cache-Control")),
		problems: []int{401, 403, 429, 500, 503},
	})
	d.add(operation{
		method: "post", path: "/auth/passkeys/registration", tag: loginTag, id: "beginPasskey", summary: "Ask for the challenge of a new passkey", security: needed(),
		description: "Needs a login of the last 10 minutes.",
		parameters:  parameters("Prefer"), replies: options("For navigator.credentials.create.", "PasskeyOptions"),
		problems: []int{401, 403, 409, 429, 500, 503},
	})
	name := []any{"name", text("1 to 100 bytes.")}
	d.add(operation{
		method: "post", path: "/auth/passkeys", tag: loginTag, id: "addPasskey", summary: "Add a passkey", security: needed(),
		parameters: parameters("Prefer"), body: inHTML(form([]string{"credential"}, false, append(name, answer("PasskeyRegistration")...)...), nil, credentialText()...),
		replies: ordered.Of(
			"201", reply("It is added.", asJSON(model.Ref("Passkey")), "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"303", redirectTo("After an HTML form: to the page of the account.", "Set-Cookie"),
		),
		problems: []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503},
	})
	d.add(operation{
		method: "patch", path: "/auth/passkeys/{uuid}", tag: loginTag, id: "renamePasskey", summary: "Rename a passkey", security: needed(),
		parameters: parameters("UUID"), body: form([]string{"name"}, false, name...),
		replies:  ordered.Of("200", reply("It is renamed.", asJSON(model.Ref("Passkey")), "Cache-Control")),
		problems: []int{400, 401, 403, 404, 408, 409, 413, 415, 429, 500, 503},
	})
	d.add(operation{
		method: "post", path: "/auth/passkeys/{uuid}", tag: loginTag, id: "changePasskey", summary: "Rename or remove a passkey, by an HTML form", security: needed(),
		parameters: parameters("UUID", "Prefer"), body: form(nil, false, append(name, "remove", ordered.Of("type", "boolean", "description", "It is removed."))...),
		replies: ordered.Of(
			"204", reply("It is renamed or removed.", nil, "Cache-Control", "Preference-Applied"),
			"303", redirectTo("After an HTML form: to the page of the account."),
		),
		problems: []int{400, 401, 403, 404, 408, 409, 413, 415, 429, 500, 503},
	})
}

func passkey() *ordered.Object {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	return ordered.Of("type", "object", "required", []string{"uuid", "type", "name", "created", "backedUp"}, "properties", ordered.Of(
		"uuid", text("Of the ident."), "type", ordered.Of("type", "string", "const", "passkey"), "name", text("Chosen by its user."), "created", model.Time("When it was added."),
		"lastUsed", model.Time("The last login with it."), "backedUp", ordered.Of("type", "boolean", "description", "Its user has copies elsewhere, as the authenticator said last."),
		"cloneSuspected", model.Time("When its signature counter went back: somebody may have a copy."),
	))
}
