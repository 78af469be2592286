package auth_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"belfry/pkg/auth"
	"belfry/pkg/errs"
)

// How long a login takes does not tell whether there is an account. The two
// are measured in turn, each as often after itself as after the other, so that
// what else the machine does falls on both; a measurement that it has spoilt is
// made again.
func TestALoginTakesAsLongForNobody(t *testing.T) {
	w := begin(t, func(o *auth.Options) {
		o.Email.UniformErrors = true
		o.Hash = auth.HashParams{Memory: 8 << 10, Time: 1, Threads: 1}
	})
	w.user(ada, password)
	const tries, most = 200, 0.1
	logins := [2]string{ada, "bob@example.com"}
	measure := func() (medians [2]time.Duration) {
		var took [2][]time.Duration
		for i := range 2 * tries {
			n := (i + 1) / 2 % 2 // 0, 1, 1, 0
			begun := time.Now()
			_, err := w.Login(t.Context(), creds(logins[n], "a wrong password"), from)
			took[n] = append(took[n], time.Since(begun))
			w.is(err, errs.Denied)
			w.Close() // what a reply does not wait for is not to fall on the next
		}
		for n := range took {
			slices.Sort(took[n])
			medians[n] = took[n][tries/2]
		}
		return medians
	}
	for attempt := range 3 {
		m := measure()
		off := math.Abs(float64(m[0]-m[1])) / float64(m[1])
		t.Logf("known %s, unknown %s, %.1f %% apart", m[0], m[1], 100*off)
		if off <= most {
			return
		}
		if attempt == 2 {
			t.Errorf("a login that is known takes %s, one that is not %s", m[0], m[1])
		}
	}
}
