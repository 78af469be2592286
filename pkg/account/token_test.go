package account_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/post"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
)

// adaBox is the mailbox of ada.
const adaBox = "ada@example.com_mail"

// followLink follows the link of a mail.
func (w *fixture) followLink(login, token string) (post.Outcome, error) {
	w.Helper()
	return w.Registration.FollowLink(w.Context(), login, token, from)
}

// A command line would take such a token for a flag.
func TestNoSecretBeginsWithAHyphen(t *testing.T) {
	for range 1000 {
		if secret := account.NewSecret(); strings.HasPrefix(secret, "-") {
			t.Fatal(secret)
		}
	}
}

func TestATokenExpires(t *testing.T) {
	w := newFixture(t, validatedFirst)
	c := credentials(ada, password)
	_, _, err := w.Registration.Register(t.Context(), c, from)
	w.must(err)
	c.Token = w.lastMail(ada).token
	w.clock.advance(w.email.TokenTTL - time.Microsecond)
	if to, err := w.followLink(ada, c.Token); err != nil || to != post.OpenRegistration {
		t.Errorf("just before its end: %v, %v", to, err)
	}
	for _, later := range []time.Duration{time.Microsecond, time.Hour} {
		w.clock.advance(later)
		_, err = w.followLink(ada, c.Token)
		w.wantKind(err, errs.Denied)
	}
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.wantKind(err, errs.Denied)
	if len(w.objects("Users")) > 0 {
		t.Error("registered with a token that is too old")
	}
}

// A token's TTL starts when its mail is sent, which may be days after the
// request.
func TestTheTokenOfALateMailIsValid(t *testing.T) {
	w := newFixture(t, validatedFirst)
	c := credentials(ada, password)
	_, _, err := w.Registration.Register(t.Context(), c, from)
	w.must(err)
	w.clock.advance(3 * 24 * time.Hour)
	must(w.DeleteExpired(t.Context(), 100))
	c.Token = w.lastMail(ada).token
	w.clock.advance(w.email.TokenTTL - time.Second)
	must(w.DeleteExpired(t.Context(), 100))
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.must(err)
}

func TestATokenIsForOnePurposeAndOneAddress(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password)
	w.register("bob@example.com", password)
	validation := w.lastMail(ada).token
	w.clock.advance(w.email.MailInterval)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	recovery := w.lastMail(ada).token

	recoverWith := func(login, token string) error {
		c := credentials(login, "another password")
		c.Token = token
		return w.Recovery.Recover(t.Context(), c, from)
	}
	w.wantKind(recoverWith(ada, validation), errs.Denied)
	w.wantKind(recoverWith("bob@example.com", recovery), errs.Denied)
	w.wantKind(recoverWith(ada, ""), errs.Denied)
	for _, kept := range w.objects("Tokens") {
		w.wantKind(recoverWith(ada, string(kept.Body)), errs.Denied)
	}
	_, err := w.followLink("bob@example.com", validation)
	w.wantKind(err, errs.Denied)
	if to, err := w.followLink(ada, recovery); err != nil || to != post.OpenRecovery {
		t.Errorf("a recovery leads to %v, %v", to, err)
	}
	if to, err := w.followLink("ADA@example.com", validation); err != nil || to != post.AddressValidated {
		t.Errorf("a validation leads to %v, %v", to, err)
	}
	_, err = w.followLink(ada, validation)
	w.wantKind(err, errs.Denied)
	if string(w.record("Idents", "ada@example.com_email")["validated"]) != "true" ||
		string(w.record("Idents", "bob@example.com_email")["validated"]) != "false" {
		t.Error("the wrong ident is validated")
	}
	w.must(recoverWith(ada, recovery)) // which the use of the other has left good
}

