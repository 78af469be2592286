package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
)

// factors adds the routes of second factors.
func (d *document) factors() {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	failing := []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503}
	types := ordered.Of("type", "string", "enum", []any{"totp", "passkey", "email"})
	factor := ordered.Of("type", "object", "required", []string{"type", "created"}, "properties", ordered.Of("type", types, "created", model.Time("When it was added."), "from", model.Time("Since when it counts, of one that was added in a limited session.")))
	d.get(operation{
		path: "/auth/factors", tag: loginTag, id: "listFactors", summary: "List one's second factors", security: needed(),
		replies: ordered.Of("200", reply("The second factors.", asJSON(ordered.Of("type", "object", "required", []string{"policy", "factors", "recoveryCodes"}, "properties", ordered.Of(
			"policy", ordered.Of("type", "string", "enum", []any{"off", "optional", "required"}, "description", "Whether one is asked for."),
			"factors", ordered.Of("type", "array", "items", factor),
			"recoveryCodes", ordered.Of("type", "integer", "description", "How many recovery codes were not used."),
		))), "Cache-Control")),
		problems: []int{401, 403, 429, 500, 503},
	})
	toAccount, page := redirectTo("Of an HTML form: the page of the account.", "Set-Cookie"), pageContent()
	remove := ordered.Of("type", "boolean", "description", "The factor is removed.")
	d.add(operation{
		method: "post", path: "/auth/factors/totp", tag: loginTag, id: "beginTOTP", summary: "Set up an authenticator app", security: needed(),
		description: "It is of no use before its confirmation by the same session, within 10 minutes. An HTML form, which can't PUT or DELETE, confirms it with `code`, and removes it with `remove`; the reply is 303, or a page that shows the secret or the recovery codes.",
		body:        optional(htmlForm(nil, "code", text("Six digits that the app shows."), "remove", remove)),
		replies: ordered.Of("200", reply("What the app needs.", orPage(ordered.Of("type", "object", "required", []string{"secret", "uri", "qr"}, "properties", ordered.Of(
			"secret", text("In base32, to be typed."), "uri", text("otpauth://totp/..."), "qr", text("The URI as a QR code: a data URL of a PNG."),
		))), "Cache-Control"), "303", toAccount),
		problems: failing,
	})
	codes := ordered.Of("type", "array", "items", ordered.Of("type", "string"), "description", "Recovery codes, which are shown once.")
	added := ordered.Of("type", "object", "properties", ordered.Of("recoveryCodes", codes,
		"token", text("Of the session that replaces the present one, where `Prefer: return=representation` was sent."), "expires", model.Time("When it ends unless it is used."),
		"user", model.Ref(d.contract.Login.Users.ObjectName())))
	d.add(operation{
		method: "put", path: "/auth/factors/totp", tag: loginTag, id: "confirmTOTP", summary: "Confirm an authenticator app", security: needed(),
		description: "The session is replaced by one with the second factor. Recovery codes are in the reply if there were none.",
		parameters:  parameters("PreferSession"),
		body:        form([]string{"code"}, false, "code", text("Six digits that the app shows.")),
		replies:     ordered.Of("200", reply("It is added.", asJSON(added), "Cache-Control", "Set-Cookie", "Preference-Applied")),
		problems:    failing,
	})
	for _, f := range []struct{ kind, id, summary string }{
		{"email", "beginEmailFactor", "Ask for the mail with which one adds codes by mail"},
		{"passkey", "changePasskeyFactor", "Make one's passkeys a second factor, also by an HTML form"},
	} {
		replies := ordered.Of("200", reply("It is added.", orPage(added), "Cache-Control", "Set-Cookie"))
		if f.kind == "email" {
			replies = ordered.Of("200", reply("Of an HTML form: the recovery codes.", ordered.Of("text/html", page), "Cache-Control", "Set-Cookie"),
				"202", reply("A mail with a code will be sent.", nil, "Cache-Control"))
		}
		replies.Set("303", toAccount)
		d.add(operation{
			method: "post", path: "/auth/factors/" + f.kind, tag: loginTag, id: f.id, summary: f.summary, security: needed(),
			description: "An HTML form confirms the factor with `code`, if it needs one, and removes it with `remove`; the reply is 303, or a page that shows the recovery codes.",
			body:        optional(htmlForm(nil, "code", text("Six digits of the mail."), "remove", remove)),
			replies:     replies,
			problems:    append(failing, 404),
		})
	}
	if d.contract.Login.Email {
		d.add(operation{
			method: "put", path: "/auth/factors/email", tag: loginTag, id: "confirmEmailFactor", summary: "Add codes by mail as a second factor", security: needed(),
			description: "By the code that was mailed. The reply is that of an authenticator app.",
			parameters:  parameters("PreferSession"),
			body:        form([]string{"code"}, false, "code", text("Six digits.")),
			replies:     ordered.Of("200", reply("It is added.", asJSON(added), "Cache-Control", "Set-Cookie", "Preference-Applied")),
			problems:    failing,
		})
		d.add(operation{
			method: "post", path: "/auth/second-factor/code", tag: loginTag, id: "sendSecondCode", summary: "Ask for the mail with a code", security: maybe(),
			description: "For a login whose second factor is missing, or for the session. The reply to an HTML form is 303.",
			body:        form(nil, false, "flow", text("For programs: what the reply to the first factor has; browsers have a cookie.")),
			replies: ordered.Of("202", reply("A mail with a code will be sent.", nil, "Cache-Control"),
				"303", redirectTo("Of an HTML form: the page that asks for the code.")),
			problems: failing,
		})
	}
	if d.contract.Login.Passkeys {
		d.add(operation{
			method: "put", path: "/auth/factors/passkey", tag: loginTag, id: "addPasskeyFactor", summary: "Make one's passkeys a second factor", security: needed(),
			description: "Any of them completes a login by another method.",
			replies:     ordered.Of("200", reply("It is added.", asJSON(ordered.Of("type", "object", "properties", ordered.Of("recoveryCodes", codes))), "Cache-Control")),
			problems:    []int{401, 403, 409, 429, 500, 503},
		})
		d.add(operation{
			method: "post", path: "/auth/second-factor/passkey", tag: loginTag, id: "secondPasskeyOptions", summary: "Ask for the options of a passkey", security: maybe(),
			description: "For a login whose second factor is missing, or for the session.",
			parameters:  parameters("PreferSession"),
			body:        form(nil, false, "flow", text("For programs: what the reply to the first factor has; browsers have a cookie.")),
			replies:     ordered.Of("200", reply("For navigator.credentials.get.", asJSON(model.Ref("PasskeyLoginOptions")), "Cache-Control", "Set-Cookie", "Preference-Applied")),
			problems:    append(failing, 404),
		})
	}
	for _, kind := range []string{"totp", "passkey", "email"} {
		d.add(operation{
			method: "delete", path: "/auth/factors/" + kind, tag: loginTag, id: "removeFactor" + model.Identifier(kind), summary: "Remove the second factor " + kind, security: needed(),
			description: "Recovery codes end with the last one.",
			replies:     ordered.Of("204", reply("It is removed.", nil, "Cache-Control")),
			problems:    []int{401, 403, 404, 409, 429, 500, 503},
		})
	}
	d.add(operation{
		method: "post", path: "/auth/factors/recovery", tag: loginTag, id: "renewRecoveryCodes", summary: "Replace one's recovery codes", security: needed(),
		description: "The reply to an HTML form is a page, or 303.",
		replies: ordered.Of("200", reply("The new ones; the others have ended.", orPage(ordered.Of("type", "object", "required", []string{"recoveryCodes"},
			"properties", ordered.Of("recoveryCodes", codes))), "Cache-Control"), "303", toAccount),
		problems: []int{401, 403, 409, 429, 500, 503},
	})
	proof := []any{
		"type", ordered.Of("type", "string", "enum", []any{"totp", "recovery", "passkey", "email"}, "description", "totp by default."),
		"code", text("Of totp, recovery and email."),
		"credential", model.Ref("PasskeyAssertion"),
		"secret", text("Of passkey, for programs: that of the options; browsers have a cookie."),
	}
	d.add(operation{
		method: "post", path: "/auth/second-factor", tag: loginTag, id: "completeLogin", summary: "Complete a login by its second factor", security: maybe(),
		description: "The reply to an HTML form is 303.",
		parameters:  parameters("PreferSession"),
		body:        inHTML(form(nil, false, append(proof, "flow", text("For programs: what the reply to the first factor has; browsers have a cookie."))...), nil, credentialText()...),
		replies: ordered.Of(
			"200", d.issued("Logged in, where `Prefer: return=representation` was sent."),
			"204", reply("Logged in.", nil, "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"303", redirectTo("Of an HTML form: the page where the browser continues.", "Set-Cookie", "Preference-Applied"),
		),
		problems: failing,
	})
	d.add(operation{
		method: "post", path: "/auth/step-up", tag: loginTag, id: "stepUp", summary: "Prove again who one is", security: needed(),
		description: "By the second factor if there is one, else by the password. The session is replaced. The reply to an HTML form is 303.",
		parameters:  parameters("PreferSession"),
		body:        inHTML(form(nil, false, append(proof, "password", ordered.Of("type", "string", "format", "password"))...), nil, credentialText()...),
		replies: ordered.Of(
			"200", d.issued("Proven, where `Prefer: return=representation` was sent."),
			"204", reply("Proven.", nil, "Cache-Control", "Set-Cookie"),
			"303", toAccount,
		),
		problems: failing,
	})
}

// pageContent is a page, of which the document says no more.
func pageContent() *ordered.Object { return ordered.Of("schema", ordered.Of("type", "string")) }

// orPage is an object for programs, and a page for HTML forms.
func orPage(schema *ordered.Object) *ordered.Object {
	return ordered.Of(jsonType, ordered.Of("schema", schema), "text/html", pageContent())
}
