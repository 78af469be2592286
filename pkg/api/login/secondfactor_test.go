package login_test

import (
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/post"
	"belfry/pkg/api/apitest"
	"belfry/pkg/mail"
	"belfry/test/kit/authenticator"
)

// cookie returns the value that a reply sets for a cookie, and whether it removes it.
func cookie(r apitest.Reply, name string) (value string, removed bool) {
	for _, c := range r.Cookies() {
		if c.Name == name {
			value, removed = c.Value, c.MaxAge < 0
		}
	}
	return value, removed
}

// A login that waits for its second factor is given up by another login: a step-up is then for the session.
func TestALoginThatIsGivenUpTakesNoStepUp(t *testing.T) {
	f := apitest.StartLogin(t, 1, withPasskeys)[0]
	bearer := []string{"Authorization", "Bearer " + f.Register("ada@example.com", "a fine password")}
	c := authenticator.New(t, authenticator.ES256, ownOrigin)
	options, challenged := challenge(f, "/auth/passkeys/registration", bearer...)
	f.Do("POST", "/auth/passkeys", bodyOf(c.Create(options), ""), append(bearer, "Cookie", challenged)...).Want(201)
	f.Do("PUT", "/auth/factors/passkey", "", bearer...).Want(200)
	pending, _ := cookie(f.Do("POST", "/auth/email", apitest.Ada).Want(401), "belfry-second")
	if pending == "" {
		t.Fatal("no login waits for its second factor")
	}
	options, challenged = challenge(f, "/auth/passkey/options")
	r := f.Do("POST", "/auth/passkey", bodyOf(c.Get(options), ""), "Cookie",
		challenged+"; belfry-second="+pending).Want(204)
	if _, removed := cookie(r, "belfry-second"); !removed {
		t.Errorf("the cookie of the other login stays: %v", r.Cookies())
	}
}

// A browser whose session is too old to link a provider learns that, and not that its login was wrong.
func TestAnOldSessionThatLinksAProvider(t *testing.T) {
	var ahead atomic.Int64
	f := startApplications(t, func(o *account.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	headers := []string{"Cookie", "belfry=" + f.Register("ada@example.com", "a fine password"), "Sec-Fetch-Site",
		"same-origin"}
	f.Do("GET", "/auth/github", "", headers...).Want(302)
	ahead.Store(int64(11 * time.Minute))
	f.Do("GET", "/auth/github", "", headers...).Want(302).HasHeader("Location", "/failed?reason=step-up")
}

// A browser that logs in for an application is known at its next login as well.
func TestABrowserIsKnownAfterALoginForAnApplication(t *testing.T) {
	f := startApplications(t, func(o *account.Options) {
		texts, err := mail.ParseTemplates("device", "", "{{.Time}}")
		if err != nil {
			t.Fatal(err)
		}
		o.Email.Notices = map[post.Notice]*mail.Templates{notices.NoticeDevice: texts}
	})
	f.Register("ada@example.com", "a fine password")
	r := submit(f, asking(site), "a fine password", "User-Agent", "another/2.0").Want(303)
	if landed(t, r, site).Get("code") == "" {
		t.Fatal("no code")
	}
	if device, _ := cookie(r, "belfry-device"); device == "" {
		t.Errorf("cookies %v", r.Cookies())
	}
}
