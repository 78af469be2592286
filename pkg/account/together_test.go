package account_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/places"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/store"
	"belfry/test/kit/authenticator"
)

// The tests of this file are about flows that meet: each flow has tests of its own elsewhere.

// Where a second factor is required, a session without one adds one, and does nothing else: above all it makes no API
// key, which is never asked for one.
func TestASessionThatHasToAddAFactorDoesNothingElse(t *testing.T) {
	w := newFixture(t, withPasskeys, deletable, func(o *account.Options) { o.MFA.Policy = sessions.MFARequired })
	in := w.register(ada, password)
	me := &in.Session
	for what, do := range map[string]func() error{
		"a key": func() error {
			_, _, err := w.Keys.Create(t.Context(), keys.New{Name: "k"}, password, with(in))
			return err
		},
		"a password": func() error {
			_, err := w.Recovery.ChangePassword(t.Context(), password, "another fine password", with(in))
			return err
		},
		"another address": func() error {
			_, _, err := w.Registration.Register(t.Context(), credentials(bob, password), with(in))
			return err
		},
		"a change of address": func() error {
			return w.Addresses.Request(t.Context(), adaIdent, newAda, password, with(in))
		},
		"an export":    func() error { _, err := w.Exports.Begin(t.Context(), me); return err },
		"a deletion":   func() error { _, _, err := w.Deletion.Plan(t.Context(), password, with(in)); return err },
		"an unlinking": func() error { return w.Links.Unlink(t.Context(), me, adaIdent) },
		"a token":      func() error { _, err := w.Providers.ProviderToken(t.Context(), me, adaIdent); return err },
	} {
		var step *errs.StepUp
		if err := do(); !errors.As(err, &step) || step.Step != errs.StepEnroll {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := w.addPasskey(authenticator.New(t, authenticator.ES256, origin), "", me)
	w.must(err)
	in = w.enroll(in).Issued
	_, _, err = w.Keys.Create(t.Context(), keys.New{Name: "k"}, password, with(in))
	w.must(err)
}

// One mailbox is one factor, also while codes of mails are being added: a session that began by a mail is not raised by
// another one.
func TestALoginByMailDoesNotAddCodesOfMails(t *testing.T) {
	w := newFixture(t, validatedFirst)
	w.register(ada, password)
	for _, kind := range []string{record.MethodCode, record.MethodLink} {
		w.clock.advance(w.email.MailInterval)
		client := w.requestLogin(ada, kind)
		secret := w.lastMail(ada).secret()
		in, err := w.Login.LoginByMail(t.Context(), ada, secret, client)
		w.must(err)
		w.clock.advance(w.email.MailInterval)
		w.wantKind(w.BeginMailFactor(t.Context(), &in.Session), errs.Conflict)
		_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorEmail, "123456", with(in))
		w.wantKind(err, errs.Conflict)
	}
}

// enrollEmail adds codes of mails as a second factor.
func (w *fixture) enrollEmail(in sessions.Issued, address string) sessions.Issued {
	w.Helper()
	w.clock.advance(w.email.MailInterval)
	w.must(w.BeginMailFactor(w.Context(), &in.Session))
	raised, _, err := w.Enrollment.Confirm(w.Context(), record.FactorEmail, w.lastMail(address).secret(), with(in))
	w.must(err)
	return raised
}

// Whatever becomes of the addresses of a user, the codes of the second factor arrive.
func TestTheAddressOfASecondFactorStays(t *testing.T) {
	w := newFixture(t, withPasskeys)
	in := w.register(ada, password)
	c := authenticator.New(t, authenticator.ES256, origin)
	_, err := w.addPasskey(c, "", &in.Session)
	w.must(err)
	in = w.enrollEmail(in, ada)
	w.wantKind(w.Links.Unlink(t.Context(), &in.Session, adaIdent), errs.Conflict)
	w.wantKind(w.Admin.UnlinkFor(t.Context(), in.User.UUID, adaIdent), errs.Conflict)
	in, _, err = w.Registration.Register(t.Context(), credentials(bob, password), with(in)) // which nobody has proven
	w.must(err)
	w.clock.advance(w.email.MailInterval)
	w.must(w.MailSecondCode(t.Context(), w.beginLogin(ada).Secret, from))
	if m := w.lastMail(ada); m.kind != "code" {
		t.Errorf("the mail is %s", m.kind)
	}
	w.must(w.Links.Unlink(t.Context(), &in.Session, adaIdent)) // the other one is the only one then
	w.wantKind(w.Links.Unlink(t.Context(), &in.Session, "bob@example.com_email"), errs.Conflict)
	w.clock.advance(w.email.MailInterval)
	w.must(w.MailSecondCode(t.Context(), w.beginLogin(bob).Secret, from))
	if m := w.lastMail(bob); m.kind != "code" {
		t.Errorf("the mail is %s", m.kind)
	}
	w.wantKind(w.Links.Unlink(t.Context(), &in.Session, "bob@example.com_email"), errs.Conflict)
	session, err := w.loginByPasskey(c)
	w.must(err)
	w.must(w.Enrollment.Remove(t.Context(), &session.Session, record.FactorEmail))
	w.must(w.Links.Unlink(t.Context(), &session.Session, "bob@example.com_email"))
}

// A code proves the address to which it was sent, and no other one: neither the address of a later mail, nor one that
// the user has not any more.
func TestACodeProvesTheAddressThatItWasSentTo(t *testing.T) {
	w := newFixture(t)
	first := w.register(ada, password)
	w.must(w.BeginMailFactor(t.Context(), &first.Session))
	code := w.lastMail(ada).secret()
	second := w.mustLogin(ada, password, first.User.UUID)
	// The address of somebody else.
	second, _, err := w.Registration.Register(t.Context(), credentials(bob, password), with(second))
	w.must(err)
	w.must(w.Links.Unlink(t.Context(), &second.Session, adaIdent))
	w.clock.advance(w.email.MailInterval)
	w.must(w.BeginMailFactor(t.Context(), &second.Session))
	_, _, err = w.Enrollment.Confirm(t.Context(), record.FactorEmail, code, with(first))
	w.wantKind(err, errs.Conflict)
	if proven := w.record("Idents", "bob@example.com_email")["_proven"]; string(proven) == "true" {
		t.Error("an address is proven to which no code was sent")
	}
}

// The secret of a login that waits for its second factor names no other record: a uuid is no secret.
func TestAUUIDIsNoSecretOfALogin(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.enrollEmail(w.register(ada, password), ada)
	before := w.objects("Tokens")
	for _, secret := range []string{in.User.UUID, ada, in.ID} {
		_, err := w.Login.CompleteLogin(t.Context(), secret, emailFactor("123456"), from)
		w.wantKind(err, errs.Unauthenticated)
	}
	for i, after := range w.objects("Tokens") {
		if after.Revision != before[i].Revision {
			t.Errorf("%s was written: %s", after.UUID, after.Body)
		}
	}
}

// A change of address keeps the factor, whose codes go to the new one.
func TestCodesOfMailsFollowAChangeOfAddress(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.enrollEmail(w.register(ada, password), ada)
	confirm, _ := w.change(in, ada, newAda, password)
	w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
	w.clock.advance(w.email.MailInterval)
	w.must(w.MailSecondCode(t.Context(), w.beginLogin(newAda).Secret, from))
	if m := w.lastMail(newAda); m.kind != "code" {
		t.Errorf("the mail is %s", m.kind)
	}
}

// A passkey that is removed while passkeys become a second factor leaves no factor that nobody can prove.
func TestPasskeysBecomeNoFactorWhileTheLastIsRemoved(t *testing.T) {
	w, in, c := withPasskey(t)
	own := authenticator.Encode(c.ID) + "_passkey"
	other, _ := w.newService()
	var unlinked error
	w.backend.onStep(onceAt(func(s step) bool { return s.store == "Users" && s.write != nil && !s.after }, func() {
		unlinked = other.Links.Unlink(t.Context(), &in.Session, own)
	}))
	_, err := w.AddPasskeyFactor(t.Context(), &in.Session)
	w.backend.onStep(nil)
	w.must(unlinked)
	w.wantKind(err, errs.Conflict)
	w.mustLogin(ada, password, in.User.UUID)
}

// A thief who has changed the address leaves nothing that keeps the owner out, or lets the thief in again, once the
// owner has undone that.
func TestAnUndoneChangeLeavesNothingOfTheThief(t *testing.T) {
	t.Run("passkeys", func(t *testing.T) {
		w := newFixture(t, validatedFirst, withPasskeys)
		in := w.register(ada, password)
		owners, thiefs := authenticator.New(t, authenticator.ES256, origin),
			authenticator.New(t, authenticator.ES256, origin)
		added, err := w.addPasskey(owners, "", &in.Session)
		w.must(err)
		_, err = w.AddPasskeyFactor(t.Context(), &in.Session)
		w.must(err)
		in, err = w.loginByPasskey(owners)
		w.must(err)
		confirm, undo := w.change(in, ada, newAda, password)
		w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
		_, err = w.addPasskey(thiefs, "", w.now(in).Session)
		w.must(err)
		w.must(w.Links.Unlink(t.Context(), w.now(in).Session, added.UUID))
		w.must(w.finish(w.Service, ada, undo, from))
		w.wantAddresses(in.User.UUID, adaIdent)
		w.must(w.Recovery.Recover(t.Context(), w.recoveryOf(ada, "the next password"), from))
		w.mustLogin(ada, "the next password", in.User.UUID) // there is no passkey that could be asked for
	})
	t.Run("recovery codes and a deletion", func(t *testing.T) {
		w := newFixture(t, validatedFirst, deletable)
		e := w.enroll(w.register(ada, password))
		confirm, undo := w.change(e.Issued, ada, newAda, password)
		w.must(w.finish(w.Service, newAda, confirm, w.now(e.Issued)))
		codes, err := w.Enrollment.RenewRecoveryCodes(t.Context(), w.now(e.Issued).Session)
		w.must(err)
		_, _, err = w.Deletion.Plan(t.Context(), password, w.now(e.Issued))
		w.must(err)
		w.must(w.finish(w.Service, ada, undo, from))
		if o := w.record("Users", e.User.UUID); o["_deleteAt"] != nil || o["_deletionPlanned"] != nil {
			t.Error("the deletion that the thief has planned is left")
		}
		if n := len(w.recorder.of(event.AuthDeletionUndone, "Users")); n != 1 {
			t.Errorf("%d events", n)
		}
		w.must(w.Recovery.Recover(t.Context(), w.recoveryOf(ada, password), from))
		_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, recoveryFactor(codes[0]), from)
		w.wantKind(err, errs.Invalid)
		_, err = w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(w.totpCode(e.secret, 0)), from)
		w.must(err)
	})
	t.Run("a deletion of before", func(t *testing.T) {
		w := newFixture(t, validatedFirst, deletable)
		in := w.plan(w.register(ada, password))
		confirm, undo := w.change(in, ada, newAda, password)
		w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
		w.must(w.finish(w.Service, ada, undo, from))
		if o := w.record("Users", in.User.UUID); o["_deleteAt"] == nil {
			t.Error("the deletion that the owner has planned is gone")
		}
	})
}

