package openapi

import (
	"cmp"

	"belfry/internal/ordered"
	"belfry/pkg/account/method/about"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/event"
)

const loginTag = "Login"

// login adds the routes below /auth.
func (d *document) login() {
	l := d.contract.Login
	d.tag(loginTag, "Who one is.")
	list := ordered.Of("type", "object", "required", []string{"providers"},
		"properties", ordered.Of("providers", ordered.Of("type", "array", "items", model.Ref("Provider"))))
	d.get(operation{
		path: "/auth", tag: loginTag, id: "listProviders", summary: "List the ways to log in", security: open(),
		replies:  ordered.Of("200", reply("Those that are configured.", asJSON(list), "Cache-Control")),
		problems: []int{500, 503},
	})
	d.add(operation{
		method: "delete", path: "/auth", tag: loginTag, id: "logout", summary: "Log out",
		replies:  ordered.Of("204", reply("The session has ended, if there was one.", nil, "Cache-Control", "Set-Cookie")),
		problems: []int{401, 403, 409, 429, 500, 503},
	})
	d.add(operation{
		method: "post", path: "/auth/logout", tag: loginTag, id: "logoutForm", summary: "Log out, by an HTML form",
		replies:  ordered.Of("303", redirectTo("To the page where a login leads to.", "Set-Cookie")),
		problems: []int{401, 403, 409, 429, 500, 503},
	})
	d.get(operation{
		path: "/auth/me", tag: loginTag, id: "getMe", summary: "Read the user who is logged in", security: needed(),
		replies:  ordered.Of("200", object(l.Users, "The user.")),
		problems: []int{401, 429, 500, 503},
	})
	d.sessions()
	d.activity()
	d.keys()
	d.factors()
	d.deletion()
	d.export()
	if l.Email {
		d.email()
		d.address()
	}
	if l.MailLogin {
		d.mailLogin()
	}
	if l.Passkeys {
		d.passkeys()
	}
	for _, m := range l.Methods {
		if m.Enabled && m.Login && !m.Script {
			d.loginBy(m)
		}
	}
	for _, name := range l.Providers {
		d.add(operation{
			method: "get", path: "/auth/" + name, tag: loginTag, id: "loginWith" + model.Identifier(name),
			summary: "Log in through " + name, description: "For browsers: sends them to the provider, or to where failures are explained.",
			replies:  ordered.Of("302", redirectTo("To the provider.", "Set-Cookie")),
			problems: []int{500, 503},
		})
	}
	d.callback()
	if l.Applications {
		d.applications()
	}
}

// redirectTo is a redirect.
func redirectTo(description string, headers ...string) *ordered.Object {
	return reply(description, nil, append([]string{"Location", "Cache-Control"}, headers...)...)
}

func (d *document) sessions() {
	list := ordered.Of("type", "object", "required", []string{"sessions"},
		"properties", ordered.Of("sessions", ordered.Of("type", "array", "items", model.Ref("Session"))))
	d.get(operation{
		path: "/auth/sessions", tag: loginTag, id: "listSessions", summary: "List one's sessions", security: needed(),
		replies:  ordered.Of("200", reply("The sessions, the oldest first.", asJSON(list), "Cache-Control")),
		problems: []int{401, 429, 500, 503},
	})
	d.add(operation{
		method: "delete", path: "/auth/sessions/{uuid}", tag: loginTag, id: "endSession", summary: "End a session", security: needed(),
		parameters: parameters("UUID"),
		replies:    ordered.Of("204", reply("It has ended.", nil, "Cache-Control", "Set-Cookie")),
		problems:   []int{400, 401, 403, 404, 409, 429, 500, 503},
	})
	d.add(operation{
		method: "post", path: "/auth/sessions/{uuid}", tag: loginTag, id: "endSessionByForm", summary: "End a session, by an HTML form", security: needed(),
		parameters: parameters("UUID"),
		body:       htmlForm([]string{"remove"}, "remove", ordered.Of("type", "boolean", "description", "true.")),
		replies:    ordered.Of("303", redirectTo("To the page of the account.", "Set-Cookie")),
		problems:   []int{403, 408, 500, 503},
	})
	d.add(operation{
		method: "delete", path: "/auth/idents/{uuid}", tag: loginTag, id: "unlinkIdent", summary: "Unlink an ident", security: needed(),
		description: "The last one can't be unlinked: 409.",
		parameters:  parameters("UUID", "Prefer"),
		replies:     ordered.Of("204", reply("It is unlinked.", nil, "Cache-Control", "Preference-Applied")),
		problems:    []int{400, 401, 403, 404, 409, 429, 500, 503},
	})
	if d.contract.Login.KeepsTokens {
		d.providerToken()
	}
}

