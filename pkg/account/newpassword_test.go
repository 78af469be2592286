package account_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/weak"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/test/kit"
)

// common refuses the most common passwords.
func common(o *account.Options) { o.Passwords.Common = true }

// isWeak fails unless an error refuses a weak password in a field.
func (w *fixture) isWeak(err error, reason weak.Reason, field string) {
	w.Helper()
	w.wantKind(err, errs.Invalid)
	var e *errs.Error
	var refused *passwords.WeakPassword
	if !errors.As(err, &refused) || refused.Reason != reason || !errors.As(err, &e) || len(e.Fields) != 1 ||
		e.Fields[0].Pointer != "/"+field || e.Fields[0].Message == "" {
		w.Fatalf("error %v", err)
	}
}

// leaked is a password that a server of breaches knows, by the last 35 digits of its hash.
const (
	leaked     = "a leaked password"
	leakedRest = "F63E8E77954E164178EB6F9B80FAA68F0F5"
)

const (
	weakPassword  = "Password123"        // one of the most common
	guessable     = "abcabcabcabcabcabc" // on no list
	newPassword   = "seven umbrellas by the fjord"
	firstPassword = "nine marmots in a cupboard"
)

// score refuses passwords that are easy to guess.
func score(o *account.Options) { o.Passwords.MinScore = 3 }

// kinds are the kinds of weak passwords that no other server knows: what refuses them, and one of them.
func kinds() map[weak.Reason]struct {
	refuse   func(*account.Options)
	password string
} {
	return map[weak.Reason]struct {
		refuse   func(*account.Options)
		password string
	}{weak.Common: {common, weakPassword}, weak.Guessable: {score, guessable}}
}

func TestWeakPasswordsAreSetNowhere(t *testing.T) {
	for reason, kind := range kinds() {
		t.Run(string(reason), func(t *testing.T) {
			w := newFixture(t, kind.refuse, github, admins(defaultAdmins))
			_, err := w.FirstAdmin.Create(t.Context(), w.offer(w.Service), credentials(ada, kind.password), from)
			w.isWeak(err, reason, "password")
			_, _, err = w.Registration.Register(t.Context(), credentials(ada, kind.password), from)
			w.isWeak(err, reason, "password")
			_, err = w.Admin.CreateUser(t.Context(),
				admin.NewUser{Login: ada, Password: kind.password, Fields: object.Object{}})
			w.isWeak(err, reason, "password")
			if n := len(w.objects("Users")) + len(w.objects("Idents")); n != 0 {
				t.Errorf("%d objects", n)
			}
			in := w.register(ada, firstPassword)
			_, err = w.Recovery.ChangePassword(t.Context(), firstPassword, kind.password, with(in))
			w.isWeak(err, reason, "newPassword")
			_, err = w.Admin.SetPassword(t.Context(), in.User.UUID, kind.password)
			w.isWeak(err, reason, "password")
			_, err = w.Admin.SetPassword(t.Context(), object.NewUUID(), newPassword)
			w.wantKind(err, errs.NotFound)
			c := w.requestRecovery(ada, kind.password)
			w.isWeak(w.Recovery.Recover(t.Context(), c, from), reason, "password")
			if !w.valid(in.Token) {
				t.Error("what was refused has ended the session")
			}
			// The token of the mail is as good as before.
			c.Password = newPassword
			w.must(w.Recovery.Recover(t.Context(), c, from))
			// The first password of a user of a provider.
			hub, err := w.loginByProvider("grace", from)
			w.must(err)
			_, _, err = w.Registration.Register(t.Context(), credentials("grace@example.com", kind.password), with(hub))
			w.isWeak(err, reason, "password")
			_, err = w.Recovery.ChangePassword(t.Context(), "", kind.password, with(hub))
			w.isWeak(err, reason, "newPassword")
		})
	}
}

