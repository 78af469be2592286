package login

import (
	"cmp"
	"context"
	"net/http"

	"belfry/internal/ordered"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/about"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

type codeForm struct {
	op.Input
	Login     string  `form:"login,or=email" doc:"The address"`
	Code      string  `form:"code,required=program"`
	Authorize *string `form:"authorize,html" doc:"The query of the page by which an application logs in."`
}

// addLoginBy adds the operation of a login by an address and a code.
func (h *Handler) addLoginBy(set *op.Set, m about.Method) {
	problems := formProblems()
	if !set.Contract.Login.Uniform {
		problems = append(problems, 404)
	}
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/" + m.Name, ID: "loginBy" + apimodel.Identifier(m.Name),
		Summary: "Log in by " + m.Name, Security: op.Maybe(), Description: "The reply to an HTML form is 303.",
		Parameters: op.Parameters("PreferSession"),
		Body:       op.Form[codeForm]("code", op.Text(cmp.Or(m.API.Code, m.Answer+"."))),
		Replies: ordered.Of(
			"200", issuedReply("Logged in, with `Prefer: return=representation`."),
			"204", sessionReply("Logged in."),
			"303", pageRedirect("Set-Cookie", "Preference-Applied"),
		),
		Problems: problems,
		Run: anybody(h, op.IsHTML, func(x *httpkit.Exchange, in codeForm) (op.Outcome, error) {
			return h.loginBy(x, m, in.Input, in.Authorize, in.Login,
				func() (method.Answer, error) { return method.Answer{Code: in.Code}, nil })
		}),
	})
}

// loginBy logs in by a method that has no route of its own: with an address and a code, or with the answer of a script.
// authorize is the request of an application, nil for none.
func (h *Handler) loginBy(x *httpkit.Exchange, m about.Method, in op.Input, authorize *string, login string,
	answerOf func() (method.Answer, error)) (op.Outcome, error) {
	logIn := func(client sessions.Client) (session sessions.Issued, err error) {
		answer, err := answerOf()
		if err != nil {
			return session, err
		}
		err = h.write(x, func(ctx context.Context) (err error) {
			session, err = h.service.Login.LoginBy(ctx, m.Name, login, answer, client)
			return err
		})
		return session, err
	}
	if authorize != nil {
		return applicationRoutes{h}.enterForApplication(x, *authorize, "", false,
			func(app *record.Application) (session sessions.Issued, _ bool, err error) {
				client, err := applicationRoutes{h}.clientFor(x, app)
				if err == nil {
					session, err = logIn(client)
				}
				return session, false, err
			})
	}
	client, err := h.client(x)
	if err != nil {
		return op.Outcome{}, err
	}
	session, err := logIn(client)
	if err != nil {
		return op.Outcome{}, err
	}
	return h.begun(x, in.HTML, session, withQuery(h.SuccessRedirect, "validation", m.Name))
}
