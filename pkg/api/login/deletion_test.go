package login_test

import (
	"strings"
	"testing"
	"time"

	"belfry/config"
	"belfry/pkg/account"
	"belfry/pkg/api/apitest"
)

// deletable lets users delete their accounts.
func deletable(grace time.Duration) func(*account.Options) {
	return func(o *account.Options) { o.Deletion = &config.Deletion{Grace: grace} }
}

type deletionReply struct{ Planned, Deleted, Token string }

func TestAnAccountIsDeletedByItsUser(t *testing.T) {
	both := apitest.StartLogin(t, 2, deletable(time.Hour))
	here, there := both[0], both[1]
	session := here.Register("ada@example.com", "a fine password")
	other := there.LogIn("ada@example.com", "a fine password")
	bearer := func(token string) []string { return []string{"Authorization", "Bearer " + token} }
	here.Do("GET", "/auth/deletion", "", bearer(session)...).Want(404)
	here.Do("DELETE", "/auth/deletion", "", bearer(session)...).Want(404)
	for _, body := range []string{`{}`, `{"password":"a wrong password"}`, `{"password":null}`} {
		here.Do("POST", "/auth/deletion", body, bearer(session)...).Want(403)
	}
	for _, body := range []string{``, `{"password":1}`, `{"password":"a fine password","sure":true}`, `[]`} {
		here.Do("POST", "/auth/deletion", body, bearer(session)...).Want(400)
	}
	for _, method := range []string{"POST", "GET", "DELETE"} {
		here.Do(method, "/auth/deletion", `{"password":"a fine password"}`).Want(401)
	}
	// A page of another origin can't, with the cookie of who is logged in.
	for _, method := range []string{"POST", "DELETE"} {
		here.Do(method, "/auth/deletion", `{"password":"a fine password"}`, "Cookie", "belfry="+session, "Origin",
			"https://evil.example", "Sec-Fetch-Site", "cross-site").Want(403)
	}
	there.Me(other).Want(200)

	var planned deletionReply
	r := here.Do("POST", "/auth/deletion", `{"password":"a fine password"}`,
		bearer(session)...).Want(202).HasHeader("Cache-Control", "no-store")
	r.JSON(&planned)
	next := apitest.Token(r)
	if planned.Deleted <= planned.Planned || planned.Token != "" {
		t.Error(r.Text)
	}
	here.Me(session).Want(401)
	there.Me(other).Want(401)
	var read deletionReply
	there.Do("GET", "/auth/deletion", "", bearer(next)...).Want(200).HasHeader("Cache-Control", "no-store").JSON(&read)
	if read != (deletionReply{Planned: planned.Planned, Deleted: planned.Deleted}) {
		t.Error(read)
	}
	if me := there.Me(next).Want(200); strings.Contains(me.Text, "_delet") {
		t.Error(me.Text)
	}
	there.Do("DELETE", "/auth/deletion", "", bearer(next)...).Want(204)
	here.Do("GET", "/auth/deletion", "", bearer(next)...).Want(404)

	// A program gets the token that replaces its own.
	r = here.Do("POST", "/auth/deletion", `{"password":"a fine password"}`, "Authorization", "Bearer "+next, "Prefer",
		"return=representation").Want(202)
	r.HasHeader("Preference-Applied", "return=representation").JSON(&planned)
	here.Me(planned.Token).Want(200)
	here.Do("POST", "/auth/keys", `{"name":"deploy","password":"a fine password"}`, bearer(planned.Token)...).Want(409)
}

func TestAnAccountIsDeletedWithoutDelay(t *testing.T) {
	f := apitest.StartLogin(t, 1, deletable(0))[0]
	session := f.Register("ada@example.com", "a fine password")
	r := f.Do("POST", "/auth/deletion", `{"password":"a fine password"}`, "Cookie", "belfry="+session, "Prefer",
		"return=representation").Want(202)
	if cookies := r.Cookies(); len(cookies) != 1 || cookies[0].MaxAge >= 0 || strings.Contains(r.Text, "token") {
		t.Error("there is a session", r.Header, r.Text)
	}
	f.Me(session).Want(401)
	f.Do("POST", "/auth/email", apitest.Ada).Want(404)
}

func TestAccountsAreDeletedWhereThatIsConfigured(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	f.Do("POST", "/auth/deletion", `{"password":"a fine password"}`, "Authorization", "Bearer "+session).Want(405)
	f.Do("GET", "/auth/deletion", "", "Authorization", "Bearer "+session).Want(404)
}
