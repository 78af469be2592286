package account_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// known is the client of a browser that is known by its cookie.
func known() sessions.Client {
	c := from
	c.Browser = once.NewBrowser()
	return c
}

// wantRepeated fails unless an error is that of a repetition of an act.
func (w *fixture) wantRepeated(err error, act record.Act, known bool) {
	w.Helper()
	r := once.Repeated(err)
	if r == nil || r.Act != act || r.Known != known {
		w.Fatalf("error %v (%+v), want a repetition of %s, known %v", err, r, act, known)
	}
}

// wantPlain fails unless an error is Denied, and does not say that anything was repeated.
func (w *fixture) wantPlain(err error) {
	w.Helper()
	w.wantKind(err, errs.Denied)
	if r := once.Repeated(err); r != nil {
		w.Fatalf("a repetition of %s", r.Act)
	}
}

// registeredByToken registers by the token of a mail, in a browser.
func (w *fixture) registeredByToken(c sessions.Client) passwords.Credentials {
	w.Helper()
	_, _, err := w.Registration.Register(w.Context(), credentials(ada, password), c)
	w.must(err)
	form := credentials(ada, password)
	form.Token = w.lastMail(ada).token
	_, _, err = w.Registration.Register(w.Context(), form, c)
	w.must(err)
	return form
}

func TestAUsedTokenIsRememberedForTenMinutes(t *testing.T) {
	w, c := newFixture(t, validatedFirst), known()
	form := w.registeredByToken(c)
	for _, after := range []time.Duration{0, once.UsedTTL - time.Second} {
		w.clock.advance(after)
		for _, s := range w.twoServices() { // any process
			_, err := s.Registration.FollowLink(t.Context(), ada, form.Token, known())
			w.wantRepeated(err, record.ActRegistered, false)
			_, _, err = s.Registration.Register(t.Context(), form, c)
			w.wantRepeated(err, record.ActRegistered, true)
		}
	}
	w.clock.advance(time.Second)
	_, err := w.Registration.FollowLink(t.Context(), ada, form.Token, c)
	w.wantPlain(err)
	if _, _, err = w.Registration.Register(t.Context(), form, c); !errors.Is(err, post.ErrToken) {
		t.Errorf("error %v", err)
	}
}

// A token that was used for one thing is wrong for all others, and so is another token.
func TestARepetitionIsOfTheSameTokenForTheSame(t *testing.T) {
	w, c := newFixture(t, validatedFirst), known()
	form := w.registeredByToken(c)
	w.wantPlain(w.Recovery.Recover(t.Context(), form, c))
	_, err := w.Addresses.Finish(t.Context(), ada, form.Token, c)
	w.wantPlain(err)
	other := form
	other.Login = "eve@example.com"
	_, _, err = w.Registration.Register(t.Context(), other, c)
	w.wantPlain(err)
	other = form
	other.Token = strings.Repeat("a", 43)
	_, _, err = w.Registration.Register(t.Context(), other, c)
	w.wantPlain(err)
	_, err = w.Login.LoginByMail(t.Context(), ada, form.Token, c)
	w.wantPlain(err)
}

// A form with another password is another form: its sender must not believe that this one was set.
func TestAFormWithAnotherPasswordIsNoRepetitionOfTheBrowser(t *testing.T) {
	w, c := newFixture(t, validatedFirst), known()
	form := w.registeredByToken(c)
	w.clock.advance(time.Minute)
	form.Password = "a different password"
	_, _, err := w.Registration.Register(t.Context(), form, c)
	w.wantRepeated(err, record.ActRegistered, false)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	form.Token = w.lastMail(ada).token
	w.must(w.Recovery.Recover(t.Context(), form, c))
	w.wantRepeated(w.Recovery.Recover(t.Context(), form, c), record.ActPassword, true)
	w.wantRepeated(w.Recovery.Recover(t.Context(), form, known()), record.ActPassword, false)
	w.clock.advance(time.Minute)
	form.Password = "a third password"
	w.wantRepeated(w.Recovery.Recover(t.Context(), form, c), record.ActPassword, false)
	_, err = w.Login.Login(t.Context(), credentials(ada, "a different password"), from)
	w.must(err)
}

// What is not the case any more is not said: a link of an account that was deleted is of no use.
func TestAUsedLinkOfADeletedAccountSaysNothing(t *testing.T) {
	w, c := newFixture(t, validatedFirst), known()
	form := w.registeredByToken(c)
	user, err := w.Admin.FindUser(t.Context(), ada)
	w.must(err)
	w.must(w.set.Store("Users").Delete(t.Context(), user.UUID, 0))
	w.cascade()
	w.clock.advance(time.Minute)
	_, err = w.Registration.FollowLink(t.Context(), ada, form.Token, c)
	w.wantPlain(err)
	_, _, err = w.Registration.Register(t.Context(), form, c)
	w.wantPlain(err)
}

