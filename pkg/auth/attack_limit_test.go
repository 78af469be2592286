package auth

import (
	"fmt"
	"testing"
	"time"
)

// Whoever comes from ever new addresses must not make each further one look
// through all that are known.
func TestALimiterThatIsFullMakesRoomForMany(t *testing.T) {
	now := time.Now()
	l := newLimiter(Limits{Address: 60, Account: 5}, func() time.Time { return now })
	for i := range maxKnown + 1 {
		_ = l.spend(fmt.Sprintf("2001:db8:%x:%x::1", i>>16, i&0xffff))
		_ = l.try(fmt.Sprint(i), failures{})
	}
	if n := max(len(l.addresses), len(l.accounts)); n > maxKnown-maxKnown/10 {
		t.Errorf("%d are known still", n)
	}
}
