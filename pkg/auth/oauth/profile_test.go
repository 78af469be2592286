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

var idField = map[string]string{"github": "id", "facebook": "id", "google": "sub", "amazon": "user_id", "twitter": "id_str", "gitlab": "sub", "discord": "id", "linkedin": "sub"}

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

// A profile becomes an object, so it must be a valid one.
func TestUnusableProfiles(t *testing.T) {
	for _, name := range []string{"github", "twitter"} {
		t.Run(name, func(t *testing.T) {
			s := start(t)
			for _, rest := range []string{
				`"a":1,"a":2`, `"a":{"b":1,"b":2}`, `"a":"\u0000"`, "\"a\":\"\x00\"", `"a":"\ud800"`, "\"a\":\"\xff\"", `"a"`,
				`"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64),
			} {
				s.Up()
				l := goes(t, s, client(t, s, name, 0))
				s.ProfileError(200, `{"id":1,"id_str":"1",`+rest+`}`)
				l.mustFail(t, errs.Invalid)
			}
		})
	}
}

func TestProfilesContainNoTokens(t *testing.T) {
	const secret = "hidden-value"
	each(t, allNames, func(t *testing.T, s *provider.Server, name string) {
		s.User("7",
			"access_token", secret, "id_token", secret, "refreshToken", secret, "Client-Secret", secret, "password", secret,
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
		if got := string(id.Profile["large"]) + string(id.Profile["empty"]) + string(id.Profile["none"]); got != large+"[]{}" {
			t.Errorf("other fields are %s", got)
		}
	})
}
