package account_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account"
	"belfry/pkg/account/post"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
	"belfry/pkg/event"
)

const (
	newAda   = "ada@new.example.com"
	newIdent = newAda + "_email"
)

// now is a client with a session as its next request finds it.
func (w *fixture) now(in sessions.Issued) sessions.Client {
	w.Helper()
	c := with(in)
	if me := must(w.Sessions.Authenticate(w.Context(), in.Token)); me != nil {
		c.Session = me
	}
	return c
}

// change requests a change of address, and returns the tokens by which it is confirmed and undone.
func (w *fixture) change(in sessions.Issued, ident, to, password string) (confirm, undo string) {
	w.Helper()
	w.clock.advance(w.email.MailInterval)
	w.must(w.Addresses.Request(w.Context(), ident+"_email", to, password, w.now(in)))
	c, u := w.lastMail(to), w.lastMail(ident)
	if c.kind != "change" || u.kind != "undo" {
		w.Fatalf("mails %q, %q", c.kind, u.kind)
	}
	return c.token, u.token
}

// finish confirms or undoes a change.
func (w *fixture) finish(s *account.Service, login, token string, from sessions.Client) error {
	_, err := s.Addresses.Finish(w.Context(), login, token, from)
	return err
}

// addresses returns the addresses of a user, by the records of idents.
func (w *fixture) addresses(user string) (all []string) {
	w.Helper()
	for _, o := range w.objects("Idents") {
		ident, err := o.Object()
		w.must(err)
		if owner, _ := ident.Text("user"); owner == user {
			all = append(all, o.UUID)
		}
	}
	slices.Sort(all)
	return all
}

func (w *fixture) wantAddresses(user string, want ...string) {
	w.Helper()
	if got := w.addresses(user); !slices.Equal(got, want) {
		w.Errorf("the idents are %v, want %v", got, want)
	}
}

func (w *fixture) changedEvents() (reasons []string) {
	for _, e := range w.recorder.of(event.AuthAddressChanged, "Users") {
		reasons = append(reasons, string(e.Auth))
	}
	return reasons
}

func TestAnAddressIsReplacedOnceTheNewOneIsConfirmed(t *testing.T) {
	w := newFixture(t, validatedFirst, configuredNotices)
	in := w.register(ada, password)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Recovery.Request(t.Context(), ada, from))
	recovery := w.lastMail(ada).token
	confirm, _ := w.change(in, ada, newAda, password)
	w.wantAddresses(in.User.UUID, adaIdent)

	// Opening the links, also without a session, changes nothing; who confirms has to be logged in as the user.
	if to, err := w.Registration.FollowLink(t.Context(), newAda, confirm, from); err != nil ||
		to != post.OpenAddressChange {
		t.Error(to, err)
	}
	w.wantKind(w.finish(w.Service, newAda, confirm, from), errs.Unauthenticated)
	eve := w.register("eve@example.com", password)
	w.wantKind(w.finish(w.Service, newAda, confirm, w.now(eve)), errs.Denied)
	w.wantKind(w.finish(w.Service, ada, confirm, w.now(in)), errs.Denied)
	w.wantAddresses(in.User.UUID, adaIdent)

	w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
	w.wantAddresses(in.User.UUID, newIdent)
	if !w.valid(in.Token) {
		t.Error("the session has ended")
	}
	w.mustLogin(newAda, password, in.User.UUID)
	_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.NotFound)
	w.wantKind(w.finish(w.Service, newAda, confirm, w.now(in)), errs.Denied)
	c := credentials(ada, "the password of a reader")
	c.Token = recovery
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	w.wantKinds(newAda, "change", "address")
	if got := w.changedEvents(); len(got) != 1 {
		t.Errorf("events %v", got)
	}
}

func TestAChangeOfAddressNeedsAFreshLoginAndThePassword(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	w.register(bob, password)
	ask := func(ident, to, password string) error {
		return w.Addresses.Request(t.Context(), ident, to, password, w.now(in))
	}
	w.wantKind(ask(adaIdent, newAda, "a wrong password"), errs.Denied)
	w.wantKind(ask("bob@example.com_email", newAda, password), errs.NotFound)
	w.wantKind(ask("none", newAda, password), errs.NotFound)
	w.wantKind(ask(adaIdent, "nonsense", password), errs.Invalid)
	w.wantKind(ask(adaIdent, ada, password), errs.Exists)
	w.wantKind(w.Addresses.Request(t.Context(), adaIdent, newAda, password, from), errs.Unauthenticated)
	w.clock.advance(11 * time.Minute)
	var step *errs.StepUp
	err := ask(adaIdent, newAda, password)
	w.wantKind(err, errs.Unauthenticated)
	if !errors.As(err, &step) {
		t.Errorf("%v does not say what to do", err)
	}
	if n := w.countMails(newAda); n != 0 {
		t.Errorf("%d mails", n)
	}

	// What ends all sessions ends the confirmation; so does time.
	in = w.mustLogin(ada, password, in.User.UUID)
	confirm, _ := w.change(in, ada, newAda, password)
	in = must(w.Recovery.ChangePassword(t.Context(), password, password+"!", w.now(in)))
	w.wantKind(w.finish(w.Service, newAda, confirm, w.now(in)), errs.Denied)
	confirm, _ = w.change(in, ada, newAda, password+"!")
	w.clock.advance(w.email.TokenTTL)
	in = w.mustLogin(ada, password+"!", in.User.UUID)
	w.wantKind(w.finish(w.Service, newAda, confirm, w.now(in)), errs.Denied)
	w.wantAddresses(in.User.UUID, adaIdent)

	// There are only so many.
	for i := range 3 {
		w.change(in, ada, fmt.Sprintf("ada%d@new.example.com", i), password+"!")
		in = w.mustLogin(ada, password+"!", in.User.UUID)
	}
	w.clock.advance(w.email.MailInterval)
	w.wantKind(ask(adaIdent, newAda, password+"!"), errs.Limited)
}