// providerToken adds the route of providers' tokens.
func (d *document) providerToken() {
	token := ordered.Of("type", "object", "required", []string{"accessToken", "scope"}, "properties", ordered.Of(
		"accessToken", ordered.Of("type", "string"),
		"expires", ordered.Of("type", "string", "format", "date-time", "description", "Absent where the provider does not say when."),
		"scope", ordered.Of("type", "string", "description", "What it is for, separated by spaces.")))
	d.get(operation{
		path: "/auth/idents/{uuid}/token", tag: loginTag, id: "getProviderToken", summary: "Get an access token of a provider", security: needed(),
		description: "Of one's own ident whose provider has `tokens: keep`. One that has expired is refreshed.",
		parameters:  parameters("UUID"),
		replies:     ordered.Of("200", reply("The token.", asJSON(token), "Cache-Control")),
		problems:    []int{400, 401, 403, 404, 409, 429, 500, 503},
	})
}

// activity adds the route of the events about the security of one's account.
func (d *document) activity() {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	entry := ordered.Of("type", "object", "required", []string{"event", "time"}, "properties", ordered.Of(
		"event", ordered.Of("type", "string", "enum", event.Auth()), "time", model.Time("When it happened."),
		"by", ordered.Of("type", "string", "enum", []string{"user", "admin"}, "description", "Who has done it; absent where that is not known."),
		"method", text("How the user has proven who they are."), "factor", text("The ident, the key or the kind of factor that it is about."),
		"session", text("The id of the session."), "aal", ordered.Of("type", "integer", "minimum", 1, "maximum", 2),
		"reason", text("Why, in a word."), "address", text("From which network address."), "place", place(),
		"userAgent", text("By which program."), "device", device(),
	))
	page := ordered.Of("type", "object", "required", []string{"events"}, "properties", ordered.Of(
		"events", ordered.Of("type", "array", "items", entry), "cursor", text("Of the next page; absent at the end.")))
	d.get(operation{
		path: "/auth/activity", tag: loginTag, id: "listActivity", summary: "List what happened to the security of one's account", security: needed(),
		description: "As far as the log of events goes back.",
		parameters: []any{
			ordered.Of("name", "limit", "in", "query", "schema", ordered.Of("type", "integer", "minimum", 1, "maximum", 100, "default", 20)),
			ordered.Of("name", "cursor", "in", "query", "schema", ordered.Of("type", "string")),
		},
		replies:  ordered.Of("200", reply("The newest events first.", asJSON(page), "Cache-Control")),
		problems: []int{400, 401, 403, 429, 500, 503},
	})
}

