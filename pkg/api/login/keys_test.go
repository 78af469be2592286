package login_test

import (
	"strings"
	"testing"

	"belfry/pkg/account/keys"
	"belfry/pkg/api/apitest"
)

type madeKey struct {
	keys.Info
	Token string
}

// makeKey makes an API key with a session.
func makeKey(f *apitest.Front, session, body string) (k madeKey) {
	f.Helper()
	f.Do("POST", "/auth/keys", body, "Authorization", "Bearer "+session).Want(201).HasHeader("Cache-Control",
		"no-store").JSON(&k)
	return k
}

func TestAPIKeysOverHTTP(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	bob := f.Register("bob@example.com", "a fine password")
	k := makeKey(f, session, `{"name":"deploy","password":"a fine password","expires":"2999-01-02T03:04:05Z"}`)
	if k.Name != "deploy" || k.Token == "" || k.Expires != "2999-01-02T03:04:05.000000Z" {
		t.Fatalf("%+v", k)
	}
	if mine, key := f.Me(session).Want(200), f.Me(k.Token).Want(200); mine.Text != key.Text {
		t.Errorf("%s, by the key %s", mine.Text, key.Text)
	}
	var list struct{ Keys []keys.Info }
	r := f.Do("GET", "/auth/keys", "", "Authorization", "Bearer "+session).Want(200).HasHeader("Cache-Control",
		"no-store")
	if r.JSON(&list); len(list.Keys) != 1 || list.Keys[0].ID != k.ID || strings.Contains(r.Text, k.Token[22:]) ||
		strings.Contains(r.Text, "token") {
		t.Errorf("%s", r.Text)
	}
	for _, c := range []struct {
		body    string
		want    int
		pointer string
	}{
		{`{"name":"x"}`, 403, ""},
		{`{"name":"x","password":"a wrong password"}`, 403, ""},
		{`{"password":"a fine password"}`, 400, "/name"},
		{`{"name":7,"password":"a fine password"}`, 400, "/name"},
		{`{"name":"x","password":"a fine password","expires":"tomorrow"}`, 400, "/expires"},
		{`{"name":"x","password":"a fine password","expires":"2001-01-01T00:00:00Z"}`, 400, "/expires"},
		{`{"name":"x","password":"a fine password","rule":"object.x"}`, 400, "/rule"},
		{`{"name":"x","password":"a fine password","rule":""}`, 400, "/rule"},
		{`{"name":"x","password":"a fine password","expires":""}`, 400, "/expires"},
		{`{"name":"x","password":"a fine password","scope":"all"}`, 400, "/scope"},
	} {
		r := f.Do("POST", "/auth/keys", c.body, "Authorization", "Bearer "+session).Want(c.want)
		if c.pointer != "" && (len(r.Problem().Errors) != 1 || r.Problem().Errors[0].Pointer != c.pointer) {
			t.Errorf("%s: %s", c.body, r.Text)
		}
	}
	f.Do("POST", "/auth/keys", `{"name":"x"}`).Want(401)
	f.Do("GET", "/auth/keys", "").Want(401)
	f.Do("POST", "/auth/keys", `{"name":"x","password":"a fine password"}`, "Cookie", "belfry="+session,
		"Sec-Fetch-Site", "cross-site").Want(403)
	f.Do("DELETE", "/auth/keys/"+k.ID, "", "Authorization", "Bearer "+bob).Want(404)
	f.Do("DELETE", "/auth/keys/"+session[:22], "", "Authorization", "Bearer "+session).Want(404)
	f.Do("DELETE", "/auth/sessions/"+k.ID, "", "Authorization", "Bearer "+session).Want(404)
	f.Me(k.Token).Want(200)
	f.Do("DELETE", "/auth/keys/"+k.ID, "", "Authorization", "Bearer "+session).Want(204)
	f.Me(k.Token).Want(401)
}

func TestAnAPIKeyManagesNoAccount(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	k := makeKey(f, session, `{"name":"deploy","password":"a fine password"}`)
	for _, c := range [][3]string{
		{"GET", "/auth/keys", ""},
		{"POST", "/auth/keys", `{"name":"x","password":"a fine password"}`},
		{"DELETE", "/auth/keys/" + k.ID, ""},
		{"GET", "/auth/sessions", ""},
		{"DELETE", "/auth/sessions/" + session[:22], ""},
		{"DELETE", "/auth/idents/ada@example.com_email", ""},
		{"DELETE", "/auth", ""},
		{"PUT", "/auth/email", `{"password":"a fine password","newPassword":"a better password"}`},
		{"POST", "/auth/email", `{"register":true,"login":"more@example.com","password":"a fine password"}`},
		{"POST", "/auth/email", apitest.Ada},
		{"POST", "/auth/email/recovery", `{"login":"ada@example.com"}`},
	} {
		r := f.Do(c[0], c[1], c[2], "Authorization", "Bearer "+k.Token).Want(403)
		if !strings.Contains(r.Problem().Detail, "an API key can't do this") || len(r.Cookies()) > 0 {
			t.Errorf("%s %s: %s", c[0], c[1], r.Text)
		}
	}
	f.Me(k.Token).Want(200)
	f.Me(session).Want(200)
	// As a cookie it is nobody's.
	f.Do("GET", "/auth/me", "", "Cookie", "belfry="+k.Token).Want(401)
}

func TestTheRuleOfAnAPIKeyHoldsForEveryRoute(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	session := f.Register("ada@example.com", "a fine password")
	k := makeKey(f, session,
		`{"name":"books","password":"a fine password","rule":"path.startsWith('/books/') && method != 'DELETE'"}`)
	f.Create("emma")
	for _, c := range []struct {
		method, path string
		want         int
	}{
		{"GET", "/books/emma", 200}, {"PUT", "/books/emma", 200}, {"DELETE", "/books/emma", 403},
		{"POST", "/books", 403}, {"GET", "/books", 403}, {"GET", "/auth/me", 403},
		{"GET", "/authors/x", 403}, {"GET", "/books/%65mma", 200}, {"GET", "/b%6Foks/emma", 404},
		{"GET", "/authors/..%2F..%2Fbooks%2Femma", 400}, {"PATCH", "/authors/x", 403}, {"DELETE", "/auth", 403},
	} {
		body := ""
		if c.method == "PUT" || c.method == "POST" || c.method == "PATCH" {
			body = `{}`
		}
		r := f.Do(c.method, c.path, body, "Authorization", "Bearer "+k.Token)
		if r.StatusCode != c.want {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.path, r.StatusCode, c.want, r.Text)
		}
	}
}
