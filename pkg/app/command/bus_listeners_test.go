package command

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"belfry/pkg/event"
	"belfry/pkg/listener/replay"
	"belfry/pkg/missed"
)

// What the consumers of an ordered listener have missed is one row, also when they no longer exist.
func TestListenersAreShownWithWhatTheyHaveMissed(t *testing.T) {
	since := time.Date(2026, 11, 14, 8, 0, 0, 0, time.UTC)
	gaps := []missed.Status{
		{Consumer: "mapping", Missed: missed.Missed{Reason: missed.Replaced, Events: 3, AtLeast: true, Since: since,
			Repaired: since.Add(time.Hour)}},
		{Consumer: "audit", Missed: missed.Missed{Reason: missed.Expired, Events: 7, Since: since}},
	}
	for p := range event.Partitions {
		gaps = append(gaps, missed.Status{Consumer: fmt.Sprintf("old-%d", p), Gone: true, Missed: missed.Missed{
			Reason: missed.Replaced, Events: 2, AtLeast: true, Since: since.Add(time.Duration(p) * time.Minute),
		}})
	}
	rows := listenerRows([]*replay.Listener{
		{Name: "audit", Consumers: []string{"audit"}}, {Name: "mail", Consumers: []string{"mail"}, PausedUntil: since},
		{Name: "mapping", Consumers: []string{"mapping"}},
		{Name: "tea", Consumers: []string{"tea"}, Used: true},
		{Name: "water", Consumers: []string{"water"}, Used: true, Last: since},
	}, gaps)
	var out strings.Builder
	if err := writeListeners(&out, rows); err != nil {
		t.Fatal(err)
	}
	want := `NAME                                      LAG  UNACKED  REDELIVERED  RETRIES  LETTERS  LAST ACTIVE             MISSED
audit                                     0    0        0            0        0        never                   at most 7 events since 2026-11-14T08:00:00Z, which the log has removed
mail (paused until 2026-11-14T08:00:00Z)  0    0        0            0        0        never                   -
mapping                                   0    0        0            0        0        never                   at least 3 events since 2026-11-14T08:00:00Z: the log was replaced, repaired 2026-11-14T09:00:00Z
tea                                       0    0        0            0        0        before the bus started  -
water                                     0    0        0            0        0        2026-11-14T08:00:00Z    -
old (ordered) (gone)                      0    0        0            0        0        never                   at least 64 events since 2026-11-14T08:00:00Z: the log was replaced
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
