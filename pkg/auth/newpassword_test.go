package auth_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/auth"
	"belfry/pkg/auth/weak"
	"belfry/pkg/errs"
	"belfry/pkg/store/object"
)

// common refuses the most common passwords.
func common(o *auth.Options) { o.Passwords.Common = true }

// isWeak fails unless an error refuses a weak password in a field.
func (w *fixture) isWeak(err error, reason weak.Reason, field string) {
	w.Helper()
	w.wantKind(err, errs.Invalid)
	var e *errs.Error
	var refused *auth.WeakPassword
	if !errors.As(err, &refused) || refused.Reason != reason || !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Pointer != "/"+field || e.Fields[0].Message == "" {
		w.Fatalf("error %v", err)
	}
}

// leaked is a password that a server of breaches knows, by the last 35 digits of its hash.
const (
	leaked     = "a leaked password"
	leakedRest = "F63E8E77954E164178EB6F9B80FAA68F0F5"
)

const weakPassword = "Password123" // one of the most common

func TestWeakPasswordsAreSetNowhere(t *testing.T) {
	w := newFixture(t, common, github, admins(defaultAdmins))
	_, err := w.CreateFirstAdmin(t.Context(), w.offer(w.Service), credentials(ada, weakPassword), from)
	w.isWeak(err, weak.Common, "password")
	_, _, err = w.Register(t.Context(), credentials(ada, weakPassword), from)
	w.isWeak(err, weak.Common, "password")
	_, err = w.CreateUser(t.Context(), auth.NewUser{Login: ada, Password: weakPassword, Fields: object.Object{}})
	w.isWeak(err, weak.Common, "password")
	if n := len(w.objects("Users")) + len(w.objects("Idents")); n != 0 {
		t.Errorf("%d objects", n)
	}
	in := w.register(ada, password)
	_, err = w.ChangePassword(t.Context(), password, weakPassword, with(in))
	w.isWeak(err, weak.Common, "newPassword")
	_, err = w.SetPassword(t.Context(), in.User.UUID, weakPassword)
	w.isWeak(err, weak.Common, "password")
	c := w.requestRecovery(ada, weakPassword)
	w.isWeak(w.Recover(t.Context(), c, from), weak.Common, "password")
	if !w.valid(in.Token) {
		t.Error("what was refused has ended the session")
	}
	// The token of the mail is as good as before.
	c.Password = "a new password"
	w.must(w.Recover(t.Context(), c, from))
	// The first password of a user of a provider.
	hub, err := w.loginByProvider("grace", from)
	w.must(err)
	_, _, err = w.Register(t.Context(), credentials("grace@example.com", weakPassword), with(hub))
	w.isWeak(err, weak.Common, "password")
	_, err = w.ChangePassword(t.Context(), "", weakPassword, with(hub))
	w.isWeak(err, weak.Common, "newPassword")
}

// Who has a weak password since before it was refused can log in with it, and give it where a password is asked for.
func TestUsersWithAWeakPasswordLogIn(t *testing.T) {
	w := newFixture(t)
	w.register(ada, weakPassword)
	common(&w.opts)
	strict, _ := w.newService()
	in, err := strict.Login(t.Context(), credentials(ada, weakPassword), from)
	w.must(err)
	in, _, err = strict.Register(t.Context(), credentials("lovelace@example.com", weakPassword), with(in))
	w.must(err)
	in, err = strict.ChangePassword(t.Context(), weakPassword, "a new password", with(in))
	w.must(err)
	_, err = strict.ChangePassword(t.Context(), "a new password", weakPassword, with(in))
	w.isWeak(err, weak.Common, "newPassword")
}

// The reply to a weak password is the same for an address with an account and without one, and so is what it writes: nothing.
func TestAWeakPasswordRevealsNoAccount(t *testing.T) {
	for _, mode := range []func(*auth.Options){func(*auth.Options) {}, validatedFirst} {
		w := newFixture(t, mode, common)
		w.register(ada, password)
		mails := w.countMails(ada)
		var replies []string
		for _, login := range []string{ada, "nobody@example.com"} {
			for _, token := range []string{"", "wrong"} {
				c := credentials(login, weakPassword)
				c.Token = token
				_, mailed, err := w.Register(t.Context(), c, from)
				w.isWeak(err, weak.Common, "password")
				recovered := w.Recover(t.Context(), c, from)
				w.isWeak(recovered, weak.Common, "password")
				replies = append(replies, fmt.Sprint(mailed, err, recovered))
			}
		}
		for _, reply := range replies[1:] {
			if reply != replies[0] {
				t.Errorf("%s\n%s", replies[0], reply)
			}
		}
		if w.countMails(ada) != mails || w.countMails("nobody@example.com") != 0 || len(w.objects("Users")) != 1 {
			t.Error("a weak password has an effect")
		}
	}
}

// A check takes time, so it counts against the network address.
func TestWeakPasswordsCountAsAttempts(t *testing.T) {
	w := newFixture(t, common, func(o *auth.Options) { o.Limits.Address = 3 })
	for range 3 {
		_, _, err := w.Register(t.Context(), credentials(ada, weakPassword), from)
		w.wantKind(err, errs.Invalid)
	}
	_, _, err := w.Register(t.Context(), credentials(ada, weakPassword), from)
	w.wantKind(err, errs.Limited)
	w.wantKind(w.Recover(t.Context(), credentials(ada, weakPassword), from), errs.Limited)
}

// The other server is asked for passwords that are to be set alone, never for a login, and its failure hinders nobody.
func TestBreachedPasswordsAreSetNowhere(t *testing.T) {
	var asked atomic.Int32
	var broken atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		if broken.Load() {
			http.Error(rw, "", http.StatusServiceUnavailable)
			return
		}
		if strings.HasSuffix(req.URL.Path, "/2A48E") { // that of leaked
			fmt.Fprint(rw, leakedRest+":12\r\n")
		}
	}))
	t.Cleanup(server.Close)
	w := newFixture(t, common, func(o *auth.Options) {
		o.Passwords.Breaches = &weak.Breaches{URL: server.URL + "/range", Timeout: time.Minute, MinCount: 1}
	})
	in := w.register(ada, password)
	w.mustLogin(ada, password, in.User.UUID)
	_, err := w.Login(t.Context(), credentials(ada, leaked), from)
	w.wantKind(err, errs.Denied)
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	_, err = w.ChangePassword(t.Context(), password, leaked, with(in))
	w.isWeak(err, weak.Breached, "newPassword")
	_, _, err = w.Register(t.Context(), credentials("bob@example.com", leaked), from)
	w.isWeak(err, weak.Breached, "password")
	broken.Store(true)
	_, err = w.ChangePassword(t.Context(), password, leaked, with(in))
	w.must(err)
	w.mustLogin(ada, leaked, in.User.UUID)
}

// What is no text, and the longest passwords, are checked like others.
func TestHostileNewPasswords(t *testing.T) {
	w := newFixture(t, common)
	in := w.register(ada, password)
	for i, next := range []string{
		strings.Repeat("4@8({[<3691!|7|0$5+7%2", 47)[:auth.MaxPassword], strings.Repeat("\x00", auth.MinPassword), "pass\x00word", strings.Repeat("\xff", auth.MaxPassword),
		strings.Repeat("ſ", 500), "\xed\xa0\x80 password",
	} {
		changed, err := w.ChangePassword(t.Context(), password, next, with(in))
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		in, err = w.ChangePassword(t.Context(), next, password, with(changed))
		w.must(err)
	}
}
