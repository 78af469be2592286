package account_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/flow/logins"
	"belfry/pkg/account/keys"
	"belfry/pkg/account/method"
	"belfry/pkg/account/notices"
	"belfry/pkg/account/post"
	"belfry/pkg/account/record"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Attacks on an account that begin with a feature and end with another one.

const (
	eve      = "eve@example.com"
	eve2     = "eve2@example.com"
	stranger = "the password of a stranger"
)

// add adds an address to the account of a session, and proves it, as whoever has its mailbox does.
func (w *fixture) add(in sessions.Issued, address, password string) sessions.Issued {
	w.Helper()
	w.clock.advance(w.email.MailInterval)
	c := credentials(address, password)
	next, _, err := w.Registration.Register(w.Context(), c, w.now(in))
	w.must(err)
	token := w.lastMail(address).token
	if w.email.PostValidation {
		must(w.Registration.FollowLink(w.Context(), address, token, w.now(next)))
		return next
	}
	c.Token = token
	next, _, err = w.Registration.Register(w.Context(), c, w.now(in))
	w.must(err)
	return next
}

// recoverBy sets a password by a mail to an address.
func (w *fixture) recoverBy(address, password string) {
	w.Helper()
	w.clock.advance(w.email.MailInterval)
	w.must(w.Recovery.Request(w.Context(), address, from))
	m := w.lastMail(address)
	for i := len(w.sender.to(address)) - 1; m.kind != "recover"; i-- {
		m = w.sender.to(address)[i]
	}
	c := credentials(address, password)
	c.Token = m.token
	w.must(w.Recovery.Recover(w.Context(), c, from))
}

// tokens returns the tokens of the mails of a kind to an address.
func (w *fixture) tokensOf(address, kind string) (all []string) {
	w.Helper()
	w.must(w.deliverMails())
	for _, m := range w.sender.to(address) {
		if m.kind == kind {
			all = append(all, m.token)
		}
	}
	return all
}

// Whoever gets in as the owner of the address that an account was registered with, for the first time, leaves nothing
// to whoever registered it: no address, no right to undo, no plan, no key, no factor, no device.
func TestTheFirstProofOfAnAddressEndsEverythingOfAStranger(t *testing.T) {
	for name, getIn := range map[string]func(w *fixture) sessions.Issued{
		"recovery": func(w *fixture) sessions.Issued {
			w.recoverBy(ada, password)
			return must(w.Login.Login(w.Context(), credentials(ada, password), from))
		},
		"login by mail": func(w *fixture) sessions.Issued {
			code, client := w.mailedCode(ada)
			return must(w.Login.LoginByMail(w.Context(), ada, code, client))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, configuredNotices, deletable)
			thief := w.register(ada, stranger)
			elsewhere := sessions.Client{Address: "203.0.113.9", UserAgent: "stranger/1.0"}
			must(w.Login.Login(t.Context(), credentials(ada, stranger), elsewhere))
			thief = w.add(thief, eve, stranger)
			w.clock.advance(w.email.MailInterval)
			w.must(w.Addresses.Request(t.Context(), eve+"_email", eve2, stranger, w.now(thief)))
			confirm := w.lastMail(eve2).token
			undo := slices.Concat(w.tokensOf(eve, "undo"), w.tokensOf(ada, "undo"))
			if len(undo) != 1 {
				t.Fatalf("%d mails by which the change can be undone", len(undo))
			}
			_, key, err := w.Keys.Create(t.Context(), keys.New{Name: "deploy"}, stranger, w.now(thief))
			w.must(err)
			_, thief, err = w.Deletion.Plan(t.Context(), stranger, w.now(thief))
			w.must(err)

			in := getIn(w)
			w.wantAddresses(in.User.UUID, adaIdent)
			for _, login := range []string{eve, ada} {
				w.wantKind(w.finish(w.Service, login, undo[0], from), errs.Denied)
			}
			w.wantKind(w.finish(w.Service, eve2, confirm, w.now(in)), errs.Denied)
			if !w.valid(in.Token) || w.valid(thief.Token) || w.valid(key) {
				t.Errorf("valid: the owner's session %t, the stranger's %t, the stranger's key %t", w.valid(in.Token),
					w.valid(thief.Token), w.valid(key))
			}
			w.clock.advance(deletionGrace + time.Hour)
			w.due(0)
			if w.record("Users", in.User.UUID)["_factors"] != nil {
				t.Error("a factor of the stranger is left")
			}
			before := len(w.kinds(ada))
			code, client := w.mailedCode(ada)
			client.Address, client.UserAgent = elsewhere.Address, elsewhere.UserAgent
			must(w.Login.LoginByMail(t.Context(), ada, code, client))
			if got := w.kinds(ada)[before:]; !slices.Contains(got, "device") {
				t.Errorf("a login from where the stranger has logged in is not reported: %q", got)
			}
		})
	}
}

