package login_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/apitest"
	"belfry/pkg/object"
	"belfry/pkg/store"
	"belfry/pkg/store/policy"
)

// prefer is the header by which a program asks for the token.
const prefer = "return=representation"

type issued struct {
	Token   string
	Expires time.Time
	User    json.RawMessage
}

func TestAProgramIsRepliedTheTokenOfItsSession(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	token := ""
	for _, c := range []struct{ name, method, path, body, password string }{
		{"registration", "POST", "/auth/email",
			`{"register":true,"login":"ada@example.com","password":"a fine password","name":"Ada"}`, ""},
		{"login", "POST", "/auth/email", apitest.Ada, ""},
		{"another address", "POST", "/auth/email",
			`{"register":true,"login":"ada@example.org","password":"a fine password"}`, "bearer"},
		{"change of the password", "PUT", "/auth/email",
			`{"password":"a fine password","newPassword":"a better password"}`, "bearer"},
	} {
		headers := []string{"Prefer", prefer}
		if c.password != "" {
			headers = append(headers, "Authorization", "Bearer "+token)
		}
		r := f.Do(c.method, c.path, c.body, headers...).Want(200)
		r.HasHeader("Preference-Applied", prefer).HasHeader("Cache-Control", "no-store").HasHeader("Content-Type",
			"application/json")
		var got issued
		r.JSON(&got)
		if got.Token == "" || got.Token != apitest.Token(r) {
			t.Errorf("%s: the token is %q, the cookie %q", c.name, got.Token, apitest.Token(r))
		}
		if left := time.Until(got.Expires); left <= 0 || left > sessions.SessionIdleTimeout {
			t.Errorf("%s: the session expires in %v", c.name, left)
		}
		if me := f.Me(got.Token).Want(200); me.Text != string(got.User) {
			t.Errorf("%s: the user is %s, and %s for /auth/me", c.name, got.User, me.Text)
		}
		token = got.Token
	}
}

func TestTheTokenIsInNoOtherReply(t *testing.T) {
	f := apitest.StartLogin(t, 1)[0]
	token := f.Register("ada@example.com", "a fine password")
	for _, c := range []struct {
		name, body string
		want       int
		headers    []string
	}{
		{"without the preference", apitest.Ada, 204, nil},
		{"another preference", apitest.Ada, 204, []string{"Prefer", "return=minimal"}},
		{"the first of two counts", apitest.Ada, 204, []string{"Prefer", "return=minimal, " + prefer}},
		{"an unknown value", apitest.Ada, 204, []string{"Prefer", "return=representations"}},
		{"a parameter of another", apitest.Ada, 204, []string{"Prefer", "x; " + prefer}},
		{"a wrong password", `{"login":"ada@example.com","password":"a wrong password"}`, 403,
			[]string{"Prefer", prefer}},
		{"a wrong password beside a session", `{"login":"ada@example.com","password":"a wrong password"}`, 403,
			[]string{"Prefer", prefer, "Authorization", "Bearer " + token}},
		{"an unknown login", `{"login":"bob@example.com","password":"a fine password"}`, 404,
			[]string{"Prefer", prefer}},
		{"a form", "login=ada%40example.com&password=a+fine+password", 303,
			[]string{"Prefer", prefer, "Content-Type", "", "Content-Type", formType}},
		{"another origin", apitest.Ada, 403, []string{"Prefer", prefer, "Sec-Fetch-Site", "cross-site"}},
	} {
		r := f.Do("POST", "/auth/email", c.body, c.headers...).Want(c.want).HasHeader("Preference-Applied", "")
		if strings.Contains(r.Text, "token\":") || strings.Contains(r.Text, token) {
			t.Errorf("%s: %s", c.name, r.Text)
		}
	}
	f.Me(token).Want(200) // a failed login ends no session
}

// refusing rejects every get.
type refusing struct{}

func (refusing) Intercept(_ context.Context, r store.InterceptRequest) (object.Object, error) {
	if r.Op == "get" {
		return nil, errors.New("refused")
	}
	return nil, nil
}

func TestTheUserOfALoginIsWhatAGetShows(t *testing.T) {
	compiled, problems := policy.Compile(policy.Rules{Get: "false"})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	fields, found := policy.CompileFields(policy.Rules{Users: true},
		map[string]policy.FieldRule{"note": {Read: "!isOwner"}})
	if len(found) > 0 {
		t.Fatal(found)
	}
	for _, c := range []struct {
		name   string
		change func(*store.Options)
		shown  bool // more than the uuid
	}{
		{"a private field", func(o *store.Options) { o.Private = append(o.Private, "note") }, true},
		{"a read rule", func(o *store.Options) { o.Fields = fields }, true},
		{"a policy of get", func(o *store.Options) { o.Policy = compiled }, false},
		{"an interceptor of get", func(o *store.Options) { o.Interceptor = refusing{} }, false},
	} {
		f := apitest.StartLogin(t, 1, func(o *account.Options) { o.Users = o.Users.WithOptions(c.change) })[0]
		var got issued
		f.Do("POST", "/auth/email",
			`{"register":true,"login":"ada@example.com","password":"a fine password","name":"Ada","note":"secret"}`,
			"Prefer", prefer).Want(200).JSON(&got)
		var user map[string]any
		f.Must(json.Unmarshal(got.User, &user))
		if user["uuid"] == nil || (user["name"] != nil) != c.shown || user["note"] != nil || user["password"] != nil ||
			user["_epoch"] != nil {
			t.Errorf("%s: %s", c.name, got.User)
		}
		if !c.shown && len(user) != 1 {
			t.Errorf("%s: %s", c.name, got.User)
		}
	}
}
