package listener

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"belfry/pkg/event"
	"belfry/test/kit"
)

const objects = 100

// killListeners publishes events, kills one of the listeners in each round, and waits until all events
// are handled.
func killListeners(t *testing.T, role string, processes int) *fixture {
	soak := kit.Soak(t, 3)
	events := 2000
	if role == "ordered" { // and so slower
		events = 500
	}
	if soak.Long() {
		events = 20_000
	}
	w := newFixture(t)
	w.publish(numbered("e", events, objects)...)
	running := make([]*child, processes)
	for i := range running {
		running[i] = w.start(role)
	}
	for soak.More() && w.distinct() < events {
		random := soak.Rand()
		more := len(w.received()) + 1 + random.IntN(150)
		w.eventually("some more are handled", func() bool { return len(w.received()) > more || w.distinct() == events })
		i := random.IntN(processes)
		running[i].kill()
		running[i] = w.start(role)
	}
	w.eventually("every event is handled and acknowledged", func() bool { return w.distinct() == events && w.idle() })
	for _, c := range running {
		c.kill()
		if text := c.stderr.String(); strings.Contains(text, "DATA RACE") {
			t.Error(text)
		}
	}
	if n := len(w.dead()); n > 0 {
		t.Errorf("%d events are dead letters", n)
	}
	t.Logf("%d events were handled %d times", events, len(w.received()))
	return w
}

func TestSoakEveryEventIsHandledWhenListenersAreKilled(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"plain", "batch"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			killListeners(t, role, 1)
		})
	}
}

func TestSoakRevisionsOfAnObjectNeverGoBackInAnOrderedListener(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 2} {
		t.Run(strconv.Itoa(processes)+" processes", func(t *testing.T) {
			t.Parallel()
			w := killListeners(t, "ordered", processes)
			last := map[string]int{}
			for _, line := range w.received() {
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

// The poison message ends the process that handles it, with others that are in flight.
func TestOnlyThePoisonMessageBecomesADeadLetter(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"deadly", "deadly, many", "deadly, in order"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			w := newFixture(t)
			w.publish(numbered("before", 5, 5)...)
			w.publish(event.Envelope{ID: poison, UUID: poison, Revision: 1})
			w.publish(numbered("after", 100, 50)...)
			c := w.start(role)
			starts := 1
			w.eventually("all others are handled, and nothing is pending", func() bool {
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
				t.Errorf("the dead letters are %v", dead)
			}
			t.Logf("the process was started %d times", starts)
		})
	}
}