// Neither stores nor events contain the token.
func TestOnlyTheHashOfAMailedTokenIsStored(t *testing.T) {
	w := newFixture(t, validatedFirst)
	c := credentials(ada, password)
	_, _, err := w.Registration.Register(t.Context(), c, from)
	w.must(err)
	token := w.lastMail(ada).token
	box := w.record("Tokens", adaBox)
	if strings.Contains(string(box.Encode()), token) || len(token) != 43 {
		t.Errorf("token %s is in %s", token, box.Encode())
	}
	hash := string(object.Field(box["_issued"][1:], "hash"))
	if len(hash) != 43+2 {
		t.Fatalf("kept %s", box.Encode())
	}
	c.Token = strings.Trim(hash, `"`)
	_, _, err = w.Registration.Register(t.Context(), c, from)
	w.wantKind(err, errs.Denied)
	c.Token = token
	in, _, err := w.Registration.Register(t.Context(), c, from)
	w.must(err)
	w.Close()
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	for _, secret := range []string{token, c.Password, strings.Trim(hash, `"`), in.Token[22:], "argon2id", "_issued",
		"_hash"} {
		if strings.Contains(w.recorder.raw.String(), secret) || strings.Contains(w.log.String(), secret) {
			t.Errorf("an event or the log holds %s", secret)
		}
	}
}

func TestMailsAreLimitedByInterval(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password) // requests the first
	w.must(w.Recovery.Request(t.Context(), ada, from))
	for _, ask := range []func() error{
		func() error { return w.Registration.ResendValidation(t.Context(), ada, from) },
		func() error { return w.Recovery.Request(t.Context(), "Ada@example.com", from) },
	} {
		w.clock.advance(w.email.MailInterval)
		w.must(ask())
		err := ask()
		w.wantKind(err, errs.Limited)
		var e *errs.Error
		if !errors.As(err, &e) || e.RetryAfter != w.email.MailInterval {
			t.Errorf("to be tried again after %v", e)
		}
		w.clock.advance(w.email.MailInterval - time.Second)
		if err = ask(); !errors.As(err, &e) || e.RetryAfter != time.Second {
			t.Errorf("to be tried again after %v", e)
		}
		w.clock.advance(time.Second)
		w.must(ask())
	}
	w.must(w.Recovery.Request(t.Context(), "bob@example.com", from)) // another address
	w.wantKind(w.Recovery.Request(t.Context(), "bob@example.com", from), errs.Limited)
	if n := w.countMails("bob@example.com"); n != 0 {
		t.Errorf("%d mails to unknown logins", n)
	}
}

func TestResendValidation(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password)
	first := w.lastMail(ada).token
	w.clock.advance(w.email.MailInterval)
	w.must(w.Registration.ResendValidation(t.Context(), ada, from))
	second := w.lastMail(ada)
	if second.kind != "validate" || second.token == first {
		t.Errorf("%+v", second)
	}
	must(w.followLink(ada, first))
	_, err := w.followLink(ada, second.token)
	w.wantKind(err, errs.Denied) // one use takes all
	w.clock.advance(w.email.MailInterval)
	w.must(w.Registration.ResendValidation(t.Context(), ada, from))
	if n := w.countMails(ada); n != 2 {
		t.Errorf("%d mails, though the address is validated", n)
	}
	w.wantKind(w.Registration.ResendValidation(t.Context(), "", from), errs.Invalid)
	w.wantKind(w.Registration.ResendValidation(t.Context(), "none", from), errs.Invalid)
}

func TestNoValidationMailIsSentWhenSkipped(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Email.SkipValidation = true })
	w.register(ada, password)
	w.must(w.Registration.ResendValidation(t.Context(), ada, from))
	if n := w.countMails(ada); n != 0 {
		t.Errorf("%d mails", n)
	}
	w.clock.advance(w.email.MailInterval)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	if m := w.lastMail(ada); m.kind != "recover" {
		t.Errorf("%+v", m)
	}
}

// A registration succeeds even if its mail can't be requested.
func TestARegistrationSucceedsWithoutItsMail(t *testing.T) {
	w := newFixture(t)
	w.must(w.Registration.ResendValidation(t.Context(), ada, from)) // takes the turn of the mail
	in := w.register(ada, password)
	w.mustLogin(ada, password, in.User.UUID)
	if n := w.countMails(ada); n != 0 {
		t.Errorf("%d mails", n)
	}
	w.clock.advance(w.email.MailInterval)
	w.must(w.Registration.ResendValidation(t.Context(), ada, from))
	must(w.followLink(ada, w.lastMail(ada).token))
}

