package auth_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store/object"
)

// adaBox holds what was mailed to ada.
const adaBox = "ada@example.com_mail"

// follow follows the link of a mail.
func (w *world) follow(login, token string) (auth.LinkOutcome, error) {
	w.Helper()
	return w.FollowLink(w.Context(), login, token, from)
}

func TestATokenExpires(t *testing.T) {
	w := begin(t, validatedFirst)
	c := creds(ada, password)
	_, _, err := w.Register(t.Context(), c, from)
	w.must(err)
	c.Token = w.mail(ada).token
	w.clock.pass(w.email.TokenTTL - time.Microsecond)
	if to, err := w.follow(ada, c.Token); err != nil || to != auth.OpenRegistration {
		t.Errorf("just before its end: %v, %v", to, err)
	}
	for _, later := range []time.Duration{time.Microsecond, time.Hour} {
		w.clock.pass(later)
		_, err = w.follow(ada, c.Token)
		w.is(err, errs.Denied)
	}
	_, _, err = w.Register(t.Context(), c, from)
	w.is(err, errs.Denied)
	if len(w.all("Users")) > 0 {
		t.Error("registered with a token that is too old")
	}
}

// The time of a token begins when its mail is written, not when it was asked
// for: mails may wait for days.
func TestATokenOfALateMailIsGood(t *testing.T) {
	w := begin(t, validatedFirst)
	c := creds(ada, password)
	_, _, err := w.Register(t.Context(), c, from)
	w.must(err)
	w.clock.pass(3 * 24 * time.Hour)
	must(w.DeleteExpired(t.Context(), 100))
	c.Token = w.mail(ada).token
	w.clock.pass(w.email.TokenTTL - time.Second)
	must(w.DeleteExpired(t.Context(), 100))
	_, _, err = w.Register(t.Context(), c, from)
	w.must(err)
}

func TestATokenIsForOnePurposeAndOneAddress(t *testing.T) {
	w := begin(t)
	w.user(ada, password)
	w.user("bob@example.com", password)
	validation := w.mail(ada).token
	w.clock.pass(w.email.MailInterval)
	w.must(w.RequestRecovery(t.Context(), ada, from))
	recovery := w.mail(ada).token

	recoverWith := func(login, token string) error {
		c := creds(login, "another password")
		c.Token = token
		return w.Recover(t.Context(), c, from)
	}
	w.is(recoverWith(ada, validation), errs.Denied)
	w.is(recoverWith("bob@example.com", recovery), errs.Denied)
	w.is(recoverWith(ada, ""), errs.Denied)
	for _, kept := range w.all("Tokens") {
		w.is(recoverWith(ada, string(kept.Body)), errs.Denied)
	}
	_, err := w.follow("bob@example.com", validation)
	w.is(err, errs.Denied)
	if to, err := w.follow(ada, recovery); err != nil || to != auth.OpenRecovery {
		t.Errorf("a recovery leads to %v, %v", to, err)
	}
	if to, err := w.follow("ADA@example.com", validation); err != nil || to != auth.AddressValidated {
		t.Errorf("a validation leads to %v, %v", to, err)
	}
	_, err = w.follow(ada, validation)
	w.is(err, errs.Denied)
	if string(w.record("Idents", "ada@example.com_email")["validated"]) != "true" || string(w.record("Idents", "bob@example.com_email")["validated"]) != "false" {
		t.Error("the wrong ident is validated")
	}
	w.must(recoverWith(ada, recovery)) // which the use of the other has left good
}

