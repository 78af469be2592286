package account_test

import (
	"context"
	"sync/atomic"
	"testing"

	"belfry/pkg/account/method/passwords"
)

// removedBefore runs two calls at once, and returns the error of the second: one removes an ident, and the other
// changes it. Its removal comes after the other has read it, and before the other writes it.
func (w *fixture) removedBefore(ident string, remove, change func() error) error {
	w.Helper()
	w.Close() // of what runs in the background
	var phase atomic.Int32
	held, release, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.backend.onStep(func(_ context.Context, s step) error {
		switch {
		case s.store != "Idents" || s.uuid != ident || s.write == nil:
		case s.write.Body == nil && !s.after && phase.CompareAndSwap(0, 1):
			close(held)
			<-release
		case s.write.Body == nil && s.after && phase.CompareAndSwap(2, 3):
			close(done)
		case s.write.Body != nil && s.write.IfRevision != 0 && !s.after && phase.CompareAndSwap(1, 2):
			close(release)
			<-done
		}
		return nil
	})
	result := make(chan error, 1)
	go func() { result <- remove() }()
	select {
	case <-held:
	case err := <-result:
		w.Fatalf("the ident was not removed: %v", err)
	}
	changed := change()
	if phase.CompareAndSwap(1, 2) {
		w.Error("the ident was not written")
		close(release)
	}
	<-result
	w.backend.onStep(nil)
	return changed
}

// Who undoes a change while a confirmation of it is about to remove the old address has that address afterwards.
func TestAnUndoingRestoresAnAddressThatIsRemovedMeanwhile(t *testing.T) {
	w := newFixture(t, validatedFirst)
	in := w.register(ada, password)
	confirm, undo := w.change(in, ada, newAda, password)
	client, other := w.now(in), w.twoServices()[1]
	w.must(w.removedBefore(adaIdent,
		func() error { return w.finish(w.Service, newAda, confirm, client) },
		func() error { return w.finish(other, ada, undo, from) }))
	w.wantAddresses(in.User.UUID, adaIdent)
	c := passwords.Credentials{Login: ada, Password: "the next password", Token: w.lastMail(ada).token}
	w.must(w.Recovery.Recover(t.Context(), c, from))
	w.mustLogin(ada, "the next password", in.User.UUID)
}

// Who recovers the account that a stranger has registered with their address has it, even if the stranger is about to
// remove the address.
func TestARecoveryRestoresAnAddressThatIsRemovedMeanwhile(t *testing.T) {
	w := newFixture(t, github)
	eve := w.squat(ada)
	eve = w.mustLogin(ada, password, eve.User.UUID)
	c, other := w.requestRecovery(ada, "the password of ada"), w.twoServices()[1]
	w.must(w.removedBefore(adaIdent,
		func() error { return w.Links.Unlink(t.Context(), &eve.Session, adaIdent) },
		func() error { return other.Recovery.Recover(t.Context(), c, from) }))
	w.wantAddresses(eve.User.UUID, adaIdent)
	w.mustLogin(ada, "the password of ada", eve.User.UUID)
}