// A thief has a session and the password for ten minutes. The owner has the address that was proven longest.
func TestTheAddressThatWasProvenLongestAloneCanUndo(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.add(w.register(ada, password), bob, password)
	thief := w.add(in, eve, password)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Addresses.Request(t.Context(), eve+"_email", eve2, password, w.now(thief)))
	confirm := w.lastMail(eve2).token
	if n := len(w.tokensOf(eve, "undo")); n != 0 {
		t.Errorf("an address that was added a minute ago gets %d rights to undo", n)
	}
	w.must(w.finish(w.Service, eve2, confirm, w.now(thief)))
	w.wantAddresses(in.User.UUID, adaIdent, bob+"_email", eve2+"_email")

	// The thief's recovery ends nothing of the owner's, and the thief can't end it in a session.
	w.recoverBy(eve2, stranger)
	undo := w.tokensOf(ada, "undo")
	if len(undo) != 1 {
		t.Fatalf("%d mails to the owner", len(undo))
	}
	w.must(w.finish(w.Service, ada, undo[0], from))
	w.wantAddresses(in.User.UUID, adaIdent, bob+"_email", eve+"_email") // what is older than the change stays
	w.recoverBy(ada, password)
	w.mustLogin(ada, password, in.User.UUID)
}

// The right ends when the address proves itself again, by an admin, or by the mail itself; and not by another address.
func TestARightToUndoEnds(t *testing.T) {
	for name, c := range map[string]struct {
		act  func(w *fixture, user, undo string)
		ends bool
	}{
		"a recovery by the address": {func(w *fixture, _, _ string) { w.recoverBy(ada, password) }, true},
		"a login by a mail to the address": {func(w *fixture, _, _ string) {
			code, client := w.mailedCode(ada)
			must(w.Login.LoginByMail(w.Context(), ada, code, client))
		}, true},
		"an undoing": {func(w *fixture, _, undo string) {
			w.must(w.finish(w.Service, ada, undo, from))
		}, true},
		"the mail": {func(w *fixture, _, undo string) {
			w.must(w.Addresses.KeepChanges(w.Context(), ada, undo, from))
		}, true},
		"an admin": {func(w *fixture, user, _ string) {
			must(w.Admin.KeepChangesFor(w.Context(), user))
		}, true},
		"the password": {func(w *fixture, user, _ string) { w.mustLogin(ada, password, user) },
			false},
		"the end of all sessions": {func(w *fixture, user, _ string) {
			must(w.Admin.EndSessions(w.Context(), user))
		}, false},
		"a recovery by a younger address": {func(w *fixture, _, _ string) { w.recoverBy(eve, stranger) }, false},
		"a login by a mail to a younger address": {func(w *fixture, _, _ string) {
			code, client := w.mailedCode(eve)
			must(w.Login.LoginByMail(w.Context(), eve, code, client))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, validatedFirst, configuredNotices)
			in := w.add(w.register(ada, password), eve, password)
			w.clock.advance(w.email.MailInterval)
			w.must(w.Addresses.Request(t.Context(), eve+"_email", eve2, password, w.now(in)))
			confirm, undo := w.lastMail(eve2).token, w.lastMail(ada).token
			c.act(w, in.User.UUID, undo)
			err := w.finish(w.Service, ada, undo, from)
			if c.ends {
				w.wantKind(err, errs.Denied)
				if me, err := w.Sessions.Authenticate(t.Context(), in.Token); err == nil && me != nil &&
					name != "the mail" && name != "an admin" {
					w.wantKind(w.finish(w.Service, eve2, confirm, w.now(in)), errs.Denied)
				}
				return
			}
			w.must(err)
		})
	}
}