// An address that is taken costs the same, and looks the same to who asks; its owner is informed.
func TestAChangeOfAddressDoesNotRevealWhoHasOne(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	w.register(bob, password)
	w.change(in, ada, "ada@first.example.com", password)
	w.Close()
	work := func(to string) (done []string) {
		w.clock.advance(w.email.MailInterval)
		in := w.mustLogin(ada, password, in.User.UUID)
		w.Close()
		w.backend.onStep(func(_ context.Context, s step) error {
			if !s.after {
				done = append(done, fmt.Sprint(s.store, " ", s.write != nil))
			}
			return nil
		})
		defer func() {
			w.backend.onStep(nil)
			w.lastMail(ada)
		}()
		client := with(in)
		for range 2 {
			err := w.Addresses.Request(t.Context(), adaIdent, to, password, client)
			done = append(done, fmt.Sprint(err))
		}
		return done
	}
	free, taken := work(newAda), work(bob)
	if len(free) < 8 || !slices.Equal(free, taken) {
		t.Errorf("free: %q\ntaken: %q", free, taken)
	}
	if m := w.lastMail(bob); m.kind != "taken" || m.token != "" {
		t.Errorf("the owner gets %q", m.kind)
	}
	if n := w.countMails(ada); n != 4 { // the registration, and three changes
		t.Errorf("%d mails to who asks", n)
	}
}

// A thief with a session and the password changes the address, again and again, and the password. Who has the old
// mailbox gets the account back, and no link of the thief's mailboxes is of use afterwards.
func TestAThiefLosesTheAccountToTheOldMailbox(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	confirm, undo := w.change(in, ada, "thief@example.com", password)
	w.must(w.finish(w.Service, "thief@example.com", confirm, w.now(in)))
	thief := must(w.Recovery.ChangePassword(t.Context(), password, "the password of a thief", w.now(in)))
	confirm, thiefUndo := w.change(thief, "thief@example.com", "thief@example.net", "the password of a thief")
	w.must(w.finish(w.Service, "thief@example.net", confirm, w.now(thief)))
	added := credentials("thief@example.org", "the password of a thief")
	w.clock.advance(w.email.MailInterval)
	_, _, err := w.Registration.Register(t.Context(), added, w.now(thief))
	w.must(err)
	added.Token = w.lastMail("thief@example.org").token
	thief, _, err = w.Registration.Register(t.Context(), added, w.now(thief))
	w.must(err)
	pending, _ := w.change(thief, "thief@example.net", "thief@example.edu", "the password of a thief")

	for range 2 {
		if to, err := w.Registration.FollowLink(t.Context(), ada, undo, from); err != nil ||
			to != post.OpenAddressUndo {
			t.Fatal(to, err)
		}
	}
	w.must(w.finish(w.Service, ada, undo, from))
	w.wantAddresses(in.User.UUID, adaIdent)
	if w.valid(thief.Token) {
		t.Error("the session of the thief has not ended")
	}
	for _, login := range []string{ada, "thief@example.com", "thief@example.net", "thief@example.org"} {
		if _, err := w.Login.Login(t.Context(), credentials(login, "the password of a thief"), from); err == nil {
			t.Errorf("the thief logs in by %s", login)
		}
	}
	w.wantKind(w.finish(w.Service, "thief@example.com", thiefUndo, from), errs.Denied)
	w.wantKind(w.finish(w.Service, "thief@example.edu", pending, w.now(thief)), errs.Denied)
	w.wantKind(w.finish(w.Service, ada, undo, from), errs.Denied)
	w.wantAddresses(in.User.UUID, adaIdent)
	c := credentials(ada, "the next password")
	c.Token = w.lastMail(ada).token
	w.must(w.Recovery.Recover(t.Context(), c, from))
	w.mustLogin(ada, "the next password", in.User.UUID)
}