// The link of another mail for the same is invalidated with the one that was used: it leads to the same words.
func TestAnOlderLinkForTheSameSaysTheSame(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password)
	first := w.lastMail(ada).token
	w.clock.advance(time.Minute)
	w.must(w.Registration.ResendValidation(t.Context(), ada, from))
	second := w.lastMail(ada).token
	_, err := w.Registration.FollowLink(t.Context(), ada, second, from)
	w.must(err)
	_, err = w.Registration.FollowLink(t.Context(), ada, first, from)
	w.wantRepeated(err, record.ActConfirmed, false)
}

// Whoever opens a link that a scanner has opened has not proven the account by it: the token was valid once.
func TestARepetitionProvesNothing(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	token := w.lastMail(ada).token
	_, err := w.Registration.FollowLink(t.Context(), ada, token, from) // the scanner
	w.must(err)
	_, err = w.Registration.FollowLink(t.Context(), ada, token, with(in))
	w.wantRepeated(err, record.ActConfirmed, false)
	if string(w.record("Idents", ada+"_email")["_proven"]) == "true" {
		t.Error("the address is proven")
	}
}

// A code of six digits is found by trying. That it was used says nothing to a browser that has not used it, and counts
// as any wrong one.
func TestAUsedCodeIsAWrongOneInAnotherBrowser(t *testing.T) {
	w := newFixture(t, limits(0, 2))
	w.register(ada, password)
	code, c := w.mailedCode(ada)
	c.Cookie = true
	_, err := w.Login.LoginByMail(t.Context(), ada, code, c)
	w.must(err)
	for range 20 {
		_, err = w.Login.LoginByMail(t.Context(), ada, code, c)
		w.wantRepeated(err, record.ActLoggedIn, true)
	}
	w.clock.advance(time.Minute)
	other := w.requestLogin(ada, record.MethodCode)
	w.lastMail(ada)
	w.wantWrongCode(ada, code, from)
	for range 2 {
		_, err = w.Login.LoginByMail(t.Context(), ada, code, other)
		w.wantPlain(err)
	}
	_, err = w.Login.LoginByMail(t.Context(), ada, code, other)
	w.wantKind(err, errs.Limited)
}

// A browser asks for another code, and sends the one before again: it is no guess of the new one.
func TestAUsedCodeIsNoGuessOfTheNextOne(t *testing.T) {
	w := newFixture(t, limits(0, 2))
	w.register(ada, password)
	code, c := w.mailedCode(ada)
	c.Browser = once.NewBrowser()
	_, err := w.Login.LoginByMail(t.Context(), ada, code, c)
	w.must(err)
	next, again := w.mailedCode(ada)
	again.Browser = c.Browser
	for range 10 {
		_, err = w.Login.LoginByMail(t.Context(), ada, code, again)
		w.wantRepeated(err, record.ActLoggedIn, true)
	}
	_, err = w.Login.LoginByMail(t.Context(), ada, next, again)
	w.must(err)
}

// The right code of an app, which was used, is refused, and is no wrong guess: neither of the account, nor of the
// network address.
func TestAUsedCodeOfAnAppIsNoWrongGuess(t *testing.T) {
	w := newFixture(t, limits(0, 2))
	e := w.enroll(w.register(ada, password))
	code := w.totpCode(e.secret, 0)
	_, err := w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(code), from)
	w.must(err)
	failed := len(w.authEvents(event.AuthLoginFailed))
	for range 10 {
		_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(code), from)
		w.wantPlain(err)
	}
	if n := len(w.authEvents(event.AuthLoginFailed)); n != failed {
		t.Errorf("%d events of wrong guesses", n-failed)
	}
	_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(wrong(code)), from)
	w.wantPlain(err)
	_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(w.totpCode(e.secret, 1)), from)
	w.must(err)
}

// Who has completed a login sends the same again. Another answer is none, and so is another login.
func TestALoginThatIsCompletedTwice(t *testing.T) {
	w := newFixture(t)
	e := w.enroll(w.register(ada, password))
	pending, c := w.beginLogin(ada), known()
	_, err := w.Login.CompleteLogin(t.Context(), pending.Secret, recoveryFactor(e.codes[0]), c)
	w.must(err)
	browser := from
	browser.Cookie = true
	for _, again := range []struct {
		from  sessions.Client
		known bool
	}{{c, true}, {browser, true}, {from, false}, {known(), false}} {
		_, err = w.Login.CompleteLogin(t.Context(), pending.Secret, recoveryFactor(e.codes[0]), again.from)
		w.wantRepeated(err, record.ActLoggedIn, again.known)
		w.wantKind(err, errs.Unauthenticated)
	}
	_, err = w.Login.CompleteLogin(t.Context(), pending.Secret, recoveryFactor(e.codes[1]), c)
	if w.wantKind(err, errs.Unauthenticated); once.Repeated(err) != nil {
		t.Error("another code is a repetition")
	}
	_, err = w.Login.PendingFactors(t.Context(), pending.Secret)
	w.wantKind(err, errs.Unauthenticated)
	_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, recoveryFactor(e.codes[1]), c)
	w.must(err)
}

