package login

import (
	"cmp"
	"context"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/account"
	"belfry/pkg/account/method/about"
	"belfry/pkg/api/kit"
	"belfry/pkg/apidoc/model"
	"belfry/pkg/op"
)

// loginByPasskey logs in by a passkey.
func (h *Handler) loginByPasskey(x *kit.Exchange) error {
	return h.loginBy(x, h.service.Passkeys.About())
}

// loginBy logs in by a method that has no route of its own: with an address and a code, or by what a script answers.
func (h *Handler) loginBy(x *kit.Exchange, m about.Method) error {
	f, err := readForm(x)
	if err == nil {
		if request, ok := f.takeRequest(); ok {
			return h.enterForApplication(x, f, request, func(x *kit.Exchange, f form, app *account.Application, _ bool) (account.IssuedSession, error) {
				_, session, err := h.logInBy(x, f, m, func(x *kit.Exchange) (account.Client, error) { return h.clientFor(x, app) })
				return session, err
			})
		}
		err = h.enterBy(x, f, m)
	}
	return h.replyToLogin(x, f, err, m.Name)
}

// enterBy logs in by the answer in a form. The reply to an HTML form that succeeded is left to the caller.
func (h *Handler) enterBy(x *kit.Exchange, f form, m about.Method) error {
	ctx, session, err := h.logInBy(x, f, m, h.client)
	if err != nil {
		return err
	}
	if f.html {
		h.cookies.setSession(x, session)
		return nil
	}
	return h.sendSession(ctx, x, session)
}

// logInBy logs in by the answer in a form, for a client. It returns the context of the call.
func (h *Handler) logInBy(x *kit.Exchange, f form, m about.Method, clientOf func(*kit.Exchange) (account.Client, error)) (ctx context.Context, session account.IssuedSession, err error) {
	login, answer := "", account.SecondFactor{}
	if m.Script {
		answer.Signed, err = h.takeAnswer(x, f)
	} else if login, err = f.takeLogin(); err == nil {
		answer.Code, err = f.takeOne("code")
	}
	if err != nil {
		return nil, session, err
	}
	client, err := clientOf(x)
	if err != nil {
		return nil, session, err
	}
	ctx, _, err = h.calls.Write(x, func(ctx context.Context) (err error) {
		session, err = h.service.Login.LoginBy(ctx, m.Name, login, answer, client)
		return err
	})
	return ctx, session, err
}

// replyToLogin replies to a login, unless that was done.
func (h *Handler) replyToLogin(x *kit.Exchange, f form, err error, method string) error {
	switch {
	case h.repeated(x, err, f.html):
	case !f.html:
		return h.stepError(x, err)
	case h.toSecondFactor(x, err, http.StatusSeeOther):
	case err != nil:
		return h.redirectFailure(x, err, formReason(err))
	case !x.Replied():
		redirect(x, http.StatusSeeOther, withQuery(h.success, "validation", method))
	}
	return nil
}

// addLoginBy adds the operation of a login by an address and a code.
func (h *Handler) addLoginBy(set *op.Set, m about.Method) {
	problems := formProblems()
	if !set.Contract.Login.Uniform {
		problems = append(problems, 404)
	}
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/" + m.Name, ID: "loginBy" + model.Identifier(m.Name), Summary: "Log in by " + m.Name, Security: op.Maybe(),
		Description: "The reply to an HTML form is 303.",
		Parameters:  op.Parameters("PreferSession"),
		Body: op.InHTML(op.Form([]string{"code"}, "login", loginField(), "code", op.Text(cmp.Or(m.API.Code, m.Answer+"."))), []string{},
			"authorize", op.Text("The query of the page by which an application logs in.")),
		Replies: ordered.Of(
			"200", issuedReply("Logged in, where `Prefer: return=representation` was sent."),
			"204", begun("Logged in."),
			"303", continued("Set-Cookie", "Preference-Applied"),
		),
		Problems: problems,
		Run:      func(x *kit.Exchange) error { return h.loginBy(x, m) },
	})
}