// What was kept can be confirmed.
func TestAChangeThatIsKeptIsConfirmed(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	confirm, undo := w.change(in, ada, newAda, password)
	w.must(w.Addresses.KeepChanges(t.Context(), ada, undo, from))
	w.wantKind(w.Addresses.KeepChanges(t.Context(), ada, undo, from), errs.Denied)
	w.wantKind(w.Addresses.KeepChanges(t.Context(), newAda, confirm, from), errs.Denied)
	w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
	w.wantAddresses(in.User.UUID, newIdent)
}

// Removing the owner's address is a change of it without a new one.
func TestTheRemovalOfAProvenAddressIsUndone(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	thief := w.add(in, eve, password)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Links.Unlink(t.Context(), w.now(thief).Session, adaIdent))
	w.wantAddresses(in.User.UUID, eve+"_email")
	w.wantKinds(ada, "loginAdded", "undo")
	undo := w.lastMail(ada).token

	// Whatever the thief does next ends with it.
	w.clock.advance(w.email.MailInterval)
	w.must(w.Addresses.Request(t.Context(), eve+"_email", eve2, password, w.now(thief)))
	w.must(w.finish(w.Service, eve2, w.lastMail(eve2).token, w.now(thief)))
	w.must(w.finish(w.Service, ada, undo, from))
	w.wantAddresses(in.User.UUID, adaIdent, eve+"_email") // it was there before the removal
	if w.valid(thief.Token) {
		t.Error("the thief's session has not ended")
	}
	w.recoverBy(ada, stranger)
	w.mustLogin(ada, stranger, in.User.UUID)

	// An address that nobody has proven takes nothing along, but its owner is notified; and a removal that is refused
	// is no news.
	in = w.mustLogin(ada, stranger, in.User.UUID)
	before := len(w.kinds(ada))
	w.must(w.Links.Unlink(t.Context(), w.now(in).Session, eve+"_email"))
	w.clock.advance(w.email.MailInterval)
	w.wantKind(w.Links.Unlink(t.Context(), w.now(in).Session, adaIdent), errs.Conflict)
	if got := w.kinds(ada)[before:]; !slices.Equal(got, []string{"undo"}) {
		t.Errorf("mails %q", got)
	}
}

// An address that was restored is as old as it was: an undoing of an earlier change does not remove it.
func TestARestoredAddressKeepsItsAge(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.add(w.register(ada, password), eve, password)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Links.Unlink(t.Context(), w.now(in).Session, adaIdent))
	w.must(w.finish(w.Service, ada, w.lastMail(ada).token, from))
	w.recoverBy(ada, password)
	in = w.mustLogin(ada, password, in.User.UUID)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Addresses.Request(t.Context(), eve+"_email", eve2, password, w.now(in)))
	if w.lastMail(ada).kind != "undo" || len(w.tokensOf(eve, "undo")) != 0 {
		t.Error("the address that was restored is not the oldest one any more")
	}
}