// mailRequests returns the events that request mails to an address.
func (w *fixture) mailRequests(box string) (found []*event.Envelope) {
	for _, name := range []event.Name{event.StoreSaved, event.StoreUpdated} {
		for _, e := range w.recorder.of(name, "Tokens") {
			if e.UUID == box && e.Origin != event.OriginMail {
				found = append(found, e)
			}
		}
	}
	return found
}

// Events are delivered at least once.
func TestARepeatedEventSendsNoSecondMail(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password)
	token := w.lastMail(ada).token
	first := w.mailRequests(adaBox)[0]
	w.must(w.Post.Deliver(t.Context(), first))
	w.clock.advance(w.email.MailInterval)
	w.must(w.Registration.ResendValidation(t.Context(), ada, from))
	w.must(w.Post.Deliver(t.Context(), first)) // whose request is not the last any more
	if n := w.countMails(ada); n != 2 {
		t.Errorf("%d mails, want 2", n)
	}
	if len(w.mailRequests(adaBox)) != 2 {
		t.Error("what the listener records requests a mail")
	}
	must(w.followLink(ada, token))

	// The mailbox may have been deleted.
	must(w.DeleteExpired(t.Context(), 100))
	w.must(w.set.Store("Tokens").Delete(t.Context(), adaBox, 0))
	w.must(w.Post.Deliver(t.Context(), first))
}

func TestOnlyTheLatestRequestSendsAMail(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Registration.ResendValidation(t.Context(), ada, from))
	asked := w.mailRequests(adaBox)
	w.must(w.Post.Deliver(t.Context(), asked[0]))
	if n := len(w.sender.to(ada)); n != 0 {
		t.Errorf("%d mails", n)
	}
	w.must(w.Post.Deliver(t.Context(), asked[1]))
	w.must(w.Post.Deliver(t.Context(), asked[0]))
	if n := len(w.sender.to(ada)); n != 1 {
		t.Errorf("%d mails", n)
	}
}

// Failed attempts do not invalidate tokens that were mailed, nor that of a mail
// that was sent although the attempt returned an error.
func TestDeliveryIsRetried(t *testing.T) {
	w := newFixture(t, validatedFirst)
	ask := func() {
		t.Helper()
		_, _, err := w.Registration.Register(t.Context(), credentials(ada, password), from)
		w.must(err)
	}
	ask()
	before := w.lastMail(ada)
	w.clock.advance(w.email.MailInterval)
	ask()
	e := w.mailRequests(adaBox)[1]

	away := errs.New(errs.Unavailable, "away")
	attempts := func(n int, fail, last error) {
		w.sender.failWith(fail, last)
		for range n {
			w.wantKind(w.Post.Deliver(t.Context(), e), errs.Unavailable)
		}
	}
	attempts(20, away, nil)
	attempts(1, nil, away)
	attempts(3, away, nil)
	w.sender.failWith(nil, nil)
	w.must(w.Post.Deliver(t.Context(), e))
	w.must(w.Post.Deliver(t.Context(), e))
	all := w.sender.to(ada)
	if len(all) != 3 {
		t.Fatalf("%d mails, want 3", len(all))
	}
	lost, again := all[1], all[2]
	if lost.ID != again.ID || lost.ID == before.ID || lost.token == again.token {
		t.Errorf("the mail and its repetition: %+v, %+v", lost, again)
	}
	for i, l := range all {
		if _, err := w.followLink(ada, l.token); err != nil {
			t.Errorf("the token of mail %d: %v", i, err)
		}
	}
}

// A permanent error does not prevent the next request from being sent.
func TestAPermanentErrorEndsDelivery(t *testing.T) {
	w := newFixture(t, validatedFirst)
	_, _, err := w.Registration.Register(t.Context(), credentials(ada, password), from)
	w.must(err)
	w.sender.failWith(errs.New(errs.Invalid, "refused"), nil)
	w.wantKind(w.deliverMails(), errs.Invalid)
	w.sender.failWith(nil, nil)
	w.clock.advance(w.email.MailInterval)
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), from)
	w.must(err)
	if n := w.countMails(ada); n != 1 {
		t.Errorf("%d mails", n)
	}
}
