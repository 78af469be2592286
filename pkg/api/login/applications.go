package login

import (
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/op"
)

// addApplications adds the operations of applications that log users in with a code: RFC 6749 and RFC 7636.
func (h applicationRoutes) addApplications(set *op.Set) {
	required := func(name string, schema *ordered.Object) *ordered.Object {
		p := op.Query(name, "", schema)
		p.Set("required", true)
		return p
	}
	set.Add(op.Operation{
		Method: http.MethodGet, Path: authorizePath, ID: "authorize", Summary: "Log in for an application",
		Security: op.Open(),
		Description: "For browsers, which applications open. A page asks for the login; then the browser is sent to " +
			"`redirect_uri` with a code.",
		Parameters: []any{
			required("response_type", op.Only("code")),
			required("redirect_uri", op.Text("One of `authentication.redirects` of the configuration.")),
			required("code_challenge", op.Text("The SHA-256 of code_verifier in base64url.")),
			required("code_challenge_method", op.Only("S256")),
			op.Query("state", "", op.Text("Returned unchanged.")),
			op.Query("client_id", "", op.Text("The exchange of the code must repeat it.")),
			op.Query("provider", "", op.Text("The provider to log in with.")),
		},
		Replies: ordered.Of(
			"200", op.Reply("A page that asks for the login.", op.Content(op.HTMLType, op.Text("")), "Cache-Control"),
			"302", op.Redirect("To the provider, or to the application with an error.", "Set-Cookie"),
		),
		Problems:   []int{400, 403},
		Navigation: true, Run: h.authorize,
	})
	reply400 := op.Reply("The code can't be exchanged, or the request is not valid.", ordered.Of(
		op.JSONType, ordered.Of("schema", apimodel.Ref("ProtocolError")), op.ProblemType,
		ordered.Of("schema", apimodel.Ref("Problem"))), "Cache-Control", "Link=Help")
	set.Add(op.Operation{
		Method: http.MethodPost, Path: tokenPath, ID: "exchangeCode",
		Summary: "Exchange the code of a login for a token", Security: op.Open(),
		Description: "A code is used once; a second use ends the session of the first. The client may be named by " +
			"HTTP Basic, with an empty password, instead of `client_id`.",
		Parameters: op.Parameters("PreferSession"),
		Body:       op.Form[tokenForm](),
		Replies: ordered.Of(
			"200", op.Reply("The token; with `Prefer: return=representation` in the form of a login.",
				op.JSON(ordered.Of("anyOf", []any{apimodel.Ref("AccessToken"), apimodel.Ref("IssuedSession")})),
				"Cache-Control", "Pragma", "Preference-Applied"),
			"400", reply400,
			"401", op.Reply("The client is named otherwise than at the login, or sent a secret. The code can "+
				"still be used.", ordered.Of(
				op.JSONType, ordered.Of("schema", apimodel.Ref("ProtocolError"))), "Cache-Control", "Link=Help",
				"Www-Authenticate"),
		),
		Problems: []int{403, 408, 413, 415, 429},
		Run:      byProvider(h).token,
	})
	addMetadata(set)
}
