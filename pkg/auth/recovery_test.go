package auth_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

// recovery asks for the mail of a recovery and returns what it is to be used with.
func (w *world) recovery(login, next string) auth.Credentials {
	w.Helper()
	w.must(w.RequestRecovery(w.Context(), login, from))
	c := creds(login, next)
	if m := w.mail(login); m.kind == "recover" {
		c.Token = m.token
	} else {
		w.Fatalf("mail %+v", m)
	}
	return c
}

func TestRecover(t *testing.T) {
	w := begin(t)
	in := w.user(ada, password)
	other := w.enters(ada, password, in.User.UUID)
	c := w.recovery(ada, "a new password")

	for _, wrong := range []auth.Credentials{
		{Login: "", Password: c.Password, Token: c.Token}, {Login: ada, Password: "", Token: c.Token}, {Login: ada, Password: "short", Token: c.Token},
		{Login: ada, Password: strings.Repeat("x", auth.MaxPassword+1), Token: c.Token},
	} {
		w.is(w.Recover(t.Context(), wrong, from), errs.Invalid)
	}
	for _, wrong := range []auth.Credentials{
		{Login: ada, Password: c.Password}, {Login: ada, Password: c.Password, Token: "wrong"}, {Login: "bob@example.com", Password: c.Password, Token: c.Token},
	} {
		w.is(w.Recover(t.Context(), wrong, from), errs.Denied)
	}
	if !w.good(in.Token) || !w.good(other.Token) {
		t.Error("a recovery that was refused ends sessions")
	}
	w.must(w.Recover(t.Context(), c, from))
	if w.good(in.Token) || w.good(other.Token) {
		t.Error("a session outlives the recovery")
	}
	w.is(w.Recover(t.Context(), c, from), errs.Denied)
	_, err := w.Login(t.Context(), creds(ada, password), from)
	w.is(err, errs.Denied)
	w.enters(ada, "a new password", in.User.UUID)
	if string(w.record("Idents", adaIdent)["validated"]) != "true" {
		t.Error("the address is not validated, though it was proven")
	}
}

func TestARecoveryExpires(t *testing.T) {
	w := begin(t)
	w.user(ada, password)
	c := w.recovery(ada, "a new password")
	w.clock.pass(w.email.RecoveryTTL - time.Microsecond)
	must(w.follow(ada, c.Token))
	w.clock.pass(time.Microsecond)
	w.is(w.Recover(t.Context(), c, from), errs.Denied)
	w.enters(ada, password, w.all("Users")[0].UUID)
}

// The account may be gone when the token comes, or be somebody's anew.
func TestARecoveryOfAnAccountThatIsGone(t *testing.T) {
	w := begin(t)
	in := w.user(ada, password)
	c := w.recovery(ada, "a new password")
	w.must(w.set.Store("Users").Delete(t.Context(), in.User.UUID, 0))
	w.is(w.Recover(t.Context(), c, from), errs.Denied)
	w.cascade()
	w.is(w.Recover(t.Context(), c, from), errs.Denied)
	if len(w.all("Idents")) != 0 {
		t.Error("an ident is back")
	}
}

// A token is used up before anything else happens: what breaks off afterwards
// is begun anew with another mail.
func TestARecoveryBreaksOff(t *testing.T) {
	broken := errors.New("broken")
	w := begin(t)
	in := w.user(ada, password)
	c := w.recovery(ada, "a new password")
	w.disk.on(refuse("Tokens", broken))
	if err := w.Recover(t.Context(), c, from); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.disk.on(refuse("Users", broken))
	if err := w.Recover(t.Context(), c, from); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.disk.on(nil)
	w.is(w.Recover(t.Context(), c, from), errs.Denied)
	w.enters(ada, password, in.User.UUID)
	w.clock.pass(w.email.MailInterval)
	w.must(w.Recover(t.Context(), w.recovery(ada, "a new password"), from))
	w.enters(ada, "a new password", in.User.UUID)
}

// hijack registers the address of somebody else, and adds every other way in.
func (w *world) hijack(victim string) auth.IssuedSession {
	w.Helper()
	eve := w.user(victim, password)
	eve, err := w.visit("666", with(eve))
	w.must(err)
	eve, _, err = w.Register(w.Context(), creds("eve@example.com", password), with(eve))
	w.must(err)
	return eve
}