// keys adds the routes of API keys.
func (d *document) keys() {
	list := ordered.Of("type", "object", "required", []string{"keys"},
		"properties", ordered.Of("keys", ordered.Of("type", "array", "items", model.Ref("APIKey"))))
	d.get(operation{
		path: "/auth/keys", tag: loginTag, id: "listKeys", summary: "List one's API keys", security: needed(),
		replies:  ordered.Of("200", reply("The keys, the oldest first.", asJSON(list), "Cache-Control")),
		problems: []int{401, 403, 429, 500, 503},
	})
	made := key()
	made.Set("description", "An API key that was just made.")
	made.Set("required", append(made.Get("required").([]string), "token"))
	made.Object("properties").Set("token", ordered.Of("type", "string", "description", "For Authorization: Bearer. It is shown once."))
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	d.add(operation{
		method: "post", path: "/auth/keys", tag: loginTag, id: "createKey", summary: "Make an API key", security: needed(),
		body: form([]string{"name"}, false, "name", text("What it is for: 1 to 100 bytes."), "expires", text("When it expires (RFC 3339); never by default."),
			"rule", text("CEL over `method` and `path` of a request; others are refused."), "password", text("That of the user, if there is one.")),
		replies:  ordered.Of("201", reply("The key with its token.", asJSON(made), "Cache-Control")),
		problems: []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503},
	})
	d.add(operation{
		method: "delete", path: "/auth/keys/{uuid}", tag: loginTag, id: "revokeKey", summary: "Revoke an API key", security: needed(),
		parameters: parameters("UUID"),
		replies:    ordered.Of("204", reply("It has ended.", nil, "Cache-Control")),
		problems:   []int{400, 401, 403, 404, 409, 429, 500, 503},
	})
}

// issued is the response with a session that has just begun.
func (d *document) issued(description string) *ordered.Object {
	return reply(description, asJSON(model.Ref("IssuedSession")), "Cache-Control", "Set-Cookie", "Preference-Applied")
}

// email adds the routes of the provider email.
func (d *document) email() {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	password := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "format", "password", "description", description)
	}
	unknown := []int{404}
	if d.contract.Login.Uniform {
		unknown = nil
	}
	login := func() *ordered.Object { return text("The address; `email` is another name for this field.") }
	failing := []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503}
	with := func(more ...int) []int { return append(append([]int(nil), failing...), more...) }

	d.add(operation{
		method: "post", path: "/auth/email", tag: loginTag, id: "login", summary: "Log in, or register", security: maybe(),
		description: "Other fields are set on the user who registers. The reply to an HTML form is 303; one with `newPassword`, which can't PUT, changes the password of who is logged in.",
		parameters:  parameters("PreferSession"),
		body: inHTML(form([]string{"password"}, true, "login", login(), "password", password("8 to 1024 bytes, and not a weak one, when one is chosen."),
			"register", ordered.Of("type", "boolean", "description", "true to register."),
			"token", text("That of the validation mail.")), []string{},
			"newPassword", password("The new password of who is logged in."), "authorize", text("The query of the page by which an application logs in.")),
		replies: ordered.Of(
			"200", d.issued("Logged in, where `Prefer: return=representation` was sent: for programs, which keep the token."),
			"202", reply("A mail will be sent.", nil, "Cache-Control", "Preference-Applied"),
			"204", reply("Logged in.", nil, "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"303", redirectTo("Of an HTML form: the page where the browser continues.", "Set-Cookie", "Preference-Applied"),
		),
		problems: append(with(unknown...), interceptorProblems(d.contract.Login.Users, "register")...),
	})
	d.add(operation{
		method: "put", path: "/auth/email", tag: loginTag, id: "changePassword", summary: "Change one's password", security: needed(),
		parameters: parameters("PreferSession"),
		body: form([]string{"newPassword"}, false, "password", password("The present one, if there is one."),
			"newPassword", password("8 to 1024 bytes, and not a weak one.")),
		replies: ordered.Of(
			"200", d.issued("It is changed, where `Prefer: return=representation` was sent."),
			"204", reply("It is changed, and the other sessions have ended.", nil, "Cache-Control", "Set-Cookie"),
		),
		problems: with(404),
	})
	mail := func(path, id, summary, more string, html ...any) {
		d.add(operation{
			method: "post", path: path, tag: loginTag, id: id, summary: summary, security: maybe(),
			description: "The reply does not reveal whether there is an account. That to an HTML form is 303." + more,
			body:        inHTML(form(nil, false, "login", login()), nil, html...),
			replies: ordered.Of(
				"202", reply("If there is an account, a mail will be sent.", nil, "Cache-Control"),
				"303", redirectTo("Of an HTML form: the page where the browser continues."),
			),
			problems: with(),
		})
	}
	mail("/auth/email/validation", "resendValidation", "Send the validation mail again", "")
	mail("/auth/email/recovery", "forgotPassword", "Ask for a mail to set a new password",
		" With `token` and `password` an HTML form, which can't PUT, sets the new password here.",
		"token", text("That of the mail."), "password", password("The new one."))
	d.add(operation{
		method: "put", path: "/auth/email/recovery", tag: loginTag, id: "recoverPassword", summary: "Set a new password", security: maybe(),
		parameters: parameters("Prefer"),
		body: form([]string{"token", "password"}, false, "login", login(), "token", text("That of the mail."),
			"password", password("The new one: 8 to 1024 bytes, and not a weak one.")),
		replies:  ordered.Of("204", reply("It is set, and every session has ended.", nil, "Cache-Control", "Preference-Applied")),
		problems: with(404),
	})
	query := func(name string) *ordered.Object {
		return ordered.Of("name", name, "in", "query", "schema", ordered.Of("type", "string"))
	}
	d.add(operation{
		method: "get", path: "/auth/email/callback", tag: loginTag, id: "followMail", summary: "Follow the link of a mail",
		description: "For browsers.",
		parameters:  []any{query("login"), query("token")},
		replies:     ordered.Of("302", redirectTo("To the page that continues the flow.")),
		problems:    []int{500, 503},
	})
}