// Nothing that is kept or told is enough to use a token.
func TestOnlyTheHashOfATokenIsKept(t *testing.T) {
	w := begin(t, validatedFirst)
	c := creds(ada, password)
	_, _, err := w.Register(t.Context(), c, from)
	w.must(err)
	token := w.mail(ada).token
	box := w.record("Tokens", adaBox)
	if strings.Contains(string(box.Encode()), token) || len(token) != 43 {
		t.Errorf("token %s is in %s", token, box.Encode())
	}
	hash := string(object.Field(box["_issued"][1:], "hash"))
	if len(hash) != 43+2 {
		t.Fatalf("kept %s", box.Encode())
	}
	c.Token = strings.Trim(hash, `"`)
	_, _, err = w.Register(t.Context(), c, from)
	w.is(err, errs.Denied)
	c.Token = token
	in, _, err := w.Register(t.Context(), c, from)
	w.must(err)
	w.Close()
	w.told.mu.Lock()
	defer w.told.mu.Unlock()
	for _, secret := range []string{token, c.Password, strings.Trim(hash, `"`), in.Token[22:], "argon2id", "_issued", "_hash"} {
		if strings.Contains(w.told.raw.String(), secret) || strings.Contains(w.log.String(), secret) {
			t.Errorf("an event or the log holds %s", secret)
		}
	}
}

func TestMailsKeepTheirDistance(t *testing.T) {
	w := begin(t)
	w.user(ada, password) // asks for the first
	w.must(w.RequestRecovery(t.Context(), ada, from))
	for _, ask := range []func() error{
		func() error { return w.ResendValidation(t.Context(), ada, from) },
		func() error { return w.RequestRecovery(t.Context(), "Ada@example.com", from) },
	} {
		w.clock.pass(w.email.MailInterval)
		w.must(ask())
		err := ask()
		w.is(err, errs.Limited)
		var e *errs.Error
		if !errors.As(err, &e) || e.RetryAfter != w.email.MailInterval {
			t.Errorf("to be tried again after %v", e)
		}
		w.clock.pass(w.email.MailInterval - time.Second)
		if err = ask(); !errors.As(err, &e) || e.RetryAfter != time.Second {
			t.Errorf("to be tried again after %v", e)
		}
		w.clock.pass(time.Second)
		w.must(ask())
	}
	w.must(w.RequestRecovery(t.Context(), "bob@example.com", from)) // another address
	w.is(w.RequestRecovery(t.Context(), "bob@example.com", from), errs.Limited)
	if n := w.mails("bob@example.com"); n != 0 {
		t.Errorf("%d mails to nobody", n)
	}
}

func TestResend(t *testing.T) {
	w := begin(t)
	w.user(ada, password)
	first := w.mail(ada).token
	w.clock.pass(w.email.MailInterval)
	w.must(w.ResendValidation(t.Context(), ada, from))
	second := w.mail(ada)
	if second.kind != "validate" || second.token == first {
		t.Errorf("%+v", second)
	}
	must(w.follow(ada, first))
	_, err := w.follow(ada, second.token)
	w.is(err, errs.Denied) // one use takes all
	w.clock.pass(w.email.MailInterval)
	w.must(w.ResendValidation(t.Context(), ada, from))
	if n := w.mails(ada); n != 2 {
		t.Errorf("%d mails, though the address is validated", n)
	}
	w.is(w.ResendValidation(t.Context(), "", from), errs.Invalid)
	w.is(w.ResendValidation(t.Context(), "none", from), errs.Invalid)
}

func TestNoMailWhereNoneIsToBe(t *testing.T) {
	w := begin(t, func(o *auth.Options) { o.Email.SkipValidation = true })
	w.user(ada, password)
	w.must(w.ResendValidation(t.Context(), ada, from))
	if n := w.mails(ada); n != 0 {
		t.Errorf("%d mails", n)
	}
	w.clock.pass(w.email.MailInterval)
	w.must(w.RequestRecovery(t.Context(), ada, from))
	if m := w.mail(ada); m.kind != "recover" {
		t.Errorf("%+v", m)
	}
}

// A registration is not undone because its mail can't be asked for.
func TestARegistrationIsNotUndoneForItsMail(t *testing.T) {
	w := begin(t)
	w.must(w.ResendValidation(t.Context(), ada, from)) // takes the turn of the mail
	in := w.user(ada, password)
	w.enters(ada, password, in.User.UUID)
	if n := w.mails(ada); n != 0 {
		t.Errorf("%d mails", n)
	}
	w.clock.pass(w.email.MailInterval)
	w.must(w.ResendValidation(t.Context(), ada, from))
	must(w.follow(ada, w.mail(ada).token))
}