// A password that an account gets with an address is a password that is set.
func TestAPasswordThatComesWithAnAddressIsNoticed(t *testing.T) {
	w := newFixture(t, configuredNotices)
	w.register(ada, password)
	code, client := w.mailedCode(ada)
	// Removes the password, which was perhaps a stranger's.
	in, err := w.Login.LoginByMail(t.Context(), ada, code, client)
	w.must(err)
	w.wantKinds(ada)
	in, _, err = w.Registration.Register(t.Context(), credentials(bob, "a second password"), with(in))
	w.must(err)
	w.wantKinds(ada, "loginAdded", "password")
	_, _, err = w.Registration.Register(t.Context(), credentials("ada@example.org", "a second password"), with(in))
	w.must(err)
	w.wantKinds(ada, "loginAdded", "password", "loginAdded")
}

// Of two factors that are removed at once, one stays where one is required.
func TestOfTwoFactorsThatAreRemovedAtOnceOneStays(t *testing.T) {
	for range 10 {
		w := newFixture(t, withPasskeys, func(o *account.Options) { o.MFA.Policy = sessions.MFARequired })
		in := w.enroll(w.register(ada, password)).Issued
		_, err := w.addPasskey(authenticator.New(t, authenticator.ES256, origin), "", &in.Session)
		w.must(err)
		_, err = w.AddPasskeyFactor(t.Context(), &in.Session)
		w.must(err)
		me := w.now(in).Session
		concurrently(w.twoServices(), 2, func(i int, s *account.Service) {
			w.allowKinds(s.Enrollment.Remove(t.Context(), me, []string{record.FactorTOTP, record.FactorPasskey}[i]),
				errs.Conflict)
		})
		if n := len(w.Enrollment.Factors(t.Context(), w.now(in).Session).Factors); n != 1 {
			t.Fatalf("%d factors are left", n)
		}
	}
}

