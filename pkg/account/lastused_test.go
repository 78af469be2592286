package account_test

import (
	"testing"
	"time"
)

// lastUsed returns when an ident was last used, once what happens in the background has ended.
func (w *fixture) lastUsed(ident string) time.Time {
	w.Helper()
	w.Service.Close()
	stored, err := w.Admin.DB.Idents.Read(w.Context(), ident)
	w.must(err)
	return stored.LastUsed
}

// Each login is the last use of its ident, from the registration on.
func TestEachLoginIsTheLastUseOfItsIdent(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	in := w.register(ada, password)
	wantUsed := func(what string, now bool) {
		t.Helper()
		if at := w.lastUsed(adaIdent); at.Equal(w.clock.Now()) != now {
			t.Errorf("%s: last used %v, now %v", what, at, w.clock.Now())
		}
		w.clock.advance(time.Hour)
	}
	wantUsed("a registration", true)
	w.mustLogin(ada, password, in.User.UUID)
	wantUsed("a login by password", true)
	code, browser := w.mailedCode(ada)
	_, err := w.Login.LoginByMail(t.Context(), ada, code, browser)
	w.must(err)
	wantUsed("a login by mail", true)
	_, err = w.Admin.SetPassword(t.Context(), in.User.UUID, password) // the first proof of the address removed it
	w.must(err)
	if _, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from); err == nil {
		t.Fatal("logged in by a wrong password")
	}
	wantUsed("a failed login", false)

	e := w.enroll(w.mustLogin(ada, password, in.User.UUID))
	w.clock.advance(time.Hour)
	pending := w.beginLogin(ada)
	if at := w.lastUsed(adaIdent); at.Equal(w.clock.Now()) {
		t.Error("a login that waits for its second factor counts")
	}
	_, err = w.Login.CompleteLogin(t.Context(), pending.Secret, totpFactor(w.totpCode(e.secret, 0)), from)
	w.must(err)
	wantUsed("a login with a second factor", true)
}

// A user whom an admin creates has not logged in.
func TestAUserWhomAnAdminCreatesHasNotLoggedIn(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.person("eve@example.com", "Eve")
	if at := w.lastUsed("eve@example.com_email"); !at.IsZero() {
		t.Errorf("last used %v", at)
	}
}
