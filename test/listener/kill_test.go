package listener

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/event"
)

const (
	events  = 5000
	objects = 100
	kills   = 20
)

// killAgainAndAgain publishes events while listeners are killed at random, two
// processes at a time, and waits until all is handled.
func killAgainAndAgain(t *testing.T, role string, processes int) *world {
	w := newWorld(t)
	w.publish(numbered("e", events, objects)...)
	running := make([]*child, processes)
	for i := range running {
		running[i] = w.start(role)
	}
	for range kills {
		more := len(w.seen()) + 1 + rand.IntN(150)
		w.eventually("some more are handled", func() bool { return len(w.seen()) > more || w.distinct() == events })
		i := rand.IntN(processes)
		running[i].kill()
		running[i] = w.start(role)
	}
	w.eventually("every event is seen and acknowledged", func() bool { return w.distinct() == events && w.idle() })
	for _, c := range running {
		c.kill()
		if text := c.stderr.String(); strings.Contains(text, "DATA RACE") {
			t.Error(text)
		}
	}
	if n := len(w.dead()); n > 0 {
		t.Errorf("%d events are with the dead letters", n)
	}
	t.Logf("%d events were handled %d times", events, len(w.seen()))
	return w
}

func TestAListenerThatIsKilledAgainAndAgainSeesEveryEvent(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"plain", "batch"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			killAgainAndAgain(t, role, 1)
		})
	}
}

func TestAnOrderedListenerNeverSeesARevisionGoBack(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 2} {
		t.Run(strconv.Itoa(processes)+" processes", func(t *testing.T) {
			t.Parallel()
			w := killAgainAndAgain(t, "ordered", processes)
			last := map[string]int{}
			for _, line := range w.seen() {
				fields := strings.Fields(line)
				revision, err := strconv.Atoi(fields[2])
				if err != nil {
					t.Fatal(err)
				}
				if revision < last[fields[1]] {
					t.Errorf("object %s went from revision %d back to %d", fields[1], last[fields[1]], revision)
				}
				last[fields[1]] = revision
			}
		})
	}
}

// TestWhatEndsItsProcessGoesToTheDeadLettersAlone has an event that ends the
// process which handles it, among many that are fetched with it.
func TestWhatEndsItsProcessGoesToTheDeadLettersAlone(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"deadly", "deadly, many", "deadly, in order"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.publish(numbered("before", 5, 5)...)
			w.publish(event.Envelope{ID: poison, UUID: poison, Revision: 1})
			w.publish(numbered("after", 100, 50)...)
			c := w.start(role)
			starts := 1
			w.eventually("all others are seen, and nothing is left", func() bool {
				if c.ended() {
					if code := c.exit(); code != 3 {
						t.Fatalf("the process ended with %d:\n%s", code, c.stderr.String())
					}
					c = w.start(role)
					starts++
				}
				return w.distinct() == 105 && w.idle()
			})
			if dead := w.dead(); !slices.Equal(dead, []string{poison}) {
				t.Errorf("with the dead letters are %v", dead)
			}
			t.Logf("the process was started %d times", starts)
		})
	}
}
