package account_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account/method/passwords"
	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// requestRecovery requests a recovery mail and returns the credentials to use
// its token with.
func (w *fixture) requestRecovery(login, next string) passwords.Credentials {
	w.Helper()
	w.must(w.Recovery.Request(w.Context(), login, from))
	c := credentials(login, next)
	if m := w.lastMail(login); m.kind == "recover" {
		c.Token = m.token
	} else {
		w.Fatalf("mail %+v", m)
	}
	return c
}

func TestRecover(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	other := w.mustLogin(ada, password, in.User.UUID)
	c := w.requestRecovery(ada, "a new password")

	for _, wrong := range []passwords.Credentials{
		{Login: "", Password: c.Password, Token: c.Token}, {Login: ada, Password: "", Token: c.Token},
		{Login: ada, Password: "short", Token: c.Token},
		{Login: ada, Password: strings.Repeat("x", passwords.MaxPassword+1), Token: c.Token},
	} {
		w.wantKind(w.Recovery.Recover(t.Context(), wrong, from), errs.Invalid)
	}
	for _, wrong := range []passwords.Credentials{
		{Login: ada, Password: c.Password}, {Login: ada, Password: c.Password, Token: "wrong"},
		{Login: "bob@example.com", Password: c.Password, Token: c.Token},
	} {
		w.wantKind(w.Recovery.Recover(t.Context(), wrong, from), errs.Denied)
	}
	if !w.valid(in.Token) || !w.valid(other.Token) {
		t.Error("a recovery that was refused ends sessions")
	}
	w.must(w.Recovery.Recover(t.Context(), c, from))
	if w.valid(in.Token) || w.valid(other.Token) {
		t.Error("a session outlives the recovery")
	}
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	_, err := w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.Denied)
	w.mustLogin(ada, "a new password", in.User.UUID)
	if string(w.record("Idents", adaIdent)["validated"]) != "true" {
		t.Error("the address is not validated, though it was proven")
	}
}

// Whoever changes the password because a stranger can read their mails is safe from the
// tokens that were mailed before.
func TestARecoveryTokenDoesNotOutliveThePassword(t *testing.T) {
	const bob = "bob@example.com"
	for name, change := range map[string]func(*fixture, sessions.Issued){
		"changed by the user": func(w *fixture, in sessions.Issued) {
			must(w.Recovery.ChangePassword(w.Context(), password, "the latest password", with(in)))
		},
		"recovered by another address": func(w *fixture, in sessions.Issued) {
			c := credentials(bob, password)
			_, _, err := w.Registration.Register(w.Context(), c, with(in))
			w.must(err)
			must(w.Registration.FollowLink(w.Context(), bob, w.lastMail(bob).token, with(in)))
			w.must(w.Recovery.Recover(w.Context(), w.requestRecovery(bob, "the latest password"), from))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			in := w.register(ada, password)
			stolen := w.requestRecovery(ada, "a password of a stranger")
			change(w, in)
			_, err := w.followLink(ada, stolen.Token)
			w.wantKind(err, errs.Denied)
			w.wantKind(w.Recovery.Recover(t.Context(), stolen, from), errs.Denied)
			w.mustLogin(ada, "the latest password", in.User.UUID)
			w.clock.advance(w.email.MailInterval)
			w.must(w.Recovery.Recover(t.Context(), w.requestRecovery(ada, "a new password"), from))
			w.mustLogin(ada, "a new password", in.User.UUID)
		})
	}
}

// Whenever the password is changed during a recovery, one of the two fails.
func TestAPasswordThatIsChangedDuringARecoveryStays(t *testing.T) {
	for moment := range 8 {
		w := newFixture(t)
		in := w.register(ada, password)
		owner, _ := w.newService()
		stolen := w.requestRecovery(ada, "a password of a stranger")
		changed := errors.New("not tried")
		var writes, inside atomic.Int32
		w.backend.onStep(func(_ context.Context, s step) error {
			if s.write != nil && inside.Load() == 0 && int(writes.Add(1)) == moment+1 {
				inside.Add(1)
				_, changed = owner.Recovery.ChangePassword(t.Context(), password, "the latest password", with(in))
				inside.Add(-1)
			}
			return nil
		})
		err := w.Recovery.Recover(t.Context(), stolen, from)
		w.backend.onStep(nil)
		owner.Close()
		if changed == nil {
			w.wantKind(err, errs.Denied)
			w.mustLogin(ada, "the latest password", in.User.UUID)
		} else {
			w.must(err)
			w.mustLogin(ada, "a password of a stranger", in.User.UUID)
		}
	}
}