// asked returns the events that ask for mails to an address.
func (w *world) asked(box string) (found []*event.Envelope) {
	for _, name := range []event.Name{event.StoreSaved, event.StoreUpdated} {
		for _, e := range w.told.of(name, "Tokens") {
			if e.UUID == box && e.Origin != event.OriginMail {
				found = append(found, e)
			}
		}
	}
	return found
}

// An event comes at least once; a mail that is out is not sent again.
func TestDeliverIsRepeated(t *testing.T) {
	w := begin(t)
	w.user(ada, password)
	token := w.mail(ada).token
	first := w.asked(adaBox)[0]
	w.must(w.DeliverMail(t.Context(), first))
	w.clock.pass(w.email.MailInterval)
	w.must(w.ResendValidation(t.Context(), ada, from))
	w.must(w.DeliverMail(t.Context(), first)) // whose request is not the last any more
	if n := w.mails(ada); n != 2 {
		t.Errorf("%d mails, want 2", n)
	}
	if len(w.asked(adaBox)) != 2 {
		t.Error("what the listener notes asks for a mail")
	}
	must(w.follow(ada, token))

	// Of an address that is forgotten meanwhile.
	must(w.DeleteExpired(t.Context(), 100))
	w.must(w.set.Store("Tokens").Delete(t.Context(), adaBox, 0))
	w.must(w.DeliverMail(t.Context(), first))
}

// A request that was followed by another before its mail went out brings none.
func TestOnlyTheLastRequestIsAnswered(t *testing.T) {
	w := begin(t)
	w.user(ada, password)
	w.clock.pass(w.email.MailInterval)
	w.must(w.ResendValidation(t.Context(), ada, from))
	asked := w.asked(adaBox)
	w.must(w.DeliverMail(t.Context(), asked[0]))
	if n := len(w.box.to(ada)); n != 0 {
		t.Errorf("%d mails", n)
	}
	w.must(w.DeliverMail(t.Context(), asked[1]))
	w.must(w.DeliverMail(t.Context(), asked[0]))
	if n := len(w.box.to(ada)); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// While mails can't be sent the request waits. Failed attempts take nothing
// from the tokens that are out, nor from one that went out though nobody said so.
func TestDeliverIsTriedAgain(t *testing.T) {
	w := begin(t, validatedFirst)
	ask := func() {
		t.Helper()
		_, _, err := w.Register(t.Context(), creds(ada, password), from)
		w.must(err)
	}
	ask()
	before := w.mail(ada)
	w.clock.pass(w.email.MailInterval)
	ask()
	e := w.asked(adaBox)[1]

	away := errs.New(errs.Unavailable, "away")
	attempts := func(n int, fail, last error) {
		w.box.failing(fail, last)
		for range n {
			w.is(w.DeliverMail(t.Context(), e), errs.Unavailable)
		}
	}
	attempts(20, away, nil)
	attempts(1, nil, away)
	attempts(3, away, nil)
	w.box.failing(nil, nil)
	w.must(w.DeliverMail(t.Context(), e))
	w.must(w.DeliverMail(t.Context(), e))
	all := w.box.to(ada)
	if len(all) != 3 {
		t.Fatalf("%d mails, want 3", len(all))
	}
	lost, again := all[1], all[2]
	if lost.ID != again.ID || lost.ID == before.ID || lost.token == again.token {
		t.Errorf("the mail and its repetition: %+v, %+v", lost, again)
	}
	for i, l := range all {
		if _, err := w.follow(ada, l.token); err != nil {
			t.Errorf("the token of mail %d: %v", i, err)
		}
	}
}

// What no attempt gets through is told as such, and does not keep the next
// request from being sent.
func TestDeliverGivesUp(t *testing.T) {
	w := begin(t, validatedFirst)
	_, _, err := w.Register(t.Context(), creds(ada, password), from)
	w.must(err)
	w.box.failing(errs.New(errs.Invalid, "refused"), nil)
	w.is(w.deliver(), errs.Invalid)
	w.box.failing(nil, nil)
	w.clock.pass(w.email.MailInterval)
	_, _, err = w.Register(t.Context(), creds(ada, password), from)
	w.must(err)
	if n := w.mails(ada); n != 1 {
		t.Errorf("%d mails", n)
	}
}
