package openapi

import "belfry/internal/ordered"

// mailLogin adds the routes of logins by a mail.
func (d *document) mailLogin() {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	login := text("The address; `email` is another name for this field.")
	problems := []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503}
	pending := ordered.Of("type", "object", "required", []string{"binding", "expires"}, "properties", ordered.Of(
		"binding", text("A secret to send with the code."), "expires", ordered.Of("type", "string", "format", "date-time")))
	d.add(operation{
		method: "post", path: "/auth/email/code", tag: loginTag, id: "requestLoginMail", summary: "Ask for a mail to log in", security: maybe(),
		description: "The reply does not reveal whether there is an account. That to an HTML form is 303; with `code` or `token` a form, which can't PUT, logs in here.",
		parameters:  parameters("PreferSession"),
		body: inHTML(form(nil, false, "login", login, "kind", ordered.Of("type", "string", "enum", []string{"code", "link"}, "description", "By default the one that is configured, or a code."),
			"binding", text("That of the request before, which this one replaces, where cookies are not kept.")), nil,
			"code", text("That of the mail."), "token", text("That of the link.")),
		replies: ordered.Of(
			"200", reply("The same as 202, where `Prefer: return=representation` was sent: what binds the login to the client, which the cookie has as well.",
				asJSON(pending), "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"202", reply("If there is an account, a mail will be sent.", nil, "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"303", redirectTo("Of an HTML form: the page where the browser continues.", "Set-Cookie", "Preference-Applied"),
		),
		problems: problems,
	})
	d.add(operation{
		method: "put", path: "/auth/email/code", tag: loginTag, id: "loginByMail", summary: "Log in by a mail", security: maybe(),
		description: "By its code, or the token of its link, with the cookie or the `binding` of the request.",
		parameters:  parameters("PreferSession"),
		body: form(nil, false, "login", login, "code", text("That of the mail."), "token", text("That of the link."),
			"binding", text("That of the request, where cookies are not kept.")),
		replies: ordered.Of(
			"200", d.issued("Logged in, where `Prefer: return=representation` was sent: for programs, which keep the token."),
			"204", reply("Logged in.", nil, "Cache-Control", "Set-Cookie", "Preference-Applied"),
		),
		problems: problems,
	})
}
