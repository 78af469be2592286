package account_test

import (
	"strings"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/account/admin"
	"belfry/pkg/account/method/passwords"
	"belfry/pkg/errs"
	"belfry/pkg/object"
	"belfry/pkg/store"
)

// Forms of one password, as a Mac, a phone and others send it.
const (
	composed   = "caf\u00e9 au lait"
	decomposed = "cafe\u0301 au lait"
	wideSpaces = "caf\u00e9\u00a0au\u3000lait"
)

// hashes counts the hashes that are computed, also in the background.
func (w *fixture) hashes(do func()) (n int) {
	w.ObserveHashes(func(passwords.HashParams) { n++ })
	do()
	w.Close() // waits for the background
	w.ObserveHashes(func(passwords.HashParams) {})
	return n
}

// A password is the same in every form, wherever it is set and wherever it is proven.
func TestAPasswordIsTheSameInEveryForm(t *testing.T) {
	forms := []string{composed, decomposed, wideSpaces}
	for _, set := range forms {
		for how, prepare := range map[string]func(w *fixture){
			"registered": func(w *fixture) { w.register(ada, set) },
			"changed": func(w *fixture) {
				must(w.Recovery.ChangePassword(w.Context(), password, set, with(w.register(ada, password))))
			},
			"recovered": func(w *fixture) {
				w.register(ada, password)
				w.must(w.Recovery.Recover(w.Context(), w.requestRecovery(ada, set), from))
			},
			"set by an admin": func(w *fixture) {
				must(w.Admin.SetPassword(w.Context(), w.register(ada, password).User.UUID, set))
			},
			"created by an admin": func(w *fixture) {
				must(w.Admin.CreateUser(w.Context(), admin.NewUser{Login: ada, Password: set}))
			},
		} {
			w := newFixture(t)
			prepare(w)
			for _, proven := range forms {
				in, err := w.Login.Login(t.Context(), credentials(ada, proven), from)
				if err != nil {
					t.Errorf("%s as %+q, proven as %+q: %v", how, set, proven, err)
					continue
				}
				if _, err := w.Recovery.ChangePassword(t.Context(), proven, set, with(in)); err != nil {
					t.Errorf("%s as %+q, changed with %+q: %v", how, set, proven, err)
				}
			}
			_, err := w.Login.Login(t.Context(), credentials(ada, "cafe au lait"), from)
			w.wantKind(err, errs.Denied)
		}
	}
}

// setHash stores a hash for a user.
func (w *fixture) setHash(user, hash string) {
	w.Helper()
	fields := object.Object{}
	fields.Set("password", hash)
	_, err := w.set.Store("Users").Mutate(w.Context(), user,
		func(store.Stored) (store.Mutation, error) { return store.Mutation{Fields: fields}, nil })
	w.must(err)
}

// A hash of a password as it was sent, which there are, is taken, and replaced by one of the form of all.
func TestAHashOfAPasswordAsItWasSentIsReplaced(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	old := account.HashOf(cheapHash, decomposed)
	w.setHash(in.User.UUID, old)
	hash := func() string { h, _ := w.record("Users", in.User.UUID).Text("password"); return h }

	_, err := w.Login.Login(t.Context(), credentials(ada, composed), from)
	w.wantKind(err, errs.Denied) // nobody knows the form of a hash
	if w.Close(); hash() != old {
		t.Error("replaced by another form")
	}
	if n := w.hashes(func() { w.mustLogin(ada, decomposed, in.User.UUID) }); n < 2 {
		t.Errorf("%d hashes were computed for the form as it was sent", n)
	}
	w.Close()
	better := hash()
	if better == old {
		t.Fatal("not replaced")
	}
	for _, form := range []string{composed, decomposed, wideSpaces} {
		if n := w.hashes(func() { w.mustLogin(ada, form, in.User.UUID) }); n != 1 {
			t.Errorf("%d hashes were computed for %+q", n, form)
		}
	}
	if w.Close(); hash() != better {
		t.Error("replaced again")
	}
}

// How many hashes a login computes depends on the password that is sent, not on whether there is an account, or a
// password of it.
func TestTheHashesOfALoginDependOnWhatIsSentAlone(t *testing.T) {
	w := newFixture(t, func(o *account.Options) { o.Email.UniformErrors = true })
	w.register(ada, password)
	w.register("old@example.com", password)
	w.setHash(w.owner("old@example.com"), account.HashOf(cheapHash, decomposed))
	must(w.Admin.CreateUser(t.Context(), admin.NewUser{Login: "none@example.com"}))
	w.Close()
	for sent, want := range map[string]int{"a wrong password": 1, composed: 1, "e\u0301 wrong password": 2,
		"a\u00a0wrong password": 2} {
		for _, login := range []string{ada, "old@example.com", "none@example.com", "nobody@example.com", "no address"} {
			n := w.hashes(func() {
				_, err := w.Login.Login(t.Context(), credentials(login, sent), from)
				w.wantKind(err, errs.Denied)
			})
			if n != want {
				t.Errorf("%s, %+q: %d hashes, want %d", login, sent, n, want)
			}
		}
	}
}

// The length of a new password is that of its form.
func TestANewPasswordIsMeasuredInItsForm(t *testing.T) {
	w := newFixture(t)
	// 9 bytes, and 6 in NFC.
	_, _, err := w.Registration.Register(t.Context(), credentials(ada, "e\u0301a\u0300o\u0302"), from)
	w.wantKind(err, errs.Invalid)
	long := strings.Repeat("e\u0301", 400) // 1200 bytes, and 800 in NFC
	in := w.register(ada, long)
	w.mustLogin(ada, long, in.User.UUID)
	w.mustLogin(ada, strings.Repeat("\u00e9", 400), in.User.UUID)
}