// Addresses and names of the form, of the account and of its idents are guessed first.
func TestAUsersOwnWordsAreWeakWhereverAPasswordIsSet(t *testing.T) {
	const (
		address   = "zvorkblin.quxmar@example.com"
		byAddress = "quxmarZvorkblin"
		byName    = "FnordiaWumptree"
	)
	named := object.Object{}
	named.Set("fullName", "Wumptree, Fnordia")
	form := func(login, password string) passwords.Credentials {
		c := credentials(login, password)
		c.Fields = named
		return c
	}
	w := newFixture(t, score, github, admins(defaultAdmins))
	stranger := w.register(ada, byAddress)
	_, err := w.Recovery.ChangePassword(t.Context(), byAddress, byName, with(stranger))
	w.must(err)

	for _, own := range []string{byAddress, byName} {
		_, _, err = w.Registration.Register(t.Context(), form(address, own), from)
		w.isWeak(err, weak.Guessable, "password")
		_, err = w.Admin.CreateUser(t.Context(), admin.NewUser{Login: address, Password: own, Fields: named})
		w.isWeak(err, weak.Guessable, "password")
	}
	in, _, err := w.Registration.Register(t.Context(), form(address, firstPassword), from)
	w.must(err)
	for _, own := range []string{byAddress, byName} {
		_, err = w.Recovery.ChangePassword(t.Context(), firstPassword, own, with(in))
		w.isWeak(err, weak.Guessable, "newPassword")
		_, err = w.Admin.SetPassword(t.Context(), in.User.UUID, own)
		w.isWeak(err, weak.Guessable, "password")
	}
	// A recovery reads nothing of the account, or its reply would reveal the name.
	w.isWeak(w.Recovery.Recover(t.Context(), w.requestRecovery(address, byAddress), from), weak.Guessable, "password")
	hub, err := w.loginByProvider("zvorkblinquxmar", from)
	w.must(err)
	_, err = w.Recovery.ChangePassword(t.Context(), "", "Zvorkblinquxmar1", with(hub))
	w.isWeak(err, weak.Guessable, "newPassword")
	_, _, err = w.Registration.Register(t.Context(), credentials("grace@example.com", "Zvorkblinquxmar1"), with(hub))
	w.isWeak(err, weak.Guessable, "password")

	first := newFixture(t, score, admins(defaultAdmins))
	_, err = first.FirstAdmin.Create(t.Context(), first.offer(first.Service), credentials(address, byAddress), from)
	first.isWeak(err, weak.Guessable, "password")
}

// Who has a weak password since before it was refused can log in with it, and give it where a password is asked for.
func TestUsersWithAWeakPasswordLogIn(t *testing.T) {
	for reason, kind := range kinds() {
		w := newFixture(t)
		w.register(ada, kind.password)
		kind.refuse(&w.opts)
		strict, _ := w.newService()
		in, err := strict.Login.Login(t.Context(), credentials(ada, kind.password), from)
		w.must(err)
		in, _, err = strict.Registration.Register(t.Context(), credentials("lovelace@example.com", kind.password),
			with(in))
		w.must(err)
		in, err = strict.Recovery.ChangePassword(t.Context(), kind.password, newPassword, with(in))
		w.must(err)
		_, err = strict.Recovery.ChangePassword(t.Context(), newPassword, kind.password, with(in))
		w.isWeak(err, reason, "newPassword")
	}
}