// Who has taken somebody's address before them keeps nothing when they come.
func TestARecoveryTakesEverythingFromAStranger(t *testing.T) {
	w := begin(t, github)
	eve := w.hijack(ada)
	evil := w.recovery("eve@example.com", "the password of eve")
	c := w.recovery(ada, "the password of ada")
	w.must(w.Recover(t.Context(), c, from))

	if got := w.idents(eve.User.UUID); !slices.Equal(got, []string{adaIdent}) {
		t.Errorf("ways in: %v", got)
	}
	if w.good(eve.Token) {
		t.Error("eve's session is good")
	}
	w.is(w.Recover(t.Context(), evil, from), errs.Denied)
	for login, want := range map[string]errs.Kind{ada: errs.Denied, "eve@example.com": errs.NotFound} {
		_, err := w.Login(t.Context(), creds(login, password), from)
		w.is(err, want)
	}
	back, err := w.visit("666", from)
	w.must(err)
	if back.User.UUID == eve.User.UUID {
		t.Error("eve is back by the other provider")
	}
	w.enters(ada, "the password of ada", eve.User.UUID)
}

// Not even when they add a way in at any one moment of the recovery.
func TestAStrangerAddsNothingDuringARecovery(t *testing.T) {
	for moment := range 12 {
		w := begin(t, github)
		eve := w.user(ada, password)
		eves, _ := w.front()
		c := w.recovery(ada, "the password of ada")
		var writes, inside atomic.Int32
		w.disk.on(func(_ context.Context, s step) error {
			if s.write != nil && inside.Load() == 0 && int(writes.Add(1)) == moment+1 {
				inside.Add(1)
				_, _, err := eves.Register(t.Context(), creds("eve@example.com", password), with(eve))
				w.only(err, errs.Unauthenticated, errs.Denied)
				inside.Add(-1)
			}
			return nil
		})
		w.must(w.Recover(t.Context(), c, from))
		w.disk.on(nil)
		eves.Close()
		if got := w.idents(eve.User.UUID); !slices.Equal(got, []string{adaIdent}) {
			t.Errorf("a way in that was added at moment %d of %d: %v", moment, writes.Load(), got)
		}
		w.enters(ada, "the password of ada", eve.User.UUID)
	}
}

// Who has proven the address keeps the other ways in.
func TestARecoveryTakesNothingFromItsOwner(t *testing.T) {
	w := begin(t, github, validatedFirst)
	in := w.user(ada, password)
	in, err := w.visit("1815", with(in))
	w.must(err)
	w.must(w.Recover(t.Context(), w.recovery(ada, "a new password"), from))
	back, err := w.visit("1815", from)
	w.must(err)
	if back.User.UUID != in.User.UUID {
		t.Error("a way in is gone")
	}
}

func TestChangePassword(t *testing.T) {
	w := begin(t)
	in := w.user(ada, password)
	other := w.enters(ada, password, in.User.UUID)
	for _, wrong := range []string{"", "a wrong password", strings.Repeat("x", 2000)} {
		_, err := w.ChangePassword(t.Context(), wrong, "a new password", with(in))
		w.is(err, errs.Denied)
	}
	for _, wrong := range []string{"", "short", strings.Repeat("x", auth.MaxPassword+1)} {
		_, err := w.ChangePassword(t.Context(), password, wrong, with(in))
		w.is(err, errs.Invalid)
	}
	next, err := w.ChangePassword(t.Context(), password, "a new password", with(in))
	w.must(err)
	if w.good(in.Token) || w.good(other.Token) || !w.good(next.Token) {
		t.Error("the wrong sessions are good")
	}
	_, err = w.ChangePassword(t.Context(), password, "a third password", with(in))
	w.is(err, errs.Unauthenticated)
	w.enters(ada, "a new password", in.User.UUID)
}

func TestTheFirstPassword(t *testing.T) {
	w := begin(t, github)
	in, err := w.visit("1815", from)
	w.must(err)
	next, err := w.ChangePassword(t.Context(), "", "a new password", with(in))
	w.must(err)
	if w.good(in.Token) || !w.good(next.Token) {
		t.Error("the wrong session is good")
	}
	_, err = w.ChangePassword(t.Context(), "", "another password", with(next))
	w.is(err, errs.Denied)
}

// No event shows a password or its hash, nor what it was before.
func TestAPasswordIsNotTold(t *testing.T) {
	w := begin(t)
	in := w.user(ada, password)
	_, err := w.ChangePassword(t.Context(), password, "a new password", with(in))
	w.must(err)
	w.Close()
	w.told.mu.Lock()
	defer w.told.mu.Unlock()
	for _, e := range w.told.all {
		previous := e.Previous
		if previous["password"] != nil || previous["_epoch"] != nil || strings.Contains(string(e.Object), "_epoch") || strings.Contains(string(e.Object), "argon2id") {
			t.Errorf("told %+v", e)
		}
	}
}
