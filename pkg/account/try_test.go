package account_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belfry/pkg/account/record"
	"belfry/test/kit"
)

// A second factor arrives again while it is being verified. It is no try of its own: it waits for how the first ends,
// and ends so.
func TestASecondFactorInFlightIsWaitedFor(t *testing.T) {
	type again struct{}
	for name, right := range map[string]bool{"right": true, "wrong": false} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t, limits(0, 100))
			e := w.enroll(w.register(ada, password))
			pending, c := w.beginLogin(ada), known()
			answer := recoveryFactor(e.codes[0])
			if !right {
				answer = totpFactor(wrong(w.totpCode(e.secret, 0)))
			}
			waits, counted, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
			var err error
			var reads, writes, held atomic.Int32
			w.backend.onStep(func(ctx context.Context, s step) error {
				ofLogin := s.store == "Tokens" && strings.HasPrefix(s.uuid, "pending-")
				switch {
				case ctx.Value(again{}) != nil:
					if ofLogin && s.write == nil && reads.Add(1) == 2 { // after the one that found the first in flight
						close(waits)
					}
					if ofLogin && s.write != nil && writes.Add(1) == 1 {
						close(counted)
					}
				// The verification uses the code up, or counts it.
				case s.write != nil && !s.after && !ofLogin && held.Add(1) == 1:
					go func() {
						defer close(ended)
						_, err = w.Login.CompleteLogin(context.WithValue(w.Context(), again{}, true), pending.Secret,
							answer, c)
					}()
					select {
					case <-waits:
					case <-counted:
						t.Error("it is a try of its own")
					case <-ended:
						t.Error("it has not waited")
					case <-time.After(kit.Limit):
						t.Error("it does not wait")
					}
				}
				return nil
			})
			_, first := w.Login.CompleteLogin(t.Context(), pending.Secret, answer, c)
			<-ended
			w.backend.onStep(nil)
			if right {
				w.must(first)
				w.wantRepeated(err, record.ActLoggedIn, true)
				return
			}
			w.wantPlain(first)
			w.wantPlain(err)
			for range 3 {
				_, err = w.Login.CompleteLogin(t.Context(), pending.Secret, totpFactor("12345"), c)
				w.wantPlain(err)
			}
			_, err = w.Login.CompleteLogin(t.Context(), pending.Secret, recoveryFactor(e.codes[0]), c)
			w.must(err) // the fifth try, as the two at once were one
		})
	}
}