// loginBy adds the route of a login by an address and a code.
func (d *document) loginBy(m about.Configured) {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	problems := []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503}
	if !d.contract.Login.Uniform {
		problems = append(problems, 404)
	}
	d.add(operation{
		method: "post", path: "/auth/" + m.Name, tag: loginTag, id: "loginBy" + model.Identifier(m.Name), summary: "Log in by " + m.Name, security: maybe(),
		description: "The reply to an HTML form is 303.",
		parameters:  parameters("PreferSession"),
		body: inHTML(form([]string{"code"}, false, "login", text("The address; `email` is another name for this field."), "code", text(cmp.Or(m.API.Code, m.Answer+"."))), []string{},
			"authorize", text("The query of the page by which an application logs in.")),
		replies: ordered.Of(
			"200", d.issued("Logged in, where `Prefer: return=representation` was sent."),
			"204", reply("Logged in.", nil, "Cache-Control", "Set-Cookie", "Preference-Applied"),
			"303", redirectTo("Of an HTML form: the page where the browser continues.", "Set-Cookie", "Preference-Applied"),
		),
		problems: problems,
	})
}

// callback is the route to which providers redirect browsers.
func (d *document) callback() {
	var all []any
	for _, name := range []string{"code", "state", "error", "oauth_token", "oauth_verifier", "denied"} {
		all = append(all, ordered.Of("name", name, "in", "query", "schema", ordered.Of("type", "string")))
	}
	d.add(operation{
		method: "get", path: "/auth/callback", tag: loginTag, id: "returnFromProvider", summary: "Return from a provider",
		description: "For browsers, which providers send here.", parameters: append(all, parameters("Prefer")...),
		replies:  ordered.Of("302", redirectTo("To the page of success, or of failure.", "Set-Cookie", "Preference-Applied")),
		problems: []int{500, 503},
	})
	if !d.contract.Login.PostsCallback {
		return
	}
	var fields []any
	for _, name := range []string{"code", "state", "error", "iss", "user"} {
		fields = append(fields, name, ordered.Of("type", "string"))
	}
	d.add(operation{
		method: "post", path: "/auth/callback", tag: loginTag, id: "returnFromProviderByForm", summary: "Return from a provider, by a form",
		description: "For browsers, which Apple has send this form.",
		body:        body(ordered.Of(formType, ordered.Of("schema", ordered.Of("type", "object", "properties", ordered.Of(fields...))))),
		replies:     ordered.Of("303", redirectTo("To the same by GET, or to the page of failure.")),
		problems:    []int{500, 503},
	})
}