// A release that did not know who has the right gave it to the address that was replaced. It has it still if no other
// one is older than the change.
func TestAChangeOfAnEarlierRelease(t *testing.T) {
	forget := func(w *fixture, user string) {
		_, err := w.set.Store("Users").Mutate(w.Context(), user, func(now store.Stored) (store.Mutation, error) {
			changes := string(object.Field(now.Body, "_addressChanges"))
			for _, key := range []string{"from", "since", "holder"} {
				changes = regexp.MustCompile(`"`+key+`":"[^"]*",?`).ReplaceAllString(changes, "")
			}
			return store.Mutation{
				Fields: object.Object{"_addressChanges": []byte(strings.Replace(changes, ",}", "}", 1))}}, nil
		})
		w.must(err)
	}
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	confirm, undo := w.change(in, ada, newAda, password)
	forget(w, in.User.UUID)
	w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
	w.must(w.finish(w.Service, ada, undo, from))
	w.wantAddresses(in.User.UUID, adaIdent)

	w = newFixture(t)
	in = w.add(w.register(ada, password), eve, password)
	_, undo = w.change(in, eve, eve2, password)
	forget(w, in.User.UUID)
	_, err := w.set.Store("Idents").Mutate(t.Context(), adaIdent, func(store.Stored) (store.Mutation, error) {
		return store.Mutation{Fields: object.Object{"_proven": []byte("true")}}, nil
	})
	w.must(err)
	w.wantKind(w.finish(w.Service, eve, undo, from), errs.Denied)
}

// acts are what takes something from whoever owns an account, with the notice to the address that was proven longest.
// docs/threat-model.md has the same table.
var acts = []struct {
	name   string
	notice post.Notice
	do     func(w *fixture, in sessions.Issued, i int) error
}{
	{"the password is changed", notices.NoticePassword, func(w *fixture, in sessions.Issued, _ int) error {
		_, err := w.Recovery.ChangePassword(w.Context(), password, password, w.now(in))
		return err
	}},
	{"an address is added", notices.NoticeLoginAdded, func(w *fixture, in sessions.Issued, i int) error {
		c := credentials(fmt.Sprintf("eve%d@example.org", i), password)
		_, _, err := w.Registration.Register(w.Context(), c, w.now(in))
		w.must(err)
		c.Token = w.lastMail(c.Login).token
		_, _, err = w.Registration.Register(w.Context(), c, w.now(in))
		return err
	}},
	{"an API key is made", notices.NoticeKeyAdded, func(w *fixture, in sessions.Issued, i int) error {
		_, _, err := w.Keys.Create(w.Context(), keys.New{Name: fmt.Sprint("key ", i)}, password, w.now(in))
		return err
	}},
	{"an API key is revoked", notices.NoticeKeyRemoved, func(w *fixture, in sessions.Issued, i int) error {
		info, _, err := w.Admin.IssueKey(w.Context(), in.User.Stored, keys.New{Name: fmt.Sprint("key ", i)})
		w.must(err)
		w.kinds(ada)
		return w.Keys.Revoke(w.Context(), w.now(in).Session, info.ID)
	}},
}

// Every act is announced, or refused.
func TestNoActIsSilentToTheOwner(t *testing.T) {
	for _, act := range acts {
		t.Run(act.name, func(t *testing.T) {
			w := newFixture(t, configuredNotices, validatedFirst)
			in := w.register(ada, password)
			for i := range account.MaxNotices + 1 {
				in = w.mustLogin(ada, password, in.User.UUID)
				err := act.do(w, in, i)
				if i == account.MaxNotices {
					w.wantKind(err, errs.Limited)
					break
				}
				w.must(err)
				if got := w.kinds(ada); len(got) == 0 || got[len(got)-1] != string(act.notice) {
					t.Fatalf("mails %q", got)
				}
			}
		})
	}
}

