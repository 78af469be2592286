package login

import (
	"encoding/json"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

type passkeyLoginForm struct {
	op.Input
	Credential json.RawMessage `form:"credential,required" ref:"PasskeyAssertion"`
	Secret     string          `form:"secret" doc:"For clients without cookies: the secret of the options."`
	Authorize  *string         `form:"authorize,html,hidden"` // the query of the page by which an application logs in
}

type newPasskeyForm struct {
	Name       string          `form:"name" doc:"1 to 100 bytes."`
	Credential json.RawMessage `form:"credential,required" ref:"PasskeyRegistration"`
	Secret     string          `form:"secret" doc:"For clients without cookies: the secret of the options."`
}

type passkeyName struct {
	Name string `form:"name,required" doc:"1 to 100 bytes."`
}

type passkeyForm struct {
	Name   string `form:"name" doc:"1 to 100 bytes."`
	Remove bool   `form:"remove" doc:"Remove the passkey."`
}

// credentialText is the answer of an authenticator in an HTML form.
func credentialText(more ...any) []any {
	return append(more, "credential",
		op.Text("The answer of the authenticator, as the JSON text of `PublicKeyCredential.toJSON()`."))
}

// addPasskeys adds the operations on passkeys.
func (h passkeyRoutes) addPasskeys(set *op.Set) {
	set.Page(passkeyScriptPath, httpkit.Fixed("text/javascript; charset=utf-8", passkeyScript))
	options := func(description, schema string) *ordered.Object {
		return ordered.Of("200",
			op.Reply(description, op.JSON(apimodel.Ref(schema)), "Cache-Control", "Set-Cookie", "Preference-Applied"))
	}
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/passkey/options", ID: "beginPasskeyLogin",
		Summary: "Request the challenge of a login by passkey", Security: op.Maybe(),
		Parameters: op.Parameters("Prefer"), Replies: options("For navigator.credentials.get.", "PasskeyLoginOptions"),
		Problems: []int{403, 429},
		Run:      h.beginPasskeyLogin,
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/passkey", ID: "loginByPasskey", Summary: "Log in by passkey",
		Security:   op.Maybe(),
		Parameters: op.Parameters("Prefer"), Body: op.Form[passkeyLoginForm](credentialText()...),
		Replies: ordered.Of(
			"200", issuedReply("Logged in, with `Prefer: return=representation`."),
			"204", sessionReply("Logged in."),
			"303", op.Redirect("After an HTML form: to the page of success or failure, or to the application.",
				"Set-Cookie"),
		),
		Problems: []int{400, 403, 408, 409, 413, 415, 429},
		Run:      anybody(h.Handler, op.IsHTML, h.loginByPasskey),
	})
	set.Get(op.Operation{
		Path: "/auth/passkeys", ID: "listPasskeys", Summary: "List one's passkeys", Security: op.Needed(),
		Replies: ordered.Of("200", op.Reply("The passkeys, the oldest first.",
			op.JSON(op.Object("", 1, "passkeys", op.List(apimodel.Ref("Passkey")))), "Cache-Control")),
		Problems: []int{401, 403, 429},
		Limit:    httpkit.Read, Run: h.owner(h.passkeys),
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/passkeys/registration", ID: "beginPasskey",
		Summary: "Request the challenge of a new passkey", Security: op.Needed(),
		Description: "Needs a login of the last 10 minutes.",
		Parameters:  op.Parameters("Prefer"), Replies: options("For navigator.credentials.create.", "PasskeyOptions"),
		Problems: []int{401, 403, 409, 429},
		Limit:    httpkit.Write, Run: h.owner(h.beginPasskey),
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/passkeys", ID: "addPasskey", Summary: "Add a passkey",
		Security:   op.Needed(),
		Parameters: op.Parameters("Prefer"), Body: op.Form[newPasskeyForm](credentialText()...),
		Replies: ordered.Of(
			"201", op.Reply("The passkey is added.", op.JSON(apimodel.Ref("Passkey")), "Cache-Control", "Set-Cookie",
				"Preference-Applied"),
			"303", op.Redirect("After an HTML form: to the page of the account.", "Set-Cookie"),
		),
		Problems: formProblems(),
		Limit:    httpkit.Write, Run: ownerForm(h.Handler, op.IsHTML, h.addPasskey),
	})
	set.Add(op.Operation{
		Method: http.MethodPatch, Path: "/auth/passkeys/{uuid}", ID: "renamePasskey", Summary: "Rename a passkey",
		Security: op.Needed(), Parameters: op.Parameters("UUID"), Body: op.Form[passkeyName](),
		Replies: ordered.Of("200",
			op.Reply("The passkey is renamed.", op.JSON(apimodel.Ref("Passkey")), "Cache-Control")),
		Problems: formProblems(404),
		Limit:    httpkit.Write, Run: ownerForm(h.Handler, never, h.renamePasskey),
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/passkeys/{uuid}", ID: "changePasskey",
		Summary: "Rename or remove a passkey, by an HTML form", Security: op.Needed(),
		Parameters: op.Parameters("UUID", "Prefer"), Body: op.Form[passkeyForm](),
		Replies: ordered.Of(
			"204", writtenReply("The passkey is renamed or removed."),
			"303", op.Redirect("After an HTML form: to the page of the account."),
		),
		Problems: formProblems(404),
		Limit:    httpkit.Write, Run: ownerForm(h.Handler, op.IsHTML, h.changePasskey),
	})
}
