package openapi

import (
	"cmp"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/account/method/about"
	"belfry/pkg/apidoc/model"
)

// factors adds the routes of second factors.
func (d *document) factors() {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	failing := []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503}
	var names, proofs []any
	var coded []string // those proven by a code
	for _, m := range d.contract.Login.Methods {
		if m.Factor {
			names = append(names, m.Name)
		}
		if m.Factor || m.Spare {
			proofs = append(proofs, m.Name)
			if !m.Script {
				coded = append(coded, m.Name)
			}
		}
	}
	types := ordered.Of("type", "string", "enum", names)
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
	toAccount := redirectTo("Of an HTML form: the page of the account.", "Set-Cookie")
	codes := ordered.Of("type", "array", "items", ordered.Of("type", "string"), "description", "Recovery codes, which are shown once.")
	added := ordered.Of("type", "object", "properties", ordered.Of("recoveryCodes", codes,
		"token", text("Of the session that replaces the present one, where `Prefer: return=representation` was sent."), "expires", model.Time("When it ends unless it is used."),
		"user", model.Ref(d.contract.Login.Users.ObjectName())))
	for _, m := range d.contract.Login.Methods {
		if m.Factor {
			d.factor(m, added, codes, toAccount)
		}
		if m.Enabled && m.Asked != "" {
			d.ask(m)
		}
	}
	d.add(operation{
		method: "post", path: "/auth/factors/recovery", tag: loginTag, id: "renewRecoveryCodes", summary: "Replace one's recovery codes", security: needed(),
		description: "The reply to an HTML form is a page, or 303.",
		replies: ordered.Of("200", reply("The new ones; the others have ended.", orPage(ordered.Of("type", "object", "required", []string{"recoveryCodes"},
			"properties", ordered.Of("recoveryCodes", codes))), "Cache-Control"), "303", toAccount),
		problems: []int{401, 403, 409, 429, 500, 503},
	})
	proof := []any{
		"type", ordered.Of("type", "string", "enum", proofs, "description", "totp by default."),
		"code", text("Of " + strings.Join(coded, ", ") + "."),
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

// factor adds the routes by which a second factor is added and removed.
func (d *document) factor(m about.Configured, added, codes, toAccount *ordered.Object) {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	failing := []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503}
	if m.Asked != "" { // and may not be configured
		failing = append(failing, 404)
	}
	path, page := "/auth/factors/"+m.Name, ordered.Of("text/html", pageContent())
	replies := ordered.Of("200", reply("What the app needs.", orPage(ordered.Of("type", "object", "required", []string{"secret", "uri", "qr"}, "properties", ordered.Of(
		"secret", text("In base32, to be typed."), "uri", text("otpauth://totp/..."), "qr", text("The URI as a QR code: a data URL of a PNG."),
	))), "Cache-Control"))
	switch {
	case m.Once:
		replies = ordered.Of("200", reply("It is added.", orPage(added), "Cache-Control", "Set-Cookie"))
	case m.Sent():
		replies = ordered.Of("200", reply("Of an HTML form: the recovery codes.", page, "Cache-Control", "Set-Cookie"),
			"202", reply("A mail with a code will be sent.", nil, "Cache-Control"))
	}
	replies.Set("303", toAccount)
	d.add(operation{
		method: "post", path: path, tag: loginTag, id: cmp.Or(m.API.Begin.ID, "beginFactor"+model.Identifier(m.Name)), summary: cmp.Or(m.API.Begin.Summary, m.Add), security: needed(),
		description: cmp.Or(m.API.Begin.Description, "An HTML form confirms the factor with `code`, if it needs one, and removes it with `remove`; the reply is 303, or a page that shows the recovery codes."),
		body:        optional(htmlForm(nil, "code", text(cmp.Or(m.API.Code, "Of a factor that needs one.")), "remove", ordered.Of("type", "boolean", "description", "The factor is removed."))),
		replies:     replies,
		problems:    failing,
	})
	if m.Enabled {
		o := operation{
			method: "put", path: path, tag: loginTag, id: cmp.Or(m.API.Put.ID, "confirmFactor"+model.Identifier(m.Name)), summary: cmp.Or(m.API.Put.Summary, m.Add), security: needed(),
			description: cmp.Or(m.API.Put.Description, "The session is replaced by one with the second factor. Recovery codes are in the reply if there were none."),
			parameters:  parameters("PreferSession"),
			body:        form([]string{"code"}, false, "code", text(m.API.Code)),
			replies:     ordered.Of("200", reply("It is added.", asJSON(added), "Cache-Control", "Set-Cookie", "Preference-Applied")),
			problems:    []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503},
		}
		if m.Once {
			o.parameters, o.body = nil, nil
			o.replies = ordered.Of("200", reply("It is added.", asJSON(ordered.Of("type", "object", "properties", ordered.Of("recoveryCodes", codes))), "Cache-Control"))
			o.problems = []int{401, 403, 409, 429, 500, 503}
		}
		d.add(o)
	}
	d.add(operation{
		method: "delete", path: path, tag: loginTag, id: "removeFactor" + model.Identifier(m.Name), summary: "Remove the second factor " + m.Name, security: needed(),
		description: "Recovery codes end with the last one.",
		replies:     ordered.Of("204", reply("It is removed.", nil, "Cache-Control")),
		problems:    []int{401, 403, 404, 409, 429, 500, 503},
	})
}

// ask adds the route that asks for the answer of a second factor.
func (d *document) ask(m about.Configured) {
	o := operation{
		method: "post", path: "/auth/second-factor/" + m.Asked, tag: loginTag, id: cmp.Or(m.API.Ask.ID, "askFor"+model.Identifier(m.Name)), summary: cmp.Or(m.API.Ask.Summary, m.Ask), security: maybe(),
		description: m.API.Ask.Description,
		body:        form(nil, false, "flow", ordered.Of("type", "string", "description", "For programs: what the reply to the first factor has; browsers have a cookie.")),
		replies: ordered.Of("202", reply("A mail with a code will be sent.", nil, "Cache-Control"),
			"303", redirectTo("Of an HTML form: the page that asks for the code.")),
		problems: []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503},
	}
	if m.Script {
		o.parameters = parameters("PreferSession")
		o.replies = ordered.Of("200", reply("For navigator.credentials.get.", asJSON(model.Ref("PasskeyLoginOptions")), "Cache-Control", "Set-Cookie", "Preference-Applied"))
		o.problems = append(o.problems, 404)
	}
	d.add(o)
}

// pageContent is a page, of which the document says no more.
func pageContent() *ordered.Object { return ordered.Of("schema", ordered.Of("type", "string")) }

// orPage is an object for programs, and a page for HTML forms.
func orPage(schema *ordered.Object) *ordered.Object {
	return ordered.Of(jsonType, ordered.Of("schema", schema), "text/html", pageContent())
}