// One mailbox is one factor: a password that was set by a mail adds nothing to it.
func TestAMailboxIsOneFactor(t *testing.T) {
	withMailFactor := func(w *fixture) (sessions.Issued, []string) {
		w.Helper()
		in := w.register(ada, password)
		w.must(w.BeginMailFactor(w.Context(), &in.Session))
		next, codes, err := w.Enrollment.Confirm(w.Context(), record.FactorEmail, w.lastMail(ada).secret(), with(in))
		w.must(err)
		return next, codes
	}
	for _, policy := range []string{sessions.MFAOptional, sessions.MFARequired} {
		w := newFixture(t, validatedFirst, configuredNotices, func(o *account.Options) { o.MFA.Policy = policy })
		in, codes := withMailFactor(w)
		w.mustLoginPending(ada, password, record.FactorEmail, record.FactorRecovery)
		w.recoverBy(ada, "set by a mail")
		w.mustLoginPending(ada, "set by a mail", record.FactorRecovery) // no code of another mail
		// Another factor says that the user knows the password.
		_, err := w.Login.Login(t.Context(), credentials(ada, "set by a mail"), from)
		second := must(w.Login.CompleteLogin(t.Context(), logins.Pending(err).Secret, recoveryFactor(codes[0]), from))
		if second.AAL != 2 || second.Missing != "" || second.User.UUID != in.User.UUID {
			t.Errorf("%+v", second.Session)
		}
		w.mustLoginPending(ada, "set by a mail", record.FactorEmail, record.FactorRecovery)
	}

	// A first password, in a session that began by a mail, is one that was set by a mail; so is one in place of such a
	// password.
	w := newFixture(t, validatedFirst)
	w.recoverBy(ada2(w), "set by a mail")
	in := must(w.Login.Login(t.Context(), credentials(ada, "set by a mail"), from))
	in = must(w.Recovery.ChangePassword(t.Context(), "set by a mail", "set after it", w.now(in)))
	w.wantKind(w.BeginMailFactor(t.Context(), w.now(in).Session), errs.Conflict)
	code, client := w.mailedCode(ada)
	in = must(w.Login.LoginByMail(t.Context(), ada, code, client))
	w.wantKind(w.BeginMailFactor(t.Context(), w.now(in).Session), errs.Conflict)
	must(w.Admin.SetPassword(t.Context(), in.User.UUID, password)) // by an admin
	in = w.mustLogin(ada, password, in.User.UUID)
	w.must(w.BeginMailFactor(t.Context(), w.now(in).Session))
}

// ada2 registers ada.
func ada2(w *fixture) string {
	w.register(ada, password)
	return ada
}

// mustLoginPending fails unless a login by password waits for a second factor of these types.
func (w *fixture) mustLoginPending(login, password string, factors ...string) {
	w.Helper()
	_, err := w.Login.Login(w.Context(), credentials(login, password), from)
	p := logins.Pending(err)
	if p == nil {
		w.Fatalf("the login waits for nothing: %v", err)
	}
	if !slices.Equal(p.Factors, factors) {
		w.Fatalf("the login can be completed by %v, want %v", p.Factors, factors)
	}
}

