package account_test

import (
	"testing"
	"time"

	"belfry/pkg/account/sessions"
	"belfry/pkg/errs"
)

// Nobody waits until a clock that was an hour ahead shows the time of a failure again.
func TestNoLoginWaitsForAClockThatWasSetBack(t *testing.T) {
	w := newFixture(t, limits(0, 2))
	in := w.register(ada, password)
	wrong := func(want errs.Kind) {
		t.Helper()
		_, err := w.Login.Login(t.Context(), credentials(ada, "a wrong password"), from)
		w.wantKind(err, want)
	}
	w.clock.advance(time.Hour)
	wrong(errs.Denied)
	wrong(errs.Denied)
	wrong(errs.Limited)
	w.clock.advance(-time.Hour)
	wrong(errs.Denied) // its failure is counted at the clock's new time
	wrong(errs.Limited)
	w.clock.advance(15 * time.Minute)
	w.mustLogin(ada, password, in.User.UUID)
}

func TestNoMailWaitsForAClockThatWasSetBack(t *testing.T) {
	w := newFixture(t)
	in := w.register(ada, password)
	w.clock.advance(time.Hour)
	w.requestRecovery(ada, "the first password")
	w.clock.advance(-time.Hour)
	w.must(w.Recovery.Recover(t.Context(), w.requestRecovery(ada, "the second password"), from))
	w.mustLogin(ada, "the second password", in.User.UUID)
}

// A session ends when the clock shows its time, and begins again with a clock that is set back, unless
// it was removed in the meantime.
func TestASessionLastsAsLongAsTheClockSays(t *testing.T) {
	for _, removed := range []bool{false, true} {
		w := newFixture(t)
		in := w.register(ada, password)
		w.clock.advance(sessions.SessionIdleTimeout + time.Second)
		if w.valid(in.Token) {
			t.Error("the session lasts longer than the clock says")
		}
		if removed {
			if _, err := w.DeleteExpired(t.Context(), 100); err != nil {
				t.Fatal(err)
			}
		}
		w.clock.advance(-time.Hour)
		if w.valid(in.Token) == removed {
			t.Errorf("removed: %v; valid after the clock was set back: %v", removed, !removed)
		}
	}
}