// Records that were used up hold nothing but hashes and what was done.
func TestAUsedRecordKeepsNothing(t *testing.T) {
	w, _, key := withPasskey(t)
	a := w.answer(key)
	_, err := w.LoginByPasskey(t.Context(), a, from)
	w.must(err)
	_, err = w.LoginByPasskey(t.Context(), a, from)
	w.wantRepeated(err, record.ActLoggedIn, false)
	a.Cookie = true
	_, err = w.LoginByPasskey(t.Context(), a, from)
	w.wantRepeated(err, record.ActLoggedIn, true)
	used := 0
	for _, stored := range w.objects("Tokens") {
		o, err := stored.Object()
		w.must(err)
		if o["_use"] == nil {
			continue
		}
		used++
		for name := range o {
			if name != "uuid" && name != "created" && name != "updated" && name != "expires" && name != "_use" {
				t.Errorf("%s has %s", stored.UUID, name)
			}
		}
	}
	if used == 0 {
		t.Fatal("nothing was used")
	}
	w.clock.advance(once.UsedTTL + time.Second)
	_, err = w.DeleteExpired(t.Context(), 1000)
	w.must(err)
	for _, stored := range w.objects("Tokens") {
		if o, err := stored.Object(); err != nil || o["_use"] != nil {
			t.Errorf("%s is kept for longer: %v", stored.UUID, err)
		}
	}
}

// An answer that was wrong is none that was used: it is wrong again.
func TestAWrongAnswerThatIsRepeatedIsWrong(t *testing.T) {
	w, _, key := withPasskey(t)
	a := w.answer(key)
	a.Credential = []byte(strings.Replace(string(a.Credential), `"signature":"`, `"signature":"AAAA`, 1))
	for range 2 {
		_, err := w.LoginByPasskey(t.Context(), a, from)
		w.wantPlain(err)
	}
}

// Wrong codes of a network address are few a day; those that were right once are none of them.
func TestUsedCodesAreNoGuessesOfAnAddress(t *testing.T) {
	w := newFixture(t, limits(1000, 0))
	w.register(ada, password)
	code, c := w.mailedCode(ada)
	_, err := w.Login.LoginByMail(t.Context(), ada, code, c)
	w.must(err)
	for range 300 {
		_, err = w.Login.LoginByMail(t.Context(), ada, code, c)
		w.wantRepeated(err, record.ActLoggedIn, false)
	}
}

// The form that has changed the password is sent again, in the session that it has led to. A guess of the password is
// one also where it is in the field of the new one, and another session is not the one of the form.
func TestAChangeOfThePasswordThatIsSentTwice(t *testing.T) {
	const next = "the next password"
	w := newFixture(t, limits(0, 3))
	in, err := w.Recovery.ChangePassword(t.Context(), password, next, with(w.register(ada, password)))
	w.must(err)
	me, err := w.Sessions.Authenticate(t.Context(), in.Token)
	w.must(err)
	c := from
	c.Session = me
	for range 10 {
		_, err = w.Recovery.ChangePassword(t.Context(), password, next, c)
		w.wantRepeated(err, record.ActChanged, true)
	}
	other := w.mustLogin(ada, next, me.User.UUID)
	_, err = w.Recovery.ChangePassword(t.Context(), password, next, with(other))
	w.wantPlain(err)
	// Two of them: the first password no longer counts.
	_, err = w.Recovery.ChangePassword(t.Context(), password, "a guess of the password", c)
	w.wantPlain(err)
	_, err = w.Recovery.ChangePassword(t.Context(), password, next, c)
	w.wantKind(err, errs.Limited)
	w.clock.advance(once.UsedTTL)
	_, err = w.Recovery.ChangePassword(t.Context(), password, next, c)
	w.wantPlain(err)
}

// A registration without a token is known to the browser that has sent it, if it had a cookie by then; to all others
// the address is taken.
func TestARegistrationWithoutATokenThatIsSentTwice(t *testing.T) {
	w, c := newFixture(t), known()
	_, _, err := w.Registration.Register(t.Context(), credentials(ada, password), c)
	w.must(err)
	for _, s := range w.twoServices() { // any process
		_, _, err = s.Registration.Register(t.Context(), credentials(ada, password), c)
		w.wantRepeated(err, record.ActRegistered, true)
		for what, other := range map[string]struct {
			password string
			client   sessions.Client
		}{
			"another password": {"another password", c},
			"another browser":  {password, known()},
			"no cookie":        {password, from},
		} {
			_, _, err = s.Registration.Register(t.Context(), credentials(ada, other.password), other.client)
			if w.wantKind(err, errs.Exists); once.Repeated(err) != nil {
				t.Errorf("%s: a repetition", what)
			}
		}
	}
	// A registration that was refused can't be repeated.
	other := credentials("eve@example.com", "short")
	for range 2 {
		if _, _, err = w.Registration.Register(t.Context(), other, c); once.Repeated(err) != nil || err == nil {
			t.Errorf("error %v", err)
		}
	}
}
