package openapi

import (
	"belfry/internal/ordered"
	"belfry/pkg/apidoc/model"
)

// deletion adds the routes by which users delete their accounts.
func (d *document) deletion() {
	const path = "/auth/deletion"
	d.get(operation{
		path: path, tag: loginTag, id: "getDeletion", summary: "Read when one's account is deleted", security: needed(),
		replies:  ordered.Of("200", reply("The deletion is planned.", asJSON(model.Ref("Deletion")), "Cache-Control")),
		problems: []int{401, 403, 404, 429, 500, 503},
	})
	if d.contract.Login.Deletion {
		d.add(operation{
			method: "post", path: path, tag: loginTag, id: "planDeletion", summary: "Delete one's account, after a grace period", security: needed(),
			description: "Needs a login of the last 10 minutes. All other sessions and all API keys end; with `Prefer: return=representation` the reply has the token of the session that continues. An admin gets 409.",
			parameters:  parameters("PreferSession"),
			body: inHTML(form(nil, false, "password", ordered.Of("type", "string", "format", "password", "description", "That of the user, if there is one.")), nil,
				"undo", ordered.Of("type", "boolean", "description", "The deletion is taken back.")),
			replies: ordered.Of("303", redirectTo("Of an HTML form: to the page of the account.", "Set-Cookie"), "202", reply("The deletion is planned.", asJSON(d.deletionWithSession()),
				"Cache-Control", "Set-Cookie", "Preference-Applied")),
			problems: []int{400, 401, 403, 408, 409, 413, 415, 429, 500, 503},
		})
	}
	d.add(operation{
		method: "delete", path: path, tag: loginTag, id: "undoDeletion", summary: "Take back the deletion of one's account", security: needed(),
		replies:  ordered.Of("204", reply("The account stays.", nil, "Cache-Control")),
		problems: []int{401, 403, 404, 409, 429, 500, 503},
	})
}

// deletionWithSession is a planned deletion, with the session that continues where it was asked for.
func (d *document) deletionWithSession() *ordered.Object {
	schema := plannedDeletion()
	for _, m := range d.loggedIn().Object("properties").Members() {
		schema.Object("properties").Set(m.Name, m.Value)
	}
	return schema
}

// plannedDeletion is the schema of a planned deletion.
func plannedDeletion() *ordered.Object {
	at := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "format", "date-time", "description", description)
	}
	return ordered.Of("type", "object", "required", []string{"planned", "deleted"}, "properties", ordered.Of(
		"planned", at("When the user has asked for it."), "deleted", at("When the account is deleted, unless that is taken back before.")))
}

// export adds the route by which users download what is theirs.
func (d *document) export() {
	d.add(operation{
		method: "get", path: "/auth/export", tag: loginTag, id: "export", summary: "Download what is one's own", security: needed(),
		description: "A zip file with the account, the objects that one owns and their files, and a manifest as its last entry: without it the file is incomplete. Needs a login of the last 10 minutes.",
		replies: ordered.Of("200", reply("The archive.", ordered.Of("application/zip", ordered.Of("schema", ordered.Of("type", "string", "format", "binary"))),
			"Cache-Control", "Content-Disposition")),
		problems: []int{401, 403, 409, 429, 500, 503},
	})
}
