package account_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"belfry/pkg/account"
	"belfry/pkg/errs"
	"belfry/pkg/store/driver"
)

// idents returns the uuids of a user's idents.
func (w *fixture) idents(user string) []string {
	w.Helper()
	uuids := []string{}
	for f, err := range w.set.Store("Idents").Linked(w.Context(), "user", user, 100) {
		w.must(err)
		uuids = append(uuids, f.UUID)
	}
	return uuids
}

const adaIdent = "ada@example.com_email"

func TestUnlink(t *testing.T) {
	w := newFixture(t, github)
	bob := w.register("bob@example.com", password)
	in := w.register(ada, password)
	_, err := w.loginByProvider("1815", with(in))
	w.must(err)
	me := &in.Session
	for _, not := range []string{"bob@example.com_email", "none", "", "../x", "a/b", in.User.UUID} {
		w.wantKind(w.Links.Unlink(t.Context(), me, not), errs.NotFound)
	}
	w.must(w.Links.Unlink(t.Context(), me, adaIdent))
	w.wantKind(w.Links.Unlink(t.Context(), me, adaIdent), errs.NotFound)
	w.wantKind(w.Links.Unlink(t.Context(), me, "1815_github"), errs.Conflict)
	if got := w.idents(in.User.UUID); !slices.Equal(got, []string{"1815_github"}) {
		t.Errorf("ways in: %v", got)
	}
	_, err = w.Login.Login(t.Context(), credentials(ada, password), from)
	w.wantKind(err, errs.NotFound)
	back, err := w.loginByProvider("1815", from)
	w.must(err)
	if back.User.UUID != in.User.UUID || !w.valid(in.Token) {
		t.Error("the way in that is left does not work, or the session has ended")
	}
	w.wantKind(w.Links.Unlink(t.Context(), &bob.Session, "bob@example.com_email"), errs.Conflict)

	// An ident that is linked again counts, even if it was not deleted yet.
	for range 2 {
		_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), with(back))
		w.must(err)
	}
	w.must(w.Links.Unlink(t.Context(), me, "1815_github"))
	w.wantKind(w.Links.Unlink(t.Context(), me, adaIdent), errs.Conflict)
	w.mustLogin(ada, password, in.User.UUID)
}

// An ident that was marked and not deleted does not count, and can be unlinked
// or linked again.
func TestAnInterruptedUnlinkCanBeRepeated(t *testing.T) {
	for _, again := range []string{"unlink", "link"} {
		w := newFixture(t, github)
		in := w.register(ada, password)
		in, err := w.loginByProvider("1815", with(in))
		w.must(err)
		broken := errors.New("broken")
		w.backend.onStep(failWrites("Idents", broken))
		if err := w.Links.Unlink(t.Context(), &in.Session, "1815_github"); !errors.Is(err, broken) {
			t.Fatal(err)
		}
		w.backend.onStep(nil)
		w.wantKind(w.Links.Unlink(t.Context(), &in.Session, adaIdent), errs.Conflict)
		if again == "link" {
			in, err = w.loginByProvider("1815", with(in))
			w.must(err)
			w.must(w.Links.Unlink(t.Context(), &in.Session, adaIdent))
			continue
		}
		w.must(w.Links.Unlink(t.Context(), &in.Session, "1815_github"))
		w.wantKind(w.Links.Unlink(t.Context(), &in.Session, adaIdent), errs.Conflict)
		w.mustLogin(ada, password, in.User.UUID)
	}
}

// An ident that is unlinked between the two steps of linking it is deleted, and
// does not count meanwhile.
func TestUnlinkingAnIdentThatIsBeingLinked(t *testing.T) {
	w := newFixture(t, github)
	other, _ := w.newService()
	in := w.register(ada, password)
	in, err := w.loginByProvider("1815", with(in))
	w.must(err)
	w.must(w.Links.Unlink(t.Context(), &in.Session, adaIdent))

	condemned, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	release := sync.OnceFunc(func() { close(goOn) })
	defer release()
	var linked, unlinking atomic.Bool
	w.backend.onStep(func(_ context.Context, s step) error {
		switch {
		case s.uuid != adaIdent || s.write == nil:
		case s.write.Body != nil && s.after && linked.CompareAndSwap(false, true):
			go func() { done <- other.Links.Unlink(t.Context(), &in.Session, adaIdent) }()
			<-condemned
		case s.write.Body == nil && !s.after && unlinking.CompareAndSwap(false, true):
			close(condemned)
			<-goOn
		}
		return nil
	})
	_, _, err = w.Registration.Register(t.Context(), credentials(ada, password), with(in))
	w.must(err)
	w.wantKind(w.Links.Unlink(t.Context(), &in.Session, "1815_github"), errs.Conflict)
	release()
	w.must(<-done)
	if got := w.idents(in.User.UUID); !slices.Equal(got, []string{"1815_github"}) {
		t.Errorf("ways in: %v", got)
	}
}

func TestALaggingIndexDoesNotCountAsAnIdent(t *testing.T) {
	w := newFixture(t, github)
	in := w.register(ada, password)
	w.backend.lagIndex("Idents",
		driver.Record{UUID: "gone_github", Revision: 1, Body: []byte(`{"user":"` + in.User.UUID + `"}`)})
	w.wantKind(w.Links.Unlink(t.Context(), &in.Session, adaIdent), errs.Conflict)
	w.mustLogin(ada, password, in.User.UUID)
}

// Two services unlink all idents concurrently while one is linked again: one
// remains, and its user can log in.
func TestTheLastIdentIsNeverRemoved(t *testing.T) {
	w := newFixture(t, github)
	other, _ := w.newService()
	for round := range 60 {
		login := fmt.Sprintf("ada%d@example.com", round)
		in := w.register(login, password)
		code := fmt.Sprint(round)
		in, err := w.loginByProvider(code, with(in))
		w.must(err)
		var racing sync.WaitGroup
		for _, s := range []*account.Service{w.Service, other} {
			for _, ident := range []string{login + "_email", code + "_github"} {
				racing.Go(func() {
					w.allowKinds(s.Links.Unlink(t.Context(), &in.Session, ident), errs.NotFound, errs.Conflict)
				})
			}
		}
		racing.Go(func() {
			_, _, err := other.Registration.Register(t.Context(), credentials(login, password), with(in))
			w.allowKinds(err, errs.Conflict)
		})
		racing.Wait()
		left := w.idents(in.User.UUID)
		switch {
		case len(left) == 0:
			t.Fatalf("round %d: no way in is left", round)
		case slices.Contains(left, login+"_email"):
			w.mustLogin(login, password, in.User.UUID)
		default:
			back, err := w.loginByProvider(code, from)
			w.must(err)
			if back.User.UUID != in.User.UUID {
				t.Fatalf("round %d: the way in that is left is another's", round)
			}
		}
	}
}