// Who has a second factor that can't be asked for gets a session that is good for adding another one, which counts a
// day later.
func TestASessionIsLimitedWhereTheSecondFactorCanNotBeAskedFor(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	w.must(w.BeginMailFactor(t.Context(), &in.Session))
	in, codes, err := w.Enrollment.Confirm(t.Context(), record.FactorEmail, w.lastMail(ada).secret(), with(in))
	w.must(err)
	for _, code := range codes { // all are used up
		_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
		must(w.Login.CompleteLogin(t.Context(), logins.Pending(err).Secret, recoveryFactor(code), from))
	}
	enter := map[string]func() sessions.Issued{
		"by a mail": func() sessions.Issued {
			code, client := w.mailedCode(ada)
			return must(w.Login.LoginByMail(t.Context(), ada, code, client))
		},
		"by a password that was set by a mail": func() sessions.Issued {
			w.recoverBy(ada, "set by a mail")
			return must(w.Login.Login(t.Context(), credentials(ada, "set by a mail"), from))
		},
	}
	for name, login := range enter {
		in = login()
		me := w.now(in).Session
		if me.AAL != 1 || me.Missing != errs.StepEnroll {
			t.Errorf("%s: %+v", name, me)
		}
		w.wantStep(sessions.RequireComplete(me), errs.StepEnroll)
		w.wantKind(w.Enrollment.Remove(t.Context(), me, record.FactorEmail), errs.Unauthenticated)
		_, err = w.Enrollment.RenewRecoveryCodes(t.Context(), me)
		w.wantKind(err, errs.Unauthenticated)
		_, _, err = w.Keys.Create(t.Context(), keys.New{Name: "k"}, "set by a mail", with(in))
		w.wantKind(err, errs.Unauthenticated)
		_, err = w.StepUp.StepUp(t.Context(), "set by a mail", method.Answer{Type: record.FactorEmail, Code: "123456"},
			w.now(in))
		if err == nil {
			t.Errorf("%s: a step-up by the mailbox", name)
		}
	}

	e, err := w.Enrollment.Begin(t.Context(), w.now(in).Session, record.FactorTOTP)
	w.must(err)
	next, codes, err := w.Enrollment.Confirm(t.Context(), record.FactorTOTP, w.totpCode(e.Secret, 0), w.now(in))
	w.must(err)
	if next.Token != "" || len(codes) != 0 || w.now(in).Session.AAL != 1 {
		t.Errorf("the factor counts at once: %+v, %d codes", next.Session, len(codes))
	}
	if w.lastMail(ada).kind != "factorAdded" {
		t.Errorf("the owner gets %q", w.lastMail(ada).kind)
	}
	w.clock.advance(sessions.EnrollDelay - 10*time.Minute)
	in = enter["by a mail"]()
	if in.Missing != errs.StepEnroll {
		t.Errorf("%+v", in.Session)
	}
	w.clock.advance(20 * time.Minute)
	code, client := w.mailedCode(ada)
	_, err = w.Login.LoginByMail(t.Context(), ada, code, client)
	p := logins.Pending(err)
	if p == nil || !slices.Equal(p.Factors, []string{record.FactorTOTP}) {
		t.Fatalf("%v", err)
	}
	in = must(w.Login.CompleteLogin(t.Context(), p.Secret, totpFactor(w.totpCode(e.Secret, 0)), from))
	if in.AAL != 2 || in.Missing != "" {
		t.Errorf("%+v", in.Session)
	}
}

// Many complete one login with one right code: one gets in.
func TestSimultaneousCompletionsOfOneLogin(t *testing.T) {
	for range 10 {
		w := newFixture(t, limits(0, 100))
		e := w.enroll(w.register(ada, password))
		secret := w.beginLogin(ada).Secret
		var in atomic.Int32
		concurrently(w.twoServices(), 5, func(_ int, s *account.Service) {
			_, err := s.Login.CompleteLogin(t.Context(), secret, recoveryFactor(e.codes[0]), from)
			w.allowKinds(err, errs.Denied, errs.Unauthenticated, errs.Conflict, errs.Limited)
			if err == nil {
				in.Add(1)
			}
		})
		if in.Load() != 1 {
			t.Fatalf("%d got in by one login and one code", in.Load())
		}
	}
}

// A deletion that was planned ends with a recovery, with an event.
func TestARecoveryEndsThePlanOfADeletion(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices, deletable)
	in := w.register(ada, password)
	w.plan(in)
	w.recoverBy(ada, "the next password")
	w.clock.advance(deletionGrace + time.Hour)
	w.due(0)
	if undone := w.authEvents(event.AuthDeletionUndone); len(undone) != 1 {
		t.Errorf("events %+v", undone)
	}
}