// The reply to a weak password is the same for an address with an account and without one, and so is what it writes:
// nothing.
func TestAWeakPasswordRevealsNoAccount(t *testing.T) {
	for _, mode := range []func(*account.Options){func(*account.Options) {}, validatedFirst} {
		for reason, kind := range kinds() {
			w := newFixture(t, mode, kind.refuse)
			w.register(ada, firstPassword)
			mails := w.countMails(ada)
			var replies []string
			for _, login := range []string{ada, "nobody@example.com"} {
				for _, token := range []string{"", "wrong"} {
					c := credentials(login, kind.password)
					c.Token = token
					_, mailed, err := w.Registration.Register(t.Context(), c, from)
					w.isWeak(err, reason, "password")
					recovered := w.Recovery.Recover(t.Context(), c, from)
					w.isWeak(recovered, reason, "password")
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
}

// Names of an account are of no use for who recovers it without the token: the reply would reveal them.
func TestARecoveryWithoutATokenRevealsNoName(t *testing.T) {
	w := newFixture(t, score)
	c := credentials(ada, firstPassword)
	c.Fields = object.Object{}
	c.Fields.Set("name", "Zvorkblinia")
	_, _, err := w.Registration.Register(t.Context(), c, from)
	w.must(err)
	var replies []string
	for _, login := range []string{ada, "nob@example.com"} {
		c := credentials(login, "Zvorkblinia")
		c.Token = "wrong"
		replies = append(replies, fmt.Sprint(w.Recovery.Recover(t.Context(), c, from)))
	}
	if replies[0] != replies[1] {
		t.Errorf("%s\n%s", replies[0], replies[1])
	}
}

// An estimate takes processor time as a hash does, so it waits for a slot too.
func TestAnEstimateWaitsForASlotOfHashes(t *testing.T) {
	w := newFixture(t, score)
	in := w.register(ada, firstPassword)
	release := w.OccupySlots()
	w.QueueTime(time.Millisecond)
	_, err := w.Recovery.ChangePassword(t.Context(), firstPassword, guessable, with(in))
	w.wantKind(err, errs.Limited)
	release()
	w.QueueTime(account.MaxQueueTime)
	_, err = w.Recovery.ChangePassword(t.Context(), firstPassword, guessable, with(in))
	w.isWeak(err, weak.Guessable, "newPassword")
	// What an estimate has refused holds no slot.
	for range 100 {
		_, err = w.Admin.SetPassword(t.Context(), in.User.UUID, guessable)
		w.isWeak(err, weak.Guessable, "password")
	}
}

// A check takes time, so it counts against the network address.
func TestWeakPasswordsCountAsAttempts(t *testing.T) {
	for reason, kind := range kinds() {
		w := newFixture(t, kind.refuse, func(o *account.Options) { o.Limits.Address = 3 })
		for range 3 {
			_, _, err := w.Registration.Register(t.Context(), credentials(ada, kind.password), from)
			w.isWeak(err, reason, "password")
		}
		_, _, err := w.Registration.Register(t.Context(), credentials(ada, kind.password), from)
		w.wantKind(err, errs.Limited)
		w.wantKind(w.Recovery.Recover(t.Context(), credentials(ada, kind.password), from), errs.Limited)
	}
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
	w := newFixture(t, common, func(o *account.Options) {
		o.Passwords.Breaches = &weak.Breaches{URL: server.URL + "/range", Timeout: kit.Limit, MinCount: 1}
	})
	in := w.register(ada, password)
	w.mustLogin(ada, password, in.User.UUID)
	_, err := w.Login.Login(t.Context(), credentials(ada, leaked), from)
	w.wantKind(err, errs.Denied)
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	_, err = w.Recovery.ChangePassword(t.Context(), password, leaked, with(in))
	w.isWeak(err, weak.Breached, "newPassword")
	// Is the same password.
	_, err = w.Recovery.ChangePassword(t.Context(), password, strings.ReplaceAll(leaked, " ", "\u00a0"), with(in))
	w.isWeak(err, weak.Breached, "newPassword")
	_, _, err = w.Registration.Register(t.Context(), credentials("bob@example.com", leaked), from)
	w.isWeak(err, weak.Breached, "password")
	broken.Store(true)
	_, err = w.Recovery.ChangePassword(t.Context(), password, leaked, with(in))
	w.must(err)
	w.mustLogin(ada, leaked, in.User.UUID)
}

// What is no text, and the longest passwords, are checked like others.
func TestHostileNewPasswords(t *testing.T) {
	w := newFixture(t, common)
	in := w.register(ada, password)
	for i, next := range []string{
		strings.Repeat("4@8({[<3691!|7|0$5+7%2", 47)[:passwords.MaxPassword],
		strings.Repeat("\x00", passwords.MinPassword), "pass\x00word", strings.Repeat("\xff", passwords.MaxPassword),
		strings.Repeat("ſ", 500), "\xed\xa0\x80 password",
	} {
		changed, err := w.Recovery.ChangePassword(t.Context(), password, next, with(in))
		if err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		in, err = w.Recovery.ChangePassword(t.Context(), next, password, with(changed))
		w.must(err)
	}
}
