package login

import (
	"net/http"
	"slices"

	"belfry/internal/ordered"
	"belfry/pkg/apimodel"
	"belfry/pkg/httpkit"
	"belfry/pkg/op"
)

// Operations adds the operations below /auth, if there are accounts.
func Operations(set *op.Set, h *Handler) {
	l := set.Contract.Login
	if l.Users == nil {
		return
	}
	set.Around(h.inLanguage)
	defer set.Around(nil)
	addComponents(set)
	set.Tag("Login", "Logging in, and one's account.")
	set.Get(op.Operation{
		Path: "/auth", ID: "listProviders", Summary: "List the ways to log in", Security: op.Open(),
		Replies: ordered.Of("200", op.Reply("The configured providers.",
			op.JSON(op.Object("", 1, "providers", op.List(apimodel.Ref("Provider")))), "Cache-Control")),
		Run: h.providers,
	})
	set.Add(op.Operation{
		Method: http.MethodDelete, Path: "/auth", ID: "logout", Summary: "Log out",
		Replies: ordered.Of("204",
			op.Reply("The session has ended, if there was one.", nil, "Cache-Control", "Set-Cookie")),
		Problems: []int{401, 403, 409, 429}, Limit: httpkit.Write, Run: h.logout(false),
	})
	set.Add(op.Operation{
		Method: http.MethodPost, Path: "/auth/logout", ID: "logoutForm", Summary: "Log out, by an HTML form",
		Replies:  ordered.Of("303", op.Redirect("To the page of a successful login.", "Set-Cookie")),
		Problems: []int{401, 403, 409, 429}, Limit: httpkit.Write, Run: h.logout(true),
	})
	set.Get(op.Operation{
		Path: "/auth/me", ID: "getMe", Summary: "Read the logged-in user", Security: op.Needed(),
		Replies:  ordered.Of("200", op.ObjectReply(l.Users, "The user.")),
		Problems: []int{401, 429}, Limit: httpkit.Read, Run: h.me,
	})
	h.addProfile(set)
	h.addSessions(set)
	if l.KeepsTokens {
		byProvider{h}.addProviderToken(set)
	}
	h.addActivity(set)
	h.addKeys(set)
	secondFactors{h}.addFactors(set)
	h.addDeletion(set)
	h.addExport(set)
	if l.Email {
		mails{h}.addEmail(set)
		mails{h}.addAddress(set)
	}
	if l.MailLogin {
		mails{h}.addMailLogin(set)
	}
	if l.Passkeys {
		passkeyRoutes{h}.addPasskeys(set)
	}
	for _, m := range l.Methods {
		if m.Enabled && m.Login && !m.Script {
			h.addLoginBy(set, m.Method)
		}
	}
	for _, name := range l.Providers {
		byProvider{h}.addProvider(set, name)
	}
	byProvider{h}.addCallback(set)
	if l.Applications {
		applicationRoutes{h}.addApplications(set)
	}
}

// formProblems are the problems of a request with a form or a JSON object.
func formProblems(more ...int) []int {
	return slices.Concat([]int{400, 401, 403, 408, 409, 413, 415, 429}, more)
}

// issuedReply is the response with a session that has just begun.
func issuedReply(description string) *ordered.Object {
	return op.Reply(description, op.JSON(apimodel.Ref("IssuedSession")), "Cache-Control", "Set-Cookie",
		"Preference-Applied")
}

// writtenReply is the response without a body to a write whose consequences the client may have waited for.
func writtenReply(description string) *ordered.Object {
	return op.Reply(description, nil, "Cache-Control", "Preference-Applied")
}

// sessionReply is the response without a body to a login, whose session is in the cookie.
func sessionReply(description string) *ordered.Object {
	return op.Reply(description, nil, "Cache-Control", "Set-Cookie", "Preference-Applied")
}

// pageRedirect is the response to an HTML form that redirects to another page.
func pageRedirect(headers ...string) *ordered.Object {
	return op.Redirect("After an HTML form: to the next page.", headers...)
}