// What the table of left.go says of users is so.
func TestWhatIsLeftOfAUser(t *testing.T) {
	acts := map[string]func(w *fixture, user, undo string){
		"recovery":   func(w *fixture, _, _ string) { w.recoverBy(ada, "the next password") },
		"firstProof": func(w *fixture, _, _ string) { w.recoverBy(ada, "the next password") },
		"undoing":    func(w *fixture, _, undo string) { w.must(w.finish(w.Service, ada, undo, from)) },
		"reset": func(w *fixture, user, _ string) {
			must(w.Admin.SetPassword(w.Context(), user, "the next password"))
		},
	}
	for name, act := range acts {
		t.Run(name, func(t *testing.T) {
			options := []func(*account.Options){configuredNotices, deletable}
			if name != "firstProof" {
				options = append(options, validatedFirst)
			}
			w := newFixture(t, options...)
			e := w.enroll(w.register(ada, password))
			in := w.add(e.Issued, eve, password)
			w.clock.advance(w.email.MailInterval)
			w.must(w.Addresses.Request(t.Context(), adaIdent, eve2, password, w.now(in)))
			undo := slices.Concat(w.tokensOf(ada, "undo"), w.tokensOf(eve, "undo"))[0]
			_, in, err := w.Deletion.Plan(t.Context(), password, w.now(in))
			w.must(err)
			w.Close()
			user := in.User.UUID
			before := w.record("Users", user)
			for _, field := range []string{"_factors", "_addressChanges", "_deleteAt", "password", "_epoch"} {
				if before[field] == nil {
					t.Fatalf("the user has no %s: %s", field, before.Encode())
				}
			}
			act(w, user, undo)
			w.Close()
			after := w.record("Users", user)
			for field, fate := range account.LeftOfUsers(name) {
				now := string(after[field])
				ended := now == "" || now == "null" || now == "[]"
				switch {
				case before[field] == nil && fate != "is set":
				case fate == "stays" && now != string(before[field]),
					fate == "ends" && !ended,
					fate == "is set" && (ended || now == string(before[field])) && field != "_unlinked":
					t.Errorf("%s %s: was %s, is %s", field, fate, before[field], now)
				}
			}
		})
	}
}

// While a mail by which a change can be undone is not sent, no other takes its place.
func TestAChangeWaitsForTheMailOfTheOneBefore(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.add(w.register(ada, password), eve, password)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Addresses.Request(t.Context(), adaIdent, eve2, password, w.now(in)))
	w.clock.advance(5 * w.email.MailInterval)
	w.wantKind(w.Addresses.Request(t.Context(), eve+"_email", "eve3@example.com", password, w.now(in)), errs.Limited)
	w.wantKind(w.Links.Unlink(t.Context(), w.now(in).Session, adaIdent), errs.Limited)
	undo := w.tokensOf(ada, "undo")
	w.must(w.Addresses.Request(t.Context(), eve+"_email", "eve3@example.com", password, w.now(in)))
	undo = append(undo, w.lastMail(ada).token)
	if undo[0] == undo[1] {
		t.Fatal("one mail for two changes")
	}
	w.must(w.finish(w.Service, ada, undo[0], from))
	w.wantKind(w.finish(w.Service, ada, undo[1], from), errs.Denied)
	w.wantAddresses(in.User.UUID, adaIdent, eve+"_email")
}

// Six digits are few: a network address guesses only so many in a day, at however many accounts.
func TestWrongCodesOfManyAccountsAreLimited(t *testing.T) {
	w := newFixture(t, validatedFirst, limits(1000, 0))
	in := w.register(ada, password)
	guess := func(c sessions.Client) error {
		code, client := w.mailedCode(ada)
		c.Binding = client.Binding
		_, err := w.Login.LoginByMail(t.Context(), ada, wrong(code), c)
		return err
	}
	guesses := 0
	for ; guesses < 1000; guesses++ {
		if err := guess(from); errs.KindOf(err) == errs.Limited {
			break
		}
	}
	if guesses < 150 || guesses > 300 {
		t.Errorf("%d guesses", guesses)
	}
	w.wantKind(guess(sessions.Client{Address: "203.0.113.9"}), errs.Denied)
	w.clock.advance(24 * time.Hour)
	w.wantKind(guess(from), errs.Denied)
	w.mustLogin(ada, password, in.User.UUID)
}
