package login

import (
	"cmp"
	"net/http"
	"strings"

	"belfry/internal/ordered"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/sessions"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// addFactors adds the operations on second factors, of every method. Users can remove a factor whose method is no
// longer configured.
func (h secondFactors) addFactors(set *op.Set) {
	var names, proofs []any
	var coded []string // those proven by a code
	for _, m := range set.Contract.Login.Methods {
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
	factor := op.Object("", 2, "type", op.OneOf(names, ""), "created", apimodel.Time("When it was added."), "from",
		apimodel.Time("The time from which it counts, of a factor that was added in a limited session."))
	set.Get(op.Operation{
		Path: "/auth/factors", ID: "listFactors", Summary: "List one's second factors", Security: op.Needed(),
		Replies: ordered.Of("200", op.Reply("The second factors.", op.JSON(op.Object("", 3,
			"policy", op.OneOf([]any{"off", "optional", "required"}, "Whether a second factor is requested."),
			"factors", op.List(factor),
			"recoveryCodes", ordered.Of("type", "integer", "description", "The number of unused recovery codes."),
		)), "Cache-Control")),
		Problems: []int{401, 403, 429},
		Limit:    httpkit.Read, Run: h.owner(h.factors),
	})
	toAccount := op.Redirect("After an HTML form: to the page of the account.", "Set-Cookie")
	codes := ordered.Of("type", "array", "items", op.Text(""), "description", "Recovery codes, which are shown once.")
	added := op.Object("", 0, "recoveryCodes", codes,
		"token", op.Text("The token of the session that replaces the present one, with `Prefer: "+
			"return=representation`."), "expires",
		apimodel.Time("The time at which the session ends unless it is used."),
		"user", apimodel.Ref(set.Contract.Login.Users.ObjectName()))
	for _, m := range set.Contract.Login.Methods {
		if m.Factor {
			h.addFactorOperations(set, m, added, codes, toAccount)
		}
		if m.Enabled && m.Asked != "" {
			h.addAsk(set, m.Method)
		}
	}
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/factors/recovery", ID: "renewRecoveryCodes",
		Summary: "Replace one's recovery codes", Security: op.Needed(),
		Description: "The reply to an HTML form is a page, or 303.",
		Replies: ordered.Of("200", op.Reply("The new codes; the others have ended.",
			orPage(op.Object("", 1, "recoveryCodes", codes)), "Cache-Control"), "303", toAccount),
		Problems: []int{401, 403, 409, 429},
		Limit:    httpkit.Write, Run: ownerForm(h.Handler, h.isForm, h.renewRecoveryCodes),
	})
	proof := credentialText("type", op.OneOf(proofs, "totp by default."), "code",
		op.Text("The code of "+strings.Join(coded, ", ")+"."))
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/second-factor", ID: "completeLogin",
		Summary: "Complete a login by its second factor", Security: op.Maybe(),
		Description: "The reply to an HTML form is 303.",
		Parameters:  op.Parameters("PreferSession"),
		Body:        op.Form[secondFactorForm](proof...),
		Replies: ordered.Of(
			"200", issuedReply("Logged in, with `Prefer: return=representation`."),
			"204", sessionReply("Logged in."),
			"303", pageRedirect("Set-Cookie", "Preference-Applied"),
		),
		Problems: formProblems(),
		Run:      h.secondFactor,
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/step-up", ID: "stepUp", Summary: "Authenticate again",
		Security: op.Needed(),
		Description: "By the second factor if there is one, else by the password. The session is replaced. The reply " +
			"to an HTML form is 303.",
		Parameters: op.Parameters("PreferSession"),
		Body:       op.Form[stepUpForm](proof...),
		Replies: ordered.Of(
			"200", issuedReply("Proven, with `Prefer: return=representation`."),
			"204", op.Reply("Proven.", nil, "Cache-Control", "Set-Cookie"),
			"303", toAccount,
		),
		Problems: formProblems(),
		Limit:    httpkit.Write, Run: ownerForm(h.Handler, h.isForm, h.stepUp),
	})
}

