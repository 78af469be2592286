package account

import (
	"fmt"
	"testing"
	"time"

	"belfry/pkg/store/object"
)

func TestAMailboxRemembersFew(t *testing.T) {
	s, mailbox := &Service{now: time.Now}, object.Object{}
	for i := range 3 * maxUsed {
		fields := object.Object{}
		s.setUsed(fields, mailbox.Encode(), usedSecret{Hash: digest(fmt.Sprint(i)), For: purposeValidate, Act: ActConfirmed})
		mailbox = mailbox.Merge(fields)
	}
	all := usedOf(mailbox.Encode())
	if len(all) != maxUsed || !secretMatches(fmt.Sprint(3*maxUsed-1), all[maxUsed-1].Hash) {
		t.Errorf("%d are remembered: %+v", len(all), all)
	}
}

// Whoever finds no room does not wait, nor does who comes long after the first use.
func TestFewRepetitionsWait(t *testing.T) {
	s := &Service{now: time.Now, repeats: make(chan struct{}, 1)}
	asked := 0
	notYet := func() (bool, bool, error) { asked++; return false, false, nil }
	for name, begun := range map[string]time.Time{"many": s.now(), "late": s.now().Add(-time.Hour)} {
		if name == "many" {
			s.repeats <- struct{}{}
		}
		asked = 0
		if is, err := s.await(t.Context(), begun, notYet); is || err != nil || asked != 1 {
			t.Errorf("%s: %v %v, asked %d times", name, is, err, asked)
		}
		if name == "many" {
			<-s.repeats
		}
	}
}
