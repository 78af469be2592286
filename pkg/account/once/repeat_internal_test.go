package once

import (
	"fmt"
	"testing"
	"time"

	"belfry/pkg/account/record"
	"belfry/pkg/account/secret"
)

func TestAMailboxRemembersFew(t *testing.T) {
	s, mailbox := &Uses{DB: &record.Stores{Now: time.Now}}, record.Mailbox{}
	for i := range 3 * maxUsed {
		s.AddUsed(&mailbox,
			record.UsedSecret{Hash: secret.Digest(fmt.Sprint(i)), For: record.PurposeValidate,
				Act: record.ActConfirmed})
	}
	all := mailbox.Used
	if len(all) != maxUsed || !secret.Matches(fmt.Sprint(3*maxUsed-1), all[maxUsed-1].Hash) {
		t.Errorf("%d are remembered: %+v", len(all), all)
	}
}

// Whoever finds no room does not wait, nor does who comes long after the first use.
func TestFewRepetitionsWait(t *testing.T) {
	s := &Uses{DB: &record.Stores{Now: time.Now}, repeats: make(chan struct{}, 1)}
	asked := 0
	notYet := func() (bool, bool, error) { asked++; return false, false, nil }
	for name, begun := range map[string]time.Time{"many": s.DB.Now(), "late": s.DB.Now().Add(-time.Hour)} {
		if name == "many" {
			s.repeats <- struct{}{}
		}
		asked = 0
		if is, err := s.Await(t.Context(), begun, notYet); is || err != nil || asked != 1 {
			t.Errorf("%s: %v %v, asked %d times", name, is, err, asked)
		}
		if name == "many" {
			<-s.repeats
		}
	}
}
