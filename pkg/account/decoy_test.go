package account_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"belfry/pkg/errs"
)

// A thief makes the owner's address free, and registers it again, in accounts that have nothing to do with the stolen
// one. The mails of those changes are in the same mailbox.

// take moves an account from the owner's address to the thief's, and returns the token by which the owner undoes it.
func (w *fixture) take(owner, thief string) (user, undo string) {
	w.Helper()
	in := w.register(owner, password)
	confirm, undo := w.change(in, owner, thief, password)
	w.must(w.finish(w.Service, thief, confirm, w.now(in)))
	return in.User.UUID, undo
}

// decoy registers the owner's address again, and requests as many changes of it as an account can have; with away it is
// free after that.
func (w *fixture) decoy(to string, changes int, away bool) (undo string) {
	w.Helper()
	in := w.register(ada, stranger)
	for i := range changes {
		var confirm string
		confirm, undo = w.change(in, ada, fmt.Sprintf("%d-%s", i, to), stranger)
		if away && i == changes-1 {
			w.must(w.finish(w.Service, fmt.Sprintf("%d-%s", i, to), confirm, w.now(in)))
		}
	}
	return undo
}

func TestAnotherAccountTakesNoRightToUndo(t *testing.T) {
	for name, attack := range map[string]func(w *fixture) error{
		"many changes": func(w *fixture) error {
			for i := range 3 {
				in, _, err := w.Registration.Register(w.Context(), credentials(ada, stranger), from)
				if err != nil {
					return err
				}
				for j := range 4 {
					w.clock.advance(w.email.MailInterval)
					to := fmt.Sprintf("decoy-%d-%d@example.com", i, j)
					if err := w.Addresses.Request(w.Context(), adaIdent, to, stranger, w.now(in)); err != nil {
						w.wantKind(err, errs.Limited)
						return nil
					}
					confirm := w.lastMail(to).token
					if j == 3 {
						w.must(w.finish(w.Service, to, confirm, w.now(in)))
					}
				}
			}
			return nil
		},
		"one that is kept": func(w *fixture) error {
			return w.Addresses.KeepChanges(w.Context(), ada, w.decoy(eve2, 1, false), from)
		},
		"one that is undone": func(w *fixture) error {
			if err := w.finish(w.Service, ada, w.decoy(eve2, 1, true), from); err != nil {
				return err
			}
			// The owner has it now, and gives it up for their own.
			code, client := w.mailedCode(ada)
			in := w.add(must(w.Login.LoginByMail(w.Context(), ada, code, client)), bob, stranger)
			w.clock.advance(w.email.MailInterval)
			return w.Links.Unlink(w.Context(), w.now(in).Session, adaIdent)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, configuredNotices)
			user, undo := w.take(ada, eve)
			w.must(attack(w))
			w.must(w.finish(w.Service, ada, undo, from))
			w.wantAddresses(user, adaIdent)
		})
	}
}

// Tokens of an account's own changes that have ended take no room from its next ones.
func TestChangesThatHaveEndedKeepNobodyFromTheNext(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	w.take(ada, eve) // its link stays in the mailbox
	w.clock.advance(w.email.MailInterval)
	in := w.register(ada, password)
	for i := range 12 {
		if _, undo := w.change(in, ada, fmt.Sprintf("new%d@example.com", i), password); i == 11 {
			w.must(w.finish(w.Service, ada, undo, from))
			return
		}
		code, client := w.mailedCode(ada)
		in = must(w.Login.LoginByMail(t.Context(), ada, code, client))
	}
}

// A mailbox that is full of tokens of accounts where nobody has proven it takes those of the account where somebody
// has.
func TestAProvenAddressGetsItsRightsWhateverItsMailboxHas(t *testing.T) {
	w := newFixture(t, configuredNotices)
	for i := range 2 {
		in := w.register(ada, stranger)
		for j := range 4 {
			confirm, _ := w.change(in, ada, fmt.Sprintf("decoy-%d-%d@example.com", i, j), stranger)
			if j == 3 {
				w.must(w.finish(w.Service, fmt.Sprintf("decoy-%d-%d@example.com", i, j), confirm, w.now(in)))
			}
		}
	}
	w.register(ada, password)
	w.recoverBy(ada, password)
	in := must(w.Login.Login(t.Context(), credentials(ada, password), from))
	confirm, undo := w.change(in, ada, newAda, password)
	w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
	w.must(w.finish(w.Service, ada, undo, from))
	w.wantAddresses(in.User.UUID, adaIdent)
}