// The address may have an account of somebody else when the token is used.
func TestARecoveryTokenIsForTheAccountThatItWasMadeFor(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	old := w.requestRecovery(ada, "a new password")
	w.must(w.set.Store("Users").Delete(t.Context(), in.User.UUID, 0))
	w.cascade()
	other := w.register(ada, "another password")
	w.wantKind(w.Recovery.Recover(t.Context(), old, from), errs.Denied)
	w.mustLogin(ada, "another password", other.User.UUID)
}

func TestATokenIsForOnePurpose(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	m := w.lastMail(ada)
	if m.kind != "validate" || m.token == "" {
		t.Fatalf("%+v", m)
	}
	c := credentials(ada, "the password of a thief")
	c.Token = m.token
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	w.mustLogin(ada, password, in.User.UUID)

	w = newFixture(t, validatedFirst)
	w.register(ada, password)
	_, _, err := w.Registration.Register(t.Context(), w.requestRecovery(ada, "another password"), from)
	w.wantKind(err, errs.Denied)
}

func TestRecoveryTokensExpire(t *testing.T) {
	w := newFixture(t)
	w.register(ada, password)
	c := w.requestRecovery(ada, "a new password")
	w.clock.advance(w.email.RecoveryTTL - time.Microsecond)
	must(w.followLink(ada, c.Token))
	w.clock.advance(time.Microsecond)
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	w.mustLogin(ada, password, w.objects("Users")[0].UUID)
}

// The account may have been deleted, or registered again, when the token is
// used.
func TestRecoveryOfADeletedAccount(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	c := w.requestRecovery(ada, "a new password")
	w.must(w.set.Store("Users").Delete(t.Context(), in.User.UUID, 0))
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	w.cascade()
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	if len(w.objects("Idents")) != 0 {
		t.Error("an ident exists again")
	}
}

// The token is consumed first: an interrupted recovery is repeated with another
// mail.
func TestAnInterruptedRecoveryCanBeRepeated(t *testing.T) {
	broken := errors.New("broken")
	w := newFixture(t)
	in := w.register(ada, password)
	c := w.requestRecovery(ada, "a new password")
	w.backend.onStep(failWrites("Tokens", broken))
	if err := w.Recovery.Recover(t.Context(), c, from); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.backend.onStep(failWrites("Users", broken))
	if err := w.Recovery.Recover(t.Context(), c, from); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	w.backend.onStep(nil)
	w.wantKind(w.Recovery.Recover(t.Context(), c, from), errs.Denied)
	w.mustLogin(ada, password, in.User.UUID)
	w.clock.advance(w.email.MailInterval)
	w.must(w.Recovery.Recover(t.Context(), w.requestRecovery(ada, "a new password"), from))
	w.mustLogin(ada, "a new password", in.User.UUID)
}

// squat registers the address of somebody else, and links a login of a provider.
func (w *fixture) squat(victim string) sessions.Issued {
	w.Helper()
	eve, err := w.loginByProvider("666", with(w.register(victim, password)))
	w.must(err)
	return eve
}

// hijack registers the address of somebody else, and links further identities.
func (w *fixture) hijack(victim string) sessions.Issued {
	w.Helper()
	eve, _, err := w.Registration.Register(w.Context(), credentials("eve@example.com", password), with(w.squat(victim)))
	w.must(err)
	return eve
}

func TestRecoveryRemovesAllAccessOfAStranger(t *testing.T) {
	w := newFixture(t, github)
	eve := w.hijack(ada)
	evil := w.requestRecovery("eve@example.com", "the password of eve")
	c := w.requestRecovery(ada, "the password of ada")
	w.must(w.Recovery.Recover(t.Context(), c, from))

	if got := w.idents(eve.User.UUID); !slices.Equal(got, []string{adaIdent}) {
		t.Errorf("ways in: %v", got)
	}
	if w.valid(eve.Token) {
		t.Error("eve's session is good")
	}
	w.wantKind(w.Recovery.Recover(t.Context(), evil, from), errs.Denied)
	for login, want := range map[string]errs.Kind{ada: errs.Denied, "eve@example.com": errs.NotFound} {
		_, err := w.Login.Login(t.Context(), credentials(login, password), from)
		w.wantKind(err, want)
	}
	back, err := w.loginByProvider("666", from)
	w.must(err)
	if back.User.UUID == eve.User.UUID {
		t.Error("eve logs in with the other provider again")
	}
	w.mustLogin(ada, "the password of ada", eve.User.UUID)
}

