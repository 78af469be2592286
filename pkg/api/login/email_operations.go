package login

import (
	"net/http"
	"slices"

	"belfry/internal/ordered"
	"belfry/pkg/api/kit"
	"belfry/pkg/op"
)

// addEmail adds the operations of the provider email.
func (h *Handler) addEmail(set *op.Set) {
	unknown := []int{404}
	if set.Contract.Login.Uniform {
		unknown = nil
	}
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/email", ID: "login", Summary: "Log in, or register", Security: op.Maybe(),
		Description: "Other fields are set on the user who registers. The reply to an HTML form is 303; one with `newPassword`, which can't PUT, changes the password of who is logged in.",
		Parameters:  op.Parameters("PreferSession"),
		Body: op.InHTML(op.OpenForm([]string{"password"}, "login", loginField(), "password", op.Password("8 to 1024 bytes, and not a weak one, when one is chosen."),
			"register", op.Flag("true to register."),
			"token", op.Text("That of the validation mail.")), []string{},
			"newPassword", op.Password("The new password of who is logged in."), "authorize", op.Text("The query of the page by which an application logs in.")),
		Replies: ordered.Of(
			"200", issuedReply("Logged in, where `Prefer: return=representation` was sent: for programs, which keep the token."),
			"202", done("A mail will be sent."),
			"204", begun("Logged in."),
			"303", continued("Set-Cookie", "Preference-Applied"),
		),
		Problems: slices.Concat(formProblems(unknown...), op.InterceptorProblems(set.Contract.Login.Users, "register")),
		Run:      h.email,
	})
	set.Add(op.Operation{
		Method: http.MethodPut, Path: "/auth/email", ID: "changePassword", Summary: "Change one's password", Security: op.Needed(),
		Parameters: op.Parameters("PreferSession"),
		Body: op.Form([]string{"newPassword"}, "password", op.Password("The present one, if there is one."),
			"newPassword", op.Password("8 to 1024 bytes, and not a weak one.")),
		Replies: ordered.Of(
			"200", issuedReply("It is changed, where `Prefer: return=representation` was sent."),
			"204", op.Reply("It is changed, and the other sessions have ended.", nil, "Cache-Control", "Set-Cookie"),
		),
		Problems: formProblems(404),
		Run:      h.changePassword,
	})
	mail := func(path, id, summary string, run kit.Handler, more string, html ...any) {
		set.Add(op.Operation{
			Method: http.MethodPost, Path: path, ID: id, Summary: summary, Security: op.Maybe(),
			Description: "The reply does not reveal whether there is an account. That to an HTML form is 303." + more,
			Body:        op.InHTML(op.Form(nil, "login", loginField()), nil, html...),
			Replies: ordered.Of(
				"202", op.Reply("If there is an account, a mail will be sent.", nil, "Cache-Control"),
				"303", continued(),
			),
			Problems: formProblems(), Run: run,
		})
	}
	mail("/auth/email/validation", "resendValidation", "Send the validation mail again", h.resendValidation, "")
	mail("/auth/email/recovery", "forgotPassword", "Ask for a mail to set a new password", h.requestRecovery,
		" With `token` and `password` an HTML form, which can't PUT, sets the new password here.",
		"token", op.Text("That of the mail."), "password", op.Password("The new one."))
	set.Add(op.Operation{
		Method: http.MethodPut, Path: "/auth/email/recovery", ID: "recoverPassword", Summary: "Set a new password", Security: op.Maybe(),
		Parameters: op.Parameters("Prefer"),
		Body: op.Form([]string{"token", "password"}, "login", loginField(), "token", op.Text("That of the mail."),
			"password", op.Password("The new one: 8 to 1024 bytes, and not a weak one.")),
		Replies:  ordered.Of("204", done("It is set, and every session has ended.")),
		Problems: formProblems(404),
		Run:      h.recover,
	})
	set.Add(op.Operation{
		Method: http.MethodGet, Path: "/auth/email/callback", ID: "followMail", Summary: "Follow the link of a mail",
		Description: "For browsers.",
		Parameters:  []any{op.Query("login", "", op.Text("")), op.Query("token", "", op.Text(""))},
		Replies:     ordered.Of("302", op.Redirect("To the page that continues the flow.")),
		Navigation:  true, Run: h.followLink,
	})
}