// Whoever is deleted during a step-up gets no empty session.
func TestAUserWhoIsDeletedDuringAStepUp(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	reads := 0
	w.backend.onStep(func(_ context.Context, s step) error {
		if s.store == "Users" && s.write == nil {
			if reads++; reads == 2 {
				w.must(w.set.Store("Users").Delete(t.Context(), in.User.UUID, 0))
			}
		}
		return nil
	})
	_, err := w.StepUp.StepUp(t.Context(), password, method.Answer{}, with(in))
	w.backend.onStep(nil)
	w.wantKind(err, errs.Unauthenticated)
	if w.record("Users", in.User.UUID) != nil {
		t.Error("the user was not deleted")
	}
}

// recoveryOf returns a recovery by the last mail to an address.
func (w *fixture) recoveryOf(address, password string) passwords.Credentials {
	w.Helper()
	c := credentials(address, password)
	c.Token = w.lastMail(address).token
	return c
}

func TestNoticesOfFactorsPasskeysAndDeletions(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices, withPasskeys, deletable)
	in := w.register(ada, password)
	var want []string
	expect := func(kind string) {
		t.Helper()
		want = append(want, kind)
		w.wantKinds(ada, want...)
		w.clock.advance(account.NoticePeriod / 60)
	}
	e := w.enroll(in)
	in = e.Issued
	expect("factorAdded")
	c, second := authenticator.New(t, authenticator.ES256, origin), authenticator.New(t, authenticator.ES256, origin)
	_, err := w.addPasskey(c, "", &in.Session)
	w.must(err)
	expect("factorAdded")
	added, err := w.addPasskey(second, "", &in.Session)
	w.must(err)
	expect("factorAdded")
	w.must(w.Links.Unlink(t.Context(), &in.Session, added.UUID))
	expect("factorRemoved")
	w.must(w.Enrollment.Remove(t.Context(), &in.Session, record.FactorTOTP))
	expect("factorRemoved")
	_, err = w.AddPasskeyFactor(t.Context(), w.now(in).Session)
	w.must(err)
	expect("factorAdded")
	// What did not happen is not reported.
	_, err = w.AddPasskeyFactor(t.Context(), w.now(in).Session)
	w.wantKind(err, errs.Exists)
	w.wantKind(w.Enrollment.Remove(t.Context(), w.now(in).Session, record.FactorTOTP), errs.NotFound)
	w.wantKind(w.Links.Unlink(t.Context(), w.now(in).Session, authenticator.Encode(c.ID)+"_passkey"), errs.Conflict)
	w.wantKinds(ada, want...)
	w.clock.advance(account.NoticePeriod)
	_, err = w.Admin.ResetFactors(t.Context(), in.User.UUID)
	w.must(err)
	expect("factorRemoved")
	w.must(w.Admin.UnlinkFor(t.Context(), in.User.UUID, authenticator.Encode(c.ID)+"_passkey"))
	expect("factorRemoved")
	in = w.mustLogin(ada, password, in.User.UUID)
	in = w.enrollEmail(in, ada)
	expect("factorAdded")
	w.plan(in)
	expect("deletion")
}