// An address that a user added, perhaps by mistake, and did not prove does not give its owner the
// account: a recovery gives them one of their own.
func TestRecoveryOfAnAddedAddressDoesNotTakeTheAccount(t *testing.T) {
	w := newFixture(t, github)
	me, err := w.loginByProvider("1815", from)
	w.must(err)
	me, _, err = w.Registration.Register(t.Context(), credentials("eve@example.com", password), with(me))
	w.must(err)
	w.must(w.Recovery.Recover(t.Context(), w.requestRecovery("eve@example.com", "the password of eve"), from))

	if got := w.idents(me.User.UUID); !slices.Equal(got, []string{"1815_github"}) || !w.valid(me.Token) {
		t.Errorf("the account has the idents %v, its session is valid: %t", got, w.valid(me.Token))
	}
	eve, err := w.Login.Login(t.Context(), credentials("eve@example.com", "the password of eve"), from)
	w.must(err)
	if eve.User.UUID == me.User.UUID {
		t.Error("the owner of the address has the account")
	}
}

// The stranger links an identity at each step of the recovery.
func TestNothingCanBeLinkedDuringARecovery(t *testing.T) {
	for moment := range 12 {
		w := newFixture(t, github)
		eve := w.register(ada, password)
		eves, _ := w.newService()
		c := w.requestRecovery(ada, "the password of ada")
		var writes, inside atomic.Int32
		w.backend.onStep(func(_ context.Context, s step) error {
			if s.write != nil && inside.Load() == 0 && int(writes.Add(1)) == moment+1 {
				inside.Add(1)
				_, _, err := eves.Registration.Register(t.Context(), credentials("eve@example.com", password),
					with(eve))
				w.allowKinds(err, errs.Unauthenticated, errs.Denied)
				inside.Add(-1)
			}
			return nil
		})
		w.must(w.Recovery.Recover(t.Context(), c, from))
		w.backend.onStep(nil)
		eves.Close()
		if got := w.idents(eve.User.UUID); !slices.Equal(got, []string{adaIdent}) {
			t.Errorf("a way in that was added at moment %d of %d: %v", moment, writes.Load(), got)
		}
		w.mustLogin(ada, "the password of ada", eve.User.UUID)
	}
}

func TestRecoveryOfAProvenAddressKeepsIdents(t *testing.T) {
	w := newFixture(t, github, validatedFirst)
	in := w.register(ada, password)
	in, err := w.loginByProvider("1815", with(in))
	w.must(err)
	w.must(w.Recovery.Recover(t.Context(), w.requestRecovery(ada, "a new password"), from))
	back, err := w.loginByProvider("1815", from)
	w.must(err)
	if back.User.UUID != in.User.UUID {
		t.Error("an ident is missing")
	}
}

func TestChangePassword(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	other := w.mustLogin(ada, password, in.User.UUID)
	for _, wrong := range []string{"", "a wrong password", strings.Repeat("x", 2000)} {
		_, err := w.Recovery.ChangePassword(t.Context(), wrong, "a new password", with(in))
		w.wantKind(err, errs.Denied)
	}
	for _, wrong := range []string{"", "short", strings.Repeat("x", passwords.MaxPassword+1)} {
		_, err := w.Recovery.ChangePassword(t.Context(), password, wrong, with(in))
		w.wantKind(err, errs.Invalid)
	}
	next, err := w.Recovery.ChangePassword(t.Context(), password, "a new password", with(in))
	w.must(err)
	if w.valid(in.Token) || w.valid(other.Token) || !w.valid(next.Token) {
		t.Error("the wrong sessions are good")
	}
	_, err = w.Recovery.ChangePassword(t.Context(), password, "a third password", with(in))
	w.wantKind(err, errs.Unauthenticated)
	w.mustLogin(ada, "a new password", in.User.UUID)
}

func TestAUserWithoutAPasswordCanSetOne(t *testing.T) {
	w := newFixture(t, github)
	in, err := w.loginByProvider("1815", from)
	w.must(err)
	next, err := w.Recovery.ChangePassword(t.Context(), "", "a new password", with(in))
	w.must(err)
	if w.valid(in.Token) || !w.valid(next.Token) {
		t.Error("the wrong session is good")
	}
	_, err = w.Recovery.ChangePassword(t.Context(), "", "another password", with(next))
	w.wantKind(err, errs.Denied)
}

// Neither a password, nor its hash, nor the previous one.
func TestEventsContainNoPassword(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	_, err := w.Recovery.ChangePassword(t.Context(), password, "a new password", with(in))
	w.must(err)
	w.Close()
	w.recorder.mu.Lock()
	defer w.recorder.mu.Unlock()
	for _, e := range w.recorder.all {
		previous := e.Previous
		if previous["password"] != nil || previous["_epoch"] != nil || strings.Contains(string(e.Object), "_epoch") ||
			strings.Contains(string(e.Object), "argon2id") {
			t.Errorf("the event is %+v", e)
		}
	}
}
