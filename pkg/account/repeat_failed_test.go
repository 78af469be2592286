package account_test

import (
	"errors"
	"testing"
	"time"

	"belfry/pkg/account/method"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/once"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

// Whoever finds the form of a recovery in the history of a browser, which is known, sends it with passwords: each is a
// guess, as at a login.
func TestAUsedFormGuessesNoPasswords(t *testing.T) {
	forms := map[string]func(w *fixture, c sessions.Client) (passwords.Credentials, func(passwords.Credentials) error){
		"registration": func(w *fixture, c sessions.Client) (passwords.Credentials, func(passwords.Credentials) error) {
			return w.registeredByToken(c), func(form passwords.Credentials) error {
				_, _, err := w.Registration.Register(w.Context(), form, c)
				return err
			}
		},
		"recovery": func(w *fixture, c sessions.Client) (passwords.Credentials, func(passwords.Credentials) error) {
			w.registeredByToken(c)
			form := w.requestRecovery(ada, "the next password")
			w.must(w.Recovery.Recover(w.Context(), form, c))
			return form, func(form passwords.Credentials) error { return w.Recovery.Recover(w.Context(), form, c) }
		},
	}
	for name, begin := range forms {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, validatedFirst, limits(0, 3))
			form, send := begin(w, known())
			w.clock.advance(time.Minute)
			for range 10 {
				if r := once.Repeated(send(form)); r == nil || !r.Known {
					t.Fatalf("%+v, want a repetition that counts for nothing", r)
				}
			}
			failed := len(w.authEvents(event.AuthLoginFailed))
			guess := form
			guess.Password = "a guess of the password"
			for range 3 {
				if r := once.Repeated(send(guess)); r == nil || r.Known {
					t.Fatalf("a guess: %+v", r)
				}
			}
			if r := once.Repeated(send(form)); r == nil || r.Known {
				t.Errorf("after too many guesses the reply says of the right password: %+v", r)
			}
			_, err := w.Login.Login(t.Context(), credentials(ada, form.Password), from)
			w.wantKind(err, errs.Limited)
			w.Close()
			if n := len(w.authEvents(event.AuthLoginFailed)); n != failed+3 {
				t.Errorf("%d events of guesses", n-failed)
			}
		})
	}
}

// Network addresses have few guesses as well.
func TestAGuessInAUsedFormIsAnAttempt(t *testing.T) {
	w, c := newFixture(t, validatedFirst, limits(3, 0)), known()
	form := w.registeredByToken(c)
	w.clock.advance(time.Minute)
	form.Password = "a guess of the password"
	for range 3 {
		_, _, err := w.Registration.Register(t.Context(), form, c)
		w.wantRepeated(err, record.ActRegistered, false)
	}
	_, _, err := w.Registration.Register(t.Context(), form, c)
	w.wantKind(err, errs.Limited)
}

// The id of a session is no secret: a cookie that says it is not the browser of that session.
func TestACookieIsNoSession(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	token := w.lastMail(ada).token
	_, err := w.Registration.FollowLink(t.Context(), ada, token, with(in))
	w.must(err)
	_, err = w.Registration.FollowLink(t.Context(), ada, token, with(in))
	w.wantRepeated(err, record.ActConfirmed, true)
	c := from
	c.Browser = "session " + in.ID
	_, err = w.Registration.FollowLink(t.Context(), ada, token, c)
	w.wantRepeated(err, record.ActConfirmed, false)
}

// Nothing is repeated if the first time has come to nothing: nobody reads that they are logged in, or that a password
// is set, who are not.
func TestWhatHasFailedIsNotRepeated(t *testing.T) {
	broken := errors.New("broken")
	t.Run("login by mail", func(t *testing.T) {
		w := newFixture(t)
		user := w.register(ada, password).User.UUID
		code, c := w.mailedCode(ada)
		c.Browser, c.Cookie = once.NewBrowser(), true
		_, err := w.Admin.SetDisabled(t.Context(), user, true)
		w.must(err)
		for range 2 {
			_, err = w.Login.LoginByMail(t.Context(), ada, code, c)
			w.wantPlain(err)
		}
	})
	t.Run("recovery", func(t *testing.T) {
		w, c := newFixture(t), known()
		w.register(ada, password)
		form := w.requestRecovery(ada, "the next password")
		w.backend.onStep(failWrites("Users", broken)) // or belfry is killed
		if err := w.Recovery.Recover(t.Context(), form, c); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		w.backend.onStep(nil)
		w.clock.advance(time.Minute)
		w.wantPlain(w.Recovery.Recover(t.Context(), form, c))
		_, err := w.Registration.FollowLink(t.Context(), ada, form.Token, c)
		w.wantPlain(err)
		form = w.requestRecovery(ada, "the next password")
		w.must(w.Recovery.Recover(t.Context(), form, c))
		w.wantRepeated(w.Recovery.Recover(t.Context(), form, c), record.ActPassword, true)
	})
	t.Run("step-up", func(t *testing.T) {
		w, in, key := withPasskey(t)
		challenge, err := w.Login.Ask(t.Context(), record.FactorPasskey, "", with(in))
		w.must(err)
		f := method.Answer{Type: record.FactorPasskey,
			Signed: method.Signed{Credential: key.Get(challenge.Options), Secret: challenge.Secret}}
		w.backend.onStep(failWrites("Sessions", broken))
		if _, err = w.StepUp.StepUp(t.Context(), "", f, with(in)); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		w.backend.onStep(nil)
		_, err = w.StepUp.StepUp(t.Context(), "", f, with(in))
		w.wantPlain(err)
	})
}
