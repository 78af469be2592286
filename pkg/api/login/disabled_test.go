package login_test

import (
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/api/apitest"
)

// Whoever does not know the password gets the same replies for a disabled account as for one that is not.
func TestADisabledAccountLooksLikeAnyOtherToStrangers(t *testing.T) {
	for _, uniform := range []bool{false, true} {
		both := apitest.StartLogin(t, 2,
			func(o *account.Options) { o.Email.UniformErrors, o.Email.MailInterval = uniform, 0 })
		f, other := both[0], both[1]
		token := f.Register("ada@example.com", "a fine password")
		f.Register("bob@example.com", "a fine password")
		user, err := f.Auth.Admin.FindUser(t.Context(), "ada@example.com")
		f.Must(err)
		_, err = f.Auth.Admin.SetDisabled(t.Context(), user.UUID, true)
		f.Must(err)
		for _, c := range [][3]string{
			{"POST", "/auth/email", `{"login":"WHO@example.com","password":"a wrong password"}`},
			{"POST", "/auth/email", `{"register":true,"login":"WHO@example.com","password":"a fine password"}`},
			{"POST", "/auth/email/recovery", `{"login":"WHO@example.com"}`},
			{"POST", "/auth/email/validation", `{"login":"WHO@example.com"}`},
			{"PUT", "/auth/email/recovery", `{"login":"WHO@example.com","token":"x","password":"a fine password"}`},
		} {
			normal := func(who string) string {
				r := f.Do(c[0], c[1], strings.ReplaceAll(c[2], "WHO", who))
				if len(r.Cookies()) > 0 {
					t.Errorf("%s: a session", c[2])
				}
				text, id := r.Text, r.Header.Get("X-Request-Id")
				return r.Status + strings.ReplaceAll(text, id, "")
			}
			if disabled, enabled := normal("ada"), normal("bob"); disabled != enabled {
				t.Errorf("%s: %s, else %s", c[2], disabled, enabled)
			}
		}
		r := f.Do("POST", "/auth/email", apitest.Ada, "Prefer", prefer).Want(403)
		if !strings.Contains(r.Problem().Detail, "disabled") || strings.Contains(r.Text, "token") {
			t.Error(r.Text)
		}
		for _, front := range both {
			if r := front.Me(token).Want(401); strings.Contains(r.Text, "disabled") {
				t.Error(r.Text)
			}
			front.Do("GET", "/auth/me", "", "Cookie", "belfry="+token).Want(401)
			front.Do("DELETE", "/auth/sessions/"+token[:22], "", "Authorization", "Bearer "+token).Want(401)
		}
		_, err = other.Auth.Admin.SetDisabled(t.Context(), user.UUID, false)
		f.Must(err)
		f.Me(token).Want(401)
		f.Me(f.LogIn("ada@example.com", "a fine password")).Want(200)
	}
}
