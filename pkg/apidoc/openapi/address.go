package openapi

import "belfry/internal/ordered"

// address adds the routes of a change of address.
func (d *document) address() {
	text := func(description string) *ordered.Object {
		return ordered.Of("type", "string", "description", description)
	}
	problems := []int{400, 401, 403, 404, 408, 409, 413, 415, 429, 500, 503}
	d.add(operation{
		method: "put", path: "/auth/idents/{uuid}/address", tag: loginTag, id: "changeAddress", summary: "Replace an address of one's account", security: needed(),
		description: "Needs a login of the last ten minutes. Nothing changes before the mail to the new address is confirmed. The reply does not reveal whether that belongs to another account.",
		parameters:  parameters("UUID"),
		body:        form([]string{"address"}, false, "address", text("The new one."), "password", text("That of the account, if there is one.")),
		replies:     ordered.Of("202", reply("A mail will be sent to the new address, and one to the old.", nil, "Cache-Control")),
		problems:    problems,
	})
	d.add(operation{
		method: "post", path: "/auth/idents/{uuid}/address", tag: loginTag, id: "changeAddressByForm", summary: "Replace an address of one's account, by an HTML form", security: needed(),
		parameters: parameters("UUID"),
		body:       htmlForm([]string{"address"}, "address", text("The new one."), "password", text("That of the account, if there is one.")),
		replies:    ordered.Of("303", redirectTo("To the page of the account.")),
		problems:   []int{403, 408, 500, 503},
	})
	d.add(operation{
		method: "post", path: "/auth/email/address", tag: loginTag, id: "finishAddressChange", summary: "Confirm or undo a change of address", security: maybe(),
		description: "By the token of the mail to the new address, while logged in, or of that to the address which was proven longest. With `keep` the latter says that the change is right, and can't undo it any more. The reply to an HTML form is 303.",
		parameters:  parameters("Prefer"),
		body:        form([]string{"token"}, false, "login", text("The address that the mail was sent to; `email` is another name for this field."), "token", text("That of the mail."), "keep", ordered.Of("type", "boolean", "description", "The change stays, and the right to undo it ends.")),
		replies: ordered.Of("204", reply("It is confirmed; or undone: then every session has ended; or can't be undone any more.", nil, "Cache-Control", "Preference-Applied"),
			"303", redirectTo("Of an HTML form: the page where the browser continues.", "Preference-Applied")),
		problems: problems,
	})
}
