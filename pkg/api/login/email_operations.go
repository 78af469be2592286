package login

import (
	"net/http"
	"slices"

	"belfry/internal/ordered"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// addEmail adds the operations of the provider email.
func (h mails) addEmail(set *op.Set) {
	unknown := []int{404}
	if set.Contract.Login.Uniform {
		unknown = nil
	}
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/email", ID: "login", Summary: "Log in, or register", Security: op.Maybe(),
		Description: "Other fields are set on the user who registers. The reply to an HTML form is 303; a form with " +
			"`newPassword`, which can't PUT, changes the logged-in user's password.",
		Parameters: op.Parameters("PreferSession"),
		Body:       op.Form[emailForm](),
		Replies: ordered.Of(
			"200", issuedReply("Logged in, with `Prefer: return=representation`: for programs, which keep the token."),
			"202", writtenReply("A mail will be sent."),
			"204", sessionReply("Logged in."),
			"303", pageRedirect("Set-Cookie", "Preference-Applied"),
		),
		Problems: slices.Concat(formProblems(unknown...), op.InterceptorProblems(set.Contract.Login.Users, "register")),
		Run:      anybody(h.Handler, op.IsHTML, h.email),
	})
	set.Add(op.Operation{
		Method: http.MethodPut, Path: "/auth/email", ID: "changePassword", Summary: "Change one's password",
		Security: op.Needed(), Parameters: op.Parameters("PreferSession"),
		Body: op.Form[passwordForm](),
		Replies: ordered.Of(
			"200", issuedReply("The password is changed, with `Prefer: return=representation`."),
			"204", op.Reply("The password is changed, and the other sessions have ended.", nil, "Cache-Control",
				"Set-Cookie"),
		),
		Problems: formProblems(404),
		Run:      ownerForm(h.Handler, never, h.changePassword),
	})
	mail := func(path, id, summary string, run httpkit.Handler, body *ordered.Object, more string) {
		set.Add(op.Operation{
			Method: http.MethodPost, Path: path, ID: id, Summary: summary, Security: op.Maybe(),
			Description: "The reply does not reveal whether there is an account. The reply to an HTML form is 303." +
				more,
			Body: body,
			Replies: ordered.Of(
				"202", op.Reply("If there is an account, a mail will be sent.", nil, "Cache-Control"),
				"303", pageRedirect(),
			),
			Problems: formProblems(), Run: run,
		})
	}
	mail("/auth/email/validation", "resendValidation", "Send the validation mail again",
		anybody(h.Handler, op.IsHTML, h.resendValidation), op.Form[addressOnly](), "")
	mail("/auth/email/recovery", "forgotPassword", "Request a mail to set a new password",
		anybody(h.Handler, op.IsHTML, h.requestRecovery), op.Form[mailForm](),
		" With `token` and `password` an HTML form, which can't PUT, sets the new password here.")
	set.Add(op.Operation{
		Method: http.MethodPut, Path: "/auth/email/recovery", ID: "recoverPassword", Summary: "Set a new password",
		Security: op.Maybe(), Parameters: op.Parameters("Prefer"),
		Body:     op.Form[recoveryForm](),
		Replies:  ordered.Of("204", writtenReply("The password is set, and every session has ended.")),
		Problems: formProblems(404),
		Run:      anybody(h.Handler, never, h.recover),
	})
	set.Add(op.Operation{
		Method: http.MethodGet, Path: "/auth/email/callback", ID: "followMail", Summary: "Follow the link of a mail",
		Description: "For browsers.",
		Parameters:  []any{op.Query("login", "", op.Text("")), op.Query("token", "", op.Text(""))},
		Replies:     ordered.Of("302", op.Redirect("To the page that continues the flow.")),
		Navigation:  true, Run: h.followLink,
	})
}