// Where an admin works is no business of the user.
func TestANoticeNamesTheNetworkAddressOfTheUserAlone(t *testing.T) {
	database := must(places.Open(must(os.ReadFile("places/testdata/GeoLite2-City-Test.mmdb"))))
	w := newFixture(t, validatedFirst, configuredNotices, func(o *account.Options) { o.Places = database })
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	in := w.register(ada, password)
	admin := "an-admin"
	of := func(address string) store.Call {
		return store.Call{Origin: event.OriginHTTP, Actor: &admin, Ctx: event.Ctx{Address: address, UserAgent: firefox}}
	}
	must(w.Admin.SetPassword(store.WithCall(t.Context(), of("2.125.160.216")), in.User.UUID,
		"the password of an admin"))
	if m := w.lastMail(ada); m.kind != "password" || strings.Contains(m.Text, "2.125.160.216") ||
		strings.Contains(m.Text, "Firefox") || strings.Contains(m.Text, "United Kingdom") {
		t.Errorf("%s: %q", m.kind, m.Text)
	}
	in = w.mustLogin(ada, "the password of an admin", in.User.UUID)
	_, err := w.Recovery.ChangePassword(store.WithCall(t.Context(), of("89.160.20.112")), "the password of an admin",
		password, with(in))
	w.must(err)
	if m := w.lastMail(ada); m.kind != "password" || !strings.Contains(m.Text, "89.160.20.112") ||
		!strings.Contains(m.Text, "Firefox on Linux") || !strings.Contains(m.Text, "Linköping, Sweden") {
		t.Errorf("%s: %q", m.kind, m.Text)
	}
}

