package account_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"belfry/pkg/account/record"
)

// atOnce does something that begins a session, and the same again while the session is being stored: when the second
// has read the record that both need, whose uuid begins with kind, or has come as far as the first. It returns how both
// have ended.
func (w *fixture) atOnce(kind string, do func() error) (first, second error) {
	ended, far := make(chan error, 1), make(chan struct{}, 1)
	proceed := func() {
		select {
		case far <- struct{}{}:
		default:
		}
	}
	var begun atomic.Bool
	var reads atomic.Int32
	w.backend.onStep(func(_ context.Context, s step) error {
		stores := s.store == "Sessions" && s.write != nil && !s.after
		switch {
		case stores && begun.CompareAndSwap(false, true):
			go func() {
				err := do()
				proceed()
				ended <- err
			}()
			<-far
		// What the first read has found is known by the second one.
		case begun.Load() && (stores || strings.HasPrefix(s.uuid, kind) && s.write == nil && reads.Add(1) == 2):
			proceed()
		}
		return nil
	})
	defer w.backend.onStep(nil)
	first = do()
	return first, <-ended
}

func TestOfTwoUsesAtOnceOneLogsIn(t *testing.T) {
	t.Run("a callback", func(t *testing.T) {
		w := newFixture(t, github)
		flow, query := w.flow(false, from, "1815")
		first, second := w.atOnce("flow-", func() error {
			_, _, err := w.Login.FinishProvider(t.Context(), query, flow.Secret, from)
			return err
		})
		w.must(first)
		w.wantRepeated(second, record.ActLoggedIn, true)
	})
	t.Run("a passkey that does not count", func(t *testing.T) {
		w, _, key := withPasskey(t)
		a := w.answer(key)
		a.Cookie = true
		first, second := w.atOnce("passkey-", func() error { return w.byPasskey(a) })
		w.must(first)
		w.wantRepeated(second, record.ActLoggedIn, true)
	})
	t.Run("a second factor", func(t *testing.T) {
		w := newFixture(t)
		e := w.enroll(w.register(ada, password))
		pending, c := w.beginLogin(ada), from
		c.Cookie = true
		first, second := w.atOnce("pending-", func() error {
			_, err := w.Login.CompleteLogin(t.Context(), pending.Secret, recoveryFactor(e.codes[0]), c)
			return err
		})
		w.must(first)
		w.wantRepeated(second, record.ActLoggedIn, true)
	})
}