// The link of the old mailbox also ends a change that is not confirmed yet; after its time it does nothing.
func TestAChangeIsUndoneBeforeItIsConfirmedAndNotForever(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	confirm, undo := w.change(in, ada, newAda, password)
	w.must(w.finish(w.Service, ada, undo, from))
	w.wantKind(w.finish(w.Service, newAda, confirm, w.now(in)), errs.Denied)
	w.wantAddresses(in.User.UUID, adaIdent)
	c := credentials(ada, password)
	c.Token = w.lastMail(ada).token
	w.must(w.Recovery.Recover(t.Context(), c, from))
	in = w.mustLogin(ada, password, in.User.UUID)
	confirm, undo = w.change(in, ada, newAda, password)
	w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
	w.clock.advance(post.UndoTTL + w.email.TokenTTL)
	w.wantKind(w.finish(w.Service, ada, undo, from), errs.Denied)
	w.wantAddresses(in.User.UUID, newIdent)
}

// A stranger who registers the old address without having it does not keep its owner from undoing; who has proven it
// does.
func TestTheOldAddressIsRestoredFromAStranger(t *testing.T) {
	for _, proven := range []bool{false, true} {
		w := newFixture(t)
		in := w.register(ada, password)
		confirm, undo := w.change(in, ada, newAda, password)
		w.must(w.finish(w.Service, newAda, confirm, w.now(in)))
		other := w.register(ada, "the password of another")
		if proven {
			w.clock.advance(w.email.MailInterval)
			w.must(w.Registration.ResendValidation(t.Context(), ada, from))
			must(w.Registration.FollowLink(t.Context(), ada, w.lastMail(ada).token, w.now(other)))
			w.wantKind(w.finish(w.Service, ada, undo, from), errs.Exists)
			w.wantAddresses(in.User.UUID, newIdent)
			w.mustLogin(newAda, password, in.User.UUID)
			continue
		}
		w.must(w.finish(w.Service, ada, undo, from))
		w.wantAddresses(in.User.UUID, adaIdent)
		if w.valid(other.Token) {
			t.Error("the session of the stranger has not ended")
		}
	}
}

// Wherever a confirmation or an undoing is interrupted, the user has a login, and repeating it completes it.
func TestAnInterruptedChangeOfAddressCanBeRepeated(t *testing.T) {
	broken := errors.New("broken")
	for _, undoing := range []bool{false, true} {
		interrupted := 0
		for moment := range 12 {
			w := newFixture(t, validatedFirst)
			in := w.register(ada, password)
			login := newAda
			token, undo := w.change(in, ada, newAda, password)
			if undoing {
				w.must(w.finish(w.Service, newAda, token, w.now(in)))
				login, token = ada, undo
			}
			w.Close()
			client := w.now(in)
			var steps atomic.Int32
			w.backend.onStep(func(_ context.Context, s step) error {
				if s.write != nil && !s.after && int(steps.Add(1)) > moment {
					return broken
				}
				return nil
			})
			err := w.finish(w.Service, login, token, client)
			w.backend.onStep(nil)
			if len(w.addresses(in.User.UUID)) == 0 {
				t.Fatalf("%t %d: no login is left", undoing, moment)
			}
			if err != nil {
				interrupted++
				if !errors.Is(err, broken) {
					t.Fatal(err)
				}
				w.must(w.finish(w.Service, login, token, w.now(in)))
			}
			if want := map[bool]string{false: newIdent, true: adaIdent}[undoing]; !slices.Equal(w.addresses(
				in.User.UUID), []string{want}) {
				t.Errorf("%t %d: the idents are %v", undoing, moment, w.addresses(in.User.UUID))
			}
			if got := w.changedEvents(); len(got) != map[bool]int{false: 1, true: 2}[undoing] {
				t.Errorf("%t %d: events %v", undoing, moment, got)
			}
			if len(w.objects("Users")) != 1 {
				t.Error("there are two users")
			}
		}
		if interrupted < 4 {
			t.Errorf("%t: interrupted %d times", undoing, interrupted)
		}
	}
}

// Two processes confirm, or confirm and undo, at once.
func TestConcurrentChangesOfAddressEndInOneState(t *testing.T) {
	w := newFixture(t, validatedFirst)
	services := w.twoServices()
	for round := range 30 {
		old, to := fmt.Sprintf("a%d@example.com", round), fmt.Sprintf("b%d@example.com", round)
		in := w.register(old, password)
		confirm, undo := w.change(in, old, to, password)
		client := w.now(in)
		both := round%2 == 1
		concurrently(services, 4, func(i int, s *account.Service) {
			if both && i == 0 {
				w.allowKinds(w.finish(s, old, undo, from), errs.Conflict)
				return
			}
			w.allowKinds(w.finish(s, to, confirm, client), errs.Denied, errs.Unauthenticated, errs.Conflict)
		})
		if both {
			w.allowKinds(w.finish(w.Service, old, undo, from), errs.Denied) // once more, if it lost to the others
			w.wantAddresses(in.User.UUID, old+"_email")
			continue
		}
		w.wantAddresses(in.User.UUID, to+"_email")
	}
}
