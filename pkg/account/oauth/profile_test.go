package oauth_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/errs"
	"belfry/test/provider"
)

var idField = map[string]string{"github": "id", "facebook": "id", "google": "sub", "amazon": "user_id",
	"twitter": "id_str", "gitlab": "sub", "discord": "id", "linkedin": "sub"}

func TestUnusableIDs(t *testing.T) {
	ids := []any{
		provider.Absent, nil, "", true, -1, 1.5, json.Number("1e3"), []string{"1"}, map[string]any{"id": 1},
		"line\nbreak", strings.Repeat("x", 256),
	}
	for name, field := range idField {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			for _, id := range ids {
				s.User("1", field, id)
				goes(t, s, client(t, s, name, 0)).mustFail(t, errs.Invalid)
			}
		})
	}
}

// What is no JSON can't be repaired, and what says who the user is must not be: two ids could become one.
func TestUnusableProfiles(t *testing.T) {
	for _, name := range []string{"github", "twitter"} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			for what, profile := range map[string]string{
				"no value":                           `{"id":1,"id_str":"1","a"}`,
				"text behind it":                     `{"id":1,"id_str":"1"}{}`,
				"an id twice":                        `{"id":1,"id_str":"1","id":2,"id_str":"2"}`,
				"an id with half an emoji":           `{"id":"\ud800","id_str":"\ud800"}`,
				"an id with NUL":                     `{"id":"1\u0000","id_str":"1\u0000"}`,
				"an id in Latin-1":                   "{\"id\":\"\xe9\",\"id_str\":\"\xe9\"}",
				"an id with a tab":                   "{\"id\":\"1\t\",\"id_str\":\"1\t\"}",
				"an id with a name that is repaired": "{\"id\\u0000\":1,\"id_str\\u0000\":\"1\"}",
			} {
				s.Up()
				l := goes(t, s, client(t, s, name, 0))
				s.ProfileError(200, profile)
				if err := l.mustFail(t, errs.Invalid); err == nil {
					t.Errorf("%s is accepted", what)
				}
			}
		})
	}
}

// deep nests arrays.
func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// What is not the id keeps nobody out: it is repaired, or left out, and named.
func TestUnusableFieldsAreRepairedOrLeftOut(t *testing.T) {
	groups := `["` + strings.Repeat("g", 1000) + strings.Repeat(`","`+strings.Repeat("g", 1000), 99) + `"]`
	tests := map[string]struct{ sent, want, change string }{
		"half an emoji":           {`"bio":"a\ud83d!"`, `"a\ufffd!"`, "bio: repaired"},
		"the other half":          {`"bio":"\ude00"`, `"\ufffd"`, "bio: repaired"},
		"NUL":                     {`"bio":"a\u0000b"`, `"a\ufffdb"`, "bio: repaired"},
		"a raw NUL":               {"\"bio\":\"a\x00b\"", `"a\ufffdb"`, "bio: repaired"},
		"a raw line break":        {"\"bio\":\"a\nb\"", `"a\nb"`, "bio: repaired"},
		"Latin-1":                 {"\"bio\":\"Jos\xe9\"", `"José"`, "bio: repaired"},
		"Latin-1 beside UTF-8":    {"\"bio\":\"Jos\xe9 é\"", `"José é"`, "bio: repaired"},
		"a character that is cut": {"\"bio\":\"a\x82\"", `"a\ufffd"`, "bio: repaired"},
		"within a list":           {`"bio":[{"a":"\ud800"}]`, `[{"a":"\ufffd"}]`, "bio: repaired"},
		"twice the same":          {`"bio":1,"bio":1`, `1`, ""},
		"twice":                   {`"bio":1,"bio":2`, ``, "bio: left out"},
		"twice within":            {`"bio":{"a":1,"a":2,"b":3}`, `{"b":3}`, "bio: repaired"},
		"an address":              {"\"email\":\"jos\xe9@example.com\"", ``, "email: left out"},
		"a verified address": {`"email":"ada@example.com\u0000","email_verified":true`, ``,
			"email: left out, email_verified: left out"},
		"addresses": {"\"workMails\":[{\"email\":\"ada@ex\xe4mple.com\",\"verified\":true}]", ``,
			"workMails: left out"},
		"another name of it":     {`"Email":"ada@example.com\u0000"`, ``, "a field: left out"},
		"too deep":               {`"bio":` + deep(64), ``, "bio: left out"},
		"deeper than a copy":     {`"bio":` + deep(62), ``, "bio: left out, nested too deep"},
		"far too deep":           {`"bio":` + deep(3000), ``, "bio: left out"},
		"too large":              {`"groups":` + groups, ``, "groups: left out, too large"},
		"a name that is no name": {`"eyJhbGciOiJub25lIn0":"\ud800"`, `"\ufffd"`, "a field: repaired"},
	}
	for _, name := range fetchedNames {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			for what, test := range tests {
				s.Up()
				l := goes(t, s, client(t, s, name, 0))
				s.ProfileError(200,
					`{"id":583231,"id_str":"583231","sub":"583231","user_id":"583231","login":"ada",`+test.sent+`}`)
				id := l.mustFinish(t)
				quoted, _, _ := strings.Cut(test.sent, ":")
				field, err := strconv.Unquote(quoted)
				stored := id.Profile[field]
				if name == "oidc" && field == "email" {
					stored = nil // that of the ID token
				}
				if want := strings.ReplaceAll(test.want, `\ufffd`, "\ufffd"); err != nil || string(stored) != want {
					t.Errorf("%s: the field %s is %s, want %s", what, field, stored, want)
				}
				if login, _ := id.Profile.Text("login"); id.ID != "583231" || login != "ada" {
					t.Errorf("%s: the identity is %q %s", what, id.ID, id.Profile.Encode())
				}
				if got := strings.Join(id.Changes, ", "); got != test.change {
					t.Errorf("%s: the changes are %q, want %q", what, got, test.change)
				}
			}
		})
	}
}