func TestAnExportedAccountHasSecondFactorsAndPasskeys(t *testing.T) {
	w, in, c := withPasskey(t)
	e := w.enroll(in)
	_, err := w.AddPasskeyFactor(t.Context(), &e.Session)
	w.must(err)
	me := w.now(e.Issued).Session
	exported, err := w.Exports.Account(t.Context(), me)
	w.must(err)
	text, err := json.Marshal(exported)
	w.must(err)
	var got struct {
		SecondFactors struct {
			Factors       []struct{ Type, Created string }
			RecoveryCodes int
		}
		Passkeys []struct{ UUID, Name string }
	}
	w.must(json.Unmarshal(text, &got))
	if f := got.SecondFactors; fmt.Sprint(len(f.Factors), f.RecoveryCodes) != "2 10" ||
		f.Factors[0].Type != record.FactorTOTP {
		t.Errorf("%s", text)
	}
	if len(got.Passkeys) != 1 || got.Passkeys[0].Name != "Laptop" ||
		got.Passkeys[0].UUID != authenticator.Encode(c.ID)+"_passkey" {
		t.Errorf("%s", text)
	}
	for _, secret := range append([]string{e.secret, "publicKey", "_credential", "_factors", "signCount"}, e.codes...) {
		if strings.Contains(string(text), secret) {
			t.Errorf("%s is in %s", secret, text)
		}
	}
}

// A clock that was ahead, and is set back, keeps nobody with an authenticator app out.
func TestCodesAreAcceptedAfterTheClockWasSetBack(t *testing.T) {
	w := newFixture(t)
	e := w.enroll(w.register(ada, password))
	complete := func(steps int) error {
		_, err := w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(w.totpCode(e.secret, steps)),
			from)
		return err
	}
	w.clock.advance(24 * time.Hour)
	w.must(complete(0))
	w.clock.advance(-24 * time.Hour)
	w.must(complete(0))
	w.wantKind(complete(0), errs.Denied)
	w.wantKind(complete(-1), errs.Denied)
	w.clock.advance(-30 * time.Second) // as that of another process may be
	w.wantKind(complete(1), errs.Denied)
}

// Challenges for a second factor are counted as those of a login: whoever has a password must not fill the store of
// tokens.
func TestChallengesOfASecondFactorAreLimited(t *testing.T) {
	fixture := func() (*fixture, *authenticator.Credential) {
		w := newFixture(t, withPasskeys, limits(10, 0))
		in, c := w.register(ada, password), authenticator.New(t, authenticator.ES256, origin)
		_, err := w.addPasskey(c, "", &in.Session)
		w.must(err)
		_, err = w.AddPasskeyFactor(t.Context(), &in.Session)
		w.must(err)
		w.clock.advance(time.Minute)
		return w, c
	}
	w, _ := fixture()
	p := w.beginLogin(ada)
	err := error(nil)
	for i := 0; i < 20 && err == nil; i++ {
		_, err = w.Login.Ask(t.Context(), record.FactorPasskey, p.Secret, from)
	}
	w.wantKind(err, errs.Limited)

	w, c := fixture()
	for range 20 { // what succeeds costs nothing
		p := w.beginLogin(ada)
		options, err := w.Login.Ask(t.Context(), record.FactorPasskey, p.Secret, from)
		w.must(err)
		answer := method.Answer{Type: record.FactorPasskey,
			Signed: method.Signed{Credential: c.Get(options.Options), Secret: options.Secret}}
		in, err := w.Login.CompleteLogin(t.Context(), p.Secret, answer, from)
		w.must(err)
		options, err = w.Login.Ask(t.Context(), record.FactorPasskey, "", with(in))
		w.must(err)
		answer.Signed = method.Signed{Credential: c.Get(options.Options), Secret: options.Secret}
		_, err = w.StepUp.StepUp(t.Context(), "", answer, with(in))
		w.must(err)
	}
}

