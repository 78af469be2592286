package login_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/once"
	"belfry/pkg/account/sessions"
	"belfry/pkg/api/apitest"
	"belfry/test/kit/authenticator"
)

// beside is a cookie with others of its name, whose values are no less well-formed, around it.
func beside(own string) string {
	name, _, _ := strings.Cut(own, "=")
	other := func() string { return name + "=" + once.NewBrowser() }
	return other() + "; " + other() + "; " + own + "; " + other()
}

// A browser sends several cookies of one name where others were set for other paths or hosts: the first valid one
// counts, of a challenge and of a login that waits for its second factor as of a session.
func TestOfSeveralCookiesTheValidOneCounts(t *testing.T) {
	f := apitest.StartLogin(t, 1, withPasskeys)[0]
	token := f.Register("ada@example.com", "a fine password")
	session := []string{"Cookie", beside("belfry=" + token)}
	key := authenticator.New(t, authenticator.ES256, ownOrigin)
	options, set := challenge(f, "/auth/passkeys/registration", session...)
	f.Do("POST", "/auth/passkeys", bodyOf(key.Create(options), ""), "Cookie", session[1]+"; "+beside(set)).Want(201)
	f.Do("PUT", "/auth/factors/passkey", "", "Authorization", "Bearer "+token).Want(200)
	pending, _ := cookie(f.Do("POST", "/auth/email", apitest.Ada).Want(401), "belfry-second")
	waits := beside("belfry-second=" + pending)
	// Fields that it does not know.
	asked := f.Do("POST", "/auth/second-factor/passkey", `{"factors":["passkey"]}`, "Cookie", waits).Want(200)
	options = []byte(asked.Text)
	set = asked.Cookies()[0].Name + "=" + asked.Cookies()[0].Value
	answer := `{"type":"passkey",` + bodyOf(key.Get(options), "")[1:]
	r := f.Do("POST", "/auth/second-factor", answer, "Cookie", waits+"; "+beside(set)).Want(204)
	f.Me(apitest.Token(r)).Want(200)
	completed, _ := cookie(r, "belfry-second-done")
	if completed != pending {
		t.Errorf("the cookies are %v", r.Cookies())
	}
	// Sent again, by the browser that knows of it: also where another login is said to wait.
	for _, cookies := range []string{beside("belfry-second-done=" + completed),
		"belfry-second=" + once.NewBrowser() + "; belfry-second-done=" + completed} {
		if r := f.Do("POST", "/auth/second-factor", answer, "Cookie", cookies+"; "+set).Want(204); len(
			r.Cookies()) > 0 {
			t.Errorf("the cookies are %v", r.Cookies())
		}
	}
}

// Challenges whose cookies have a former name are among those of a browser, and are removed first.
func TestChallengesOfFormerNamesAreFew(t *testing.T) {
	f := apitest.StartLogin(t, 1, withPasskeys, func(o *account.Options) {
		o.Cookie, o.FormerCookies = "shop", []sessions.FormerCookie{{Name: "belfry", Until: time.Now().Add(time.Hour)}}
	})[0]
	var cookies []string
	for i := range 6 {
		cookies = append(cookies, fmt.Sprintf("shop-passkey-%012d=x", i), fmt.Sprintf("belfry-passkey-%012d=x", i))
	}
	var removed []string
	for _, c := range f.Do("POST", "/auth/passkey/options", "", "Cookie",
		strings.Join(cookies, "; ")).Want(200).Cookies() {
		if c.MaxAge < 0 {
			removed = append(removed, c.Name)
		}
	}
	if want := "[belfry-passkey-000000000000 belfry-passkey-000000000001 belfry-passkey-000000000002 " +
		"belfry-passkey-000000000003 belfry-passkey-000000000004]"; fmt.Sprint(removed) != want {
		t.Errorf("removed are %v, want %s", removed, want)
	}
}