// Whoever loses an account, or an address of it, hears of it, at the address of the account that was proven longest.
func TestWhoLosesAnAccountIsNotified(t *testing.T) {
	for name, lose := range map[string]func(w *fixture){
		"a recovery by the address that it was registered with": func(w *fixture) { w.recoverBy(ada, stranger) },
		"a login by mail by that address": func(w *fixture) {
			code, client := w.mailedCode(ada)
			must(w.Login.LoginByMail(w.Context(), ada, code, client))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, configuredNotices)
			in := w.add(w.register(ada, password), bob, password)
			before := len(w.kinds(bob))
			lose(w)
			w.wantAddresses(in.User.UUID, adaIdent)
			if got := w.kinds(bob)[before:]; !slices.Contains(got, "loginRemoved") {
				t.Errorf("bob gets %q", got)
			}
		})
	}
	t.Run("an undoing", func(t *testing.T) {
		w := newFixture(t, validatedFirst, configuredNotices)
		user, undo := w.take(ada, bob)
		before := len(w.kinds(bob))
		w.must(w.finish(w.Service, ada, undo, from))
		w.wantAddresses(user, adaIdent)
		if got := w.kinds(bob)[before:]; !slices.Contains(got, "loginRemoved") {
			t.Errorf("bob gets %q", got)
		}
	})
	t.Run("the address that it was registered with is removed", func(t *testing.T) {
		w := newFixture(t, configuredNotices)
		in := w.add(w.register(ada, password), eve, password)
		w.clock.advance(w.email.MailInterval)
		before := len(w.kinds(ada))
		w.must(w.Links.Unlink(t.Context(), w.now(in).Session, adaIdent))
		if got := w.kinds(ada)[before:]; !slices.Contains(got, "loginRemoved") {
			t.Errorf("ada gets %q", got)
		}
	})
	t.Run("the address that it was registered with is replaced", func(t *testing.T) {
		w := newFixture(t, configuredNotices)
		in := w.add(w.register(ada, password), eve, password)
		w.clock.advance(w.email.MailInterval)
		w.must(w.Addresses.Request(t.Context(), adaIdent, eve2, password, w.now(in)))
		before := len(w.kinds(ada))
		w.must(w.finish(w.Service, eve2, w.lastMail(eve2).token, w.now(in)))
		if got := w.kinds(ada)[before:]; !slices.Contains(got, "address") {
			t.Errorf("ada gets %q", got)
		}
	})
}

// A notice to the owner is on its way while mails can't be sent. One to whoever has the account then does not take its
// place.
func TestANoticeToAnotherAddressTakesNoPlace(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.add(w.register(ada, password), eve, password)
	w.kinds(ada)
	in = must(w.Recovery.ChangePassword(t.Context(), password, "the first password", w.now(in)))
	w.clock.advance(w.email.MailInterval)
	w.must(w.Links.Unlink(t.Context(), w.now(in).Session, adaIdent))
	must(w.Recovery.ChangePassword(t.Context(), "the first password", "the second password", w.now(in)))
	if got := w.kinds(ada); !slices.Contains(got, "password") {
		t.Errorf("ada gets %q", got)
	}
}

// An address that is added after the clock was set back is no older than those that were there.
func TestAnAddressIsNoOlderByAClockThatWasSetBack(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	w.clock.advance(-48 * time.Hour)
	in = w.mustLogin(ada, password, in.User.UUID)
	in = w.add(in, eve, password)
	in = w.mustLogin(eve, password, in.User.UUID)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Addresses.Request(t.Context(), adaIdent, eve2, password, w.now(in)))
	if n := len(w.tokensOf(ada, "undo")); n != 1 {
		t.Errorf("ada gets %d rights to undo", n)
	}
}