// A passkey is two factors: who has begun to add one before the account had a second factor needs that one to end it.
func TestAPasskeyThatWasBegunBeforeTheSecondFactorNeedsIt(t *testing.T) {
	w := newFixture(t, withPasskeys)
	in := w.register(ada, password)
	stolen := w.mustLogin(ada, password, in.User.UUID)
	c := authenticator.New(t, authenticator.ES256, origin)
	challenge, err := w.Passkeys.BeginRegistration(t.Context(), &stolen.Session)
	w.must(err)
	w.enroll(in)
	_, err = w.Passkeys.Add(t.Context(), "",
		method.Signed{Credential: c.Create(challenge.Options), Secret: challenge.Secret}, w.now(stolen).Session)
	w.wantStep(err, errs.StepSecondFactor)
}

// What a stolen session has begun before the account had a second factor is not ended without that.
func TestLoginsThatWereBegunBeforeTheSecondFactorNeedIt(t *testing.T) {
	w := newFixture(t, validatedFirst, github)
	in := w.register(ada, password)
	stolen := w.mustLogin(ada, password, in.User.UUID)
	confirm, _ := w.change(stolen, ada, newAda, password)
	flow, err := w.Providers.Begin(t.Context(), "github", true, w.now(stolen))
	w.must(err)
	to, err := url.Parse(flow.URL)
	w.must(err)
	w.enroll(in)
	w.wantStep(w.finish(w.Service, newAda, confirm, w.now(stolen)), errs.StepSecondFactor)
	_, _, err = w.Login.FinishProvider(t.Context(), url.Values{"state": {to.Query().Get("state")}, "code": {"thief"}},
		flow.Secret, w.now(stolen))
	w.wantStep(err, errs.StepSecondFactor)
	w.wantAddresses(in.User.UUID, adaIdent)
}

// Nobody delays the second factor of somebody else without their password or a session of theirs.
func TestOnlyWhoHasAFirstFactorDelaysTheSecond(t *testing.T) {
	w := newFixture(t, validatedFirst, withPasskeys, limits(0, 3))
	e := w.enroll(w.register(ada, password))
	eve := w.enroll(w.register("eve@example.com", password))
	c := authenticator.New(t, authenticator.ES256, origin)
	for range 20 {
		for _, secret := range []string{"", "guessed", w.beginLogin("eve@example.com").Secret} {
			_, _ = w.Login.CompleteLogin(t.Context(), secret, totpFactor("000000"), from)
		}
		_, _ = w.StepUp.StepUp(t.Context(), "", totpFactor("000000"), with(eve.Issued))
		_, _ = w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
		_, _ = w.Login.LoginByMail(t.Context(), ada, "000000", w.requestLoginUnlessLimited(ada))
		_, _ = w.loginByPasskey(c)
		w.clock.advance(w.email.MailInterval)
	}
	w.clock.advance(16 * time.Minute) // those of the first factor
	_, err := w.Login.CompleteLogin(t.Context(), w.beginLogin(ada).Secret, totpFactor(w.totpCode(e.secret, 0)), from)
	w.must(err)
	w.Close()
	if !slices.Contains(w.audited(e.User.UUID), event.AuthLoginFailed) {
		t.Error("the attack has not reached the account")
	}
}

func (w *fixture) requestLoginUnlessLimited(login string) sessions.Client {
	pending, err := w.Mails.RequestLogin(w.Context(), login, record.MethodCode, from)
	w.allowKinds(err, errs.Limited)
	return bound(from, pending)
}