// What is said of an address that is left out is said of no other one.
func TestAVerificationIsThatOfItsAddress(t *testing.T) {
	s := start(t)
	l := goes(t, s, client(t, s, "github", 0))
	s.ProfileError(200, `{"id":583231,"email":"ada@example.com\u0000","email_verified":true}`)
	if id := l.mustFinish(t); id.Profile["email"] != nil || id.Profile["email_verified"] != nil {
		t.Errorf("%s", id.Profile.Encode())
	}
}

// A byte order mark is before the documents of some programs.
func TestAByteOrderMarkIsSkipped(t *testing.T) {
	s := start(t)
	l := goes(t, s, client(t, s, "github", 0))
	s.ProfileError(200, "\ufeff"+`{"id":583231,"bio":"\ud800"}`)
	s.Answer(provider.Emails, 200, "\ufeff"+`[{"email":"ada@example.com"}]`)
	if id := l.mustFinish(t); string(id.Profile["emails"]) != `[{"email":"ada@example.com"}]` ||
		string(id.Profile["bio"]) != "\"\ufffd\"" {
		t.Errorf("%s", id.Profile.Encode())
	}
}

// A document that adds to a profile is left out where the provider does not return it, and what is stored of it stays.
func TestADocumentThatIsRefusedIsLeftOut(t *testing.T) {
	for what, test := range map[string]struct {
		status int
		body   string
	}{
		"forbidden": {403, "no"}, "missing": {404, ""}, "gone": {410, ""}, "empty": {200, ""},
		"no JSON": {200, "<html>"}, "a redirect": {302, ""},
		"two values": {200, `[],"id":1,"id":2`}, "one more member": {200, `[],"login":"eve"`},
		"too deep": {200, deep(100)}, "signed": {200, "eyJhbGciOiJub25lIn0.e30."}, "unauthorized": {401, ""},
	} {
		for name, at := range map[string]provider.Endpoint{"github": provider.Emails, "oidc": provider.Profile} {
			t.Run(what+" "+name, func(t *testing.T) {
				s := start(t)
				l := goes(t, s, client(t, s, name, 0))
				s.Answer(at, test.status, test.body)
				id := l.mustFinish(t)
				if id.ID != "583231" || id.Profile["emails"] != nil || len(id.Changes) != 1 ||
					!strings.Contains(id.Changes[0], "left out") {
					t.Errorf("%q, changes %q: %s", id.ID, id.Changes, id.Profile.Encode())
				}
				if kept := slices.Contains(id.Once, "emails"); kept != (name == "github") {
					t.Errorf("fields that a stored profile keeps: %q", id.Once)
				}
				for _, c := range id.Changes {
					l.free(t, "the change", c)
				}
			})
		}
	}
}

func TestProfilesContainNoTokens(t *testing.T) {
	const secret = "hidden-value"
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		s.User("7",
			"access_token", secret, "id_token", secret, "refreshToken", secret, "Client-Secret", secret, "password",
			secret,
			"nested", map[string]any{"list": []any{1, map[string]any{"oauth_token": secret, "kept": "kept-value"}}},
			"large", json.Number("12345678901234567890123"), "empty", []any{}, "none", map[string]any{},
		)
		l := goes(t, s, client(t, s, name, 0))
		id := l.mustFinish(t)
		text := string(id.Profile.Encode())
		l.free(t, "the profile", text)
		if strings.Contains(text, secret) {
			t.Errorf("the profile contains tokens: %s", text)
		}
		want := `{"list":[1,{"kept":"kept-value"}]}`
		if got := string(id.Profile["nested"]); got != want {
			t.Errorf("nested is %s, not %s", got, want)
		}
		large := "12345678901234567890123"
		if slices.Contains(siteNames, name) {
			large = strconv.Quote(large) // the library that makes the ID token has no other numbers of this size
		}
		if got := string(id.Profile["large"]) + string(id.Profile["empty"]) + string(id.Profile["none"]); got != large+
			"[]{}" {
			t.Errorf("other fields are %s", got)
		}
	})
}