// addFactorOperations adds the operations by which a second factor is added and removed.
func (h secondFactors) addFactorOperations(set *op.Set, m about.Configured, added, codes, toAccount *ordered.Object) {
	failing := formProblems()
	if m.Asked != "" { // and may not be configured
		failing = append(failing, 404)
	}
	path, page := "/auth/factors/"+m.Name, ordered.Of(op.HTMLType, pageContent())
	replies := ordered.Of("200", op.Reply("The secret for the app.", orPage(op.Object("", 3,
		"secret", op.Text("In base32, for typing."), "uri", op.Text("otpauth://totp/..."), "qr",
		op.Text("The URI as a QR code: a data URL of a PNG."))), "Cache-Control"))
	switch {
	case m.Once:
		replies = ordered.Of("200", op.Reply("The factor is added.", orPage(added), "Cache-Control", "Set-Cookie"))
	case m.Sent():
		replies = ordered.Of("200",
			op.Reply("After an HTML form: the recovery codes.", page, "Cache-Control", "Set-Cookie"),
			"202", op.Reply("A mail with a code will be sent.", nil, "Cache-Control"))
	}
	replies.Set("303", toAccount)
	set.Add(op.Operation{
		Method: http.MethodPost, Path: path, ID: cmp.Or(m.API.Begin.ID, "beginFactor"+apimodel.Identifier(m.Name)),
		Summary: cmp.Or(m.API.Begin.Summary, m.Add), Security: op.Needed(),
		Description: cmp.Or(m.API.Begin.Description, "An HTML form confirms the factor with `code`, if it needs one, "+
			"and removes it with `remove`; the reply is 303, or a page that shows the recovery codes."),
		Body: op.Optional(op.Form[factorForm]("code",
			op.Text(cmp.Or(m.API.Code, "The code of a factor that needs one.")))),
		Replies:  replies,
		Problems: failing,
		Limit:    httpkit.Write, Run: ofMethod(h.Handler, h.isForm, m, h.changeFactor),
	})
	if m.Enabled {
		o := op.Operation{
			Method: http.MethodPut, Path: path, ID: cmp.Or(m.API.Put.ID, "confirmFactor"+apimodel.Identifier(m.Name)),
			Summary: cmp.Or(m.API.Put.Summary, m.Add), Security: op.Needed(),
			Description: cmp.Or(m.API.Put.Description, "The session is replaced by one with the second factor. The "+
				"reply has recovery codes if the user lacked them."),
			Parameters: op.Parameters("PreferSession"),
			Body:       op.Form[factorCode]("code", op.Text(m.API.Code)),
			Replies: ordered.Of("200",
				op.Reply("The factor is added.", op.JSON(added), "Cache-Control", "Set-Cookie", "Preference-Applied")),
			Problems: formProblems(),
			Limit:    httpkit.Write, Run: ofMethod(h.Handler, never, m, h.confirmFactor),
		}
		if m.Once {
			o.Parameters, o.Body, o.Run = nil, nil, ofMethod(h.Handler, never, m, h.addFactor)
			o.Replies = ordered.Of("200",
				op.Reply("The factor is added.", op.JSON(op.Object("", 0, "recoveryCodes", codes)), "Cache-Control"))
			o.Problems = []int{401, 403, 409, 429}
		}
		set.Add(o)
	}
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: path, ID: "removeFactor" + apimodel.Identifier(m.Name),
		Summary: "Remove the second factor " + m.Name, Security: op.Needed(),
		Description: "Removing the last factor ends the recovery codes.",
		Replies:     ordered.Of("204", op.Reply("The factor is removed.", nil, "Cache-Control")),
		Problems:    []int{401, 403, 404, 409, 429},
		Limit:       httpkit.Write, Run: h.owner(func(x *httpkit.Exchange, me *sessions.Session) (op.Outcome, error) {
			return op.Outcome{}, h.service.Enrollment.Remove(x.Context(), me, m.Name)
		}),
	})
}

// ofMethod is ownerForm for an operation on a method.
func ofMethod[T any](h *Handler, html func(*httpkit.Exchange) bool, m about.Configured,
	run func(*httpkit.Exchange, *sessions.Session, about.Method, T) (op.Outcome, error)) httpkit.Handler {
	return ownerForm(h, html, func(x *httpkit.Exchange, me *sessions.Session, in T) (op.Outcome, error) {
		return run(x, me, m.Method, in)
	})
}

// addAsk adds the operation that requests the code or challenge of a second factor.
func (h secondFactors) addAsk(set *op.Set, m about.Method) {
	o := op.Operation{
		Method: http.MethodPost, Path: "/auth/second-factor/" + m.Asked,
		ID: cmp.Or(m.API.Ask.ID, "askFor"+apimodel.Identifier(m.Name)), Summary: cmp.Or(m.API.Ask.Summary, m.Ask),
		Security: op.Maybe(), Description: m.API.Ask.Description,
		Body: op.Form[askForm](),
		Replies: ordered.Of("202", op.Reply("A mail with a code will be sent.", nil, "Cache-Control"),
			"303", op.Redirect("After an HTML form: to the page that asks for the code.")),
		Problems: formProblems(),
		Run:      func(x *httpkit.Exchange) error { return h.ask(x, m) },
	}
	if m.Script {
		o.Parameters = op.Parameters("PreferSession")
		o.Replies = ordered.Of("200", op.Reply("For navigator.credentials.get.",
			op.JSON(apimodel.Ref("PasskeyLoginOptions")), "Cache-Control", "Set-Cookie", "Preference-Applied"))
		o.Problems = append(o.Problems, 404)
	}
	set.Add(o)
}

// pageContent is a page, which the document does not describe further.
func pageContent() *ordered.Object { return ordered.Of("schema", op.Text("")) }

// orPage is an object for programs, and a page for HTML forms.
func orPage(schema *ordered.Object) *ordered.Object {
	return ordered.Of(op.JSONType, ordered.Of("schema", schema), "text/html", pageContent())
}
